package proxy

import (
	"slices"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/sandbox"
)

// What clients are told of parameters and columns, before any rows: ParameterDescription, RowDescription and NoData.

// describe answers Describe, of a statement (its parameters and columns) or a portal (its columns).
func (c *session) describe(m *pgproto3.Describe) error {
	if m.ObjectType == 'S' {
		stmt := c.statements[m.Name]
		if stmt == nil {
			return missingStatement(m.Name)
		}
		if err := c.renew(stmt); err != nil {
			return err
		}
		oids := make([]uint32, len(stmt.params))
		for i, t := range stmt.params {
			oids[i] = uint32(t)
		}
		c.back.Send(&pgproto3.ParameterDescription{ParameterOIDs: oids})
		stmt.show(stmt.columns)
		c.describeColumns(stmt.columns, nil)
		return nil
	}
	if m.ObjectType != 'P' {
		return pgerror.New("08P01", "invalid DESCRIBE message subtype")
	}
	p := c.portals[m.Name]
	if p == nil {
		return missingPortal(m.Name)
	}
	if p.columns != nil {
		if err := c.check(p.stmt.command.Kind); err != nil {
			return err
		}
	}
	p.shown = true
	p.stmt.show(p.columns)
	c.describeColumns(p.columns, p.formats)
	return nil
}

// show notes what a client was told of the columns. Some (asyncpg, pgjdbc) ask once and read the rows of all later
// portals by it.
func (s *prepared) show(columns []sandbox.Column) { s.shown = &columns }

func (c *replies) describeColumns(columns []sandbox.Column, formats []int16) {
	if columns == nil {
		c.back.Send(&pgproto3.NoData{})
		return
	}
	c.describeRows(columns, formats)
}

// description is what the last columns that were told need on the wire: a client asks for rows of the same columns
// again and again.
type description struct {
	columns []sandbox.Column
	formats []int16
	epoch   uint64           // of the settings
	message encoding.Encoded // RowDescription; nil means none has been sent of them
	encoder *encoding.Encoder
}

// description is the last one, or a new one where it is of other columns.
func (c *replies) description(columns []sandbox.Column, formats []int16) *description {
	d := &c.described
	if d.epoch != c.settings.Epoch() || !slices.Equal(columns, d.columns) || !slices.Equal(formats, d.formats) {
		*d = description{columns: columns, formats: slices.Clone(formats), epoch: c.settings.Epoch(), encoder: encoding.NewEncoder(columns, formats, c.mannered().style, nil)}
	}
	return d
}

// describeRows sends the description of rows.
func (c *replies) describeRows(columns []sandbox.Column, formats []int16) {
	d := c.description(columns, formats)
	if d.message == nil {
		message, err := c.charset().Said(encoding.RowDescription(columns, formats)).Encode(nil)
		if err != nil {
			c.send(encoding.RowDescription(columns, formats)) // which says what is wrong
			return
		}
		d.message = message
	}
	c.back.Send(&d.message)
}
