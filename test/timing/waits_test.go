package timing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestT7DeadlineOnOneSide: where every query runs over the owner's deadline on one side and none on the other, answers
// have the same frames, cost the same, and leave at the same time.
func TestT7DeadlineOnOneSide(t *testing.T) {
	kit.Beside(t)
	if testing.Short() {
		t.Skip("waits for many deadlines")
	}
	with, without := kit.Lab{Engine: "postgres", Timing: "{grid: 20ms, fresh: 240ms}",
		Change: []string{"backend: {url:", "backend: {deadline: 100ms, url:", "    tables:\n", "    buying: {cells: 0}\n    tables:\n"}}.Pair(t)
	kit.LockPeople(t, with.Server, with.Database)
	one, other := with.Connect("alice", "lab"), without.Connect("alice", "lab")
	n := kit.Length(40, 100, 500)
	var answers [2]kit.Answer
	differences := 0
	ask := func(side int, w *kit.Wire) func(i int) error {
		return func(i int) (err error) {
			before := answers[1-side]
			answers[side], err = w.TryAsk(fmt.Sprintf(`SELECT city, count(*) FROM people WHERE age < %d AND income >= %d GROUP BY city ORDER BY city`, 20+i%90, 1000*(i/90)))
			if before.Frames == nil {
				return err
			}
			if d := kit.SameFrames("over the deadline", answers[0], answers[1]); d != "" {
				differences++
				t.Error(d)
			}
			answers = [2]kit.Answer{}
			return err
		}
	}
	times, err := interleaved(n, ask(0, one), ask(1, other))
	if err != nil {
		t.Fatal(err)
	}
	apart := tell(times[0], times[1])
	if !apart.passes() {
		t.Errorf("told apart by time: %s from 0.5, must be at most %.3f", apart, maxSeparation(n))
	}
	faults := strings.Count(with.LogText(), "a paid query failed")
	if late := strings.Count(without.LogText(), "a paid query failed"); faults != n || late > n/2 {
		t.Errorf("%d of %d queries ran over the deadline, and %d on the other side: the test tested something else", faults, n, late)
	}
	if a, b := one.Spent(), other.Spent(); a != b {
		t.Errorf("spent %s with number 7, %s without", a, b)
	}
	threats.Reached(t, "T7", "%d differences in %d runs; AUC %s from 0.5", differences, n, apart)
}

// TestT3AnswersThroughFaults: a failing database neither refuses nor closes anything: each of many questions in a row
// is answered and charged, as many as the budget pays for, and each is reported to the operator.
func TestT3AnswersThroughFaults(t *testing.T) {
	kit.Beside(t)
	const paid = 12
	s := kit.Lab{Engine: "postgres", Budgets: kit.Budgets{User: "1.2", Cap: "100"}, Change: []string{"backend: {url:", "backend: {deadline: 50ms, url:", "    tables:\n", "    buying: {cells: 0}\n    tables:\n"}}.Serve(t, 0)
	kit.LockPeople(t, s.Server, s.Database)
	w := s.Connect("alice", "lab")
	answered := 0
	for i := range paid + 3 {
		a := w.Ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE age < %d`, 30+i))
		switch {
		case a.Err == nil:
			answered++
		case i < paid || a.Err.Code != "DP001":
			t.Errorf("question %d: %v", i+1, a.Err)
		}
	}
	told := strings.Count(s.LogText(), "a paid query failed")
	charges := kit.Count(t, w.Ask(`SELECT count(*) FROM dp.charges`))
	if answered != paid || charges != paid || told != paid {
		t.Errorf("%d answers, %d charges, the operator told of %d faults; all must be %d", answered, charges, told, paid)
	}
	threats.Reached(t, "T3", "%d faults: %d answers, %d charges, the operator told %d times; then the budget is spent", paid, answered, charges, told)
}

// cancelling sends a cancel request a moment after each of some questions and returns how many were answered.
func cancelling(p *kit.Program, from, to int) (answered int, err error) {
	w, key, err := p.DialKeyed("alice", "lab")
	if err != nil {
		return 0, err
	}
	r := rand.New(rand.NewPCG(uint64(36+from), 8))
	for i := from; i < to; i++ {
		after := time.Duration(r.Int64N(int64(160 * time.Millisecond)))
		cancelled := make(chan error, 1)
		time.AfterFunc(after, func() { cancelled <- cancel(p, key) })
		a, err := w.TryAsk(fmt.Sprintf(`SELECT count(*) FROM events WHERE amount < %d.25 AND day < DATE '2024-01-02' + %d`, i%100, i/100))
		if err != nil {
			return 0, err
		}
		if err := <-cancelled; err != nil {
			return 0, err
		}
		switch {
		case a.Err == nil:
			answered++
			continue
		case a.Err.Code != "57014":
			return 0, a.Err
		}
		time.Sleep(200 * time.Millisecond) // its work goes on, and would slow that of the next one
	}
	return answered, nil
}

// cancel sends a cancel request and waits until the proxy has closed its connection, that is, has acted on it.
func cancel(p *kit.Program, key pgproto3.BackendKeyData) error {
	conn, err := net.Dial("tcp", p.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	text, err := (&pgproto3.CancelRequest{ProcessID: key.ProcessID, SecretKey: key.SecretKey}).Encode(nil)
	if err != nil {
		return err
	}
	if _, err := conn.Write(text); err != nil {
		return err
	}
	_, _ = conn.Read(make([]byte, 1)) // closed: nothing is ever answered
	return nil
}

// TestT8CancelAsAProbe: cancel requests at any moment of a query whose time differs between neighbours end as many
// waits on one side as on the other, and what is charged is saved on both. Requests to a second pair over the same
// rows, whose results are taken when they are there, do tell them apart: else the run says nothing.
func TestT8CancelAsAProbe(t *testing.T) {
	kit.Beside(t)
	if testing.Short() {
		t.Skip("cancels many times")
	}
	open := timedLab
	open.Timing = "{grid: 20ms}"
	var sides [4]kit.Side
	sides[0], sides[1] = timedLab.Pair(t)
	sides[2], sides[3] = open.Pair(t)
	n, round := 0, kit.Length(100, 200, 1000)
	var answered [4]int
	for range 3 { // a fast machine needs more of them to tell the second pair apart
		done := make(chan error, len(sides))
		for i, s := range sides {
			go func() {
				some, err := cancelling(s.Program, n, n+round)
				answered[i] += some
				done <- err
			}()
		}
		for range sides {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if n += round; sharesApart(answered[2], answered[3], n) >= 5 {
			break
		}
	}
	if apart := sharesApart(answered[0], answered[1], n); apart > 3 {
		t.Errorf("%d of %d answered with number 7, %d without: %.1f standard errors apart", answered[0], n, answered[1], apart)
	}
	if apart := sharesApart(answered[2], answered[3], n); apart < 5 {
		t.Errorf("%d of %d answered with number 7, %d without, where results are taken when they are there: %.1f standard errors apart only: the test sees nothing", answered[2], n, answered[3], apart)
	}
	var charges [2]int
	for i, s := range sides[:2] {
		w := s.Connect("alice", "lab")
		charges[i] = kit.Count(t, w.Ask(`SELECT count(*) FROM dp.charges`))
		if saved := kit.Count(t, w.Ask(`SELECT count(*) FROM dp.releases WHERE paid`)); saved != charges[i] || answered[i] > saved {
			t.Errorf("%d answers, %d charges, %d releases: what is charged is saved, whoever waits for it", answered[i], charges[i], saved)
		}
	}
	if apart := sharesApart(charges[0], charges[1], n); apart > 3 {
		t.Errorf("%d of %d questions were charged before they were cancelled with number 7, %d without: %.1f standard errors apart", charges[0], n, charges[1], apart)
	}
	threats.Reached(t, "T8", "%d cancels a side: answered %d and %d, charged and saved %d and %d; with a step below the scan answered %d and %d", n, answered[0], answered[1], charges[0], charges[1], answered[2], answered[3])
}

// sharesApart is how many standard errors lie between two numbers of n.
func sharesApart(one, other, n int) float64 {
	share := float64(one+other) / float64(2*n)
	if one == other {
		return 0
	}
	return math.Abs(float64(one-other)) / math.Sqrt(2*share*(1-share)*float64(n))
}
