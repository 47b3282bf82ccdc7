package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/deadline"
	"github.com/dpproxy/dpproxy/internal/request"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/login"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/settings"
)

const (
	keyBytes30 = 4 // a cancel key of protocol 3.0
	keyBytes32 = 32
)

// patientWriter gives writes a deadline once the login is over. It is moved when an eighth of it has gone by and not at
// each write: a session that answers in microseconds would else set a timer for each answer.
type patientWriter struct {
	conn  net.Conn
	limit time.Duration // 0: the connection's deadline holds
	until time.Time     // the deadline
}

func (w *patientWriter) Write(b []byte) (int, error) {
	if now := time.Now(); w.limit > 0 && w.until.Sub(now) < w.limit-w.limit/8 {
		w.until = now.Add(w.limit)
		if err := w.conn.SetWriteDeadline(w.until); err != nil {
			return 0, err
		}
	}
	return w.conn.Write(b)
}

// serve leads one connection through its life. Whatever happens in it ends this connection and no other.
func (s *Server) serve(raw net.Conn, waiting *early) {
	defer s.gate.leave(waiting)
	log := s.config.Log.With("client", raw.RemoteAddr().String())
	defer func() {
		if r := recover(); r != nil {
			s.logPanic(context.Background(), r, "session")
		}
	}()
	opened := time.Now()
	if err := raw.SetDeadline(opened.Add(s.config.Limits.LoginTime)); err != nil {
		return
	}
	if s.draining.Load() {
		return
	}
	o := login.Opening{Conn: raw, Config: s.tls.Load()}
	defer func() { _ = o.Conn.Close() }() // through TLS, whose end a client wants to read; it may be gone
	p, err := o.Next()
	if err != nil {
		return
	}
	if p.Cancels() {
		if pid, key, err := p.Cancel(); err == nil {
			s.keys.cancel(pid, key)
		}
		return
	}
	// What waits for its turn gives up while it can still say so, and when its connection had to go for another's.
	patience, enough := context.WithDeadline(s.base, opened.Add(s.config.Limits.LoginTime*9/10))
	defer enough()
	defer context.AfterFunc(waiting.evicted, enough)()
	s.lead(patience, &o, p, &session{log: log}, func() { s.gate.leave(waiting) })
}

// lead leads a session from its start-up packet to its end; loggedIn is called between the two.
func (s *Server) lead(patience context.Context, o *login.Opening, p login.Packet, c *session, loggedIn func()) {
	out := &patientWriter{conn: o.Conn}
	back := pgproto3.NewBackend(o.Conn, out)
	back.SetMaxBodyLen(bodyBeforeLogin)
	c.server, c.conn, c.back, c.statements, c.portals = s, o.Conn, back, map[string]*prepared{}, map[string]*portal{}
	if err := c.login(patience, p, o); err != nil {
		c.end(err)
		return
	}
	defer c.leave()
	loggedIn()
	back.SetMaxBodyLen(bodyAfterLogin)
	if err := o.Conn.SetDeadline(time.Time{}); err != nil {
		return
	}
	out.limit = s.config.Limits.WriteTime
	c.end(c.run())
}

// login brings a client from its start-up packet to its first ReadyForQuery.
func (c *session) login(ctx context.Context, p login.Packet, o *login.Opening) error {
	st, err := login.ParseStartup(p)
	if err != nil {
		return err
	}
	c.user, c.database = st.User, st.Database
	if n := st.Negotiation(); n != nil {
		c.back.Send(n)
	}
	address := addressOf(c.conn)
	if c.proved == nil {
		if !o.Secure() && !isLoopback(address) {
			return pgerror.New("28000", "connections from other machines must be encrypted").WithHint("Set sslmode=require.").Fatal()
		}
		if err := c.server.authenticate(ctx, c.back, login.Claimant{User: c.user, Origin: login.Origin(address), Opening: o}, c.log); err != nil {
			return err
		}
	} else if c.user != c.proved.user || !c.proved.Holds() {
		return pgerror.New("28000", "this user is no longer known").Fatal()
	}
	if err := c.admit(st); err != nil {
		return err
	}
	return c.greet(st)
}

// authenticate has a client prove her name, on the wire or in a form: one brake, one count, one log.
func (s *Server) authenticate(ctx context.Context, back *pgproto3.Backend, who login.Claimant, log *slog.Logger) error {
	err := s.auth.Authenticate(ctx, back, who, s.brake)
	if cause := login.Cause(err); cause != nil {
		log.Error("nobody can be let in by it", "cause", cause)
	}
	switch {
	case err == nil:
		s.metrics.logins.WithLabelValues("ok").Inc()
	case s.base.Err() != nil:
		return login.ErrSilent
	case !errors.Is(err, login.ErrSilent):
		s.metrics.logins.WithLabelValues("failed").Inc()
		log.Warn("login failed")
	}
	return err
}

// admit checks that the user may enter the dataset, and makes her session. A dataset in which she has no budget looks
// like one that does not exist.
func (c *session) admit(st login.Startup) error {
	if err := c.server.users.connect(c.user, c.server.config.Policy().Server.Limits); err != nil {
		return err
	}
	c.counted = true
	c.settings = settings.New(c.user, c.server.tls.Load() != nil)
	if err := c.refresh(); err != nil {
		return err
	}
	variables, err := st.Variables()
	if err != nil {
		return err
	}
	for _, pair := range variables {
		if f := c.settings.Start(pair[0], pair[1]); f != nil {
			return f.Fatal()
		}
	}
	return nil
}

// greet sends what a client expects after its login.
func (c *session) greet(st login.Startup) error {
	size := keyBytes30
	if st.Minor >= 2 {
		size = keyBytes32
	}
	c.peer.user, c.peer.database, c.peer.started, c.peer.conn = c.user, c.database, time.Now(), c.conn
	pid, key, err := c.server.keys.register(&c.wait, &c.peer, size)
	if err != nil {
		return pgerror.New("XX000", pgerror.TextInternal).Fatal()
	}
	c.pid, c.request = pid, request.NewSession()
	c.log = c.log.With("session", c.request.Named(), "user", c.user, "dataset", c.database, "pid", pid)
	c.back.Send(&pgproto3.AuthenticationOk{})
	c.report()
	c.back.Send(&pgproto3.BackendKeyData{ProcessID: pid, SecretKey: key})
	c.server.metrics.connections.Inc()
	c.log.Info("session opened")
	return c.ready()
}

// refresh takes the policy in force for the next statement.
func (c *session) refresh() error {
	p := c.server.config.Policy().For(c.user)
	if p == c.policy {
		return nil
	}
	u, d := p.User(c.user), p.Dataset(c.database)
	if u == nil || u.Disabled {
		return pgerror.New("28000", "this user is no longer known").Fatal()
	}
	if d == nil || !mayEnter(d, c.user) {
		return pgerror.New("3D000", fmt.Sprintf("database %q does not exist", c.database)).WithHint(entrances(p, c.user)).Fatal()
	}
	c.policy, c.dataset = p, d
	c.settings.Adopt(d, u)
	return nil
}

// entrances tells a user who has proved her name which datasets she may connect to, and of no other.
func entrances(p *policy.Policy, user string) string {
	var open []string
	for _, d := range p.Datasets {
		if mayEnter(d, user) {
			open = append(open, strconv.Quote(d.ID))
		}
	}
	if len(open) == 0 {
		return "No dataset is open to this user."
	}
	return "This user may connect to " + strings.Join(open, ", ") + "."
}

func mayEnter(d *policy.Dataset, user string) bool {
	_, ok := d.Budget(user)
	return ok
}

// leave forgets a session that was logged in.
func (c *session) leave() {
	c.server.keys.remove(c.pid)
	c.server.metrics.connections.Dec()
	c.log.Info("session closed")
}

// end tells the client why its session is over, where there is something to tell.
func (c *session) end(err error) {
	if c.counted {
		c.server.users.disconnect(c.user)
		c.counted = false
	}
	c.forget(c.held)
	c.pace.hold()
	if err == nil || errors.Is(err, login.ErrSilent) {
		_ = c.back.Flush() // the client may be gone
		return
	}
	f := pgerror.Describe(err)
	c.server.metrics.failed(err, f)
	c.send(errorResponse(c.asked(f), "FATAL"))
	if c.back.Flush() == nil {
		c.linger()
	}
}

// linger reads what the client has sent for a moment: closing over unread bytes would discard the last message.
func (c *session) linger() {
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // an attempt at courtesy
	}
	if c.conn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, c.conn, 4*bodyAfterLogin) // as above
	}
}

const lingerTime = 200 * time.Millisecond

// logPanic tells the operator where a panic was, and not with what: its value and the arguments of the functions may
// hold what no log may.
func (s *Server) logPanic(ctx context.Context, value any, where string) {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var at []string
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") {
			at = append(at, fmt.Sprintf("%s:%d", f.Function, f.Line))
		}
		if !more || len(at) == 12 {
			break
		}
	}
	s.config.Log.ErrorContext(ctx, "panic", "where", where, "type", fmt.Sprintf("%T", value), "stack", at)
}

// interrupted is the error of a wait that ended before its answer.
func interrupted(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errShutdown):
		return pgerror.New("57P01", errShutdown.Error()).Fatal()
	case errors.Is(cause, errTimeout):
		return pgerror.New("57014", errTimeout.Error())
	default:
		return pgerror.New("57014", errCanceled.Error())
	}
}

// Renew reads the files of the server's certificate, also again: connections from then on are shown what is in them.
// Those that are open keep theirs, which their logins are bound to. What cannot be used leaves the earlier one in
// force.
func (s *Server) Renew() error {
	config, err := s.certificate()
	if config == nil || err != nil {
		return err
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	config.NextProtos = []string{login.ALPN}
	s.tls.Store(config)
	if leaf := config.Certificates; len(leaf) > 0 && leaf[0].Leaf != nil {
		s.metrics.certificate.Set(seconds(leaf[0].Leaf.NotAfter))
	}
	return nil
}

// certificate is what TLS begins with: as configured, or from the policy's files; nil without TLS.
func (s *Server) certificate() (*tls.Config, error) {
	if s.config.TLS != nil {
		return s.config.TLS.Clone(), nil
	}
	files := s.config.Policy().Server.TLS
	if files == nil {
		return nil, nil
	}
	cert, err := deadline.ReadFile(files.Cert)
	if err != nil {
		return nil, fmt.Errorf("server certificate: %w", err)
	}
	key, err := deadline.ReadFile(files.Key)
	if err != nil {
		return nil, fmt.Errorf("server certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("server certificate: %w", err)
	}
	if time.Now().After(pair.Leaf.NotAfter) {
		s.config.Log.Warn("the server's certificate has expired; clients that verify it do not connect", "file", files.Cert, "expired", pair.Leaf.NotAfter)
	}
	if old := s.tls.Load(); old != nil && !bytes.Equal(old.Certificates[0].Certificate[0], pair.Certificate[0]) {
		s.config.Log.Info("new connections are shown another certificate", "file", files.Cert, "until", pair.Leaf.NotAfter)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	if files.Clients != "" { // a client that has a certificate must have a good one; one that has none may log in by something else
		if config.ClientCAs, err = login.Certificates(files.Clients); err != nil {
			return nil, fmt.Errorf("certificates of clients: %w", err)
		}
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return config, nil
}
