package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

// passThrough answers every statement by sending it, as it is, to a PostgreSQL server, one connection for each
// session. It shows the protocol of a session under programs that nobody here wrote; of privacy or SQL it shows
// nothing. It is a Pipeline of tests only, and runs only in a session that overlayFor changed.
type passThrough struct {
	url    func(user, database string) string
	server *Server
	mu     sync.Mutex
	conns  map[uint32]*upstream
}

// upstream is the connection of one session.
type upstream struct {
	mu      sync.Mutex
	conn    *pgconn.PgConn
	sent    map[string]string // settings that the server knows
	block   bool              // the implicit transaction of several statements is open
	notices []pipeline.Notice
}

// followed are the settings that mean something to a statement. Values come in one known form, so those that only
// change how they are written stay behind.
var followed = []string{"application_name", "search_path", "timezone", "default_transaction_read_only", "default_transaction_isolation", "check_function_bodies"}

// executed finds the arguments of EXECUTE.
var executed = regexp.MustCompile(`(?is)^execute\s[^(]+\((.*)\)$`)

// copiedTable finds the table of COPY and its columns.
var copiedTable = regexp.MustCompile(`(?is)^copy\s+((?:"[^"]*"|[\w.])+)\s*(?:\((.*?)\))?\s+to\s`)

// remarks finds comments before a statement.
var remarks = regexp.MustCompile(`(?s)^(?:\s|--[^\n]*\n|/\*.*?\*/)+`)

// asSent is what the session asks of a pipeline, which goes by the statement's tree: the arguments of EXECUTE, the rows
// of COPY.
func asSent(text string) string {
	text = remarks.ReplaceAllString(text, "")
	if m := executed.FindStringSubmatch(text); m != nil {
		return "SELECT " + m[1]
	}
	if m := copiedTable.FindStringSubmatch(text); m != nil {
		return "SELECT " + cmp.Or(m[2], "*") + " FROM " + m[1]
	}
	return text
}

// alone finds statements that run in no transaction of several.
var alone = regexp.MustCompile(`(?is)^(vacuum|(create|drop|alter)\s+(database|tablespace|subscription|system)|(create|drop|re)\s*index\s+concurrently|reindex|cluster|` +
	`(commit|rollback)\s+prepared|call|do)\b`)

func newPassThrough(url func(user, database string) string) *passThrough {
	return &passThrough{url: url, conns: map[uint32]*upstream{}}
}

// reap closes the connections of sessions that are over, until ctx ends, and then all.
func (p *passThrough) reap(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
		p.close(func(pid uint32) bool {
			p.server.keys.mu.Lock()
			defer p.server.keys.mu.Unlock()
			return p.server.keys.sessions[pid] == nil
		})
	}
	p.close(func(uint32) bool { return true })
}

func (p *passThrough) close(over func(pid uint32) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pid, u := range p.conns {
		if !over(pid) {
			continue
		}
		delete(p.conns, pid)
		go func() {
			u.mu.Lock()
			defer u.mu.Unlock()
			if u.conn != nil {
				_ = u.conn.Close(context.Background())
			}
		}()
	}
}

// use finds the session's connection, locked.
func (p *passThrough) use(user, database string, pid uint32) (*upstream, error) {
	p.mu.Lock()
	u := p.conns[pid]
	if u == nil {
		u = &upstream{sent: map[string]string{}}
		p.conns[pid] = u
	}
	p.mu.Unlock()
	u.mu.Lock()
	u.notices = nil
	if u.conn != nil && !u.conn.IsClosed() {
		return u, nil
	}
	config, err := pgconn.ParseConfig(p.url(user, database))
	if err != nil {
		u.mu.Unlock()
		return nil, err
	}
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 20 * time.Second}
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		u.notices = append(u.notices, pipeline.Notice{Severity: n.Severity, SQLState: n.Code, Message: n.Message, Detail: n.Detail, Hint: n.Hint})
	}
	if u.conn, err = pgconn.ConnectConfig(context.Background(), config); err != nil {
		u.mu.Unlock()
		return nil, err
	}
	return u, nil
}

// follow tells the server of settings that changed.
func (u *upstream) follow(ctx context.Context, s *pipeline.Session) {
	var list []string
	var values [][]byte
	for name, value := range s.Settings.Variables {
		own := strings.Contains(name, ".") && !strings.HasPrefix(name, "dp.")
		if old, ok := u.sent[name]; ok && old == value || !own && !slices.Contains(followed, name) {
			continue
		}
		u.sent[name] = value
		values = append(values, []byte(name), []byte(value))
		list = append(list, fmt.Sprintf("set_config($%d, $%d, false)", len(values)-1, len(values)))
	}
	if len(list) > 0 {
		u.conn.ExecParams(ctx, "SELECT "+strings.Join(list, ", "), values, nil, nil, nil).Read()
	}
}

// shown is an error as the session shows it.
func shown(err error, from int) *pgerror.Failure {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return pgerror.New("58000", "the server behind the proxy: "+err.Error())
	}
	f := &pgerror.Failure{SQLState: e.Code, Message: e.Message, Detail: e.Detail, Hint: e.Hint}
	if e.Position > 0 {
		f.Position = int(e.Position) + from
	}
	return f
}

func typesOf(list []policy.Type) (oids []uint32) {
	for _, t := range list {
		oids = append(oids, uint32(t))
	}
	return oids
}

// byDesign refuses what a session never runs, so that it is not run here either.
func byDesign(text string) *refuse.Refusal {
	if statements, refusal := parse.Parse(text); refusal == nil && len(statements) == 1 && statements[0].Kind == parse.KindOther &&
		strings.HasPrefix(strings.ToLower(remarks.ReplaceAllString(text, "")), "copy") {
		return parse.Refuse(statements[0])
	}
	return nil
}

func (p *passThrough) AtOnce(context.Context, *pipeline.Session, parse.Statement, []policy.Value) (pipeline.Result, bool) {
	return pipeline.Result{}, false
}

func (p *passThrough) Describe(ctx context.Context, s *pipeline.Session, stmt parse.Statement, given []policy.Type) (plans.Description, *refuse.Refusal) {
	if r := byDesign(stmt.Text); r != nil {
		return plans.Description{}, r
	}
	u, err := p.use(s.User, s.Database, s.PID)
	if err != nil {
		return plans.Description{}, refuse.Invalid("08006", err.Error(), "")
	}
	defer u.mu.Unlock()
	u.follow(ctx, s)
	told, err := u.conn.Prepare(ctx, "", asSent(stmt.Text), typesOf(given))
	if err != nil {
		f := shown(err, stmt.From)
		r := refuse.Invalid(f.SQLState, f.Message, f.Hint)
		r.Detail, r.Position = f.Detail, f.Position
		return plans.Description{}, r
	}
	d := plans.Description{}
	for _, oid := range told.ParamOIDs {
		d.Params = append(d.Params, policy.Type(oid))
	}
	for _, f := range told.Fields {
		d.Columns = append(d.Columns, plans.OutColumn{Name: f.Name, Type: policy.Type(f.DataTypeOID), Typmod: f.TypeModifier})
	}
	return d, nil
}

func (p *passThrough) Answer(ctx context.Context, s *pipeline.Session, stmt parse.Statement, params []policy.Value) (pipeline.Result, error) {
	if r := byDesign(stmt.Text); r != nil {
		return pipeline.Result{}, r
	}
	u, err := p.use(s.User, s.Database, s.PID)
	if err != nil {
		return pipeline.Result{}, shown(err, 0)
	}
	defer u.mu.Unlock()
	u.follow(ctx, s)
	stmt.Text = asSent(stmt.Text)
	if u.conn.TxStatus() == 'I' && !alone.MatchString(stmt.Text) {
		u.block = true
		if _, err := u.conn.Exec(ctx, "BEGIN").ReadAll(); err != nil {
			return pipeline.Result{}, shown(err, 0)
		}
	}
	told, err := u.conn.Prepare(ctx, "", stmt.Text, typesOf(stmt.ParamTypes))
	if err != nil {
		return pipeline.Result{Notices: u.notices}, shown(err, stmt.From)
	}
	values := make([][]byte, len(params))
	for i, v := range params {
		if v != nil {
			if values[i], err = textOf(policy.Type(told.ParamOIDs[i]), v); err != nil {
				return pipeline.Result{}, err
			}
		}
	}
	formats := make([]int16, len(told.Fields))
	for i, f := range told.Fields {
		formats[i] = binaryOf(policy.Type(f.DataTypeOID))
	}
	answer := u.conn.ExecPrepared(ctx, "", values, nil, formats).Read()
	if answer.Err != nil {
		return pipeline.Result{Notices: u.notices}, shown(answer.Err, stmt.From)
	}
	r := pipeline.Result{Tag: answer.CommandTag.String(), Notices: u.notices}
	if strings.HasPrefix(r.Tag, "SELECT ") && len(told.Fields) > 0 {
		r.Tag = "SELECT"
	}
	if len(told.Fields) == 0 {
		return r, nil
	}
	for _, f := range told.Fields {
		r.Columns = append(r.Columns, sandbox.Column{Name: f.Name, Type: policy.Type(f.DataTypeOID), Typmod: f.TypeModifier})
	}
	data := make([][]policy.Value, 0, len(answer.Rows))
	for _, row := range answer.Rows {
		data = append(data, valuesOf(row, r.Columns, formats))
	}
	r.Rows = privacy.Published(sandbox.Rows{Columns: r.Columns, Data: data})
	return r, nil
}

// Follow has the server's transaction follow the session's. The session has run the command itself by then.
func (p *passThrough) Follow(c *session, k *command, tag string) error {
	text := k.Text
	switch k.Kind {
	case parse.KindCommit:
		if tag == "ROLLBACK" {
			text = "ROLLBACK"
		}
	case parse.KindBegin, parse.KindRollback, parse.KindSavepoint, parse.KindReleaseSavepoint, parse.KindRollbackTo, parse.KindDiscard:
	default:
		return nil
	}
	u, err := p.use(c.user, c.database, c.pid)
	if err != nil {
		return shown(err, 0)
	}
	defer u.mu.Unlock()
	if k.Kind == parse.KindBegin && u.block {
		u.block = false // it is the transaction that is open
		return nil
	}
	if k.Kind != parse.KindBegin {
		clear(u.sent)
	}
	if u.conn.TxStatus() == 'I' && k.Kind != parse.KindBegin && k.Kind != parse.KindDiscard {
		return nil // nothing reached the server since the last
	}
	u.block = false
	if _, err := u.conn.Exec(context.Background(), text).ReadAll(); err != nil {
		return shown(err, k.From)
	}
	return nil
}

// Settle ends the implicit transaction of several statements.
func (p *passThrough) Settle(c *objects, commit bool) {
	p.mu.Lock()
	u := p.conns[c.pid]
	p.mu.Unlock()
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.block || u.conn == nil {
		return
	}
	u.block = false
	text := "COMMIT"
	if !commit {
		clear(u.sent)
		text = "ROLLBACK"
	}
	if _, err := u.conn.Exec(context.Background(), text).ReadAll(); err != nil {
		fmt.Println("an implicit transaction was not committed:", err)
	}
}

// passURL connects a role to a database of a server.
func passURL(port int, user, database string) string {
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(user, suitePassword), Host: fmt.Sprintf("127.0.0.1:%d", port), Path: database,
		RawQuery: "sslmode=disable"}).String()
}
