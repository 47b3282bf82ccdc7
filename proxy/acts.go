package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
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
