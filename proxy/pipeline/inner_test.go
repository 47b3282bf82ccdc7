package pipeline

import (
	"context"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestHurried: a statement of several parts is refused before anything is charged where its deadline leaves less time
// than its first planning took, and not once something is.
func TestHurried(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	defer cancel()
	x := newExecution(&Session{}, "")
	if refusal := x.hurried(ctx); refusal != nil {
		t.Errorf("refused at once: %s", refusal.Message)
	}
	x.begun = time.Now().Add(-2 * time.Hour)
	if refusal := x.hurried(ctx); refusal == nil || refusal.SQLState != "57014" {
		t.Errorf("two hours of planning, an hour left: %v", refusal)
	}
	if refusal := x.hurried(t.Context()); refusal != nil {
		t.Errorf("refused without a deadline: %s", refusal.Message)
	}
	if x.prior.cost = (privacy.Cost{Epsilon: privacy.MicroEpsilon(1)}); x.hurried(ctx) != nil {
		t.Error("refused after a charge")
	}
}
