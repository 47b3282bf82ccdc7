package rewrite

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// How the tables of a snapshot, and their columns, are called, and how their rows stand in the place of the source's:
//
//	(SELECT t.u AS u, t."1:minutes" AS n1 FROM "visits@1f…" AS t WHERE t.r <= 10)

// Copied is the name of a private table of the policy in a snapshot. Snapshots that have all names that a policy needs
// serve it.
func Copied(t *policy.Table) string { return copyName(t) }

// copyName is the name of a table in a snapshot. It tells tables of one name apart whose rows mean something else, but
// for what is not in the copy: the bounds, which are r's, and the keys of open columns, which are found later.
func copyName(t *policy.Table) string {
	own := *t
	own.MaxRowsPerUnit, own.MaxGroups, own.MaxPerGroup, own.Columns = 0, 0, 0, nil
	h := sha256.New()
	for _, c := range t.Columns {
		switch {
		case c.Made():
			continue // of columns that are there
		case c.Open != nil:
			c = c.Open
		}
		own.Columns = append(own.Columns, c)
		fmt.Fprintf(h, "%q ", c.Name) // which are named by their places, as the keys are
	}
	for _, k := range t.Keys {
		fmt.Fprintf(h, "%q ", k.Source)
	}
	fmt.Fprintf(h, "%q %d ", t.Dataset.ID, unitKind(t))
	h.Write(own.Fingerprint())
	return t.Name + "@" + hex.EncodeToString(h.Sum(nil)[:8])
}

// copied and copiedKey name a column's values and a key in a snapshot, by their places: DuckDB does not tell a from A.
func (w *columns) copied(c *policy.Column) string {
	at := slices.IndexFunc(w.table.Columns, func(have *policy.Column) bool { return have.Name == c.Name })
	if at < 0 || c.Made() {
		w.fail("a column that a snapshot does not have")
	}
	return dialect.QuoteName(strconv.Itoa(at+1) + ":" + c.Name)
}

func (w *columns) copiedKey(k *policy.Column) string {
	return dialect.QuoteName("j" + strconv.Itoa(slices.Index(w.table.Keys, k)+1) + ":" + k.Source)
}
