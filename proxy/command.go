package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/proxy/settings"
	"github.com/dpproxy/dpproxy/sandbox"
)

// What functions do to sessions: pg_sleep holds up this one, pg_cancel_backend and pg_terminate_backend end waits and
// sessions of the same user. The pid of another user's session is answered as one that does not exist.

// longestSleep bounds pg_sleep: a longer one is refused.
const longestSleep = time.Hour

// sleepStep is how often a sleeping session looks whether the server shuts down.
const sleepStep = 500 * time.Millisecond

// act does what a SELECT asks for besides its answer, row by row, and shows the values of the functions.
func (c *session) act(ctx context.Context, stmt parse.Statement, assigned []parse.Assignment, r pipeline.Result) (pipeline.Result, error) {
	if len(assigned)+len(stmt.Acts) == 0 {
		return r, nil
	}
	shown := map[int]policy.Value{}
	if len(r.Rows.Value().Data) == 0 {
		assigned = nil
	}
	for _, a := range assigned {
		if a.Each {
			continue
		}
		value, err := c.assignOne(a)
		if err != nil {
			return r, err
		}
		shown[a.Column] = value
	}
	columns, rows := actColumns(stmt.Acts, r.Columns), r.Rows.Value().Data
	done := make([][]policy.Value, len(rows))
	for i, row := range rows {
		done[i] = slices.Clone(row)
		for column, value := range shown {
			done[i][column] = value
		}
		for _, a := range assigned {
			var err error
			if !a.Each {
				continue
			}
			if done[i][a.Column], err = c.assignPair(a, row[a.Column]); err != nil {
				return r, err
			}
		}
		for _, a := range stmt.Acts {
			var err error
			if done[i][a.Column], err = c.actOne(ctx, a.Kind, row[a.Column], &r); err != nil {
				return r, err
			}
		}
	}
	r.Columns = columns
	r.Rows = privacy.PostProcess(r.Rows, func(sandbox.Rows) sandbox.Rows { return sandbox.Rows{Columns: columns, Data: done} })
	return r, nil
}

// actColumns are the columns of an answer, with the types that the functions have.
func actColumns(acts []parse.Act, columns []sandbox.Column) []sandbox.Column {
	if len(acts) > 0 {
		columns = slices.Clone(columns)
	}
	for _, a := range acts {
		columns[a.Column].Type, columns[a.Column].Typmod = a.Type(), -1
	}
	return columns
}

// assignPair runs a set_config whose name and value a row gives, as a JSON array of two texts.
func (c *session) assignPair(a parse.Assignment, row policy.Value) (policy.Value, error) {
	var pair [2]*string
	if text, ok := row.(string); !ok || json.Unmarshal([]byte(text), &pair) != nil {
		return nil, pgerror.New("XX000", "a row gives no name and value")
	}
	if pair[0] != nil {
		a.Name = *pair[0]
	}
	if a.Reset = pair[1] == nil; !a.Reset {
		a.Value = *pair[1]
	}
	if f := c.assignable(a); f != nil {
		return nil, f
	}
	return c.assignOne(a)
}

// assignOne runs one set_config, and returns the value that the variable has then.
func (c *replies) assignOne(a parse.Assignment) (policy.Value, error) {
	f := (*pgerror.Failure)(nil)
	if a.Reset {
		f = c.settings.Reset(a.Name, a.Local)
	} else {
		f = c.settings.Set(a.Name, a.Value, a.Local)
	}
	if f != nil {
		return nil, f
	}
	value, f := c.settings.Show(a.Name)
	if f != nil { // a variable of the client's own that has no value any more
		return "", nil
	}
	return value, nil
}

// actOne calls a function with an argument.
func (c *session) actOne(ctx context.Context, kind parse.ActKind, argument policy.Value, r *pipeline.Result) (policy.Value, error) {
	switch v := argument.(type) {
	case float64:
		return "", c.sleep(ctx, v)
	case int64:
		done, err := c.signal(v, kind == parse.ActTerminate)
		if err == nil && !done {
			r.Notices = append(r.Notices, warning("01000", fmt.Sprintf("PID %d is not a PostgreSQL backend process", v)))
		}
		return done, err
	}
	return nil, nil
}

// sleep waits, until the client, statement_timeout or the end of the server ends the wait.
func (c *objects) sleep(ctx context.Context, seconds float64) error {
	if seconds > longestSleep.Seconds() {
		return pgerror.New("22023", "pg_sleep waits at most an hour here")
	}
	ctx, stop := c.timed(ctx)
	defer stop()
	for until := time.Now().Add(time.Duration(seconds * float64(time.Second))); ; {
		left := time.Until(until)
		switch {
		case !(seconds > 0) || left <= 0:
			return nil
		case c.server.draining.Load():
			return pgerror.New("57P01", errShutdown.Error()).Fatal()
		}
		select {
		case <-time.After(min(left, sleepStep)):
		case <-ctx.Done():
			return interrupted(ctx)
		}
	}
}

// signal ends a wait, or the session, of one of the user's own sessions, and reports whether there is one of that pid.
func (c *session) signal(pid int64, terminate bool) (bool, error) {
	if pid == int64(c.pid) {
		if terminate {
			return false, pgerror.New("57P01", errShutdown.Error()).Fatal()
		}
		return false, pgerror.New("57014", errCanceled.Error())
	}
	return c.server.keys.signal(c.user, pid, terminate), nil
}

// command is a statement with what a session must know to run it itself.
type command struct {
	parse.Statement
	// name is the variable of SET, SHOW and RESET, the savepoint, the prepared statement of PREPARE, EXECUTE and
	// DEALLOCATE, the cursor of CLOSE, or what DISCARD drops. It is empty for ALL.
	name     string
	value    string // of SET
	standard bool   // SET … TO DEFAULT
	local    bool   // SET LOCAL
	// modes are the variables that BEGIN, SET TRANSACTION or SET SESSION CHARACTERISTICS sets.
	modes   [][2]string
	chain   bool            // COMMIT or ROLLBACK AND CHAIN
	refusal *refuse.Refusal // set for a statement that is never possible here
}

// own reports whether the session runs the command itself, without the pipeline.
func (k *command) own() bool {
	switch k.Kind {
	case parse.KindSelect, parse.KindExplain:
		return false
	case parse.KindShow:
		return settings.Shows(k.name)
	}
	return true
}

// parseCommands reads the text of a message in PostgreSQL's SQL.
func parseCommands(text string) ([]command, *refuse.Refusal) {
	return parseCommandsAs(text, parse.PostgreSQL, nil)
}

// parseCommandsAs reads it in a dialect.
func parseCommandsAs(text string, dialect parse.Dialect, d *policy.Dataset) ([]command, *refuse.Refusal) {
	statements, refusal := parse.ParseAs(text, dialect, d)
	if refusal != nil {
		return nil, refusal
	}
	commands := make([]command, len(statements))
	for i, s := range statements {
		commands[i] = commandOf(s)
	}
	return commands, nil
}

func commandOf(s parse.Statement) command {
	k := command{Statement: s, local: s.Local, standard: s.Default, chain: s.Chain, name: s.Name}
	switch s.Kind {
	case parse.KindSet:
		switch {
		case s.Name == "transaction":
			k.local, k.modes = true, pairs("", s.Values)
		case s.Name == "session characteristics":
			k.modes = pairs("default_", s.Values)
		default:
			k.value = settings.Written(s)
		}
	case parse.KindBegin:
		k.modes = pairs("", s.Values)
	case parse.KindShow, parse.KindReset, parse.KindDiscard:
		if s.Name == "all" {
			k.name = ""
		}
	case parse.KindDeallocate, parse.KindPrepare, parse.KindExecute:
		k.name = s.Prepared
	case parse.KindSavepoint, parse.KindReleaseSavepoint, parse.KindRollbackTo:
		k.name = s.Savepoint
	case parse.KindOther:
		k.refusal = parse.Refuse(s)
	}
	return k
}

// pairs reads a list of names and values.
func pairs(prefix string, list []string) [][2]string {
	var out [][2]string
	for ; len(list) >= 2; list = list[2:] {
		out = append(out, [2]string{prefix + list[0], list[1]})
	}
	return out
}

// namesFor reads what is needed to write named objects of columns in binary: the sandbox gives their names alone.
// Catalogs hold what the policy says and nothing of the private data, so this is free.
func (c *session) namesFor(ctx context.Context, columns []sandbox.Column, formats []int16) (encoding.ObjectNames, error) {
	var names encoding.ObjectNames
	for i, column := range columns {
		t := column.Type
		if element, ok := encoding.ElementOf(t); ok {
			t = element
		}
		text := encoding.NamesQuery(t)
		if text == "" || encoding.Format(formats, i) != 1 || names[t] != nil {
			continue
		}
		if names == nil {
			names = encoding.ObjectNames{}
		}
		commands, refusal := c.server.parse(text)
		if refusal != nil {
			return nil, refusal
		}
		result, err := c.ask(ctx, commands[0].Statement, nil)
		if err != nil {
			return nil, err
		}
		names[t] = map[string]int64{}
		for _, row := range result.Rows.Value().Data {
			oid, isNumber := row[0].(int64)
			if name, isText := row[1].(string); isNumber && isText {
				names[t][name] = oid
			}
		}
	}
	return names, nil
}
