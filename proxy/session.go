// Package proxy speaks the PostgreSQL wire protocol with clients. A Server accepts connections, starts them up
// (TLS, SCRAM), and runs one session each: simple and extended queries, settings, transactions as far as they
// have a meaning for noisy answers, cancellation. What a SELECT answers comes from a Pipeline; the session only
// encodes what was released. Nothing here logs a value, and no error text but the catalogue's reaches a client.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/request"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/login"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/proxy/spans"
	"github.com/dpproxy/dpproxy/sandbox"
)

// session is one logged-in client.
type session struct {
	conn     net.Conn
	log      *slog.Logger
	database string
	proved   *Proved // nil: her name is proved by the exchange of this connection
	counted  bool    // among the user's connections
	dataset  *policy.Dataset
	view     *pipeline.Session // of the current policy and settings
	viewed   uint64
	last     atomic.Pointer[pipeline.Last] // what dp.last shows
	wait     waitPoint

	objects
	handling
	parsing
}

// objects are what the client has opened: its transaction, prepared statements and portals, within its user's limits.
type objects struct {
	replies
	server     *Server
	pid        uint32 // by which it is cancelled
	user       string
	policy     *policy.Policy
	statements map[string]*prepared
	list       []*sandbox.Prepared // what pg_prepared_statements shows
	listed     bool                // list is up to date
	portals    map[string]*portal
	opened     uint64 // portals so far
	held       int64  // bytes that the session keeps, of its user's
}

// handling is about the message that is handled.
type handling struct {
	source   string        // as written
	request  request.ID    // the number of the last statement
	numbered bool          // what the message asks of the pipeline has that number
	several  bool          // it is a simple query of several statements
	skipping bool          // one of the extended protocol failed: everything is ignored until Sync
	waited   bool          // it has begun what ends with it
	spare    interruptible // of a message that was answered at once, for the next
}

// parsing keeps the last short texts that were parsed (shortText).
type parsing struct {
	parsed [shortTexts]parsed
	texts  uint         // that were parsed
	parse  spans.Parsed // when the last text was, until a statement of it is asked
}

// run reads and handles messages until the session ends. Its error is the reason, login.ErrSilent where the client
// left.
func (c *session) run() (err error) {
	defer c.endSpare()
	defer func() {
		if r := recover(); r != nil {
			ctx := context.Background()
			if c.numbered {
				ctx = request.With(ctx, c.request)
			}
			c.server.logPanic(ctx, r, "session")
			err = pgerror.New("XX000", pgerror.TextInternal).Fatal()
		}
	}()
	for {
		msg, err := c.receive()
		if err != nil {
			return err
		}
		c.numbered = false
		if err := c.handle(msg); err != nil {
			return err
		}
	}
}

// ending reports whether the server stops, or this session was terminated.
func (c *session) ending() bool { return c.server.draining.Load() || c.peer.ended.Load() }

// receive waits for the next message, as long as the settings let a client be idle, and not beyond the end of the
// server.
func (c *session) receive() (pgproto3.FrontendMessage, error) {
	c.pace.rest()
	idle := c.idleLimit()
	if idle > 0 {
		if err := c.conn.SetReadDeadline(time.Now().Add(idle)); err != nil {
			return nil, login.ErrSilent
		}
	}
	if c.ending() {
		return nil, pgerror.New("57P01", errShutdown.Error()).Fatal()
	}
	msg, err := c.back.Receive()
	if err == nil {
		c.answering(msg)
		if idle > 0 && c.conn.SetReadDeadline(time.Time{}) != nil {
			return nil, login.ErrSilent
		}
		return msg, nil
	}
	var tooLong *pgproto3.ExceededMaxBodyLenErr
	switch {
	case c.ending() && errors.Is(err, os.ErrDeadlineExceeded):
		return nil, pgerror.New("57P01", errShutdown.Error()).Fatal()
	case errors.Is(err, os.ErrDeadlineExceeded) && c.tx.block:
		return nil, pgerror.New("25P03", "terminating connection due to idle-in-transaction timeout").Fatal()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, pgerror.New("57P05", "terminating connection due to idle-session timeout").Fatal()
	case errors.As(err, &tooLong):
		return nil, pgerror.New("54000", "message is longer than "+strconv.Itoa(bodyAfterLogin)+" bytes").Fatal()
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed),
		errors.As(err, new(net.Error)):
		return nil, login.ErrSilent
	}
	return nil, pgerror.New("08P01", "malformed message").Fatal()
}

// answering begins the grid of a message's replies, with the first message after ReadyForQuery. Sync and Flush bring
// nothing of their own: what they send has waited already where rows were read for it.
func (c *objects) answering(msg pgproto3.FrontendMessage) {
	if c.pace != nil {
		switch msg.(type) {
		case *pgproto3.Sync, *pgproto3.Flush:
			return
		}
	} else {
		c.pace = newPace(c.policy.Server.Timing, c.server.base.Done())
		c.peer.active.Store(true)
	}
	c.pace.owed = true
}

func (c *replies) idleLimit() time.Duration {
	if c.tx.block {
		return c.mannered().idleInBlock
	}
	return c.mannered().idle
}

// handle answers one message. Its error ends the session.
func (c *session) handle(msg pgproto3.FrontendMessage) error {
	switch msg.(type) {
	case *pgproto3.Terminate:
		c.pace = nil // nothing is owed
		return login.ErrSilent
	case *pgproto3.Sync:
		c.skipping = false
		return c.endMessage(nil)
	case *pgproto3.CopyData, *pgproto3.CopyDone, *pgproto3.CopyFail:
		return nil // left over from a copy that failed: ignored, as the protocol asks
	}
	if c.skipping {
		return nil
	}
	if refusal := c.charset().Heard(msg); refusal != nil {
		if _, simple := msg.(*pgproto3.Query); !simple {
			return c.extended(refusal)
		}
		return c.endMessage(refusal)
	}
	switch m := msg.(type) {
	case *pgproto3.Query:
		return c.query(m.String)
	case *pgproto3.Parse:
		return c.extended(c.cancelable(func(ctx context.Context) error { return c.prepare(ctx, m) }))
	case *pgproto3.Bind:
		return c.extended(c.bind(m))
	case *pgproto3.Describe:
		return c.extended(c.describe(m))
	case *pgproto3.Execute:
		return c.extended(c.executePiped(m))
	case *pgproto3.Close:
		return c.extended(c.closeObject(m))
	case *pgproto3.Flush:
		return c.flush()
	case *pgproto3.FunctionCall:
		return c.endMessage(pgerror.New("0A000", "function calls by message are not available"))
	}
	return pgerror.New("08P01", "unexpected message").Fatal()
}

// executePiped answers Execute, and notes that a transaction of the extended protocol has run a statement.
func (c *session) executePiped(m *pgproto3.Execute) error {
	err := c.cancelable(func(ctx context.Context) error { return c.execute(ctx, m) })
	c.tx.piped = c.tx.piped || err == nil && c.tx.implicit && !c.tx.block
	return err
}

// extended ends the handling of a message of the extended protocol: after an error everything up to Sync is ignored.
func (c *session) extended(err error) error {
	if err == nil {
		return nil
	}
	c.skipping = true
	if err := c.fail(err); err != nil {
		return err
	}
	return c.flush() // an error is sent at once: some clients wait for it before they send Sync
}

// peer is what the other sessions of the same user may see of a session, and how they end it.
type peer struct {
	user, database string
	started        time.Time
	conn           net.Conn
	application    atomic.Pointer[string]
	active         atomic.Bool // until its answer has left: the end of the work would be seen off the grid
	ended          atomic.Bool // pg_terminate_backend was called
}

// end has the session end as soon as it runs no statement. The flag comes first: receive reads it after it has set a
// deadline of its own.
func (p *peer) end() {
	p.ended.Store(true)
	_ = p.conn.SetReadDeadline(time.Unix(1, 0)) // a closed connection needs no waking
}

// signal ends the wait of a user's own session, or the session, and reports whether she has one of that pid.
func (c *cancelKeys) signal(user string, pid int64, terminate bool) bool {
	c.mu.Lock()
	entry := c.sessions[uint32(pid)]
	c.mu.Unlock()
	if entry == nil || pid < 0 || pid != int64(uint32(pid)) || entry.seen.user != user {
		return false
	}
	if !terminate {
		entry.wait.interrupt(errCanceled)
		return true
	}
	entry.seen.end()
	entry.wait.interrupt(errShutdown)
	return true
}

// of lists the sessions of a user for pg_stat_activity, oldest first.
func (c *cancelKeys) of(user string) []sandbox.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []sandbox.Client
	for pid, entry := range c.sessions {
		if entry.seen.user != user {
			continue
		}
		client := sandbox.Client{PID: pid, Database: entry.seen.database, Started: policy.Timestamptz(entry.seen.started.UnixMicro()), Active: entry.seen.active.Load()}
		if name := entry.seen.application.Load(); name != nil {
			client.Application = *name
		}
		list = append(list, client)
	}
	slices.SortFunc(list, func(a, b sandbox.Client) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.PID, b.PID))
	})
	return list
}

// Pipeline answers single statements. Its methods are called by many sessions at once. A session waits for Answer until
// its context ends, and then tells the client 57014 at once, whatever Answer does afterwards: what was paid goes on.
type Pipeline interface {
	// Describe infers the types of parameters (given ones win; 0 means infer) and columns of a Select, Explain or Show.
	// It is free and buys nothing.
	Describe(ctx context.Context, s *pipeline.Session, stmt parse.Statement, given []policy.Type) (plans.Description, *refuse.Refusal)
	// Answer runs a Select, an Explain, or a Show of a dp.* name that is not a setting. Its error is a *refuse.Refusal
	// or a *Failure; any other error is shown as one constant text. The notices of a Result are sent with an error too.
	Answer(ctx context.Context, s *pipeline.Session, stmt parse.Statement, params []policy.Value) (pipeline.Result, error)
	// AtOnce is what Answer would say without waiting, within microseconds; false means it may take longer, or fail.
	AtOnce(ctx context.Context, s *pipeline.Session, stmt parse.Statement, params []policy.Value) (pipeline.Result, bool)
}
