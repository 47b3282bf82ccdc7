package proxy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Prepared statements, which Parse makes in the extended protocol and PREPARE as a statement. The types of
// parameters and columns are found when one is made, and again where the policy, or the settings that they depend on,
// have changed since.

// prepared is a statement of the extended protocol.
type prepared struct {
	command *command      // nil: the empty statement
	read    reading       // how its text was read
	given   []policy.Type // as Parse named them
	params  []policy.Type
	told    []policy.Type     // the same, as Describe found them: unknown where nothing tells
	columns []sandbox.Column  // nil: no rows
	shown   *[]sandbox.Column // as a Describe of it, or of a portal of it, replied last; nil means none has
	kept    int64             // bytes that its text and tree count for
	policy  *policy.Policy    // params and columns hold under this policy
	epoch   uint64            // and these settings
	path    []string          // the search_path that it was analysed with
	listed  *sandbox.Prepared
}

// prepare answers Parse: it reads one statement, and finds the types of its parameters and columns.
// firstOwnType is the least number of a type that a database's owner made, of which there are none here.
const firstOwnType = 16384

func (c *session) prepare(ctx context.Context, m *pgproto3.Parse) error {
	if m.Name != "" && c.statements[m.Name] != nil {
		return pgerror.New("42P05", fmt.Sprintf("prepared statement %q already exists", m.Name))
	}
	if m.Name == "" {
		c.dropStatement("")
	}
	if err := c.mayPrepare(); err != nil {
		return err
	}
	c.source = m.Query
	if err := c.refresh(); err != nil {
		return err
	}
	commands, under, err := c.read(ctx, m.Query)
	if err != nil {
		return err
	}
	stmt := &prepared{read: under}
	for _, oid := range m.ParameterOIDs {
		if oid >= firstOwnType {
			return pgerror.New("42704", fmt.Sprintf("type with OID %d does not exist", oid)).WithHint("Types are PostgreSQL's own here; leave a parameter's type out to have it inferred.")
		}
		t := policy.Type(oid)
		if name, offered := planner.OfferedType(t); !offered {
			return pgerror.New("DP002", fmt.Sprintf("a parameter of type %s is not available", name)).WithHint("Leave its type out to have it inferred, and send its text.")
		}
		stmt.given = append(stmt.given, t)
	}
	switch len(commands) {
	case 0:
	case 1:
		stmt.command = &commands[0]
		if err := c.may(stmt.command.Kind); err != nil {
			return err
		}
		if err := c.infer(ctx, stmt); err != nil {
			return err
		}
	default:
		return pgerror.New("42601", "cannot insert multiple commands into a prepared statement")
	}
	if err := c.keepStatement(m.Name, stmt, false); err != nil {
		return err
	}
	c.back.Send(&pgproto3.ParseComplete{})
	return nil
}

// mayPrepare refuses a statement more than a session may have.
func (c *objects) mayPrepare() error {
	if len(c.statements) >= c.server.config.Limits.Statements {
		return pgerror.New("53400", "too many prepared statements in this session").WithHint("DEALLOCATE those that are not needed.")
	}
	return nil
}

// analyse has the literals of a statement read as the settings are now, for all its executions: '03/04/2024' is in
// March or in April by the DateStyle of PREPARE. As in PostgreSQL a statement is analysed again where search_path has
// changed, and other settings leave it as it is.
func (c *replies) analyse(stmt *prepared, asked *parse.Statement) {
	if now := c.settings.Typed(); asked.Literals == nil || !slices.Equal(stmt.path, now.SearchPath) {
		stmt.path, asked.Literals = now.SearchPath, now.Reading(time.Now())
	}
}

// infer finds the types of a statement's parameters and columns.
func (c *session) infer(ctx context.Context, stmt *prepared) error {
	k := stmt.command
	stmt.policy, stmt.epoch = c.policy, c.settings.Epoch()
	switch {
	case k.Kind == parse.KindOther && k.refusal != nil:
		return k.refusal
	case k.Kind == parse.KindDeclare:
		inner := *k.Inner // which the text has in common with others that were prepared of it
		k.Inner = &inner
		c.analyse(stmt, k.Inner)
		err := c.inferAsked(ctx, stmt, k.Inner)
		stmt.columns = nil
		return err
	case !k.own():
		if e := k.Explain; e != nil { // likewise
			explain := *e
			k.Explain = &explain
			c.analyse(stmt, &explain.Statement)
		} else {
			c.analyse(stmt, &k.Statement)
		}
		return c.inferAsked(ctx, stmt, &k.Statement)
	case k.Kind == parse.KindShow:
		stmt.columns = showColumns(k)
	case k.Kind == parse.KindFetch || k.Kind == parse.KindExecute:
		stmt.columns = c.namedColumns(k)
	}
	return nil
}

// namedColumns are the columns of a cursor or prepared statement as it is now; nil where there is none of that
// name, which its execution will say.
func (c *objects) namedColumns(k *command) []sandbox.Column {
	if k.Kind == parse.KindExecute {
		if stmt := c.statements[k.name]; stmt != nil {
			return stmt.columns
		}
	} else if p := c.portals[k.Fetch.Name]; p != nil && !k.Fetch.Move {
		return p.columns
	}
	return nil
}

// inferAsked has the pipeline describe what it will be asked.
func (c *session) inferAsked(ctx context.Context, stmt *prepared, asked *parse.Statement) error {
	c.waited = true
	ctx, stop := c.timed(admission.Metered(c.number(ctx)))
	defer stop()
	d, refusal := c.server.config.Pipeline.Describe(ctx, c.current(), *asked, stmt.given)
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	if refusal != nil {
		return refusal
	}
	asked.ParamTypes, stmt.told = d.Params, d.Params
	if e := asked.Explain; e != nil {
		e.Statement.ParamTypes = d.Params
	}
	stmt.params = make([]policy.Type, len(d.Params))
	for i, t := range d.Params {
		stmt.params[i] = encoding.WireType(t)
	}
	stmt.columns = make([]sandbox.Column, len(d.Columns))
	for i, col := range d.Columns {
		stmt.columns[i] = sandbox.Column{Name: col.Name, Type: col.Type, Typmod: col.Typmod, Number: col.Number}
	}
	stmt.columns = actColumns(asked.Acts, stmt.columns)
	return nil
}

// renew makes sure that a statement's types hold now; parameter types stay as the client knows them.
func (c *session) renew(stmt *prepared) error {
	holds, err := c.holds(stmt)
	if err != nil || holds {
		return err
	}
	return c.cancelable(func(ctx context.Context) error { return c.inferAgain(ctx, stmt) })
}

// holds reports whether a statement's types hold now, and finds those that a look-up finds.
func (c *session) holds(stmt *prepared) (bool, error) {
	if stmt.command == nil {
		return true, nil
	}
	if err := c.check(stmt.command.Kind); err != nil {
		return false, err
	}
	if k := stmt.command; k.Kind == parse.KindFetch || k.Kind == parse.KindExecute {
		stmt.columns = c.namedColumns(k)
		return true, nil
	}
	return stmt.policy == c.policy && stmt.epoch == c.settings.Epoch(), nil
}

// inferAgain finds the types again. A client that was sent other parameters would send values of the wrong ones.
func (c *session) inferAgain(ctx context.Context, stmt *prepared) error {
	if err := c.readAgain(stmt); err != nil {
		return err
	}
	params := stmt.params
	if len(params) > 0 {
		stmt.given = stmt.told
	}
	if err := c.infer(ctx, stmt); err != nil {
		return err
	}
	if !slices.Equal(params, stmt.params) {
		return staleStatement("its parameters")
	}
	return nil
}

// readAgain reads a prepared statement in its dialect by the names of the dataset as it is now, where it was read by
// others.
func (c *session) readAgain(stmt *prepared) error {
	if stmt.read.dataset == nil || stmt.read.dataset == c.dataset {
		return nil
	}
	commands, refusal := parseCommandsAs(stmt.listed.Statement, stmt.read.dialect, c.dataset)
	if refusal != nil {
		return refusal
	}
	if len(commands) != 1 {
		return staleStatement("what it was prepared beside")
	}
	if k := &commands[0]; k.Kind == parse.KindPrepare {
		stmt.command = &command{Statement: *k.Inner}
	} else {
		stmt.command = k
	}
	stmt.read.dataset = c.dataset
	return nil
}

// What clients are sent of parameters and columns, before any rows: ParameterDescription, RowDescription and NoData.

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

// show notes what a client was sent of the columns. Some (asyncpg, pgjdbc) ask once and read the rows of all later
// portals by it.
func (s *prepared) show(columns []sandbox.Column) { s.shown = &columns }

func (c *replies) describeColumns(columns []sandbox.Column, formats []int16) {
	if columns == nil {
		c.back.Send(&pgproto3.NoData{})
		return
	}
	c.describeRows(columns, formats)
}

// description is what the last columns that were sent need on the wire: a client asks for rows of the same columns
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

// PREPARE and EXECUTE as statements. What PREPARE names, the extended protocol finds too, and the other way round.

func (c *session) prepareNamed(ctx context.Context, k *command) error {
	if c.statements[k.name] != nil {
		return pgerror.New("42P05", fmt.Sprintf("prepared statement %q already exists", k.name))
	}
	if err := c.mayPrepare(); err != nil {
		return err
	}
	stmt := &prepared{read: c.reading(), command: &command{Statement: *k.Inner}, given: k.ParamTypes}
	if err := c.infer(ctx, stmt); err != nil {
		return err
	}
	return c.keepStatement(k.name, stmt, true)
}

// executeNamed answers a prepared SELECT.
func (c *session) executeNamed(ctx context.Context, k *command, params []policy.Value) (pipeline.Result, error) {
	stmt, arguments, err := c.named(ctx, &k.Statement, params)
	if err != nil {
		return pipeline.Result{}, err
	}
	return c.selectRows(ctx, stmt, arguments)
}

// explainNamed explains a prepared SELECT with its arguments.
func (c *session) explainNamed(ctx context.Context, k *command, params []policy.Value) (pipeline.Result, error) {
	stmt, arguments, err := c.named(ctx, &k.Explain.Statement, params)
	if err != nil {
		return pipeline.Result{}, err
	}
	whole, explain := k.Statement, *k.Explain
	explain.Statement, whole.Explain = stmt, &explain
	return c.ask(ctx, whole, arguments)
}

// named finds what EXECUTE runs, and computes its arguments. They are constants, so that is free.
func (c *session) named(ctx context.Context, k *parse.Statement, params []policy.Value) (parse.Statement, []policy.Value, error) {
	none := parse.Statement{}
	stmt := c.statements[k.Prepared]
	if stmt == nil {
		return none, nil, missingStatement(k.Prepared)
	}
	if stmt.command == nil || stmt.command.Kind != parse.KindSelect {
		return none, nil, pgerror.New("DP002", "EXECUTE runs a prepared SELECT only").WithHint("Send the statement itself.")
	}
	holds, err := c.holds(stmt)
	if err == nil && !holds {
		err = c.inferAgain(ctx, stmt)
	}
	if err != nil {
		return none, nil, err
	}
	if k.ArgumentCount != len(stmt.params) {
		f := pgerror.New("42601", fmt.Sprintf("wrong number of parameters for prepared statement %q", k.Prepared))
		f.Detail = fmt.Sprintf("Expected %d parameters but got %d.", len(stmt.params), k.ArgumentCount)
		return none, nil, f
	}
	stmt.ran(len(stmt.params))
	if len(stmt.params) == 0 {
		return stmt.command.Statement, nil, nil
	}
	computed, err := c.ask(ctx, k.Arguments(stmt.params), params)
	if err != nil {
		return none, nil, err
	}
	rows := computed.Rows.Value().Data
	if len(rows) != 1 {
		return none, nil, pgerror.New("DP002", "an argument of EXECUTE is a set of rows").WithHint("Give each parameter one value.")
	}
	return stmt.command.Statement, rows[0], nil
}
