package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/backend/units"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// source is a private database that snapshots are made of. To add one: its words (package dialect), what its catalog says of the
// schema, and a consistent read; then name it in Open.
type source interface {
	// Dialect is that of the extractions that it reads.
	Dialect() dialect.Dialect
	// identity names the database: a file that was made of another one is not taken up.
	identity() string
	// Inspect is Backend's, copyFindings what a snapshot of a dataset's tables refuses beyond it: keys and units of which equal values
	// may have different texts, or of which one row could fail each copy.
	Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) ([]Finding, error)
	copyFindings(ctx context.Context, d *policy.Dataset) ([]Finding, error)
	// Adopt is Backend's.
	Adopt(p *policy.Policy)
	// ReadPublic is Backend's.
	ReadPublic(ctx context.Context, t *policy.Table) (privacy.Released[[][]policy.Value], error)
	// consistent runs do once over rows of one moment, until ctx ends: those of the tables that into is to have. The schema in that
	// moment is the one that Inspect saw for their policy, which may not be in force yet; its error is ErrDrift where it is not, and otherwise do's, or one that holds no text of
	// the database.
	consistent(ctx context.Context, into *maker, do func(reading) error) error
	Close() error
}

// reading is a source in one moment.
type reading interface {
	// proven tells whether constraints prove, in that moment, all that is needed.
	proven(ctx context.Context, needs []rewrite.Unique) (bool, error)
	// numbers tells whether rows come with units that the maker has numbered, where they are texts and it numbers them.
	numbers() bool
	// rows puts the rows of an extraction into a table. No value may fail it; units.ErrMany is for the maker.
	rows(ctx context.Context, e rewrite.Extraction, into *staged) error
}

// staged is the table of a file that is thrown away in which the rows of an extraction wait to be put in order.
type staged struct {
	*maker
	name  string         // in the catalog staged
	units *units.Numbers // of fields that name units by texts; nil: these wait as they are
	counted
}

// stagedTable is where the rows of the i-th extraction wait.
func stagedTable(i int) string { return fmt.Sprintf("staged.main.t%d", i) }

// stage makes the table of the i-th extraction.
func (m *maker) stage(ctx context.Context, i int, e rewrite.Extraction) (*staged, error) {
	var fields []string
	into := &staged{maker: m, name: fmt.Sprintf("t%d", i)}
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
	return into, m.exec(ctx, "CREATE OR REPLACE TABLE "+stagedTable(i)+" ("+strings.Join(fields, ", ")+")")
}

// typeOf is the type of a field's column.
func (s *staged) typeOf(f *rewrite.Field) string {
	if f.OfUnit && s.units != nil {
		return "BIGINT"
	}
	return map[rewrite.FieldKind]string{rewrite.Whole: "BIGINT", rewrite.Real: "DOUBLE", rewrite.Words: "VARCHAR", rewrite.Fixed: "BIGINT", rewrite.Long: "VARCHAR"}[f.Kind]
}

// read reads the tables of a snapshot, and notes what constraints prove of them.
func (m *maker) read(ctx context.Context, from source) error {
	return from.consistent(ctx, m, func(r reading) error {
		if r.numbers() {
			m.units = map[string]*units.Numbers{}
		}
		err := m.readAll(ctx, r)
		if errors.Is(err, units.ErrMany) { // the same rows again, in the same moment
			m.log.Info("snapshot: reading again, to number units on the disk")
			m.units = nil
			err = m.readAll(ctx, r)
		}
		return err
	})
}

// readAll reads each table, numbering units where they are to be numbered.
func (m *maker) readAll(ctx context.Context, r reading) error {
	m.light = make([]bool, len(m.list))
	for i, e := range m.list {
		if sound, err := r.proven(ctx, e.Required()); err != nil || !sound {
			return errors.Join(err, errUnproven)
		}
		if err := m.prove(ctx, e.Table, r); err != nil {
			return err
		}
		begun := time.Now()
		into, err := m.stage(ctx, i, e)
		if err == nil {
			err = r.rows(ctx, e, into)
		}
		if err != nil {
			return err
		}
		m.light[i] = into.counted.light()
		m.log.Info("snapshot: table read", "table", e.Table.Name, "of", len(m.list), "done", i+1, "seconds", int(time.Since(begun).Seconds()))
	}
	return nil
}

// prove notes what constraints prove of a table: one row a unit, and the keys that the policy declares unique.
func (m *maker) prove(ctx context.Context, t *policy.Table, r reading) error {
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
		sound, err := r.proven(ctx, []rewrite.Unique{u})
		if err != nil {
			return err
		}
		m.proven[keyName(u)] = sound
	}
	return nil
}
