package processor

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

var errOver = errors.New("over")

// spin works until ctx ends, at most so long.
func spin(ctx context.Context, most time.Duration) {
	for until := time.Now().Add(most); ctx.Err() == nil && time.Now().Before(until); {
	}
}

// TestLimit: work ends when it has taken its processor time; a wait takes none.
func TestLimit(t *testing.T) {
	var ctx context.Context
	var stop func() time.Duration
	var took time.Duration
	for range 20 { // a machine that is busy enough gives it less within its patience
		ctx, stop = Limit(t.Context(), 50*time.Millisecond, errOver)
		spin(ctx, 30*time.Second)
		if took = stop(); took >= 20*time.Millisecond {
			break
		}
	}
	if context.Cause(ctx) != errOver || took < 20*time.Millisecond || took > 5*time.Second {
		t.Errorf("work ended by %v after %v", context.Cause(ctx), took)
	}
	ctx, stop = Limit(t.Context(), 100*time.Millisecond, errOver)
	time.Sleep(200 * time.Millisecond)
	if err := ctx.Err(); err != nil {
		t.Errorf("a wait of twice the limit: %v", err)
	}
	if took := stop(); took > 100*time.Millisecond {
		t.Errorf("a wait took %v of processor time", took)
	}
	ctx, stop = Limit(t.Context(), 100*time.Millisecond, errOver)
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Error("a wait of more than its patience goes on")
	}
	stop()
}

// TestTime: the time of this process grows as it works.
func TestTime(t *testing.T) {
	before, ok := Time(os.Getpid())
	if !ok {
		t.Skip("no /proc")
	}
	for begun := time.Now(); time.Since(begun) < 30*time.Second; {
		spin(t.Context(), 20*time.Millisecond)
		if after, _ := Time(os.Getpid()); after > before {
			return
		}
	}
	t.Error("no processor time was told")
}
