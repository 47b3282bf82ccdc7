package audits

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/service"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestT20PairedStarts: two proxies that start from the same bytes (database, policy, ledger, secret) never give the
// same run of eight answers: nothing of the randomness comes from what is copied.
func TestT20PairedStarts(t *testing.T) {
	kit.Beside(t)
	pairs, equal := kit.Length(5, 20, 1000), 0
	path := kit.DuckDB(t, kit.Budgets{User: "1000", Cap: "1000"}, 0)
	for range pairs {
		var runs [2]string
		for side := range runs {
			dir := memory.Dir(t)
			for _, name := range []string{"lab.duckdb", "policy.yaml"} {
				text, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			p := kit.Serve(t, filepath.Join(dir, "policy.yaml"))
			w := p.Connect("alice", "lab")
			for q := range 8 {
				runs[side] += fmt.Sprint(w.Ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE age < %d`, 20+q)).Rows)
			}
			p.Stop(syscall.SIGKILL)
		}
		if runs[0] == runs[1] {
			equal++
			t.Errorf("twice the same run: %s", runs[0])
		}
	}
	threats.Reached(t, "T20", "%d paired starts: %d equal runs of 8 answers", pairs, equal)
}

// TestT20NoRandomnessNoAnswer: where the source of randomness fails, nothing is answered, what was charged stays
// charged, and the same question is drawn anew, at a new charge, once there is randomness.
func TestT20NoRandomnessNoAnswer(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0)
	h, err := service.Open(t.Context(), path, ledger.Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	const sql = `SELECT count(*) FROM people WHERE age < 40`
	broken := pipeline.NewAnswerer(h.Backend, h.Ledger, h.Engine, iotest.ErrReader(errors.New("no entropy")), slog.New(slog.DiscardHandler), proxy.NewMetrics())
	got, err := kit.Unwired(t.Context(), h, broken, "alice", sql, 1)
	if err == nil || len(got) > 0 {
		t.Errorf("without randomness: %d", got)
	}
	spent := func() int64 {
		b, err := h.Ledger.Balance(t.Context(), "alice", "lab")
		if err != nil {
			t.Fatal(err)
		}
		return b.Spent.Epsilon.Micro()
	}
	first := spent()
	sound := pipeline.NewAnswerer(h.Backend, h.Ledger, h.Engine, rand.Reader, slog.New(slog.DiscardHandler), proxy.NewMetrics())
	if got, err := kit.Unwired(t.Context(), h, sound, "alice", sql, 1); err != nil || len(got) != 1 {
		t.Errorf("with randomness again: %d %v", got, err)
	}
	if first == 0 || spent() != 2*first {
		t.Errorf("%d micro-ε were charged without randomness, %d in all", first, spent())
	}
	threats.Reached(t, "T20", "without randomness: 0 answers, charge of %d micro-ε kept", first)
}

// TestT19NoiseAndTime: the time of an answer does not go with the size of its noise, whatever the sampler does: with
// the grid as policies have it.
func TestT19NoiseAndTime(t *testing.T) {
	n := kit.Length(100, 1000, 5000)
	s := kit.Lab{Timing: "{grid: 20ms, fresh: 40ms}", Change: append([]string{"    tables:\n", "    buying: {cells: 0}\n    tables:\n"}, kit.Undeclared...)}.Serve(t, 0)
	w := s.Connect("alice", "lab")
	w.Ask(`SET dp.epsilon = 0.01`)
	var sizes, times []float64
	for i := range n {
		// Nobody is so old: the true count is 0 for each.
		begun := time.Now()
		a := w.Ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, 80+i%39, 1000*(1+i/39)))
		times = append(times, float64(time.Since(begun)))
		x := kit.Cell(0, 0)(a.Rows)
		if a.Err != nil || math.IsNaN(x) {
			t.Fatal(a.Err)
		}
		sizes = append(sizes, math.Abs(x))
	}
	rho := stattest.Spearman(sizes, times)
	if most := max(0.02, 5/math.Sqrt(float64(n))); math.Abs(rho) > most {
		t.Errorf("Spearman's ρ of |noise| and time is %.4f over %d answers, must be within %.3f", rho, n, most)
	}
	if charges := kit.Count(t, w.Ask(`SELECT count(*) FROM dp.charges`)); charges < n {
		t.Errorf("%d charges for %d questions: not all were drawn", charges, n)
	}
	threats.Reached(t, "T19", "end to end, with the grid: ρ %.4f of %d answers (standard error %.3f)", rho, n, 1/math.Sqrt(float64(n)))
}

// TestFixedWorkThroughSQL: with `sampling: fixed-work` the noise of what is bought through SQL is, number by number,
// what a fixed-work source of the same bytes gives, alone and in a histogram, of either kind of noise; without the key
// it is not.
func TestFixedWorkThroughSQL(t *testing.T) {
	const key = `, sampling: fixed-work}`
	questions, said := kit.Length(20, 40, 100), []string{}
	for _, c := range []struct {
		accountant string
		kind       noise.Kind
		sampling   string
	}{{"pure", noise.Laplace, key}, {"zcdp", noise.Gaussian, key}, {"pure", noise.Laplace, "}"}} {
		path := kit.DuckDB(t, kit.Budgets{User: "1000", Cap: "1000"}, 0)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.NewReplacer(`{listen: "127.0.0.1:0"}`, `{listen: "127.0.0.1:0"`+c.sampling, "accountant: pure", "accountant: "+c.accountant, "delta: 0}", "delta: 1e-6}").Replace(string(text))
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := service.Open(t.Context(), path, ledger.Options{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		d, err := noise.New(c.kind, 1, 1) // ε 1, and ρ 1/2
		if err != nil {
			t.Fatal(err)
		}
		equal, drawn := 0, 0
		for q := range questions {
			statement, truth, last := fmt.Sprintf(`SELECT count(*) FROM people WHERE income < %d`, 1000*(q%89+1)), make([]int64, 1), int64(q%89)
			if q%5 == 4 {
				statement, truth = fmt.Sprintf(`SELECT note, count(*) FILTER (WHERE income < %d) FROM people WHERE note IS NOT NULL GROUP BY note ORDER BY note`, 1000*(last+1)), make([]int64, 5)
			}
			for i := int64(1); i <= 1000; i++ {
				if i%90 <= last && (i != 7 || len(truth) == 1) { // the note of number 7 is none of the five
					truth[i%int64(len(truth))]++
				}
			}
			bytes := func() io.Reader { return mathrand.NewChaCha8([32]byte{byte(q), 77}) }
			answers := pipeline.NewAnswerer(h.Backend, h.Ledger, h.Engine, bytes(), slog.New(slog.DiscardHandler), proxy.NewMetrics())
			got, err := kit.Unwired(t.Context(), h, answers, "alice", statement, 1)
			if err != nil || len(got) < len(truth) {
				t.Fatalf("%s: %v %v", statement, got, err)
			}
			reader := noise.NewReader(noise.FixedWork(bytes()))
			for i := range truth {
				drawn++
				if got[i] == truth[i]+d.Sample(reader) {
					equal++
				}
			}
		}
		h.Close()
		if c.sampling == key && equal != drawn || c.sampling != key && equal > drawn*9/10 {
			t.Errorf("%s%s: %d of %d numbers have the noise of a fixed-work source", c.accountant, c.sampling, equal, drawn)
		}
		said = append(said, fmt.Sprintf("%s%s %d of %d", c.accountant, strings.TrimSuffix(c.sampling, "}"), equal, drawn))
	}
	threats.Reached(t, "T19", "numbers through SQL with the noise of a fixed-work source: %s", strings.Join(said, "; "))
}
