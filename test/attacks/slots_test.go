package attacks

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestSlotBeforeTheCharge: many statements at once, on a grid that answers few of them a second, wait before they are
// charged, and each one is answered from the rows, none by the noise that a fault leaves. Who does not wait so long is
// not charged. When all have left, no slot is taken.
func TestSlotBeforeTheCharge(t *testing.T) {
	kit.Beside(t)
	const asked, impatient = 14, 4 // with one connection for paid queries
	s := kit.Lab{Engine: "postgres", Timing: "{grid: 100ms, fresh: 1200ms}", Change: append([]string{"backend: {url:", "backend: {deadline: 1s, url:",
		"server: {", "server: {limits: {user_connections: 100, user_statements: 100, user_purchases: 100}, ", "    tables:\n", "    buying: {cells: 0}\n    tables:\n"}, kit.OneByOne...)}.Serve(t, 0)
	w := s.Connect("alice", "lab")
	check := func(age int, a kit.Answer) {
		t.Helper()
		truth := 1000 * (age - 18) / 60
		if got := kit.Count(t, a); math.Abs(float64(got-truth)) > 200 { // its noise has a scale of 10
			t.Errorf("age < %d is answered by %d, which is far from %d", age, got, truth)
		}
	}
	check(39, w.Ask(`SELECT count(*) FROM people WHERE age < 39`)) // dials
	var clients []*kit.Wire
	for range asked + impatient {
		clients = append(clients, s.Connect("alice", "lab"))
	}
	for _, c := range clients[asked:] {
		c.Ask(`SET statement_timeout = 2000`)
	}
	answers := make([]kit.Answer, len(clients))
	var all sync.WaitGroup
	begun := time.Now()
	ask := func(i int) {
		all.Go(func() {
			var err error
			if answers[i], err = clients[i].TryAsk(fmt.Sprintf(`SELECT count(*) FROM people WHERE age < %d`, 40+i)); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range asked {
		ask(i)
	}
	time.Sleep(600 * time.Millisecond) // they wait
	for i := range impatient {
		ask(asked + i)
	}
	all.Wait()
	took := time.Since(begun)
	for i, a := range answers {
		if i < asked && a.Err == nil {
			check(40+i, a)
		} else if i < asked || a.Err == nil || a.Err.Code != "57014" {
			t.Errorf("question %d: %v", i, a.Err)
		}
	}
	check(60, w.Ask(`SELECT count(*) FROM people WHERE age < 60`))
	charges := kit.Count(t, w.Ask(`SELECT count(*) FROM dp.charges`))
	if told := strings.Count(s.LogText(), "a paid query failed"); told > 0 || charges != asked+2 {
		t.Errorf("%d paid queries failed, %d charges, must be %d", told, charges, asked+2)
	}
	threats.Reached(t, "T3", "%d statements at once for one connection: each is answered from rows, in %s; %d more did not wait so long and were not charged", asked, took.Round(time.Second), impatient)
}

// TestSlotsOfUserAndDatabase: statements that buy twice, the keys first, and their user's slots and the database's,
// which are fewer, do not wait for each other for ever.
func TestSlotsOfUserAndDatabase(t *testing.T) {
	t.Setenv("GOMAXPROCS", "2") // as many slots has DuckDB
	path := openKeysFixture(t)
	kit.Edit(t, path, "backend: {url:", "backend: {deadline: 1500ms, url:", "server: {", "server: {timing: {grid: 20ms, fresh: 1520ms}, limits: {user_connections: 100, user_statements: 100, user_purchases: 2}, ")
	p := kit.Serve(t, path)
	const asked = 16
	ended := make(chan error, asked)
	for i := range asked {
		w := p.Connect("alice", "lab")
		w.Ask(fmt.Sprintf(`SET dp.epsilon = 0.1%02d`, i)) // so that each finds its keys
		go func() {
			a, err := w.TryAsk(fmt.Sprintf(`SELECT town, sex, count(*) FROM people WHERE town <> 'nowhere %d' GROUP BY 1, 2`, i)) // and counts its own
			if err == nil && a.Err != nil {
				err = fmt.Errorf("%s %s", a.Err.Code, a.Err.Message)
			}
			ended <- err
		}()
	}
	for i := range asked {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("only %d of %d statements ended", i, asked)
		}
	}
	charged := p.Connect("alice", "lab").Ask(`SELECT count(*) FILTER (WHERE kind = 'keys'), count(*) FROM dp.charges`).Rows[0]
	if charged[0] != strconv.Itoa(asked) || charged[1] != strconv.Itoa(2*asked) {
		t.Errorf("of %d statements %s bought keys, and %s charges were made", asked, charged[0], charged[1])
	}
	threats.Reached(t, "T3", "%d statements that buy twice, at 2 slots of their user and 6 of the database: all ended", asked)
}
