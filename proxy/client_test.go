package proxy

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/xdg-go/scram"
)

// raw is a client that sends single messages.
type raw struct {
	t    testing.TB
	conn net.Conn
	*pgproto3.Frontend
	key *pgproto3.BackendKeyData
}

func (b *bench) dial(t testing.TB) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// raw logs in as alice.
func (b *bench) raw(t testing.TB, parameters ...string) *raw {
	t.Helper()
	return b.rawOn(t, b.dial(t), pgproto3.ProtocolVersion30, parameters...)
}

func (b *bench) rawOn(t testing.TB, conn net.Conn, version uint32, parameters ...string) *raw {
	t.Helper()
	r := &raw{t: t, conn: conn, Frontend: pgproto3.NewFrontend(conn, conn)}
	all := map[string]string{"user": "alice", "database": "census"}
	for i := 0; i+1 < len(parameters); i += 2 {
		all[parameters[i]] = parameters[i+1]
	}
	r.Send(&pgproto3.StartupMessage{ProtocolVersion: version, Parameters: all})
	r.login("wonderland")
	r.upTo("Z")
	return r
}

var clients sync.Map // by password; a client derives its keys once

func passwords(t testing.TB, password string) *scram.Client {
	t.Helper()
	if c, ok := clients.Load(password); ok {
		return c.(*scram.Client)
	}
	client, err := scram.SHA256.NewClient("", password, "")
	if err != nil {
		t.Fatal(err)
	}
	clients.Store(password, client)
	return client
}

// login answers the password exchange.
func (r *raw) login(password string) {
	r.t.Helper()
	talk := passwords(r.t, password).NewConversation()
	first, err := talk.Step("")
	if err != nil {
		r.t.Fatal(err)
	}
	r.flush()
	if msg := r.next(); msg == nil {
		return
	}
	r.Send(&pgproto3.SASLInitialResponse{AuthMechanism: mechanism, Data: []byte(first)})
	r.flush()
	cont, ok := r.next().(*pgproto3.AuthenticationSASLContinue)
	if !ok {
		return
	}
	final, err := talk.Step(string(cont.Data))
	if err != nil {
		r.t.Fatal(err)
	}
	r.Send(&pgproto3.SASLResponse{Data: []byte(final)})
	r.flush()
}

func (r *raw) flush() {
	r.t.Helper()
	if err := r.Flush(); err != nil {
		r.t.Fatal(err)
	}
}

// next returns the next message that is not a ParameterStatus or NegotiateProtocolVersion; nil at the end.
func (r *raw) next() pgproto3.BackendMessage {
	for {
		msg, err := r.Receive()
		if err != nil {
			return nil
		}
		switch m := msg.(type) {
		case *pgproto3.ParameterStatus, *pgproto3.NegotiateProtocolVersion:
		case *pgproto3.BackendKeyData:
			r.key = &pgproto3.BackendKeyData{ProcessID: m.ProcessID, SecretKey: append([]byte(nil), m.SecretKey...)}
			return m
		default:
			return msg
		}
	}
}

// upTo writes the messages down to the first of a kind, in short: "1 2 T D D C(SELECT 2) Z(I)".
func (r *raw) upTo(kind string) string {
	r.t.Helper()
	r.flush()
	var out []string
	for {
		msg := r.next()
		if msg == nil {
			return strings.Join(append(out, "EOF"), " ")
		}
		short := brief(msg)
		out = append(out, short)
		if strings.HasPrefix(short, kind) {
			return strings.Join(out, " ")
		}
	}
}

func brief(msg pgproto3.BackendMessage) string {
	switch m := msg.(type) {
	case *pgproto3.ParseComplete:
		return "1"
	case *pgproto3.BindComplete:
		return "2"
	case *pgproto3.CloseComplete:
		return "3"
	case *pgproto3.NoData:
		return "n"
	case *pgproto3.EmptyQueryResponse:
		return "I"
	case *pgproto3.PortalSuspended:
		return "s"
	case *pgproto3.ParameterDescription:
		return fmt.Sprintf("t%v", m.ParameterOIDs)
	case *pgproto3.RowDescription:
		return fmt.Sprintf("T%d", len(m.Fields))
	case *pgproto3.DataRow:
		return "D"
	case *pgproto3.CopyOutResponse:
		return "H"
	case *pgproto3.CopyData:
		return "d"
	case *pgproto3.CopyDone:
		return "c"
	case *pgproto3.CommandComplete:
		return "C(" + string(m.CommandTag) + ")"
	case *pgproto3.ReadyForQuery:
		return "Z(" + string(m.TxStatus) + ")"
	case *pgproto3.ErrorResponse:
		return "E(" + m.Code + ")"
	case *pgproto3.NoticeResponse:
		return "N(" + m.Code + ")"
	case *pgproto3.BackendKeyData:
		return "K"
	}
	return fmt.Sprintf("%T", msg)
}
