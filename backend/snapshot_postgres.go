package backend

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/jackc/pgx/v5"

	"database/sql/driver"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// longestCopy bounds the copy that a start waits for.
const longestCopy = 24 * time.Hour

// extract reads tables for a snapshot in one transaction, on a connection of its own, and tells what constraints prove in it.
func (b *Postgres) extract(ctx context.Context, list []rewrite.Extraction, into *maker) error {
	limit := longestCopy
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Until(deadline)
	}
	conn, err := pgx.ConnectConfig(ctx, b.aside.Config().ConnConfig)
	if err != nil {
		return ErrUnavailable
	}
	defer conn.Close(context.WithoutCancel(ctx))
	shapes := b.shapes()
	err = within(ctx, conn, limit, func(tx pgx.Tx) error {
		found, err := lookAgain(ctx, tx, shapes, nil)
		switch {
		case err != nil:
			return err
		case found.limited:
			return errSettings
		case found.drifted:
			return ErrDrift
		}
		for i, e := range list {
			if sound, err := proven(ctx, tx, e.Required()); err != nil || !sound {
				return errors.Join(err, errUnproven)
			}
			if err := into.prove(e.Table, func(u rewrite.Unique) (bool, error) { return proven(ctx, tx, []rewrite.Unique{u}) }); err != nil {
				return err
			}
			begun := time.Now()
			err := into.stage(ctx, i, e, func(add *duckdb.Appender) error { return copyRows(ctx, tx, e, add) })
			if err != nil {
				return err
			}
			into.log.Info("snapshot: table read", "table", e.Table.Name, "of", len(list), "done", i+1, "seconds", int(time.Since(begun).Seconds()))
		}
		return nil
	})
	switch {
	case err == nil, errors.Is(err, ErrDrift), errors.Is(err, errMaking):
		return err
	case errors.Is(err, errSettings):
		return ErrSettings
	}
	return fmt.Errorf("the private tables cannot be read (%s)", cause(err))
}

// prove notes what constraints prove of a table: one row a unit, and the keys that the policy declares unique.
func (m *maker) prove(t *policy.Table, proven func(rewrite.Unique) (bool, error)) error {
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
		sound, err := proven(u)
		if err != nil {
			return err
		}
		m.proven[keyName(u)] = sound
	}
	return nil
}

// copyRows appends the rows of an extraction, which come in binary.
func copyRows(ctx context.Context, tx pgx.Tx, e rewrite.Extraction, add *duckdb.Appender) error {
	args := make([][]byte, len(e.Args()))
	for i, a := range e.Args() {
		text, ok := a.(string)
		if !ok {
			return errResult
		}
		args[i] = []byte(text)
	}
	rows := tx.Conn().PgConn().ExecParams(ctx, e.SQL(), args, nil, nil, []int16{1})
	row := make([]driver.Value, len(e.Fields))
	for rows.NextRow() {
		values := rows.Values()
		if len(values) != len(row) {
			_, _ = rows.Close()
			return errResult
		}
		for i, v := range values {
			switch kind := e.Fields[i].Kind; {
			case v == nil:
				row[i] = nil
			case kind == rewrite.Words:
				row[i] = string(v)
			case kind == rewrite.Fixed:
				n, ok := fixed(v, int(e.Fields[i].Scale))
				if !ok {
					_, _ = rows.Close()
					return errResult
				}
				row[i] = n
			case len(v) != 8:
				_, _ = rows.Close()
				return errResult
			case kind == rewrite.Whole:
				row[i] = int64(binary.BigEndian.Uint64(v))
			default:
				row[i] = math.Float64frombits(binary.BigEndian.Uint64(v))
			}
		}
		if err := add.AppendRow(row...); err != nil {
			_, _ = rows.Close()
			return errMaking
		}
	}
	_, err := rows.Close()
	return err
}

// fixed is floor(value · 10^scale) of a numeric as PostgreSQL sends it in binary: the number of its digits to the base 10,000, the
// power of the first, the sign, and the digits. NaN, infinities and what no int64 holds are none: no domain that is Fixed has them.
func fixed(v []byte, scale int) (n int64, ok bool) {
	if len(v) < 8 {
		return 0, false
	}
	digits, weight, sign := int(binary.BigEndian.Uint16(v)), int(int16(binary.BigEndian.Uint16(v[2:]))), binary.BigEndian.Uint16(v[4:])
	const negative = 0x4000
	if sign != 0 && sign != negative || len(v) != 8+2*digits {
		return 0, false
	}
	cut := false // something is left out below the last digit that is kept
	for i := range digits {
		d := int64(binary.BigEndian.Uint16(v[8+2*i:]))
		switch power := 4*(weight-i) + scale; {
		case d == 0:
		case power > 18:
			return 0, false
		case power >= 0:
			if d > (math.MaxInt64-n)/powers[power] {
				return 0, false
			}
			n += d * powers[power]
		case power > -4:
			kept := d / powers[-power]
			cut = cut || kept*powers[-power] != d
			if kept > math.MaxInt64-n {
				return 0, false
			}
			n += kept
		default:
			cut = true
		}
	}
	if sign == negative {
		if n = -n; cut {
			n--
		}
	}
	return n, true
}

// powers are those of ten.
var powers = func() (list [19]int64) {
	list[0] = 1
	for i := range list[1:] {
		list[i+1] = 10 * list[i]
	}
	return list
}()

// deterministicSQL asks whether a column's texts are equal where their bytes are.
const deterministicSQL = `SELECT c.collisdeterministic
FROM pg_catalog.pg_namespace n
JOIN pg_catalog.pg_class r ON r.relnamespace = n.oid AND r.relname = $2::pg_catalog.name
JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attname = $3::pg_catalog.name AND NOT a.attisdropped
JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
WHERE n.nspname = $1::pg_catalog.name`

// copyFindings refuses keys that a snapshot would compare otherwise: there units and keys that are no whole numbers are texts, which
// are equal where their bytes are.
func (b *Postgres) copyFindings(ctx context.Context, d *policy.Dataset) (list []Finding, err error) {
	err = b.look(ctx, defaultDeadline, func(tx pgx.Tx) error {
		have, err := datasetShape(ctx, tx, d)
		if err != nil {
			return err
		}
		for _, t := range d.Tables {
			if t.Public || t.Analysed() {
				continue
			}
			schema, name := relationOf(t, dialect.PostgreSQL)
			for _, key := range keyColumns(t) {
				why := ""
				c := have[place{schema, name, key}]
				switch kind := strings.ToLower(c.kindOf); {
				case numberKind(kind) == "floating", kind == "citext", kind == "numeric" && c.scale < 0:
					why = "is " + c.kindOf
				case t.View.Text == "":
					deterministic := true
					if err := tx.QueryRow(ctx, deterministicSQL, schema, name, key).Scan(&deterministic); err != nil && !errors.Is(err, pgx.ErrNoRows) {
						return err
					}
					if !deterministic {
						why = "has a collation that is not deterministic"
					}
				}
				if why != "" {
					list = append(list, Finding{Fatal: true, Text: fmt.Sprintf("table %s: the key %s %s, of which equal values may have different texts; backend.snapshot compares texts: "+
						"give it another type or collation, or read live", t.Name, key, why)})
				}
			}
		}
		for _, pair := range comparedKeys(d) {
			var types [2]string
			for i, k := range pair {
				schema, name := relationOf(k.Table, dialect.PostgreSQL)
				types[i] = have[place{schema, name, k.Source}].kindOf
			}
			if a, b := numberKind(types[0]), numberKind(types[1]); a != b && a != "" && b != "" {
				list = append(list, Finding{Fatal: true, Text: fmt.Sprintf("table %s, column %s (%s), and table %s, column %s (%s): backend.snapshot compares them as texts, in which equal numbers of these types differ; "+
					"give both one type, or read live", pair[0].Table.Name, pair[0].Source, types[0], pair[1].Table.Name, pair[1].Source, types[1])})
			}
		}
		return nil
	})
	if err != nil {
		b.log.Warn("the private database's keys cannot be read", "cause", cause(err))
		return nil, ErrUnavailable
	}
	return list, nil
}
