package truth

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

var (
	seed       = flag.Uint64("truth-seed", 15, "of the rows and the statements")
	statements = flag.Int("truth-statements", 400, "how many in all; make truth asks 20,000")
	only       = flag.String("truth-only", "", "a schema, an engine, or both with a slash between")
	random     = flag.Bool("truth-random", false, "draw noise by chance, which vanishes in counts, and nearly in sums")
	held       = flag.Int("truth-held", 20, "how many statements one ledger pays for, so that later ones are answered from what earlier ones bought")
	verbose    = flag.Bool("truth-verbose", false, "print refused statements too")
)

func asPgError(err error) (*pgconn.PgError, bool) {
	var e *pgconn.PgError
	ok := errors.As(err, &e)
	return e, ok
}

// spent is what the statements of a ledger cost together, the most that a policy may name: each of twenty pays so much
// that noise vanishes.
const spent = 1_000_000

// pair is a proxy and PostgreSQL with the rows as the policy's rules make them.
type pair struct {
	schema *schema
	engine string
	house  *house
	proxy  *client
	plain  *client
	paid   int
	took   time.Duration // of the proxy
}

// schemas are built of one seed.
var schemas = []func(uint64) *schema{shop, rental, hospital, telemetry, kinds, trade}

// engines are where the rows are: PostgreSQL, DuckDB or a snapshot of PostgreSQL.
func engines() []string {
	return []string{"postgres", "duckdb", "snapshot"}
}

// pairs opens every schema on every engine.
func pairs(t *testing.T) (list []*pair) {
	t.Helper()
	for _, make := range schemas {
		s := make(*seed)
		for _, engine := range engines() {
			if chosen(s.name, engine) {
				list = append(list, pairOver(t, s, engine, func(*schema) {}))
			}
		}
	}
	return list
}

// pairOver opens a schema, changed, on an engine.
func pairOver(t *testing.T, s *schema, engine string, change func(*schema)) *pair {
	t.Helper()
	change(s)
	server := pgtest.Shared(t)
	role, database := s.database(t, server)
	backend := func(dir string) string { return s.duckdb(t, dir) }
	if engine != "duckdb" {
		backend = func(string) string { return fmt.Sprintf("{url: %q}", server.URLFor(role, database)) }
	}
	if engine == "snapshot" {
		backend = func(string) string {
			return fmt.Sprintf("{url: %q, snapshot: {dir: snapshots, every: 1d}}", server.URLFor(role, database))
		}
	}
	h := open(t, s, backend, twinURL(t, server, s.name+"_"+engine))
	p := &pair{schema: s, engine: engine, house: h, proxy: h.connect(), plain: dial(t, server.URLFor("postgres", database)+"&options=-csearch_path%3Dplain", "SELECT 1")}
	p.fresh()
	return p
}

// twinURL is the URL of a twin's database, which the proxy makes.
func twinURL(t *testing.T, server *pgtest.Server, schema string) string {
	t.Helper()
	server.Exec(t, "postgres", `DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'twin_owner') THEN
		CREATE ROLE twin_owner LOGIN CREATEDB CREATEROLE; END IF; END $$`)
	return server.URLFor("twin_owner", "twin_"+schema)
}

func chosen(schema, engine string) bool {
	s, e, both := strings.Cut(*only, "/")
	return *only == "" || both && s == schema && (engine == "" || e == engine) || !both && (*only == schema || *only == engine || engine == "" && slices.Contains([]string{"postgres", "duckdb", "snapshot"}, *only))
}

// fresh begins with nothing spent and nothing held.
func (p *pair) fresh() {
	p.house.renew()
	p.paid = 0
}

// try asks both and judges.
func (p *pair) try(s *statement) (verdict, answer, answer) {
	if p.paid == *held {
		p.fresh()
	}
	p.paid++
	got := p.ask(s.sql(false))
	if got.err != nil && got.err.Code == "DP001" { // it costs more than the others: its ledger is its own
		p.fresh()
		got = p.ask(s.sql(false))
	}
	want := p.plain.ask(strings.ReplaceAll(s.sql(true), "public.", ""))
	v := judge(s, got, want)
	explains := func(guarded *statement) bool {
		clear := p.plain.ask(strings.ReplaceAll(guarded.sql(true), "public.", ""))
		if clear.err == nil {
			clear.columns = clear.columns[:len(want.columns)]
		}
		return !judge(s, got, clear).bad()
	}
	if v.class == wrong && slices.ContainsFunc(s.clearOf(got.said), explains) {
		v = verdict{within, ""}
	}
	if literal := s.literally(); literal != nil && !v.bad() && v.class != refused {
		as := func(s *statement) verdict {
			return judge(literal, got, p.plain.ask(strings.ReplaceAll(s.sql(true), "public.", "")))
		}
		says := nowhere
		if s.there != "" && !as(s.before()).bad() {
			says = unlisted
		}
		v = told(v, as(literal), got, says)
	}
	return v, got, want
}

// nowhere is what the notice says of keys that are NULL in the sub-query of a NOT IN, and unlisted of those before it.
const (
	nowhere  = "while in plain SQL NOT IN holds for no row where there is one"
	unlisted = "while in plain SQL it does where the sub-query has no row"
)

// told is a verdict on an answer that differs from the literal one, by the notice that says why: without it, it is
// wrong.
func told(v, literal verdict, got answer, says string) verdict {
	if !literal.bad() {
		return literal
	}
	if !strings.Contains(strings.Join(got.said, "\n"), says) {
		return verdict{wrong, "no notice says that " + says + ": " + literal.why}
	}
	return verdict{unknown, ""}
}

// ask asks the proxy, by the clock.
func (p *pair) ask(sql string) answer {
	p.house.calm.read.Store(0)
	begin := time.Now()
	a := p.proxy.ask(sql)
	d := time.Since(begin)
	if d > time.Second && *verbose {
		p.house.t.Logf("%v: %s", d, sql)
	}
	p.took += d
	return a
}

// shrink leaves out parts as long as the statement stays wrong.
func (p *pair) shrink(s *statement, v verdict) (*statement, verdict) {
	for again := true; again; {
		again = false
		for _, small := range s.smaller() {
			p.fresh()
			if w, _, _ := p.try(small); w.class == v.class {
				s, v, again = small, w, true
				break
			}
		}
	}
	return s, v
}

// tally is what became of the statements of a schema on an engine.
type tally struct {
	asked    int
	classes  map[string]int
	refusals map[string]int
}

// TestTruth: each answer to a generated statement is PostgreSQL's own, or differs as is said; laws hold between
// answers; what was wrong once is right.
func TestTruth(t *testing.T) {
	list := pairs(t)
	t.Logf("seed %d", *seed)
	each := max(1, *statements/len(list))
	var table []string
	for _, p := range list {
		if t.Failed() && *statements < 5000 {
			t.Log("the other schemas and engines are not asked")
			break
		}
		t.Run(p.schema.name+"/"+p.engine, func(t *testing.T) {
			begin, tl := time.Now(), newTally()
			p.regressed(t, tl)
			p.remembered(t, tl)
			p.laws(t, each/16, tl) // of about three statements each
			p.run(t, max(1, each-tl.asked), tl)
			table = append(table, tl.line(p, time.Since(begin)))
		})
	}
	t.Log("\n" + strings.Join(table, "\n"))
}

func newTally() *tally {
	return &tally{classes: map[string]int{}, refusals: map[string]int{}}
}

// enough wrong statements say what there is to say: three in a short run, whose other schemas are not asked then.
func enough() int {
	if *statements < 5000 {
		return 3
	}
	return 20
}

// run asks n statements of a grammar.
func (p *pair) run(t *testing.T, n int, tl *tally) {
	g := &grammar{dice: newDice(*seed, 2), s: p.schema}
	shown, wrongs := map[string]int{}, 0
	for range n {
		s := g.statement()
		v, _, _ := p.try(s)
		tl.asked++
		if !v.bad() {
			tl.classes[v.class]++
		}
		if v.class == refused {
			tl.refusals[brief(v.why)]++
			if *verbose && shown[brief(v.why)] < 2 {
				shown[brief(v.why)]++
				t.Logf("refused: %s\n  %s", s.sql(false), v.why)
			}
		}
		if !v.bad() {
			continue
		}
		tl.classes[v.class]++
		if wrongs++; wrongs > enough() {
			t.Errorf("%s on %s: more than %d statements are wrong: the rest is not asked", p.schema.name, p.engine, enough())
			return
		}
		history := p.paid
		p.fresh()
		if alone, _, _ := p.try(s); !alone.bad() { // privacy rule 27
			v.why = fmt.Sprintf("after %d other statements, and not on a fresh account: %s", history-1, v.why)
			t.Errorf("%s on %s, %s: %s\n  %s", p.schema.name, p.engine, v.class, v.why, s.sql(false))
			continue
		}
		p.fresh()
		small, w := p.shrink(s, v)
		if k := brief(w.why); v.class != wrong && shown[k] > 2 {
			continue
		} else {
			shown[k]++
		}
		p.fresh()
		t.Errorf("%s on %s, %s: %s\n  %s;\n  of: %s\n  notes: %q", p.schema.name, p.engine, w.class, w.why, small.sql(false), s.sql(false), p.ask(small.sql(false)).said)
	}
}

// brief cuts names and numbers out of a refusal's text.
func brief(why string) string {
	fields := strings.Fields(why)
	return strings.Join(fields[:min(len(fields), 9)], " ")
}

func (tl *tally) line(p *pair, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %d statements in %.1f s, of the proxy %.1f s", p.schema.name, p.engine, tl.asked, took.Seconds(), p.took.Seconds())
	for _, c := range sorted(tl.classes) {
		fmt.Fprintf(&b, ", %s %d", c, tl.classes[c])
	}
	for i, r := range sorted(tl.refusals) {
		if i < 15 {
			fmt.Fprintf(&b, "\n    %d × %s", tl.refusals[r], r)
		}
	}
	return b.String()
}

func sorted(m map[string]int) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b string) int {
		if d := m[b] - m[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return list
}
