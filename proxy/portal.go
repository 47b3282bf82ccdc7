package proxy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Portals: a prepared statement with its parameters, which Bind makes, Execute draws once and then reads on from, so
// many rows at a time. Cursors are portals too (cursor.go).

// portal is a statement with its parameters. Its answer is drawn once, at the first Execute; later ones go on in the
// kept rows.
type portal struct {
	number  uint64
	stmt    *prepared
	params  []policy.Value
	formats []int16
	columns []sandbox.Column // as Bind found them
	shown   bool             // Describe has shown them
	run     bool
	result  pipeline.Result
	names   encoding.ObjectNames
	kept    int64 // bytes that its parameters and rows count for
	at      int   // the row it is on, from 1; 0 means before the first, one more than there are: behind the last

	binary  bool // FETCH brings its rows in binary
	forward bool // NO SCROLL, as all that Bind opens
	hold    bool // it outlives its transaction
	fresh   bool // which has not ended yet
	cursor  sandbox.Cursor
	under   *pipeline.Session // of DECLARE: what it was computed under, until FETCH has said that the settings are others since
}

// bind answers Bind: it reads the parameters that a client sends, by the types that it was sent, and opens a portal
// with them.
func (c *session) bind(m *pgproto3.Bind) error {
	stmt := c.statements[m.PreparedStatement]
	if stmt == nil {
		return missingStatement(m.PreparedStatement)
	}
	if err := c.mayOpen(m.DestinationPortal); err != nil {
		return err
	}
	if err := c.renew(stmt); err != nil {
		return err
	}
	if len(m.Parameters) != len(stmt.params) {
		return pgerror.New("08P01", fmt.Sprintf("bind message supplies %d parameters, but prepared statement %q requires %d",
			len(m.Parameters), m.PreparedStatement, len(stmt.params)))
	}
	if f := encoding.CheckFormats(m.ParameterFormatCodes, len(m.Parameters), "parameter", "%d parameters"); f != nil {
		return f
	}
	if f := encoding.CheckFormats(m.ResultFormatCodes, len(stmt.columns), "result", "query has %d columns"); f != nil {
		if stmt.shown != nil && len(*stmt.shown) != len(stmt.columns) && encoding.CheckFormats(m.ResultFormatCodes, len(*stmt.shown), "", "%d") == nil {
			return staleStatement("result type") // they are of the columns that the client was sent
		}
		return f
	}
	style, now := c.mannered().style, time.Now()
	p := &portal{stmt: stmt, params: make([]policy.Value, 0, len(m.Parameters)), formats: slices.Clone(m.ResultFormatCodes), columns: stmt.columns, forward: true}
	for i, raw := range m.Parameters {
		v, f := encoding.Parameter(i, stmt.params[i], encoding.Format(m.ParameterFormatCodes, i), raw, style, now)
		if f != nil {
			return f
		}
		p.params = append(p.params, v)
		p.kept += int64(len(raw))
	}
	c.enter()
	p.cursor = c.describedCursor(m.DestinationPortal, p, stmt.listed.Statement, false, now)
	if err := c.open(m.DestinationPortal, p); err != nil {
		return err
	}
	c.back.Send(&pgproto3.BindComplete{})
	return nil
}

// mayOpen refuses a name that is taken, and a portal more than a session may have.
func (c *objects) mayOpen(name string) error {
	if name != "" && c.portals[name] != nil {
		return pgerror.New("42P03", fmt.Sprintf("cursor %q already exists", name))
	}
	if len(c.portals) >= c.server.config.Limits.Portals {
		return pgerror.New("53400", "too many open portals in this session").WithHint("CLOSE those that are not needed.")
	}
	return nil
}

// open gives a portal its name, under which the protocol and the statements of cursors find it.
func (c *objects) open(name string, p *portal) error {
	c.closePortal(name)
	if err := c.keep(p.kept); err != nil {
		return err
	}
	c.opened++
	p.number, p.fresh = c.opened, true
	c.portals[name] = p
	return nil
}

// execute answers Execute: the first of a portal draws its answer, each sends the next rows of it.
func (c *session) execute(ctx context.Context, m *pgproto3.Execute) error {
	p := c.portals[m.Portal]
	if p == nil {
		return missingPortal(m.Portal)
	}
	k := p.stmt.command
	if k == nil {
		c.back.Send(&pgproto3.EmptyQueryResponse{})
		return nil
	}
	if p.run {
		if err := c.check(k.Kind); err != nil {
			return err
		}
		if !p.result.Rows.Valid() || k.Kind == parse.KindCopy {
			return pgerror.New("55000", fmt.Sprintf("portal %q cannot be run", m.Portal))
		}
	} else if !p.shown && p.stmt.shown != nil && !sameColumns(*p.stmt.shown, p.columns) {
		return staleStatement("result type") // the client would take values of one column for another's
	} else if err := c.draw(ctx, p); err != nil {
		return err
	}
	if !p.result.Rows.Valid() {
		c.complete(p.result.Tag)
		return nil
	}
	if k.Kind == parse.KindCopy {
		return c.sendCopy(ctx, k.Copy, p.result)
	}
	return c.fetch(ctx, p, int64(m.MaxRows))
}

// draw runs a portal's statement, once.
func (c *session) draw(ctx context.Context, p *portal) error {
	p.run = true
	p.stmt.ran(len(p.params))
	c.source = p.stmt.listed.Statement
	err := c.drawOnce(ctx, p)
	for c.overtaken(ctx, err) {
		err = c.drawOnce(ctx, p)
	}
	if err != nil {
		return err
	}
	if p.stmt.command.Kind == parse.KindCopy || !p.result.Rows.Valid() {
		return nil
	}
	if !sameShape(p.columns, p.result.Columns) {
		return staleStatement("result type")
	}
	p.names, err = c.namesFor(ctx, p.result.Columns, p.formats)
	return err
}

// drawOnce runs it under the policy in force.
func (c *session) drawOnce(ctx context.Context, p *portal) error {
	if err := c.refresh(); err != nil {
		return err
	}
	if err := c.unchanged(ctx, p); err != nil {
		return err
	}
	var err error
	p.result, err = c.perform(ctx, p.stmt.command, p.params)
	for _, n := range p.result.Notices {
		c.notify(n)
	}
	if err != nil {
		return err
	}
	return c.keepRows(p)
}

// unchanged refuses a portal whose columns are no longer those that Bind found, before anything is charged for it:
// settings, or the policy, may have changed since.
func (c *session) unchanged(ctx context.Context, p *portal) error {
	if err := c.may(p.stmt.command.Kind); err != nil {
		return err
	}
	if k := p.stmt.command; k.own() && k.Kind != parse.KindDeclare || p.stmt.policy == c.policy && p.stmt.epoch == c.settings.Epoch() {
		return c.readAgain(p.stmt)
	}
	if err := c.inferAgain(ctx, p.stmt); err != nil {
		return err
	}
	if !sameColumns(p.columns, p.stmt.columns) {
		return staleStatement("result type")
	}
	return nil
}

// sameColumns reports whether rows of the one are read as rows of the other.
func sameColumns(a, b []sandbox.Column) bool {
	return sameShape(a, b) && slices.EqualFunc(a, b, func(x, y sandbox.Column) bool { return x.Name == y.Name })
}

func sameShape(a, b []sandbox.Column) bool {
	return slices.EqualFunc(a, b, func(x, y sandbox.Column) bool { return encoding.WireType(x.Type) == encoding.WireType(y.Type) })
}

// fetch sends the next rows of a portal, all where most is 0.
func (c *objects) fetch(ctx context.Context, p *portal, most int64) error {
	total := len(p.result.Rows.Value().Data)
	from := min(p.at, total)
	to := total
	if most > 0 && most <= int64(total-from) {
		to = from + int(most)
	}
	if err := c.sendRows(ctx, c.encoder(p.result, p.formats, p.names), p.result, from, to); err != nil {
		return err
	}
	if most > 0 && int64(to-from) == most {
		p.at = to
		c.back.Send(&pgproto3.PortalSuspended{}) // also where these were the last rows: that shows at the next Execute
		return nil
	}
	p.at = total + 1
	c.complete(countedTag(p.result.Tag, to-from))
	return nil
}

func missingPortal(name string) *pgerror.Failure {
	return pgerror.New("34000", fmt.Sprintf("portal %q does not exist", name))
}

// closeObject answers Close, of a statement or a portal; none of that name is closed all the same, as in PostgreSQL.
func (c *objects) closeObject(m *pgproto3.Close) error {
	switch m.ObjectType {
	case 'S':
		c.dropStatement(m.Name)
	case 'P':
		c.closePortal(m.Name)
	default:
		return pgerror.New("08P01", "invalid CLOSE message subtype")
	}
	c.back.Send(&pgproto3.CloseComplete{})
	return nil
}

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
