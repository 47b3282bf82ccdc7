package attacks

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/test/kit"
)

// generator writes random questions over the lab: most can be answered, some cannot.
type generator struct{ *rand.Rand }

func (g generator) one(of ...string) string { return of[g.IntN(len(of))] }

func (g generator) predicate(depth int) string {
	switch k := g.IntN(8); {
	case k == 0 && depth > 0:
		return "(" + g.predicate(depth-1) + g.one(" AND ", " OR ") + g.predicate(depth-1) + ")"
	case k == 1 && depth > 0:
		return "NOT " + g.predicate(depth-1)
	case k == 2:
		return fmt.Sprintf("income %s %d", g.one("<", ">=", "BETWEEN 1000 AND", "="), 500*g.IntN(220))
	case k == 3:
		return g.one("hiv", "NOT hiv", "city = 'c1'", "city IN ('c0', 'Zzyzx')", "note LIKE 'n%'", "note = 'xyz'", "city IS NULL", "upper(city) = 'C3'")
	case k == 4:
		return fmt.Sprintf("age %% %d = %d", 1+g.IntN(6), g.IntN(6))
	}
	return fmt.Sprintf("age %s %d", g.one("<", ">=", "<>", "="), g.IntN(125))
}

func (g generator) question() string {
	where := ""
	if g.IntN(5) > 0 {
		where = " WHERE " + g.predicate(2)
	}
	key := g.one("city", "hiv", "note", "city, hiv", "age / 10", "width_bucket(income, 0, 100000, 5)", "CASE WHEN age < 40 THEN 'young' ELSE 'old' END")
	aggregate := g.one("count(*)", "count(*)", "sum(income)", "avg(income)", "sum(age)", "count(DISTINCT city)", "median(age)", "max(age)", "count(*) FILTER (WHERE hiv)", "stddev(age)")
	switch g.IntN(9) {
	case 0:
		return fmt.Sprintf("SELECT %s, %s FROM people%s GROUP BY %s", key, aggregate, where, key)
	case 1:
		return fmt.Sprintf("SELECT %s, %s AS x FROM people%s GROUP BY %s HAVING %s > %d ORDER BY x DESC LIMIT %d", key, aggregate, where, key, aggregate, g.IntN(500), 1+g.IntN(4))
	case 2:
		return fmt.Sprintf("SELECT count(*), sum(amount) FROM events WHERE amount < %d AND day < DATE '2024-01-01' + %d", g.IntN(100), g.IntN(300))
	case 3:
		return fmt.Sprintf("SELECT %s FROM people JOIN events USING (uid)%s", g.one("count(*)", "sum(amount)", "count(DISTINCT uid)"), where)
	case 4:
		return fmt.Sprintf(formPlaces[g.one("WHERE", "GROUP BY", "HAVING", "argument", "FILTER", "JOIN ON")], errorForms[g.IntN(len(errorForms))])
	case 5:
		return fmt.Sprintf("SELECT %s FROM (SELECT uid, count(*) AS n FROM events GROUP BY uid) t WHERE n > %d", g.one("count(*)", "avg(n)"), g.IntN(6))
	}
	return "SELECT " + aggregate + " FROM people" + where
}

// fate is what a question comes to before any row is read: what it costs, or its refusal.
func fate(sql string, c reuse.Context) string {
	statements, refusal := parse.Parse(sql)
	if refusal == nil && len(statements) == 1 {
		var plan *plans.Plan
		if plan, refusal = planner.Build(statements[0], nil, c); refusal == nil {
			return fmt.Sprintf("%v, %d measures", plan.Cost, len(plan.Measures))
		}
	}
	if refusal == nil {
		return "no statement"
	}
	return fmt.Sprintf("%s %s %s %d", refusal.ID, refusal.Message, refusal.Hint, refusal.Position)
}

// unfiltered leaves out how many rows there are, where HAVING and LIMIT choose among noisy ones.
func unfiltered(a kit.Answer) kit.Answer {
	a.Frames = slices.DeleteFunc(slices.Clone(a.Frames), func(f string) bool {
		return strings.HasPrefix(f, "DataRow") || strings.HasPrefix(f, "*pgproto3.CommandComplete")
	})
	return a
}

// TestT11ChargesArePublic: what generated questions cost, and how they are refused, is the same on neighbours: of a
// sample over the wire, charges and all; of the bulk by the planner, which sees the policy alone, asked in another
// order by another.
func TestT11ChargesArePublic(t *testing.T) {
	kit.Beside(t)
	planned, asked, differences := kit.Length(1000, 10_000, 100_000), kit.Length(60, 400, 2000), 0
	g := generator{rand.New(rand.NewPCG(36, 11))}
	fresh := []string{"defaults: {", "defaults: {freshness: 1h, "}
	with, without := kit.Lab{Engine: "postgres", Change: append(fresh, kit.OneByOne...)}.Pair(t)
	p := pair{with.Connect("alice", "lab"), without.Connect("alice", "lab")}
	refused := 0
	for range asked {
		sql := g.question()
		if d := kit.SameFrames(sql, unfiltered(p.with.Ask(sql)), unfiltered(p.without.Ask(sql))); d != "" {
			differences++
			t.Error(d)
		}
	}
	const charges = `SELECT charge, kind, name, cost FROM dp.charges`
	a, b := p.with.Ask(charges), p.without.Ask(charges)
	if fmt.Sprint(a.Rows) != fmt.Sprint(b.Rows) || len(a.Rows) < asked/4 {
		differences++
		t.Errorf("%d charges with number 7, %d without, of %d questions; or they differ", len(a.Rows), len(b.Rows), asked)
	}
	kit.SameHeard(t, with, without)
	var sides [2]reuse.Context
	for i, s := range []kit.Side{with, without} {
		read, err := policy.Read(s.Program.Policy)
		if err != nil {
			t.Fatal(err)
		}
		d := read.Datasets[0]
		sides[i] = reuse.Context{Policy: read, Dataset: d, User: "alice", Now: time.Unix(1_700_000_000, 0),
			Settings: plans.Settings{Epsilon: d.Defaults.Epsilon, Confidence: d.Defaults.Confidence, SearchPath: []string{"public"}, Zone: time.UTC}}
	}
	var questions []string
	for range planned {
		questions = append(questions, g.question())
	}
	fates := make([]string, planned)
	for i, sql := range questions {
		if fates[i] = fate(sql, sides[0]); !strings.HasPrefix(fates[i], "ε") {
			refused++
		}
	}
	for i, sql := range slices.Backward(questions) {
		if f := fate(sql, sides[1]); f != fates[i] {
			differences++
			t.Errorf("%s\n  with:    %s\n  without: %s", sql, fates[i], f)
		}
	}
	if refused < planned/20 || refused > planned*3/4 {
		t.Errorf("%d of %d generated questions are refused: the test tested little", refused, planned)
	}
	threats.Reached(t, "T11", "%d differences in %d questions planned (%d refused) and %d asked", differences, planned, refused, asked)
}

// failing turns a generated question into one that fails on number 7 alone, or on all.
func (g generator) failing() string {
	inner := errorForms[g.IntN(len(errorForms))]
	for _, old := range []string{"25", "1000000000", "24", "1e308"} {
		if g.IntN(2) == 0 {
			inner = strings.ReplaceAll(inner, old, g.one("25", "7", "-1", "99999999999", "0", "1e308"))
		}
	}
	form := g.one("%s", "NOT (%s)", "(%s) AND hiv", "hiv OR (%s)", "CASE WHEN hiv THEN (%s) ELSE true END", "(%s) IS NULL", "coalesce((%s), note::int > 0)")
	return fmt.Sprintf(formPlaces[g.one("WHERE", "GROUP BY", "HAVING", "argument", "FILTER", "JOIN ON")], fmt.Sprintf(form, inner))
}

// metricsOf reads the operator's page.
func metricsOf(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cells of number 7, which no text may hold.
var cellsOf7 = []string{"xyz", "Zzyzx", "1.234567"}

// TestT2NoCellInAnyText: of thousands of questions that fail, none brings a cell of number 7 into a frame, the log at
// its most talkative, the metrics, or the ledger's charges.
func TestT2NoCellInAnyText(t *testing.T) {
	kit.Beside(t)
	n := kit.Length(150, 2000, 10_000)
	failed, hits := 0, 0
	for _, engine := range []string{"duckdb", "postgres", "snapshot"} {
		admin := kit.FreeAddress(t)
		l := kit.Lab{Engine: engine, Change: []string{`server: {`, fmt.Sprintf("server: {admin: %q, ", admin)}}
		s := l.Serve(t, 0, "--log-level", "debug")
		w := s.Connect("alice", "lab")
		g := generator{rand.New(rand.NewPCG(36, 2))}
		for of := failed; failed < of+n/3; {
			sql := g.failing()
			a := w.Ask(sql)
			if a.Err == nil {
				continue
			}
			failed++
			for _, c := range cellsOf7 {
				if strings.Contains(fmt.Sprint(a.Frames), c) && !strings.Contains(sql, c) {
					hits++
					t.Errorf("%s: %q in %v", sql, c, a.Frames)
				}
			}
		}
		w.Ask("RESET ALL")
		for name, text := range map[string]string{"log": s.LogText(), "metrics": metricsOf(t, admin), "charges": fmt.Sprint(w.Ask(`SELECT * FROM dp.charges`).Rows)} {
			for _, c := range cellsOf7 {
				if strings.Contains(text, c) {
					hits++
					t.Errorf("%s: %q is in the %s", engine, c, name)
				}
			}
		}
	}
	threats.Reached(t, "T2", "%d failing queries on 2 engines and a snapshot: a cell %d times in frames, logs, metrics, charges", failed, hits)
}
