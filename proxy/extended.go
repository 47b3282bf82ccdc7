package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// prepared is a statement of the extended protocol.
type prepared struct {
	command *command      // nil: the empty statement
	given   []policy.Type // as Parse named them
	params  []policy.Type
	columns []sandbox.Column // nil: no rows
	policy  *policy.Policy   // params and columns hold under this policy
	epoch   uint64           // and these settings
}

// portal is a statement with its parameters. Its answer is drawn once, at the first Execute; later ones go on in the kept
// rows.
type portal struct {
	number  uint64
	stmt    *prepared
	params  []policy.Value
	formats []int16
	columns []sandbox.Column // as Describe told them
	run     bool
	result  Result
	names   objectNames
	next    int // row that comes next
}

func (c *session) prepare(ctx context.Context, m *pgproto3.Parse) error {
	if m.Name != "" && c.statements[m.Name] != nil {
		return failure("42P05", fmt.Sprintf("prepared statement %q already exists", m.Name))
	}
	if m.Name == "" {
		delete(c.statements, "")
	}
	if len(c.statements) >= c.server.config.Limits.Statements {
		return failure("53400", "too many prepared statements in this session").withHint("DEALLOCATE those that are not needed.")
	}
	commands, err := c.read(m.Query)
	if err != nil {
		return err
	}
	stmt := &prepared{}
	for _, oid := range m.ParameterOIDs {
		stmt.given = append(stmt.given, policy.Type(oid))
	}
	switch len(commands) {
	case 0:
	case 1:
		stmt.command = &commands[0]
		if err := c.check(stmt.command.Kind); err != nil {
			return err
		}
		if err := c.infer(ctx, stmt); err != nil {
			return err
		}
	default:
		return failure("42601", "cannot insert multiple commands into a prepared statement")
	}
	c.statements[m.Name] = stmt
	c.back.Send(&pgproto3.ParseComplete{})
	return nil
}

// infer finds the types of a statement's parameters and columns.
func (c *session) infer(ctx context.Context, stmt *prepared) error {
	k := stmt.command
	stmt.policy, stmt.epoch = c.policy, c.settings.epoch
	switch {
	case k.Kind == planner.KindOther && k.refusal != nil:
		return k.refusal
	case k.own():
		if k.returnsRows() {
			stmt.columns = showColumns(k)
		}
		return nil
	}
	ctx, stop := c.timed(ctx)
	defer stop()
	d, refusal := c.server.config.Pipeline.Describe(ctx, c.current(), k.Statement, stmt.given)
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	if refusal != nil {
		return refusal
	}
	k.ParamTypes = d.Params
	stmt.params = make([]policy.Type, len(d.Params))
	for i, t := range d.Params {
		stmt.params[i] = onWire(t)
	}
	stmt.columns = make([]sandbox.Column, len(d.Columns))
	for i, col := range d.Columns {
		stmt.columns[i] = sandbox.Column{Name: col.Name, Type: col.Type, Typmod: col.Typmod}
	}
	return nil
}

// renew makes sure that a statement's types hold now; parameter types stay as the client knows them.
func (c *session) renew(ctx context.Context, stmt *prepared) error {
	if stmt.command == nil {
		return nil
	}
	if err := c.check(stmt.command.Kind); err != nil {
		return err
	}
	if stmt.policy == c.policy && stmt.epoch == c.settings.epoch {
		return nil
	}
	params := stmt.params
	if len(params) > 0 {
		stmt.given = params
	}
	if err := c.infer(ctx, stmt); err != nil {
		return err
	}
	if !slices.Equal(params, stmt.params) {
		return failure("0A000", "cached plan must not change its parameters").withHint("Prepare the statement again.")
	}
	return nil
}

func (c *session) bind(m *pgproto3.Bind) error {
	stmt := c.statements[m.PreparedStatement]
	if stmt == nil {
		return missingStatement(m.PreparedStatement)
	}
	if m.DestinationPortal != "" && c.portals[m.DestinationPortal] != nil {
		return failure("42P03", fmt.Sprintf("cursor %q already exists", m.DestinationPortal))
	}
	if len(c.portals) >= c.server.config.Limits.Portals {
		return failure("53400", "too many open portals in this session")
	}
	err := c.cancelable(func(ctx context.Context) error { return c.renew(ctx, stmt) })
	if err != nil {
		return err
	}
	if len(m.Parameters) != len(stmt.params) {
		return failure("08P01", fmt.Sprintf("bind message supplies %d parameters, but prepared statement %q requires %d",
			len(m.Parameters), m.PreparedStatement, len(stmt.params)))
	}
	if f := checkFormats(m.ParameterFormatCodes, len(m.Parameters), "parameter"); f != nil {
		return f
	}
	if f := checkFormats(m.ResultFormatCodes, len(stmt.columns), "result"); f != nil {
		return f
	}
	p := &portal{stmt: stmt, formats: slices.Clone(m.ResultFormatCodes), columns: stmt.columns}
	for i, raw := range m.Parameters {
		v, f := c.parameter(i, stmt.params[i], format(m.ParameterFormatCodes, i), raw)
		if f != nil {
			return f
		}
		p.params = append(p.params, v)
	}
	c.enter()
	c.opened++
	p.number = c.opened
	c.portals[m.DestinationPortal] = p
	c.back.Send(&pgproto3.BindComplete{})
	return nil
}

func (c *session) describe(ctx context.Context, m *pgproto3.Describe) error {
	if m.ObjectType == 'S' {
		stmt := c.statements[m.Name]
		if stmt == nil {
			return missingStatement(m.Name)
		}
		if err := c.renew(ctx, stmt); err != nil {
			return err
		}
		oids := make([]uint32, len(stmt.params))
		for i, t := range stmt.params {
			oids[i] = uint32(t)
		}
		c.back.Send(&pgproto3.ParameterDescription{ParameterOIDs: oids})
		c.describeColumns(stmt.command, stmt.columns, nil)
		return nil
	}
	if m.ObjectType != 'P' {
		return failure("08P01", "invalid DESCRIBE message subtype")
	}
	p := c.portals[m.Name]
	if p == nil {
		return missingPortal(m.Name)
	}
	if p.stmt.command != nil && p.stmt.command.returnsRows() {
		if err := c.check(p.stmt.command.Kind); err != nil {
			return err
		}
	}
	c.describeColumns(p.stmt.command, p.columns, p.formats)
	return nil
}

func (c *session) describeColumns(k *command, columns []sandbox.Column, formats []int16) {
	if k == nil || !k.returnsRows() {
		c.back.Send(&pgproto3.NoData{})
		return
	}
	c.back.Send(rowDescription(columns, formats))
}

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
		if !k.returnsRows() {
			return failure("55000", fmt.Sprintf("portal %q cannot be run anymore", m.Portal))
		}
	} else if err := c.draw(ctx, p); err != nil {
		return err
	}
	if !k.returnsRows() {
		c.complete(p.result.Tag)
		return nil
	}
	return c.fetch(p, int64(m.MaxRows))
}

// draw runs a portal's statement, once.
func (c *session) draw(ctx context.Context, p *portal) error {
	p.run = true
	var err error
	p.result, err = c.perform(ctx, p.stmt.command, p.params)
	for _, n := range p.result.Notices {
		c.notify(n)
	}
	if err != nil {
		return err
	}
	if p.stmt.command.returnsRows() && !sameShape(p.columns, p.result.Columns) {
		return failure("0A000", "cached plan must not change result type").withHint("Prepare the statement again.")
	}
	p.names, err = c.namesFor(ctx, p)
	return err
}

func sameShape(a, b []sandbox.Column) bool {
	return slices.EqualFunc(a, b, func(x, y sandbox.Column) bool { return onWire(x.Type) == onWire(y.Type) })
}

// fetch sends the next rows of a portal, all where most is 0.
func (c *session) fetch(p *portal, most int64) error {
	total := len(p.result.Rows.Value().Data)
	to := total
	if most > 0 && most <= int64(total-p.next) {
		to = p.next + int(most)
	}
	from := p.next
	if err := c.sendRows(c.encoder(p.result, p.formats, p.names), p.result, from, to); err != nil {
		return err
	}
	p.next = to
	if most > 0 && int64(to-from) == most {
		c.back.Send(&pgproto3.PortalSuspended{}) // also where these were the last rows: that shows at the next Execute
		return nil
	}
	c.complete(countedTag(p.result.Tag, to-from))
	return nil
}

func missingPortal(name string) *Failure {
	return failure("34000", fmt.Sprintf("portal %q does not exist", name))
}

func (c *session) closeObject(m *pgproto3.Close) error {
	switch m.ObjectType {
	case 'S':
		delete(c.statements, m.Name)
	case 'P':
		delete(c.portals, m.Name)
	default:
		return failure("08P01", "invalid CLOSE message subtype")
	}
	c.back.Send(&pgproto3.CloseComplete{})
	return nil
}
