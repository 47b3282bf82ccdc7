package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/units"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Source is a private database that snapshots are made of. To add one: its words (package dialect), what its catalog
// says of the schema, and a consistent read; then name it in engines.Open.
type Source interface {
	// Dialect is that of the extractions that it reads.
	Dialect() dialect.Dialect
	// Identity names the database: a file that was made of another one is not taken up.
	Identity() string
	// Inspect is Backend's, CopyFindings what a snapshot of a dataset's tables refuses beyond it: keys and units of
	// which equal values may have different texts, or of which one row could fail each copy.
	Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) ([]backend.Finding, error)
	CopyFindings(ctx context.Context, d *policy.Dataset) ([]backend.Finding, error)
	// Adopt is Backend's.
	Adopt(p *policy.Policy)
	// ReadPublic is Backend's.
	ReadPublic(ctx context.Context, t *policy.Table) (privacy.Released[[][]policy.Value], error)
	// Consistent runs do once over rows of one moment, until ctx ends: those of the tables that into is to have. The
	// schema in that moment is the one that Inspect saw for their policy, which may not be in force yet; its error is
	// ErrDrift where it is not, and otherwise do's, or one that holds no text of the database.
	Consistent(ctx context.Context, into *Maker, do func(Reading) error) error
	Close() error
}

// Reading is a source in one moment.
type Reading interface {
	// Proven reports whether constraints prove, in that moment, all that is needed.
	Proven(ctx context.Context, needs []rewrite.Unique) (bool, error)
	// Numbers reports whether rows come with units that the maker has numbered, where they are texts and it numbers
	// them.
	Numbers() bool
	// Rows puts the rows of an extraction into a table. No value may fail it; units.ErrMany is for the maker.
	Rows(ctx context.Context, e rewrite.Extraction, into *Staged) error
}

// Staged is the table of a file that is thrown away in which the rows of an extraction wait to be put in order.
type Staged struct {
	*Maker
	Name  string         // in the catalog staged
	units *units.Numbers // of fields that name units by texts; nil means these wait as they are
	Counted
}

// stagedTable is where the rows of the i-th extraction wait.
func stagedTable(i int) string { return fmt.Sprintf("staged.main.t%d", i) }

// stage makes the table of the i-th extraction.
func (m *Maker) stage(ctx context.Context, i int, e rewrite.Extraction) (*Staged, error) {
	var fields []string
	into := &Staged{Maker: m, Name: fmt.Sprintf("t%d", i)}
	for i := range e.Fields {
		f := &e.Fields[i]
		if f.OfUnit && m.units != nil {
			if into.units = m.units[e.Table.Dataset.ID]; into.units == nil {
				into.units = units.New(&m.unitsTaken, m.unitsMost)
				m.units[e.Table.Dataset.ID] = into.units
			}
		}
		fields = append(fields, f.Name+" "+into.typeOf(f))
	}
	return into, m.Exec(ctx, "CREATE OR REPLACE TABLE "+stagedTable(i)+" ("+strings.Join(fields, ", ")+")")
}

// typeOf is the type of a field's column.
func (s *Staged) typeOf(f *rewrite.Field) string {
	if f.OfUnit && s.units != nil {
		return "BIGINT"
	}
	return map[rewrite.FieldKind]string{rewrite.Whole: "BIGINT", rewrite.Real: "DOUBLE", rewrite.Words: "VARCHAR", rewrite.Fixed: "BIGINT", rewrite.Long: "VARCHAR"}[f.Kind]
}

// read reads the tables of a snapshot, and notes what constraints prove of them.
func (m *Maker) read(ctx context.Context, from Source) error {
	return from.Consistent(ctx, m, func(r Reading) error {
		if r.Numbers() {
			m.units = map[string]*units.Numbers{}
		}
		err := m.readAll(ctx, r)
		if errors.Is(err, units.ErrMany) { // the same rows again, in the same moment
			m.Log.Info("snapshot: reading again, to number units on the disk")
			m.units = nil
			err = m.readAll(ctx, r)
		}
		return err
	})
}

// readAll reads each table, numbering units where they are to be numbered.
func (m *Maker) readAll(ctx context.Context, r Reading) error {
	m.light = make([]bool, len(m.List))
	for i, e := range m.List {
		if sound, err := r.Proven(ctx, e.Required()); err != nil || !sound {
			return errors.Join(err, execute.ErrUnproven)
		}
		if err := m.prove(ctx, e.Table, r); err != nil {
			return err
		}
		begun := time.Now()
		into, err := m.stage(ctx, i, e)
		if err == nil {
			err = r.Rows(ctx, e, into)
		}
		if err != nil {
			return err
		}
		m.light[i] = into.Counted.Light()
		m.Log.Info("snapshot: table read", "table", e.Table.Name, "of", len(m.List), "done", i+1, "seconds", int(time.Since(begun).Seconds()))
	}
	return nil
}

// prove notes what constraints prove of a table: one row a unit, and the keys that the policy declares unique.
func (m *Maker) prove(ctx context.Context, t *policy.Table, r Reading) error {
	if t.View.Text != "" {
		return nil
	}
	var list []rewrite.Unique
	if t.UnitColumn != "" {
		list = append(list, rewrite.Unique{Table: t, Columns: []string{t.UnitColumn}})
	}
	for _, columns := range t.Unique {
		list = append(list, rewrite.Unique{Table: t, Columns: columns, Nullable: true})
	}
	for _, u := range list {
		sound, err := r.Proven(ctx, []rewrite.Unique{u})
		if err != nil {
			return err
		}
		m.Proven[keyName(u)] = sound
	}
	return nil
}
