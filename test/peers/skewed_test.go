package peers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/differential-privacy/go/v3/dpagg"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/test/kit"
)

// skewedLibraries bound what a person adds. All know the same: up to 1,000 rows a person, amounts of up to 100,000.
var skewedLibraries = []library{
	{"smartnoise", libraries[1].packages, nil},
	{"smartnoise", libraries[1].packages, []string{"uncensored"}},
	{"pyqrlew", libraries[2].packages, nil},
	{"pyqrlew", libraries[2].packages, []string{"1000"}},
	{"pipelinedp", []string{"pipeline-dp==0.3.1", "pandas==2.3.3"}, nil},
	{"opendp", libraries[0].packages, nil},
	{"pydp", []string{"python-dp==1.1.5", "pandas==2.3.3"}, nil},
}

const (
	skewedRows, skewedAmount = 1000, 100000

	skewedPolicy = `
version: 1
server: {listen: 127.0.0.1:6432}
backend: {url: "%s"}
ledger: {url: "sqlite:spend.ledger"}
users:
datasets:
  - id: skewed
    unit: {name: person, key: spend.person, type: integer}
    neighbors: add-remove
    accountant: pure
    cap: {epsilon: 100000}
    budgets: {"*": {epsilon: 50}}
    defaults: {epsilon: 1, max_epsilon: 1, confidence: 0.95}
    tables:
      - name: spend
        expected_rows: 20000
        max_rows_per_unit: 1000
        columns:
          - {name: amount, type: integer, domain: {min: 0, max: 100000, step: 100}, outside: clamp}
          - {name: region, type: text, domain: {values: [centre, east, north, south, west]}}
`
)

// skewed are rows of 5,000 persons: a person has a Pareto number of rows, exponent 1.2, of up to 1,000, with amounts of
// a lognormal law. Seed 1.
func skewed() (header []string, rows [][]string) {
	rnd := rand.New(rand.NewPCG(1, 0))
	regions := []string{"centre", "east", "north", "south", "west"}
	for person := range 5000 {
		for range min(skewedRows, int(math.Pow(1-rnd.Float64(), -1/1.2))) {
			amount := min(skewedAmount, int(20*math.Exp(1.5*rnd.NormFloat64())))
			rows = append(rows, []string{strconv.Itoa(person), strconv.Itoa(amount), regions[rnd.IntN(5)]})
		}
	}
	return []string{"person", "amount", "region"}, rows
}

// TestPeersSkewed asks all that bound contributions about a table in which persons differ a lot, and writes its part of
// docs/peers.md.
func TestPeersSkewed(t *testing.T) {
	if *peersRuns == 0 {
		t.Skip("needs libraries of others from PyPI: run `make peers`")
	}
	a, commit := questions(t, "skewed.json"), kit.Head(t)
	header, rows := skewed()
	file := filepath.Join(memory.Dir(t), "spend.csv")
	text := strings.Join(header, ",") + "\n"
	for _, row := range rows {
		text += strings.Join(row, ",") + "\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, url := kit.RowsInPostgres(t, "spend", header, rows)
	truths := map[string][]*float64{}
	for _, q := range a.Questions {
		truths[q.Name] = inOrder(a.cells(t, q), plain(t, url, q.SQL))
	}
	policy := fmt.Sprintf(skewedPolicy, url)
	all, names := map[string]*said{}, []string{}
	add := func(name string, s *said) {
		names, all[name] = append(names, name), s
	}
	for _, contribution := range []string{"ladder", "rows"} {
		s := ours(t, a, policy, "skewed", "SET dp.contribution = "+contribution)
		s.Charged, s.Neighbours = "dp.contribution "+contribution, "one person"
		add("dpproxy, "+contribution, s)
	}
	for _, l := range skewedLibraries {
		if s := l.asked(t, "skewed_"+l.name+".py", "skewed.json", file, url); s != nil {
			add(strings.Join(append([]string{l.name}, l.given...), " "), s)
		}
	}
	add("google (Go)", google(t, a, rows))
	document(t, report{"skewed", "median of |answer − truth| / |truth| over runs and groups, in percent", "settings",
		medianPercent}, commit, a, truths, names, all)
}

// medianPercent is the median relative error of all runs and cells, in percent. Where there is no answer, it is 100.
func medianPercent(truth []*float64, runs [][]*float64) float64 {
	var errors []float64
	for _, run := range runs {
		for i, want := range truth {
			got := 0.0
			if i < len(run) && run[i] != nil {
				got = *run[i]
			}
			errors = append(errors, 100*math.Abs(got-*want)/math.Abs(*want))
		}
	}
	slices.Sort(errors)
	return errors[len(errors)/2]
}

// google asks Google's Go library for sums of each person's totals, which it clamps to what the declared ends allow: it
// infers no bounds.
func google(t *testing.T, a asked, rows [][]string) *said {
	t.Helper()
	s := &said{Version: "3.0.0", Neighbours: "one person",
		Charged: "BoundedSumInt64 over each person's totals, clamped to 1000 rows and to 10⁸, Laplace",
		Answers: map[string][][]*float64{}, Refused: map[string]string{}}
	for _, q := range a.Questions {
		cells := a.cells(t, q)
		counts, sums := make([]map[string]int64, len(cells)), make([]map[string]int64, len(cells))
		for i := range cells {
			counts[i], sums[i] = map[string]int64{}, map[string]int64{}
		}
		for _, row := range rows {
			i := max(0, slices.Index(cells, row[2]))      // one cell without GROUP BY
			amount, _ := strconv.ParseInt(row[1], 10, 64) // digits
			counts[i][row[0]]++
			sums[i][row[0]] += amount
		}
		for range *peersRuns {
			values := make([]*float64, len(cells))
			for i := range cells {
				var x float64
				switch {
				case q.Name == "mean":
					n := googleSum(t, counts[i], skewedRows, 1, .5)
					x = googleSum(t, sums[i], skewedRows*skewedAmount, 1, .5) / max(1, n)
				case strings.HasPrefix(q.Name, "count"):
					x = googleSum(t, counts[i], skewedRows, len(cells), 1)
				default:
					x = googleSum(t, sums[i], skewedRows*skewedAmount, len(cells), 1)
				}
				values[i] = &x
			}
			s.Answers[q.Name] = append(s.Answers[q.Name], values)
		}
	}
	return s
}

// googleSum is one noisy sum of what persons have, each up to most, in so many groups.
func googleSum(t *testing.T, of map[string]int64, most int64, groups int, epsilon float64) float64 {
	t.Helper()
	sum, err := dpagg.NewBoundedSumInt64(&dpagg.BoundedSumInt64Options{Epsilon: epsilon,
		MaxPartitionsContributed: int64(groups), Lower: 0, Upper: most})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range of {
		if err := sum.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	x, err := sum.Result()
	if err != nil {
		t.Fatal(err)
	}
	return float64(x)
}
