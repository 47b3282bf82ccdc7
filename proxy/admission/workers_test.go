package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/sandbox"
)

// errPatience ends a wait.
var errPatience = errors.New("waited long enough")

// TestNobodyHoldsAllSlots is threat T70: of slots that all users share one user has all but one, however many
// statements she has in her queue, and a slot that is given back goes to who has the fewest.
func TestNobodyHoldsAllSlots(t *testing.T) {
	slots := sharedSlots(2)
	take := func(user string) func() {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		done, err := slots.Wait(ctx, user, slots.share(0))
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		return done
	}
	first := take("mallory")
	var order []string
	var mu sync.Mutex
	var wait sync.WaitGroup
	queue := func(user string) {
		ready := make(chan struct{})
		wait.Go(func() {
			close(ready)
			done := take(user)
			mu.Lock()
			order = append(order, user)
			mu.Unlock()
			done()
		})
		<-ready
		for before := true; before; time.Sleep(time.Millisecond) { // until it is in her queue
			slots.mu.Lock()
			before = len(slots.of(user).waiting) == 0
			slots.mu.Unlock()
		}
	}
	for range 20 {
		queue("mallory")
	}
	alice := take("alice") // at once, though twenty wait before her
	queue("bob")
	alice()
	for begun, came := time.Now(), 0; came == 0; time.Sleep(time.Millisecond) {
		mu.Lock()
		came = len(order)
		mu.Unlock()
		if time.Since(begun) > 20*time.Second {
			t.Fatal("a slot is free, and nobody has it")
		}
	}
	first()
	wait.Wait()
	if len(order) != 21 || slices.Index(order, "bob") != 0 {
		t.Errorf("bob came after %d of mallory's statements: %v", slices.Index(order, "bob"), order)
	}
	if slots.held != 0 || slots.next() != nil {
		t.Errorf("left behind: %d run", slots.held)
	}
	threats.Reached(t, "T70", "with 20 statements in her queue a user holds 1 of 2 slots; another's runs at once, a third's after %d of hers", slices.Index(order, "bob"))
}

// TestFairTurns: never more than all run, of none more than her share, and none is lost among those that give up.
func TestFairTurns(t *testing.T) {
	const all, each = 3, 60
	slots := sharedSlots(all)
	var mu sync.Mutex
	running, most := map[string]int{}, 0
	var wait sync.WaitGroup
	for i := range 4 * each {
		user := fmt.Sprint("user", i%4)
		wait.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%5 == 0 {
				time.AfterFunc(time.Duration(i%7)*time.Millisecond, cancel)
			}
			done, err := slots.Wait(ctx, user, slots.share(0))
			if err != nil {
				return
			}
			defer done()
			mu.Lock()
			running[user]++
			sum := 0
			for _, n := range running {
				sum += n
			}
			most = max(most, sum)
			if running[user] > all-1 {
				t.Errorf("%s has %d of %d slots", user, running[user], all)
			}
			mu.Unlock()
			time.Sleep(100 * time.Microsecond)
			mu.Lock()
			running[user]--
			mu.Unlock()
		})
	}
	wait.Wait()
	if most > all || slots.held != 0 {
		t.Errorf("%d ran at a time of %d; %d are left behind", most, all, slots.held)
	}
}

// TestStatementEndsAtItsLimits: a statement that has taken its processor time, in one part or several, or that is ended
// for want of memory, names the limit.
func TestStatementEndsAtItsLimits(t *testing.T) {
	w, l := NewWorkers(0, 0), policy.Limits{StatementCPU: 60 * time.Millisecond, StatementMemory: 64 << 20, UserMemory: 128 << 20}
	spin := func(ctx context.Context) error {
		for ctx.Err() == nil {
		}
		return ctx.Err()
	}
	ctx := Metered(t.Context())
	err := w.Run(ctx, "alice", l, func(context.Context) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for part := 0; err == nil && part < 50; part++ {
		err = w.Run(ctx, "alice", l, func(ctx context.Context) error {
			for until := time.Now().Add(40 * time.Millisecond); time.Now().Before(until) && ctx.Err() == nil; {
			}
			return nil
		})
	}
	var f *pgerror.Failure
	if !errors.As(err, &f) || f.SQLState != "57014" || !strings.Contains(f.Message, "60ms of processor time (server.limits.statement_cpu)") {
		t.Errorf("parts that are too much together: %v after %v", err, time.Since(begun))
	}
	w.memory.limit.Store(100)
	watching, stop := context.WithCancel(t.Context())
	go w.memory.watch(watching, func() int64 { return 95 })
	if err := w.Run(Metered(t.Context()), "alice", policy.Limits{StatementCPU: time.Hour}, spin); !errors.As(err, &f) || f.SQLState != "53200" {
		t.Errorf("without memory: %v", err)
	}
	waiting, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errPatience)
	defer cancel()
	if err := w.Run(waiting, "bob", l, spin); !errors.Is(err, errPatience) {
		t.Errorf("while memory is short new work waits: %v", err)
	}
	stop()
}

// TestEveryUserHasASlot: a user's statements that nothing can stop keep her own from running, and nobody else's.
func TestEveryUserHasASlot(t *testing.T) {
	w, l := NewWorkers(2, 0), policy.Limits{StatementCPU: time.Second, StatementMemory: 64 << 20, UserMemory: 128 << 20}
	stuck := make(chan struct{})
	var wait sync.WaitGroup
	for range 10 {
		wait.Go(func() {
			_ = w.Run(t.Context(), "mallory", l, func(context.Context) error { <-stuck; return nil })
		})
	}
	for i := range 5 {
		ran := false
		if err := w.Run(t.Context(), "alice", l, func(context.Context) error { ran = true; return nil }); err != nil || !ran {
			t.Errorf("alice's statement %d: %v", i, err)
		}
	}
	asked, done := make(chan struct{}), make(chan struct{})
	for range 3 {
		wait.Go(func() {
			_ = w.Ask(t.Context(), policy.Limits{}, sandbox.Session{User: "mallory"}, func(sandbox.Session) error {
				asked <- struct{}{}
				<-stuck
				return nil
			})
		})
	}
	<-asked
	for all := false; !all; time.Sleep(time.Millisecond) { // until her three have come
		w.sandbox.mu.Lock()
		l := w.sandbox.of("mallory")
		if all = l.held+len(l.waiting) == 3; l.held > 1 {
			t.Errorf("one user holds %d of the sandbox's 2 slots", l.held)
		}
		w.sandbox.mu.Unlock()
	}
	go func() {
		_ = w.Ask(t.Context(), policy.Limits{}, sandbox.Session{User: "alice"}, func(sandbox.Session) error { return nil })
		close(done)
	}()
	select {
	case <-done:
	case <-asked:
		t.Error("one user holds both of the sandbox's slots")
	}
	close(stuck)
	go func() {
		for range asked {
		}
	}()
	wait.Wait()
	close(asked)
}

// TestFewestFirst: a free slot goes to the user who has the fewest, though another's statement came before hers.
func TestFewestFirst(t *testing.T) {
	slots := sharedSlots(3)
	take := func(ctx context.Context, user string) func() {
		done, err := slots.Wait(ctx, user, 3)
		if err != nil {
			t.Errorf("%s: %v", user, err)
			return func() {}
		}
		return done
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	first, second, carols := take(ctx, "mallory"), take(ctx, "mallory"), take(ctx, "carol")
	came := make(chan string)
	var wait sync.WaitGroup
	for i, user := range []string{"mallory", "bob"} {
		wait.Go(func() {
			done := take(ctx, user)
			came <- user
			done()
		})
		for in := 0; in <= i; time.Sleep(time.Millisecond) {
			slots.mu.Lock()
			in = int(slots.came)
			slots.mu.Unlock()
		}
	}
	carols()
	if got := <-came; got != "bob" {
		t.Errorf("%s has two of three slots and was given the third before bob, who has none", got)
	}
	<-came
	first()
	second()
	wait.Wait()
}

// TestWhatIsPaidForHasItsLimit: after a charge a statement has its whole limit again.
func TestWhatIsPaidForHasItsLimit(t *testing.T) {
	ctx := Metered(t.Context())
	m := ctx.Value(meterKey{}).(*meter)
	m.add(time.Minute)
	if left := m.left(time.Second); left != time.Millisecond {
		t.Errorf("%s is left of a second, of which a minute is used", left)
	}
	Renew(ctx)
	if left := m.left(time.Second); left != time.Second {
		t.Errorf("%s is left of a second after the charge", left)
	}
	Renew(t.Context()) // an operator's command has no limit
}
