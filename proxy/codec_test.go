package proxy

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	v2 "github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/xdg-go/scram"
)

func newFrontend(conn net.Conn) *pgproto3.Frontend { return pgproto3.NewFrontend(conn, conn) }

func dataRow(msg pgproto3.BackendMessage) (string, bool) {
	row, ok := msg.(*pgproto3.DataRow)
	if !ok || len(row.Values) == 0 {
		return "", false
	}
	return string(row.Values[0]), true
}

// second is a client that speaks through another implementation of the protocol's messages.
type second struct {
	t *testing.T
	f *v2.Frontend
}

func (s second) send(messages ...v2.FrontendMessage) {
	s.t.Helper()
	for _, m := range messages {
		if err := s.f.Send(m); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s second) receive() v2.BackendMessage {
	s.t.Helper()
	m, err := s.f.Receive()
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

func (s second) login(password string) {
	s.t.Helper()
	if m, ok := s.receive().(*v2.AuthenticationSASL); !ok || len(m.AuthMechanisms) != 1 || m.AuthMechanisms[0] != mechanism {
		s.t.Fatalf("%+v", m)
	}
	client, err := scram.SHA256.NewClient("", password, "")
	if err != nil {
		s.t.Fatal(err)
	}
	talk := client.NewConversation()
	first, _ := talk.Step("")
	s.send(&v2.SASLInitialResponse{AuthMechanism: mechanism, Data: []byte(first)})
	cont, ok := s.receive().(*v2.AuthenticationSASLContinue)
	if !ok {
		s.t.Fatal("no challenge")
	}
	final, err := talk.Step(string(cont.Data))
	if err != nil {
		s.t.Fatal(err)
	}
	s.send(&v2.SASLResponse{Data: []byte(final)})
	end, ok := s.receive().(*v2.AuthenticationSASLFinal)
	if !ok {
		s.t.Fatal("no end")
	}
	if _, err := talk.Step(string(end.Data)); err != nil || !talk.Valid() {
		s.t.Fatalf("the server did not prove itself: %v", err)
	}
	for {
		if _, ok := s.receive().(*v2.ReadyForQuery); ok {
			return
		}
	}
}

func TestSecondCodec(t *testing.T) {
	conn := start(t).dial(t)
	s := second{t, v2.NewFrontend(v2.NewChunkReader(conn), conn)}
	s.send(&v2.StartupMessage{ProtocolVersion: v2.ProtocolVersionNumber, Parameters: map[string]string{"user": "alice", "database": "census"}})
	s.login("wonderland")
	s.send(&v2.Parse{Query: "select $1::int as a, $2::text"}, &v2.Bind{Parameters: [][]byte{[]byte("5"), nil}, ResultFormatCodes: []int16{1, 0}},
		&v2.Describe{ObjectType: 'P'}, &v2.Execute{}, &v2.Sync{})
	var seen []string
	for done := false; !done; {
		switch m := s.receive().(type) {
		case *v2.RowDescription:
			if m.Fields[0].DataTypeOID != 23 || m.Fields[0].Format != 1 || m.Fields[0].DataTypeSize != 4 || m.Fields[1].TableOID != 0 || string(m.Fields[1].Name) != "text" {
				t.Errorf("%+v", m.Fields)
			}
			seen = append(seen, "T")
		case *v2.DataRow:
			if binary.BigEndian.Uint32(m.Values[0]) != 5 || m.Values[1] != nil {
				t.Errorf("%v", m.Values)
			}
			seen = append(seen, "D")
		case *v2.ReadyForQuery:
			done = true
		}
	}
	if strings.Join(seen, "") != "TD" {
		t.Error(seen)
	}
	s.send(&v2.Query{String: "select nope"})
	if m, ok := s.receive().(*v2.ErrorResponse); !ok || m.Severity != "ERROR" || m.SeverityUnlocalized != "ERROR" || m.Code != "42703" || m.Position != 8 {
		t.Errorf("%+v", m)
	}
}

func TestAdmin(t *testing.T) {
	b := start(t, func(c *Config) { c.Admin = freeAddress(t) })
	r := b.raw(t)
	r.play("some", []step{one(query("select 1; select nope"), "T1 D C(SELECT 1) E(42703) Z(I)")})
	b.metrics.Charged("census", "count")
	get := func(path string) string {
		t.Helper()
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := c.Get("http://" + b.config.Admin + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return string(body)
	}
	if got := get("/healthz"); got != "ok\n" {
		t.Error(got)
	}
	all := get("/metrics")
	for _, want := range []string{"dpproxy_connections 1", `dpproxy_statements_total{kind="select"} 2`, `dpproxy_refusals_total{id="unknown-column"} 1`,
		`dpproxy_logins_total{outcome="ok"} 1`, `dpproxy_errors_total{sqlstate="42703"} 1`, `dpproxy_charges_total{dataset="census",kind="count"} 1`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in\n%s", want, all)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// BenchmarkPrepared is one Bind, Describe, Execute and Sync of a prepared statement and its answer.
func BenchmarkPrepared(b *testing.B) {
	server := start(b)
	r := server.raw(b, "client_min_messages", "warning")
	r.Send(parseMessage("s", "select count(*) from people where sex = $1"))
	r.Send(syncs)
	r.upTo("Z")
	for b.Loop() {
		r.Send(bind("", "s", "Female"))
		r.Send(describing('P', ""))
		r.Send(execute("", 0))
		r.Send(syncs)
		r.flush()
		for msg := r.next(); ; msg = r.next() {
			if _, ok := msg.(*pgproto3.ReadyForQuery); ok {
				break
			}
		}
	}
}
