package proxy

import (
	"context"
	"errors"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
)

// TestRequestNumbers: what is asked of the pipeline for a message has a number of its own, which the message's error
// tells, and no error tells that of a message before.
func TestRequestNumbers(t *testing.T) {
	b := start(t)
	fails := b.pipeline.fixtures["select 1"]
	fails.answer = func(context.Context, *pipeline.Session, []policy.Value) ([][]policy.Value, error) {
		return nil, errors.New("a fault")
	}
	b.pipeline.fixtures["select paid"] = fails
	r := b.raw(t)
	told := func(messages ...pgproto3.FrontendMessage) string {
		t.Helper()
		for _, m := range messages {
			r.Send(m)
		}
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		number := ""
		for {
			msg, err := r.Receive()
			if err != nil {
				t.Fatal(err)
			}
			switch m := msg.(type) {
			case *pgproto3.ErrorResponse:
				number = "none"
				if found := regexp.MustCompile(`Request [0-9a-f]{16}-(\d+): `).FindStringSubmatch(m.Detail); found != nil {
					number = found[1]
				}
			case *pgproto3.ReadyForQuery:
				return number
			}
		}
	}
	for _, c := range []struct {
		what, got, want string
	}{
		{"a statement that fails", told(query("select paid")), "1"},
		{"another", told(query("select paid")), "2"},
		{"a text that is no statement", told(query("selec 1")), "none"},
		{"prepared: described by one, asked by the next", told(&pgproto3.Parse{Query: "select paid"}, &pgproto3.Describe{ObjectType: 'S'}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{}), "4"},
		{"a portal that is not there", told(&pgproto3.Execute{Portal: "gone"}, &pgproto3.Sync{}), "none"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, must be %q", c.what, c.got, c.want)
		}
	}
}
