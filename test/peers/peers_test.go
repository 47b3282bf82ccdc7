// Package peers asks dpproxy and libraries that others wrote the same questions about the same rows, at one ε each, and
// writes down whose answers are nearest: docs/peers.md. `make peers` runs it; it installs the libraries from PyPI.
package peers

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m, nil)) }

var (
	peersRuns = flag.Int("peers", 0, "ask the libraries of others each question so many times; 0: not at all")
	peersDir  = flag.String("peers-dir", filepath.Join(os.TempDir(), "dpproxy-peers"), "where the libraries are installed, each in an environment of its own")
)

// A library, and the packages that are installed for it.
type library struct {
	name     string
	packages []string
	given    []string // to its script, after what each is given
}

var libraries = []library{
	{"opendp", []string{"opendp[polars]==0.16.0", "polars==1.36.1", "pyarrow==26.0.1", "pandas==2.3.3"}, nil},
	{"smartnoise", []string{"smartnoise-sql==1.0.10"}, nil},
	{"pyqrlew", []string{"pyqrlew==0.9.27", "pandas==2.3.3", "sqlalchemy<2.2"}, nil},
	{"diffprivlib", []string{"diffprivlib==0.6.6", "scikit-learn<1.6", "pandas==2.3.3"}, nil},
}

// said is what one of them said: of each question the answers, run by run, or why there are none.
type said struct {
	Version    string                  `json:"version"`
	Charged    string                  `json:"charged"`
	Neighbours string                  `json:"neighbours"`
	Answers    map[string][][]*float64 `json:"answers"`
	Refused    map[string]string       `json:"refused"`
}

type question struct {
	Name string   `json:"name"`
	SQL  string   `json:"sql"`
	By   []string `json:"by"`
}

// asked are the questions, and the declared values of the columns that some of them group by.
type asked struct {
	Columns   map[string]json.RawMessage `json:"columns"`
	Questions []question                 `json:"questions"`
}

func questions(t *testing.T, file string) (a asked) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// cells are the groups of a question: the product of its columns' declared values, in their order.
func (a asked) cells(t *testing.T, q question) []string {
	t.Helper()
	cells := []string{""}
	for i, column := range q.By {
		var values, next []string
		if err := json.Unmarshal(a.Columns[column], &values); err != nil {
			t.Fatal(err)
		}
		for _, cell := range cells {
			for _, v := range values {
				next = append(next, strings.Repeat(cell+"/", min(i, 1))+v)
			}
		}
		cells = next
	}
	return cells
}

// inOrder are the last columns of an answer's rows, in the order of the cells; nil where a cell has no row or no value.
func inOrder(cells []string, rows [][]string) []*float64 {
	found := map[string]*float64{}
	for _, row := range rows {
		if v, err := strconv.ParseFloat(row[len(row)-1], 64); err == nil {
			found[strings.Join(row[:len(row)-1], "/")] = &v
		}
	}
	values := make([]*float64, len(cells))
	for i, cell := range cells {
		values[i] = found[cell]
	}
	return values
}

// rmse is the root of the mean squared error of all runs and cells. Where there is no answer, the error is the truth.
func rmse(truth []*float64, runs [][]*float64) float64 {
	sum, n := 0.0, 0
	for _, run := range runs {
		for i, want := range truth {
			got := 0.0
			if i < len(run) && run[i] != nil {
				got = *run[i]
			}
			sum, n = sum+(got-*want)*(got-*want), n+1
		}
	}
	return math.Sqrt(sum / float64(n))
}

// TestErrors holds what judges: an answer's error, and one that is absent.
func TestErrors(t *testing.T) {
	cells := questions(t, "questions.json").cells(t, question{By: []string{"sex", "race"}})
	if len(cells) != 10 || cells[0] != "Female/Amer-Indian-Eskimo" || cells[9] != "Male/White" {
		t.Errorf("cells %v", cells)
	}
	truth := inOrder([]string{"a", "b"}, [][]string{{"b", "4"}, {"a", "3"}})
	if got := rmse(truth, [][]*float64{inOrder([]string{"a", "b"}, [][]string{{"a", "3"}, {"b", "NULL"}}), truth}); math.Abs(got-2) > 1e-12 {
		t.Errorf("%v", got)
	}
}

// TestPeers asks all of them and writes docs/peers.md. What a library is nearer in by more than chance is marked there,
// and judged by who reads it.
func TestPeers(t *testing.T) {
	if *peersRuns == 0 {
		t.Skip("needs libraries of others from PyPI: run `make peers`")
	}
	file, a, commit := material.Path(t, "data", "adult.csv"), questions(t, "questions.json"), kit.Head(t)
	header, rows := kit.AdultRows(t, file)
	_, url := kit.RowsInPostgres(t, "adult", header, rows)
	truths := map[string][]*float64{}
	for _, q := range a.Questions {
		truths[q.Name] = inOrder(a.cells(t, q), plain(t, url, q.SQL))
	}
	all := map[string]*said{"dpproxy": ours(t, a, adultPolicy(t, url), "census")}
	names := []string{"dpproxy"}
	for _, l := range libraries {
		if s := l.asked(t, "ask_"+l.name+".py", "questions.json", file, url); s != nil {
			all[l.name] = s
			names = append(names, l.name)
		}
	}
	document(t, report{"measured", "root mean squared error of an answer's values", "what is charged", rmse}, commit, a,
		truths, names, all)
}

// plain asks PostgreSQL itself.
func plain(t *testing.T, url, sql string) (rows [][]string) {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	results, err := conn.Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range results[0].Rows {
		var values []string
		for _, v := range row {
			values = append(values, string(v))
		}
		rows = append(rows, values)
	}
	return rows
}

// ours asks dpproxy, each time as a user who has bought nothing. Before her questions she sets what is to be set.
func ours(t *testing.T, a asked, policy, dataset string, settings ...string) *said {
	t.Helper()
	users := ""
	for i := range *peersRuns {
		users += fmt.Sprintf("  - {name: u%d, password: %q}\n", i, kit.Verifier(t, fmt.Sprintf("u%d", i)))
	}
	policy = strings.NewReplacer("127.0.0.1:6432", "127.0.0.1:0", "\ndatasets:", "\n"+users+"datasets:").Replace(policy)
	path := filepath.Join(memory.Dir(t), "policy.yaml")
	if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	p := kit.Serve(t, path)
	s := &said{Neighbours: "one row more or less",
		Charged: "to the analyst's budget and the dataset's cap, in a ledger on disk, before the rows are read",
		Answers: map[string][][]*float64{}, Refused: map[string]string{}}
	for i := range *peersRuns {
		w := p.Connect(fmt.Sprintf("u%d", i), dataset)
		for _, set := range append([]string{"SET dp.epsilon = 1"}, settings...) {
			w.Ask(set)
		}
		for _, q := range a.Questions {
			answer := w.Ask(q.SQL)
			if answer.Err != nil {
				s.Refused[q.Name] = answer.Err.Message
				continue
			}
			s.Answers[q.Name] = append(s.Answers[q.Name], inOrder(a.cells(t, q), answer.Rows))
		}
		w.Conn.Close()
	}
	return s
}

// adultPolicy is the example's, with room for all questions; each is bought by itself.
func adultPolicy(t *testing.T, url string) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/adult/policy-postgres.yaml")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer("${DPPROXY_PG}", url,
		"cap: {epsilon: 20, ", "cap: {epsilon: 100000, ", `"*": {epsilon: 5, `, `"*": {epsilon: 50, `).Replace(string(text))
	changed, _, _ = strings.Cut(changed, "        releases:")
	return changed
}

// asked runs a library's script in its own environment; nil where it cannot be installed.
func (l library) asked(t *testing.T, script, questions, rows, url string) *said {
	t.Helper()
	python := filepath.Join(*peersDir, l.name, "bin", "python")
	if _, err := os.Stat(python); err != nil {
		for _, command := range [][]string{{"python3", "-m", "venv", filepath.Join(*peersDir, l.name)}, append([]string{python, "-m", "pip", "install", "-q", "--disable-pip-version-check"}, l.packages...)} {
			if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
				t.Logf("%s cannot be installed and is left out: %v\n%s", l.name, err, out)
				os.RemoveAll(filepath.Join(*peersDir, l.name))
				return nil
			}
		}
	}
	url = strings.Replace(url, "postgres://", "postgresql+psycopg2://", 1)
	args := append([]string{"-B", script, questions, rows, fmt.Sprint(*peersRuns), url}, l.given...)
	cmd := exec.Command(python, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var s said
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", l.name, err, out)
	}
	return &s
}

// near is how much nearer than ours an answer must be before it is called so: with a hundred runs, the mean of squares
// of Laplace noise is within a half of its expectation with a probability of more than 0.99.
const near = 0.75

// report is a part of docs/peers.md.
type report struct {
	mark, error, remark string
	of                  func(truth []*float64, runs [][]*float64) float64
}

// document writes a part of docs/peers.md between its marks. The first of names is dpproxy.
func document(t *testing.T, r report, commit string, a asked,
	truths map[string][]*float64, names []string, all map[string]*said) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "Measured at commit %s: %d runs of each question, %s.\n\n", commit, *peersRuns, r.error)
	fmt.Fprintf(&b, "| question | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---:|", len(names)))
	for _, q := range a.Questions {
		fmt.Fprintf(&b, "| %s", q.Name)
		own := math.Inf(1)
		for _, name := range names {
			runs := all[name].Answers[q.Name]
			if len(runs) == 0 {
				b.WriteString(" | none")
				continue
			}
			e := r.of(truths[q.Name], runs)
			if name == names[0] {
				own = e
			}
			mark := ""
			if e < near*own {
				mark = " (nearer)"
				t.Logf("%s: %s has %.4g, ours is %.4g", q.Name, name, e, own)
			}
			fmt.Fprintf(&b, " | %.4g%s", e, mark)
		}
		b.WriteString(" |\n")
	}
	fmt.Fprintf(&b, "\n| library | version | neighbours | %s |\n|---|---|---|---|\n", r.remark)
	for _, name := range names {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, all[name].Version, all[name].Neighbours, all[name].Charged)
	}
	b.WriteString("\nWhere there is no answer:\n\n")
	for _, name := range names {
		var whys []string
		for q, why := range all[name].Refused {
			whys = append(whys, q+": "+why)
		}
		if slices.Sort(whys); len(whys) > 0 {
			fmt.Fprintf(&b, "- %s: %s.\n", name, strings.Join(whys, "; "))
		}
	}
	t.Log("\n" + b.String())
	const path = "../../docs/peers.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	measured := regexp.MustCompile(`(?s)(<!-- ` + r.mark + ` -->\n).*?(<!-- end -->)`)
	if *kit.Update {
		text = measured.ReplaceAll(text, []byte("${1}"+strings.ReplaceAll(b.String(), "$", "$$")+"${2}"))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
