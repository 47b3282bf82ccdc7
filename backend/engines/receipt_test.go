package engines

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestPaidQueriesRunOnce: a receipt is spent by one execution of its own measure and by no other (rule 4).
func TestPaidQueriesRunOnce(t *testing.T) {
	eachBackend(t, func(t *testing.T, h *backendtest.House) {
		a := backendtest.NewAccount(t)
		bySex, byAge := backendtest.Measure(t, h.Policy, "people", "sex"), backendtest.Measure(t, h.Policy, "people", "age")
		spec := backendtest.NearlyExact(4)
		receipt := a.Pay(t, bySex, spec)
		if truth, err := backendtest.Execute(t, h, backendtest.Render(t, byAge, h), receipt); err == nil || truth.Valid() {
			t.Error("a receipt paid for another measure")
		}
		var wait sync.WaitGroup
		var mu sync.Mutex
		var answers [][]int64
		for range 8 {
			wait.Go(func() {
				truth, err := backendtest.Execute(t, h, backendtest.Render(t, bySex, h), receipt)
				if err != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				answers = append(answers, backendtest.Reveal(t, truth, spec))
			})
		}
		wait.Wait()
		if len(answers) != 1 || !slices.Equal(answers[0], []int64{16, 14, 2, 8}) {
			t.Errorf("got the answers %v, want [16 14 2 8] once", answers)
		}
	})
}

// TestAfterTheChargeThereIsAnAnswer (rule 5): a dead database, a vanished table and a missed deadline give a sealed
// answer of no groups and no error, which is released, saved and held like any other.
func TestAfterTheChargeThereIsAnAnswer(t *testing.T) {
	faults := map[string]func(h *backendtest.House){
		"deadline":       func(h *backendtest.House) { h.SetDeadline(time.Nanosecond) },
		"vanished table": func(h *backendtest.House) { h.Policy.Datasets[0].Tables[0].Source.Name = "gone" },
		"dead":           func(h *backendtest.House) { h.Crash() },
	}
	eachBackend(t, func(t *testing.T, h *backendtest.House) {
		a := backendtest.NewAccount(t)
		for _, name := range []string{"vanished table", "deadline", "dead"} {
			m := backendtest.Measure(t, h.Policy, "people", "sex")
			m.Digest[31] = byte(len(name))
			spec := backendtest.NearlyExact(4)
			receipt := a.Pay(t, m, spec)
			faults[name](h)
			truth, err := backendtest.Execute(t, h, backendtest.Render(t, m, h), receipt)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := backendtest.Reveal(t, truth, spec); !slices.Equal(got, make([]int64, 4)) {
				t.Errorf("%s: got %v, want zeros", name, got)
			}
			if _, err := a.Save(context.Background(), receipt, mechanisms.Drawn{Noisy: privacy.Published(mechanisms.Noisy{Observations: make([]int64, 4)})}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			h.SetDeadline(20 * time.Second)
		}
		if n := strings.Count(h.Log.String(), "privacy rule 5"); n != 3 {
			t.Errorf("%d alerts, want 3", n)
		}
		if held := len(a.Holdings("ann", "clinic")); held != 3 {
			t.Errorf("she holds %d releases, want 3", held)
		}
	})
}

// TestNeighboursLookAlike (rules 5 and 23): with and without one person, the SQL, the log and the errors are equal.
func TestNeighboursLookAlike(t *testing.T) {
	h := backendtest.PostgresHouse(t)
	trace := func() string {
		var text bytes.Buffer
		for _, grain := range [][]string{nil, {"sex"}, {"income", "age"}} {
			m := backendtest.Measure(t, h.Policy, "people", grain...)
			a := backendtest.NewAccount(t)
			q := backendtest.Render(t, m, h)
			truth, err := backendtest.Execute(t, h, q, a.Pay(t, m, backendtest.NearlyExact(1)))
			fmt.Fprintln(&text, q.SQL(), q.Args(), err, truth.Valid(), h.Ready(context.Background()))
		}
		return text.String() + backendtest.Inspect(t, h) + h.Log.String()
	}
	with := trace()
	h.Change("DELETE FROM people WHERE person_id = 17")
	if without := trace(); with != without {
		t.Errorf("one person more shows:\n%s\n----\n%s", with, without)
	}
}
