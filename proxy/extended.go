package proxy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

// prepared is a statement of the extended protocol.
type prepared struct {
	command *command      // nil: the empty statement
	read    reading       // how its text was read
	given   []policy.Type // as Parse named them
	params  []policy.Type
	told    []policy.Type     // the same, as Describe found them: unknown where nothing tells
	columns []sandbox.Column  // nil: no rows
	shown   *[]sandbox.Column // as a Describe of it, or of a portal of it, told them last; nil: none has
	kept    int64             // bytes that its text and tree count for
	policy  *policy.Policy    // params and columns hold under this policy
	epoch   uint64            // and these settings
	path    []string          // the search_path that it was analysed with
	listed  *sandbox.Prepared
}

// portal is a statement with its parameters. Its answer is drawn once, at the first Execute; later ones go on in the kept
// rows.
type portal struct {
	number  uint64
	stmt    *prepared
	params  []policy.Value
	formats []int16
	columns []sandbox.Column // as Bind found them
	shown   bool             // Describe has told them
	run     bool
	result  pipeline.Result
	names   encoding.ObjectNames
	kept    int64 // bytes that its parameters and rows count for
	at      int   // the row it stands on, from 1; 0: before the first, one more than there are: behind the last

	binary  bool // FETCH brings its rows in binary
	forward bool // NO SCROLL, as all that Bind opens
	hold    bool // it outlives its transaction
	fresh   bool // which has not ended yet
	cursor  sandbox.Cursor
	under   *pipeline.Session // of DECLARE: what it was computed under, until FETCH has said that the settings are others since
}

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
		stmt.given = append(stmt.given, policy.Type(oid))
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

func (c *session) mayPrepare() error {
	if len(c.statements) >= c.server.config.Limits.Statements {
		return pgerror.New("53400", "too many prepared statements in this session").WithHint("DEALLOCATE those that are not needed.")
	}
	return nil
}

// analyse has the literals of a statement read as the settings are now, for all its executions: '03/04/2024' is in March or in April by the DateStyle of
// PREPARE. As in PostgreSQL a statement is analysed again where search_path has changed, and other settings leave it as it is.
func (c *session) analyse(stmt *prepared, asked *parse.Statement) {
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

// namedColumns are the columns of a cursor or prepared statement as it stands now; nil where there is none of that name,
// which its execution will say.
func (c *session) namedColumns(k *command) []sandbox.Column {
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

// holds tells whether a statement's types hold now, and finds those that a look-up finds.
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

// readAgain reads a prepared statement in its dialect by the names of the dataset as it is now, where it was read by others.
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
			return staleStatement("result type") // they are of the columns that the client was told
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

func (c *session) mayOpen(name string) error {
	if name != "" && c.portals[name] != nil {
		return pgerror.New("42P03", fmt.Sprintf("cursor %q already exists", name))
	}
	if len(c.portals) >= c.server.config.Limits.Portals {
		return pgerror.New("53400", "too many open portals in this session").WithHint("CLOSE those that are not needed.")
	}
	return nil
}

// open gives a portal its name, under which the protocol and the statements of cursors find it.
func (c *session) open(name string, p *portal) error {
	c.closePortal(name)
	if err := c.keep(p.kept); err != nil {
		return err
	}
	c.opened++
	p.number, p.fresh = c.opened, true
	c.portals[name] = p
	return nil
}

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

// show notes what a client was told of the columns. Some (asyncpg, pgjdbc) ask once and read the rows of all later portals by it.
func (s *prepared) show(columns []sandbox.Column) { s.shown = &columns }

func (c *session) describeColumns(columns []sandbox.Column, formats []int16) {
	if columns == nil {
		c.back.Send(&pgproto3.NoData{})
		return
	}
	c.describeRows(columns, formats)
}

// description is what the last columns that were told need on the wire: a client asks for rows of the same columns again and again.
type description struct {
	columns []sandbox.Column
	formats []int16
	epoch   uint64           // of the settings
	message encoding.Encoded // RowDescription; nil: none has been sent of them
	encoder *encoding.Encoder
}

// description is the last one, or a new one where it is of other columns.
func (c *session) description(columns []sandbox.Column, formats []int16) *description {
	d := &c.described
	if d.epoch != c.settings.Epoch() || !slices.Equal(columns, d.columns) || !slices.Equal(formats, d.formats) {
		*d = description{columns: columns, formats: slices.Clone(formats), epoch: c.settings.Epoch(), encoder: encoding.NewEncoder(columns, formats, c.mannered().style, nil)}
	}
	return d
}

// describeRows sends the description of rows.
func (c *session) describeRows(columns []sandbox.Column, formats []int16) {
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
	if err == nil {
		err = c.keepRows(p)
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

// unchanged refuses a portal whose columns are no longer those that Bind found, before anything is charged for it: settings, or the policy, may have changed since.
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

// sameColumns tells whether rows of the one are read as rows of the other.
func sameColumns(a, b []sandbox.Column) bool {
	return sameShape(a, b) && slices.EqualFunc(a, b, func(x, y sandbox.Column) bool { return x.Name == y.Name })
}

func sameShape(a, b []sandbox.Column) bool {
	return slices.EqualFunc(a, b, func(x, y sandbox.Column) bool { return encoding.WireType(x.Type) == encoding.WireType(y.Type) })
}

// fetch sends the next rows of a portal, all where most is 0.
func (c *session) fetch(ctx context.Context, p *portal, most int64) error {
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

func (c *session) closeObject(m *pgproto3.Close) error {
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
