package inspect

import (
	"fmt"
	"strings"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// RequiredFinding says what a table lacks whose units are found through another, or whose rows have a rank.
func RequiredFinding(t *policy.Table, proven bool) []backend.Finding {
	if t.RowRank != "" && !proven {
		return []backend.Finding{{Fatal: true, Text: fmt.Sprintf("table %s: no unique constraint on %s and %s, of which the latter is a smallint, integer or bigint, proves that no two rows of a %s have the same row_rank; dpproxy prepare prints the SQL that makes one",
			t.Name, t.UnitColumn, t.RowRank, t.Dataset.Unit.Name)}}
	}
	if t.Via == nil || proven {
		return nil
	}
	return []backend.Finding{{Fatal: true, Text: fmt.Sprintf("table %s: its %ss are found through %s.%s, which no unique, NOT NULL constraint proves different in each row; one %[2]s's new row could move another's",
		t.Name, t.Dataset.Unit.Name, t.Via.Table.Name, t.Via.Key)}}
}

// DeclaredKeys are the keys that the policy declares unique, as a proof is asked of each.
func DeclaredKeys(t *policy.Table) (list []rewrite.Unique) {
	for _, columns := range t.Unique {
		list = append(list, rewrite.Unique{Table: t, Columns: columns, Nullable: true})
	}
	return list
}

// UniqueFindings says of each key that the policy declares unique whether a constraint proves it.
func UniqueFindings(t *policy.Table, proven func(rewrite.Unique) bool) (list []backend.Finding) {
	for _, u := range DeclaredKeys(t) {
		key := strings.Join(u.Columns, ", ")
		if proven(u) {
			list = append(list, backend.Finding{Note: true, Text: fmt.Sprintf("table %s: a constraint proves that %s is unique, so joins along it need no more numbering", t.Name, key)})
			continue
		}
		list = append(list, backend.Finding{Text: fmt.Sprintf("table %s: no constraint proves that (%s) is unique; in joins that rely on it, of the rows of one %s that share it one is taken, which each query sorts for",
			t.Name, key, t.Dataset.Unit.Name)})
	}
	return list
}
