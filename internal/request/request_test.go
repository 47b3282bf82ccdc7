package request

import (
	"context"
	"log/slog"
	"strings"
	"testing"
)

// TestLines: what is logged of a statement's context has its number, also below a context that ends otherwise, and
// other lines have none.
func TestLines(t *testing.T) {
	var out strings.Builder
	log := slog.New(Handler(slog.NewTextHandler(&out, nil))).With("user", "alice")
	session := NewSession()
	first := With(t.Context(), session.Next())
	below, cancel := context.WithCancel(context.WithoutCancel(first))
	defer cancel()
	log.InfoContext(below, "charged")
	log.Info("session closed")
	lines := strings.Split(out.String(), "\n")
	if want := " request=" + session.Next().String(); !strings.HasSuffix(lines[0], want) || !strings.Contains(lines[0], "user=alice") {
		t.Errorf("%s has no %s", lines[0], want)
	}
	if strings.Contains(lines[1], "request") {
		t.Errorf("of no statement: %s", lines[1])
	}
	if id, ok := Of(below); !ok || id.Next() == id || id.Next().Session != session.Session {
		t.Errorf("%v, %v", id, ok)
	}
	if a, b := NewSession(), NewSession(); a == b {
		t.Errorf("two sessions are %v", a)
	}
}
