package truth

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// way is how a statement is asked: by which messages, and where its constants are.
type way int

const (
	simple   way = iota // one text
	extended            // Parse, Bind, Execute: constants are parameters as texts
	binary              // and those that have a binary form are sent in it; what comes back is binary
	named               // Parse once, Bind and Execute twice
	prepared            // PREPARE and EXECUTE
	cursor              // DECLARE, FETCH in two parts
	copied              // COPY (…) TO STDOUT
	ways
)

var wayNames = []string{"simple", "extended", "binary", "named", "PREPARE", "cursor", "COPY"}

// words are a text in which constants are written or are parameters, and these.
type words struct {
	sql    string
	values [][]byte // nil: NULL
	types  []uint32 // 0: the server finds out
	binary []int16
	plain  []string // the values as PREPARE's callers write them
}

// written puts constants into a text that has marks: as parameters, but where that is not asked for.
func (d *drawn) written(text string, parameters, inBinary bool) words {
	out, number := words{}, map[int]int{}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x01")
		b.WriteString(before)
		if !found {
			break
		}
		at, rest, _ := strings.Cut(after, "\x02")
		text = rest
		var i int
		_, _ = fmt.Sscan(at, &i)
		g := d.given[i]
		sent, format := []byte(g.text), int16(0)
		if inBinary && g.exact {
			if wire, ok := wireOf(g); ok {
				sent, format = wire, 1
			}
		}
		if !parameters || g.always {
			b.WriteString(g.sql)
			continue
		}
		if number[i] == 0 && g.null {
			sent, format = nil, 0
		}
		if number[i] == 0 {
			out.values, out.binary = append(out.values, sent), append(out.binary, format)
			of := uint32(0)
			if g.declared || !g.cast {
				of = uint32(g.of)
			}
			text := "'" + strings.ReplaceAll(g.text, "'", "''") + "'"
			if g.null {
				text = "NULL"
			}
			out.types, out.plain = append(out.types, of), append(out.plain, text)
			number[i] = len(out.values)
		}
		fmt.Fprintf(&b, "$%d", number[i])
		if g.cast {
			b.WriteString("::" + typeNames[g.of])
		}
	}
	out.sql = b.String()
	return out
}

var wireTypes = pgtype.NewMap()

// wireOf is a constant's binary form.
func wireOf(g given) ([]byte, bool) {
	t, ok := wireTypes.TypeForOID(uint32(g.of))
	if !ok {
		return nil, false
	}
	v, err := t.Codec.DecodeValue(wireTypes, uint32(g.of), pgtype.TextFormatCode, []byte(g.text))
	if err != nil {
		return nil, false
	}
	wire, err := wireTypes.Encode(uint32(g.of), pgtype.BinaryFormatCode, v, nil)
	return wire, err == nil && wire != nil
}

// textOf is a value as rows are compared: numbers that may be rounded as texts, what is binary else as its bytes.
func textOf(of, format uint32, value []byte) string {
	if value == nil {
		return null
	}
	if format == 0 {
		return string(value)
	}
	switch sqlType(of) {
	case numericType, real4Type, real8Type:
		t, _ := wireTypes.TypeForOID(of)
		if v, err := t.Codec.DecodeValue(wireTypes, of, pgtype.BinaryFormatCode, value); err == nil {
			if text, err := wireTypes.Encode(of, pgtype.TextFormatCode, v, nil); err == nil {
				return string(text)
			}
		}
	case textType, varcharType, charType:
		return string(value)
	}
	return hex.EncodeToString(value)
}

// put asks a text in some way.
func (c *client) put(d *drawn, text string, by way) answer {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch by {
	case extended, binary:
		q := d.written(text, true, by == binary)
		return c.wired(func() *pgconn.ResultReader {
			return c.conn.ExecParams(ctx, q.sql, q.values, q.types, q.binary, []int16{map[way]int16{binary: 1}[by]})
		})
	case named:
		q := d.written(text, true, false)
		c.said = nil
		if _, err := c.conn.Prepare(ctx, "drawn", q.sql, q.types); err != nil {
			return c.failed(err)
		}
		var a answer
		for range 2 {
			if a = c.wired(func() *pgconn.ResultReader { return c.conn.ExecPrepared(ctx, "drawn", q.values, q.binary, nil) }); a.err != nil {
				break
			}
		}
		_ = c.conn.Deallocate(ctx, "drawn") // a connection that is gone is another's already
		return a
	case prepared:
		q := d.written(text, true, false)
		head := "PREPARE drawn"
		if len(q.types) > 0 {
			var names []string
			for _, of := range q.types {
				name := typeNames[sqlType(of)]
				if of == 0 {
					name = "unknown"
				}
				names = append(names, name)
			}
			head += " (" + strings.Join(names, ", ") + ")"
		}
		if a := c.ask(head + " AS " + q.sql); a.err != nil {
			return a
		}
		values := ""
		if len(q.plain) > 0 {
			values = " (" + strings.Join(q.plain, ", ") + ")"
		}
		a := c.ask("EXECUTE drawn" + values)
		c.ask("DEALLOCATE drawn")
		return a
	case cursor:
		if a := c.ask("BEGIN; DECLARE drawn CURSOR FOR " + d.written(text, false, false).sql); a.err != nil {
			c.ask("ROLLBACK")
			return a
		}
		a := c.ask("FETCH 2 FROM drawn")
		said := a.said
		if a.err == nil {
			rest := c.ask("FETCH ALL FROM drawn")
			a.rows, a.err = append(a.rows, rest.rows...), rest.err
		}
		a.said = said
		c.ask(map[bool]string{true: "COMMIT", false: "ROLLBACK"}[a.err == nil])
		return a
	case copied:
		var out bytes.Buffer
		c.said = nil
		if _, err := c.conn.CopyTo(ctx, &out, "COPY ("+d.written(text, false, false).sql+") TO STDOUT"); err != nil {
			return c.failed(err)
		}
		a := answer{said: c.said}
		for line := range strings.Lines(out.String()) {
			fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			for i, f := range fields {
				if f == `\N` {
					fields[i] = null
				}
			}
			a.rows = append(a.rows, fields)
		}
		return a
	}
	return c.ask(d.written(text, false, false).sql)
}

// failed is an answer that is an error.
func (c *client) failed(err error) answer {
	a := answer{said: c.said}
	var ok bool
	if a.err, ok = asPgError(err); !ok { // the connection is gone: another goes on
		a.err = &pgconn.PgError{Code: "08006", Message: err.Error()}
		c.open()
	}
	return a
}

// wired reads the result of one Execute.
func (c *client) wired(run func() *pgconn.ResultReader) answer {
	c.said = nil
	reader := run()
	a := answer{columns: slices.Clone(reader.FieldDescriptions())}
	for reader.NextRow() {
		var row []string
		for i, v := range reader.Values() {
			row = append(row, textOf(a.columns[i].DataTypeOID, uint32(a.columns[i].Format), v))
		}
		a.rows = append(a.rows, row)
	}
	if _, err := reader.Close(); err != nil {
		return c.failed(err)
	}
	a.said = c.said
	return a
}

// sessions are settings that a statement may be asked under.
func (g *drawer) session() []string {
	list := []string{"DateStyle = 'ISO, MDY'", "IntervalStyle = postgres", "TimeZone = 'UTC'", "extra_float_digits = 1", "bytea_output = hex", "standard_conforming_strings = on", "client_min_messages = notice"}
	if g.chance(2) {
		list[0] = g.one("DateStyle = 'ISO, DMY'", "DateStyle = 'ISO, YMD'", "datestyle = dmy", "DateStyle TO ISO, European")
	}
	if g.chance(2) {
		list[1] = "IntervalStyle = " + g.one("postgres_verbose", "sql_standard", "iso_8601")
	}
	if g.chance(2) {
		list[2] = g.one("TimeZone = 'Europe/Berlin'", "TIME ZONE 'America/New_York'", "TimeZone = 'Asia/Kolkata'", "TIME ZONE -3", "TimeZone = 'America/St_Johns'", "TIME ZONE INTERVAL '+05:30' HOUR TO MINUTE", "timezone TO 'Etc/GMT+3'")
	}
	if !g.chance(3) {
		list[3] = "extra_float_digits = " + g.one("0", "3", "-2", "-9", "-15")
	}
	if g.chance(6) {
		list[4] = "bytea_output = escape"
	}
	return list
}
