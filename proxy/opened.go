package proxy

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

// pg_cursors and pg_prepared_statements show a session what it opened itself, in its own words, and nobody else's.

// keepStatement gives a prepared statement its name.
func (c *session) keepStatement(name string, stmt *prepared, fromSQL bool) error {
	stmt.kept = treeSize * int64(len(c.source))
	if err := c.keep(stmt.kept); err != nil {
		return err
	}
	stmt.listed = &sandbox.Prepared{Name: name, Statement: c.source, Created: policy.Timestamptz(time.Now().UnixMicro()),
		Params: stmt.params, Results: columnTypes(stmt.columns), FromSQL: fromSQL}
	c.statements[name] = stmt
	c.forgetList(name)
	return nil
}

// treeSize is how many bytes a parsed statement keeps for each of its text, roughly and at most.
const treeSize = 64

// keep counts bytes that the session keeps as its user's, and refuses what is too much.
func (c *objects) keep(bytes int64) error {
	if err := c.server.workers.Keep(c.user, bytes, c.policy.Server.Limits.UserMemory); err != nil {
		return err
	}
	c.held += bytes
	return nil
}

func (c *objects) forget(bytes int64) {
	c.held -= bytes
	_ = c.server.workers.Keep(c.user, -bytes, 0) // less is always granted
}

// keepRows counts the rows that a portal has drawn. Without room for them it has none; they are free when they are
// asked for again.
func (c *objects) keepRows(p *portal) error {
	if !p.result.Rows.Valid() {
		return nil
	}
	size := p.result.Rows.Value().Size()
	if err := c.keep(size); err != nil {
		p.result = pipeline.Result{}
		return err
	}
	p.kept += size
	return nil
}

func (c *objects) closePortal(name string) {
	if p := c.portals[name]; p != nil {
		c.forget(p.kept)
		delete(c.portals, name)
	}
}

func (c *objects) closePortals() {
	for name := range c.portals {
		c.closePortal(name)
	}
}

func columnTypes(columns []sandbox.Column) []policy.Type {
	if columns == nil {
		return nil
	}
	types := make([]policy.Type, len(columns))
	for i, col := range columns {
		types[i] = encoding.WireType(col.Type)
	}
	return types
}

func (c *objects) dropStatement(name string) {
	if stmt := c.statements[name]; stmt != nil {
		c.forget(stmt.kept)
		delete(c.statements, name)
	}
	c.forgetList(name)
}

func (c *objects) dropStatements() {
	for name := range c.statements {
		c.dropStatement(name)
	}
	c.list, c.listed = nil, false
}

// forgetList has the list of prepared statements made anew. The unnamed one is never on it.
func (c *objects) forgetList(name string) {
	if name != "" {
		c.list, c.listed = nil, false
	}
}

// ran counts a run of a prepared statement. Each run is planned anew; one without parameters has nothing to plan for.
func (p *prepared) ran(params int) {
	switch {
	case p.listed == nil:
	case params > 0:
		p.listed.Custom.Add(1)
	default:
		p.listed.Generic.Add(1)
	}
}

// preparedList is what pg_prepared_statements shows, oldest first. It is never changed, so a view may keep it.
func (c *objects) preparedList() []*sandbox.Prepared {
	if !c.listed {
		for name, stmt := range c.statements {
			if name != "" {
				c.list = append(c.list, stmt.listed)
			}
		}
		slices.SortFunc(c.list, func(a, b *sandbox.Prepared) int {
			return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name))
		})
		c.listed = true
	}
	return c.list
}

// cursorList is what pg_cursors shows, in the order in which they were opened: the portals of the protocol as well.
func (c *objects) cursorList() []sandbox.Cursor {
	if len(c.portals) == 0 {
		return nil
	}
	open := slices.SortedFunc(maps.Values(c.portals), func(a, b *portal) int { return cmp.Compare(a.number, b.number) })
	list := make([]sandbox.Cursor, len(open))
	for i, p := range open {
		list[i] = p.cursor
	}
	return list
}

// describedCursor is how pg_cursors lists a cursor or portal that is opened now.
func (c *replies) describedCursor(name string, p *portal, text string, scroll bool, now time.Time) sandbox.Cursor {
	return sandbox.Cursor{Name: name, Statement: text, Hold: p.hold, Binary: p.binary, Scroll: scroll, Created: policy.Timestamptz(now.UnixMicro())}
}
