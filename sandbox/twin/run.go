package twin

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// One query on a connection: it is bound to the session's search path, zone and time inside a read-only transaction,
// which is rolled back whatever happened.

// run is one query on a connection.
type run struct {
	conn     *pgconn.PgConn
	maxRows  int
	maxBytes int
	time     time.Duration // after which the server itself ends the query
	zone     *time.Location
	theirs   string // reports whether what was read are another proxy's copies; empty means no copies are read
}

// maxMessage bounds one message of the server, and so one row.
const maxMessage = 64 << 20

func boundedFrontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	f := pgproto3.NewFrontend(r, w)
	f.SetMaxBodyLen(maxMessage)
	return f
}

// cancelling asks the server to stop when a query's time is over, and gives up the connection when it does not.
func cancelling(conn *pgconn.PgConn) ctxwatch.Handler {
	return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 2 * time.Second}
}

const (
	beginRead = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY" // so that a query and theirs see the same rows
	endRead   = "ROLLBACK"
	// What a query might have taken beyond its transaction, if the allow-list of functions had failed, is given back
	// too.
	giveBack = "SELECT pg_catalog.pg_advisory_unlock_all()"
	setNames = "SELECT pg_catalog.set_config('search_path', $1, true), pg_catalog.set_config('TimeZone', $2, true), pg_catalog.set_config('statement_timeout', $3, true), pg_catalog.set_config('IntervalStyle', $4, true), pg_catalog.set_config('extra_float_digits', $5, true), pg_catalog.set_config('DateStyle', $6, true), pg_catalog.set_config('bytea_output', $7, true)"
)

func (r *run) sessionArgs(s sandbox.Session, zone *time.Location, form scalar.Form) [][]byte {
	return [][]byte{[]byte(searchPath(s.Setting("search_path", "public"))), []byte(zone.String()), strconv.AppendInt(nil, max(r.time.Milliseconds(), 1), 10),
		[]byte(form.Style()), strconv.AppendInt(nil, int64(form.Extra()), 10), []byte(form.DateStyle()), []byte(s.Setting("bytea_output", "hex"))}
}

// searchPath is the session's search path with pg_catalog first, as PostgreSQL has it where none names it.
func searchPath(text string) string {
	var schemas []string
	for part := range strings.SplitSeq(text, ",") {
		name := strings.TrimSpace(part)
		if n := len(name); n > 1 && name[0] == '"' && name[n-1] == '"' {
			name = strings.ReplaceAll(name[1:n-1], `""`, `"`)
		}
		if name != "" && name != "pg_catalog" && name != "pg_temp" && name != "$user" {
			schemas = append(schemas, `"`+strings.ReplaceAll(name, `"`, `""`)+`"`)
		}
	}
	return strings.Join(schemas, ", ")
}

// query runs a SELECT in a read-only transaction that is rolled back: one round trip, but where the session's form of
// numbers and intervals is its own (formed).
func (r *run) query(ctx context.Context, s sandbox.Session, text string, args [][]byte) (sandbox.Rows, error) {
	form := s.Form()
	if form.Intervals != "" || form.Digits > 0 || !s.Literals.SameSettings(r.zone, form) {
		return r.formed(ctx, s, text, args)
	}
	batch := &pgconn.Batch{}
	batch.ExecParams(beginRead, nil, nil, nil, nil)
	batch.ExecParams(setNames, r.sessionArgs(s, r.zone, form), nil, nil, nil)
	batch.ExecParams(text, args, nil, nil, nil)
	if r.theirs != "" {
		batch.ExecParams(r.theirs, nil, nil, nil, nil)
	}
	batch.ExecParams(endRead, nil, nil, nil, nil)
	batch.ExecParams(giveBack, nil, nil, nil, nil)
	return r.read(ctx, batch, 2)
}

// read runs a batch and reads the rows of one of its statements.
func (r *run) read(ctx context.Context, batch *pgconn.Batch, which int) (sandbox.Rows, error) {
	results := r.conn.ExecBatch(ctx, batch)
	rows, err := r.collect(results, which)
	if closed := results.Close(); err == nil {
		err = closed
	}
	if err != nil {
		r.clean()
	}
	return rows, err
}

// binaryFormat is the protocol's code of a column that comes in binary.
const binaryFormat = 1

// others tells, after a query that failed, whether it may have done so because of another proxy's copies: of other
// columns, say, by a policy that this one has not read yet.
func (r *run) others(ctx context.Context) bool {
	if r.theirs == "" || r.conn.IsClosed() {
		return false
	}
	said := r.conn.ExecParams(ctx, r.theirs, nil, nil, nil, nil).Read()
	return said.Err != nil || len(said.Rows) != 1 || string(said.Rows[0][0]) != "f"
}

// formed runs a query in a session whose settings change what n::text is. Values themselves are then not read as texts,
// which would have lost digits, or be intervals of another style: their columns come in binary, so the query is
// described first. That reads its literals, under the settings that they are to be read by; it runs under those of now.
func (r *run) formed(ctx context.Context, s sandbox.Session, text string, args [][]byte) (sandbox.Rows, error) {
	d, err := r.prepare(ctx, s, text)
	if err != nil {
		r.clean()
		return sandbox.Rows{}, err
	}
	formats := make([]int16, len(d.Fields))
	for i, f := range d.Fields {
		switch policy.Type(f.DataTypeOID) {
		case policy.Float4, policy.Float8, policy.IntervalT:
			formats[i] = binaryFormat
		}
	}
	batch, at := &pgconn.Batch{}, 0
	if form := s.Form(); !s.Literals.SameSettings(r.zone, form) {
		batch.ExecPrepared(namesStatement, r.sessionArgs(s, r.zone, form), nil, nil) // no text, which would take the query's place
		at++
	}
	batch.ExecPrepared(d.Name, args, nil, formats)
	if r.theirs != "" {
		batch.ExecParams(r.theirs, nil, nil, nil, nil)
	}
	batch.ExecParams(endRead, nil, nil, nil, nil)
	batch.ExecParams(giveBack, nil, nil, nil, nil)
	return r.read(ctx, batch, at)
}

// namesStatement is setNames, prepared on each connection.
const namesStatement = "names"

// prepare has the server bind a query in a transaction that whoever asks has to end.
func (r *run) prepare(ctx context.Context, s sandbox.Session, text string) (*pgconn.StatementDescription, error) {
	zone, form := r.zone, s.Form()
	if l := s.Literals; l != nil {
		zone, form.Dates, form.Intervals = l.Zone, l.Form.Dates, l.Form.Intervals
	}
	batch := &pgconn.Batch{}
	batch.ExecParams(beginRead, nil, nil, nil, nil)
	batch.ExecParams(setNames, r.sessionArgs(s, zone, form), nil, nil, nil)
	if _, err := r.conn.ExecBatch(ctx, batch).ReadAll(); err != nil {
		return nil, err
	}
	return r.conn.Prepare(ctx, "", text, nil)
}

// clean ends what an error has left of a transaction. A connection that cannot be cleaned is given up.
func (r *run) clean() {
	if r.conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if _, err := r.conn.Exec(ctx, endRead+"; "+giveBack).ReadAll(); err != nil {
		_ = r.conn.Close(ctx)
	}
}

// collect reads the rows of one statement of a batch.
func (r *run) collect(results *pgconn.MultiResultReader, which int) (sandbox.Rows, error) {
	var out sandbox.Rows
	for n := 0; results.NextResult(); n++ {
		reader := results.ResultReader()
		if n == which+1 && r.theirs != "" {
			if said := reader.Read(); said.Err != nil {
				return sandbox.Rows{}, said.Err
			} else if len(said.Rows) != 1 || string(said.Rows[0][0]) != "f" {
				return sandbox.Rows{}, errTheirs
			}
			continue
		}
		if n != which {
			if _, err := reader.Close(); err != nil {
				return sandbox.Rows{}, err
			}
			continue
		}
		fields := slices.Clone(reader.FieldDescriptions())
		out.Columns = columnsOf(fields)
		env, size := scalar.Env{Zone: r.zone}, 0
		for reader.NextRow() {
			line := reader.Values()
			row := make([]policy.Value, len(line))
			for k, v := range line {
				size += 24 + len(v)
				switch {
				case v == nil:
				case fields[k].Format == binaryFormat:
					row[k] = fromBinary(out.Columns[k].Type, v)
				default:
					row[k] = fromText(env, out.Columns[k].Type, string(v))
				}
			}
			if len(out.Data) >= r.maxRows || size > r.maxBytes {
				// The rest is not worth reading: the connection goes, and with it the query.
				ctx, cancel := context.WithTimeout(context.Background(), 0)
				_ = r.conn.Close(ctx)
				cancel()
				return sandbox.Rows{}, sandbox.ErrTooMany
			}
			out.Data = append(out.Data, row)
		}
		if _, err := reader.Close(); err != nil {
			return sandbox.Rows{}, err
		}
	}
	return out, nil
}

// describe has the server bind a query, which it does not run. One over leaves is planned too, by which the server
// evaluates constants: asin(2) + n fails then, and not when it has been paid for.
func (r *run) describe(ctx context.Context, s sandbox.Session, q outer.Query, text string, args [][]byte, planned bool) (d sandbox.Description, err error) {
	bound, err := r.prepare(ctx, s, text)
	if err == nil && planned {
		err = r.conn.ExecParams(ctx, "EXPLAIN "+text, args, nil, nil, nil).Read().Err
	}
	r.clean()
	if err != nil {
		return d, err
	}
	d = sandbox.Description{Columns: columnsOf(bound.Fields), Params: map[int]policy.Type{}}
	for i, name := range q.Params {
		if n := outer.Open(name); n > 0 && i < len(bound.ParamOIDs) {
			d.Params[n] = policy.Type(bound.ParamOIDs[i])
		}
	}
	return d, nil
}

func columnsOf(fields []pgconn.FieldDescription) []sandbox.Column {
	columns := make([]sandbox.Column, len(fields))
	for i, f := range fields {
		columns[i] = sandbox.Column{Name: f.Name, Type: policy.Type(f.DataTypeOID), Typmod: f.TypeModifier}
	}
	return columns
}

// fault says what the analyst may know of an error. The server's own text goes to the operator's log, and only where
// the query should not have failed.
func (t *engine) fault(ctx context.Context, s sandbox.Session, l sandbox.Limits, err error) error {
	var ours *scalar.Error
	var theirs *pgconn.PgError
	switch {
	case errors.As(err, &ours):
		return ours
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &theirs) && strings.HasPrefix(theirs.Code, "57P"): // the server or the session was ended
		return errGone
	case errors.As(err, &theirs):
		told, expected := errorOf(theirs)
		if s.Unreleased && expected && told.SQLState == theirs.Code && !inward(theirs.Message) {
			told = &scalar.Error{SQLState: theirs.Code, Message: theirs.Message}
		}
		switch told {
		case errDeadline:
			return l.Late(s)
		case sandbox.ErrResources:
			return l.Large()
		}
		if !expected {
			t.options.Log.ErrorContext(ctx, "twin could not run a query", "sqlstate", theirs.Code, "routine", theirs.Routine)
		}
		return told
	}
	var tooLong *pgproto3.ExceededMaxBodyLenErr
	if errors.As(err, &tooLong) {
		return sandbox.ErrTooMany
	}
	return errGone
}

// What an analyst is shown of an error of PostgreSQL's. Its SQLSTATE is kept where a query may bring it about; its text
// is ours where the server's could name a value, or something of the twin.

// messages are what an analyst is shown of errors that her query's values raise. PostgreSQL's own text may hold a
// value.
var messages = map[string]string{
	"22012": "division by zero", "22003": "value out of range", "22P02": "invalid input syntax for the type of a cast",
	"22P03": "invalid input for the type of a cast", "22007": "invalid input syntax for a date or time", "22008": "date or time out of range",
	"22009": "invalid time zone displacement", "22011": "negative substring length not allowed", "22001": "value too long for its type",
	"2201B": "invalid regular expression", "2201E": "cannot take logarithm of zero or a negative number",
	"2201F": "cannot take a power of that number", "2201G": "invalid argument for width_bucket", "22013": "invalid frame of a window function",
	"22014": "argument of ntile must be greater than zero", "22016": "argument of nth_value must be greater than zero",
	"2201W": "LIMIT must not be negative", "2201X": "OFFSET must not be negative", "22021": "character not in the encoding",
	"22023": "a function of the query was given a value that it does not take", "22025": "invalid escape sequence",
	"2202E": "wrong number of array subscripts", "22004": "a null value is not allowed here", "22030": "duplicate JSON object key value",
	"21000": "more than one row returned by a subquery used as an expression", "42704": "there is no object or setting of that name",
	"42501": "the sandbox may not do that", "42P19": "this recursive query is not allowed", "42P01": "relation does not exist",
	"42602": "invalid name", "3F000": "schema does not exist", "54001": "the query is too deep", "54011": "too many columns",
	"54023": "too many arguments",
}

// errDeadline is reported where the server ended a query for its time; what had been left of it is not known here.
var errDeadline = &scalar.Error{SQLState: "57014", Message: "canceling statement: the query over released answers took too long"}

// errorOf is the sandbox's error for one of the twin's, and whether an analyst's query may bring it about.
func errorOf(e *pgconn.PgError) (told *scalar.Error, expected bool) {
	if message, ok := messages[e.Code]; ok {
		return &scalar.Error{SQLState: e.Code, Message: message}, e.Code != "42501"
	}
	switch {
	case e.Code == "57014" || e.Code == "55P03":
		return errDeadline, true
	case strings.HasPrefix(e.Code, "53") || e.Code == "54000":
		return sandbox.ErrResources, true
	case strings.HasPrefix(e.Code, "22"):
		return &scalar.Error{SQLState: e.Code, Message: "a value of the query is not valid where it stands"}, true
	case strings.HasPrefix(e.Code, "42") && !inward(e.Message):
		// Names and types of her own query: columns that do not exist, functions of other arguments, missing GROUP BY.
		return &scalar.Error{SQLState: e.Code, Message: e.Message}, true
	case strings.HasPrefix(e.Code, "42"):
		return &scalar.Error{SQLState: e.Code, Message: "the query over released answers is not valid"}, true
	case e.Code == "0A000":
		return &scalar.Error{SQLState: "0A000", Message: "PostgreSQL does not support this query"}, true
	}
	return sandbox.ErrBroken, false
}

// inward tells a text that names what only the sandbox knows.
func inward(message string) bool {
	for _, word := range []string{"leaf_", "dpproxy", "pg_catalog.", "information_schema.", "dp.", "unnest", "parameter"} {
		if strings.Contains(message, word) {
			return true
		}
	}
	return false
}
