package pipeline

import (
	"context"
	"testing"
	"time"
)

// TestHurried: a statement of several parts is refused before anything is charged or read where its deadline leaves less
// time than its first planning took, and not after that, whether what is read costs something or not.
func TestHurried(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	defer cancel()
	x := newExecution(&Session{}, "")
	x.begun = time.Now().Add(-2 * time.Hour)
	if refusal := x.hurried(ctx); refusal == nil || refusal.SQLState != "57014" {
		t.Errorf("two hours of planning, an hour left: %v", refusal)
	}
	if refusal := newExecution(&Session{}, "").hurried(t.Context()); refusal != nil {
		t.Errorf("refused without a deadline: %s", refusal.Message)
	}
	x = newExecution(&Session{}, "")
	if refusal := x.hurried(ctx); refusal != nil {
		t.Errorf("refused at once: %s", refusal.Message)
	}
	if x.begun = time.Now().Add(-2 * time.Hour); x.hurried(ctx) != nil {
		t.Error("refused for the time that reading took")
	}
}
