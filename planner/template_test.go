package planner

import (
	"fmt"
	"math/rand"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// steppedPolicy is testPolicy with wider steps.
func steppedPolicy(t testing.TB) *policy.Policy {
	t.Helper()
	return testPolicy(t, "{min: 0, max: 119, step: 1}, outside: clamp", "{min: 0, max: 119, step: 5}, outside: clamp",
		"{min: 2000-01-01, max: 2026-12-31, step: 1 day}", "{min: 2000-01-01, max: 2026-12-31, step: 7 days}")
}

// oneHeld is a context in which the one thing that is held over people is a release that answers ranges of a column.
func oneHeld(t testing.TB, column string) reuse.Context { return oneHeldOf(t, testPolicy(t), column) }

func oneHeldOf(t testing.TB, of *policy.Policy, column string) reuse.Context {
	t.Helper()
	c := testContext(t, of)
	c.Settings.Epsilon = epsilon(t, "0.8")
	c.Settings.Release = true
	shelf := c.Holdings.(*shelf)
	condition := map[string]string{"age": "age >= 20 AND age < 40", "hired": "hired >= '2001-05-05' AND hired < '2003-04-05'",
		"income": "income >= 5000 AND income < 90000", "seen": "seen >= '2024-01-05 00:00:00Z' AND seen < '2024-02-05 00:00:00Z'"}[column]
	p := builtFree(t, c, "SELECT count(*) FROM people WHERE "+condition)
	shelf.buy(p)
	if len(shelf.list) != 1 || p.Measures[0].Kind != "range" {
		t.Fatalf("%s: %s", column, planText(p))
	}
	c.Settings.Release = false
	c.Settings.Epsilon = epsilon(t, "0.1")
	return c
}

func parsedOne(t testing.TB, sql string) parse.Statement {
	t.Helper()
	statements, refusal := parse.Parse(sql)
	if refusal != nil || len(statements) != 1 {
		t.Fatal(sql, refusal)
	}
	return statements[0]
}

func builtFree(t testing.TB, c reuse.Context, sql string) *plans.Plan {
	t.Helper()
	p, refusal := Build(parsedOne(t, sql), nil, c)
	if refusal != nil {
		t.Fatal(sql, refusal)
	}
	return p
}

// sameAsBuilt holds the plan of a template against the one that Build makes.
func sameAsBuilt(t *testing.T, c reuse.Context, s parse.Statement, template *Template, params []policy.Value) (answered bool) {
	t.Helper()
	own := template.Plan(parse.Lift(s, params))
	if own == nil {
		return false
	}
	want, refusal := Build(s, params, c)
	if refusal != nil {
		t.Fatalf("%s %v: refused, and not by its template: %v", s.Text, params, refusal)
	}
	samePlan(t, fmt.Sprint(s.Text, params), own, want)
	if quick := template.Quick(parse.Lift(s, params)); quick != nil {
		samePlan(t, fmt.Sprint("quickly ", s.Text, params), quick, want)
	}
	return true
}

func samePlan(t *testing.T, what string, own, want *plans.Plan) {
	t.Helper()
	if a, b := planText(own), planText(want); a != b {
		t.Fatalf("%s\n%s\nbut built anew\n%s", what, a, b)
	}
	for _, pair := range [][2]any{{own.Statement, want.Statement}, {own.Columns, want.Columns}, {own.Leaves, want.Leaves}, {own.Notes, want.Notes}, {own.Outputs, want.Outputs}, {own.Bounds, want.Bounds},
		{own.ErrorColumns, want.ErrorColumns}, {own.Confidence, want.Confidence}, {own.Measures[0].Describe(), want.Measures[0].Describe()}, {own.Measures[0].HeldID, want.Measures[0].HeldID}, {own.Timeless(), want.Timeless()}} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Fatalf("%s: %+v, built anew %+v", what, pair[0], pair[1])
		}
	}
}

// templateShapes have ends of a range of a column between parameters, or something that a template must leave to Build.
var templateShapes = []struct {
	sql       string
	templated bool
}{
	{"SELECT count(*) FROM people WHERE %s BETWEEN $1 AND $2", true},
	{"SELECT count(*) AS n FROM people WHERE %s >= $1 AND $2 >= %[1]s", true},
	{"SELECT count(*) FROM people p WHERE %s > $2 AND %[1]s < $1", true},
	{"SELECT count(*) FROM people WHERE $1 < %s AND %[1]s <= $2", true},
	{"SELECT count(*) FROM public.people WHERE %s <= $1", true},
	{"SELECT count(*) FROM people WHERE %s >= $1", true},
	{"SELECT count(*) FROM people p WHERE p.%s >= $1 AND p.%[1]s <= $2", true},
	{"SELECT count(*) FROM people WHERE people.%s >= $1", true},
	{"SELECT count(*) FROM people WHERE %s < $1", true},
	{"SELECT dp.low(count(*)) FROM people WHERE %s < $1", true},
	{"SELECT count(*) FROM people WHERE %s BETWEEN SYMMETRIC $1 AND $2", false},
	{"SELECT count(*) FROM people WHERE %s NOT BETWEEN $1 AND $2", false},
	{"SELECT count(*) FROM people WHERE NOT %s >= $1", false},
	{"SELECT count(*) FROM people WHERE %s >= $1 OR %[1]s <= $2", false},
	{"SELECT count(*) FROM people WHERE %s >= $1 AND %[1]s >= $2", false},
	{"SELECT count(*) FROM people WHERE %s BETWEEN $1 AND $1", false},
	{"SELECT count(*) FROM people WHERE %s <> $1", false},
	{"SELECT count(*) FROM people WHERE %s = $1", false},
	{"SELECT count(*) FROM people WHERE %s BETWEEN $1 AND $2 AND sex = 'Female'", false},
	{"SELECT count(*) + 1 FROM people WHERE %s BETWEEN $1 AND $2", false},
	{"SELECT count(*) FROM people WHERE %s BETWEEN $1 AND $2 LIMIT 1", false},
	{"SELECT count(%s) FROM people WHERE %[1]s BETWEEN $1 AND $2", false},
	{"SELECT count(*) FILTER (WHERE sex = 'Male') FROM people WHERE %s BETWEEN $1 AND $2", false},
	{"SELECT sex, count(*) FROM people WHERE %s BETWEEN $1 AND $2 GROUP BY sex", false},
	{"SELECT count(*) FROM people WHERE %s BETWEEN $1 AND $2 HAVING count(*) > 3", false},
	{"SELECT count(*) FROM (SELECT * FROM people) people WHERE %s BETWEEN $1 AND $2", false},
}

// endsFor draws parameters: inner ones, at the edges, beyond, none, and of other kinds.
func endsFor(r *rand.Rand, column *policy.Column, n int) []policy.Value {
	params := make([]policy.Value, n)
	for i := range params {
		d := column.Domain
		switch r.Intn(9) {
		case 0:
			params[i] = d.Low([]int{0, 1, d.Regular - 2, d.Regular - 1}[r.Intn(4)])
		case 1:
			params[i] = []policy.Value{nil, int64(-1), int64(1) << 40, int64(120), policy.Date(-1), policy.Date(1 << 20), "3", 2.5, true}[r.Intn(9)]
		case 2, 3:
			params[i] = d.High(r.Intn(d.Regular))
		case 4:
			params[i] = 1000 * int64(r.Intn(100))
		default:
			params[i] = d.Low(r.Intn(d.Regular))
		}
	}
	return params
}

// withinStep is a comparison that tells the last value of a step from the first of the next.
var withinStep = regexp.MustCompile(`[a-z] (<=|>) \$|\$\d (>=|<) [a-z]`)

// TestTemplatesArePlans: what a template makes of parameters is what Build makes of them, of the answers' every part;
// and what it does not know how to make it leaves to Build.
func TestTemplatesArePlans(t *testing.T) {
	r := rand.New(rand.NewSource(86))
	for _, held := range []struct {
		name string
		of   *policy.Policy
	}{{"age", testPolicy(t)}, {"hired", testPolicy(t)}, {"age", steppedPolicy(t)}, {"hired", steppedPolicy(t)}, {"income", testPolicy(t)}, {"seen", testPolicy(t)}} {
		name := held.name
		c := oneHeldOf(t, held.of, name)
		column := c.Dataset.Tables[0].Column(name)
		sometimes(t, r, c, column)
		c.Settings.Release = true
		for _, shape := range templateShapes {
			s := parsedOne(t, fmt.Sprintf(shape.sql, name))
			n := 2
			if _, refusal := Build(s, []policy.Value{column.Domain.Low(3)}, c); refusal == nil {
				n = 1
			}
			made, answered, left := 0, 0, 0
			for range 400 {
				if made == 6 {
					break
				}
				witness := endsFor(r, column, n)
				p, refusal := Build(s, witness, c)
				if refusal != nil {
					continue
				}
				template := TemplateOf(s, witness, p, c)
				if template == nil {
					continue
				}
				made++
				for range 20 {
					if sameAsBuilt(t, c, s, template, endsFor(r, column, n)) {
						answered++
					} else {
						left++
					}
				}
			}
			// The last decimal of a step has no name.
			possible := shape.templated && (!column.Domain.HighOpen(0) || !strings.Contains(s.Text, "BETWEEN") && !withinStep.MatchString(s.Text))
			if possible != (made > 0 && answered > 0 && left > 0) {
				t.Errorf("%s: %d templates, which answer %d and leave %d", s.Text, made, answered, left)
			}
		}
	}
}

// sometimes holds templates against Build where a release answers only what it tells as exactly as a count.
func sometimes(t *testing.T, r *rand.Rand, c reuse.Context, column *policy.Column) {
	s := parsedOne(t, fmt.Sprintf("SELECT count(*) FROM people WHERE %[1]s >= $1 AND %[1]s < $2", column.Name))
	for range 20 {
		witness := endsFor(r, column, 2)
		if p, refusal := Build(s, witness, c); refusal == nil {
			if template := TemplateOf(s, witness, p, c); template != nil {
				sameAsBuilt(t, c, s, template, endsFor(r, column, 2))
			}
		}
	}
}

// TestTemplatesOfOtherHoldings: where more is held over the table than one release, or another answers, nothing is made
// of a plan.
func TestTemplatesOfOtherHoldings(t *testing.T) {
	const sql = "SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2"
	params := []policy.Value{int64(30), int64(40)}
	templated := func(c reuse.Context) bool {
		s := parsedOne(t, sql)
		p, refusal := Build(s, params, c)
		if refusal != nil {
			t.Fatal(refusal)
		}
		return TemplateOf(s, params, p, c) != nil
	}
	c := oneHeld(t, "age")
	if !templated(c) {
		t.Fatal("no template where one release is held")
	}
	other := c
	other.Settings.MaxError = 1e6
	if templated(other) {
		t.Error("a template under dp.max_error, by which paths are chosen by how exact they are")
	}
	other = c
	other.Alternatives = true
	if templated(other) {
		t.Error("a template of a plan that lists what was weighed")
	}
	c.Holdings.(*shelf).buy(builtFree(t, c, "SELECT sex, count(*) FROM people GROUP BY sex"))
	if templated(c) {
		t.Error("a template where two releases are held")
	}
	if c = testContext(t, testPolicy(t)); templated(c) {
		t.Error("a template where nothing is held, and the answer is bought")
	}
}

// FuzzTemplates: whatever the condition and its parameters, a template makes what Build makes, or nothing.
func FuzzTemplates(f *testing.F) {
	for _, s := range templateShapes {
		f.Add(fmt.Sprintf(s.sql, "age"), int64(20), int64(40), int64(30), int64(31))
	}
	c := oneHeld(f, "age")
	f.Fuzz(func(t *testing.T, sql string, a, b, x, y int64) {
		statements, refusal := parse.Parse(sql)
		if refusal != nil || len(statements) != 1 || statements[0].Kind != parse.KindSelect {
			return
		}
		if l := parse.Lift(statements[0], []policy.Value{}); !l.Empty() {
			if p, refusal := Build(statements[0], []policy.Value{}, c); refusal == nil {
				if template := TemplateOf(statements[0], []policy.Value{}, p, c); template != nil {
					sameAsBuilt(t, c, statements[0], template, []policy.Value{})
				}
			}
		}
		for n := range 3 {
			witness, params := []policy.Value{a, b}[:n], []policy.Value{x, y}[:n]
			p, refusal := Build(statements[0], witness, c)
			if refusal != nil {
				continue
			}
			if template := TemplateOf(statements[0], witness, p, c); template != nil {
				sameAsBuilt(t, c, statements[0], template, params)
				sameAsBuilt(t, c, statements[0], template, witness)
			}
		}
	})
}

// TestTemplatesOfNumbers: texts that differ in numbers alone have one template, which makes of each what Build makes of
// it; a number that is written otherwise, or is elsewhere, is a part of the text.
func TestTemplatesOfNumbers(t *testing.T) {
	r := rand.New(rand.NewSource(107))
	c, none := oneHeld(t, "age"), []policy.Value{}
	built := func(s parse.Statement) *plans.Plan {
		p, refusal := Build(s, none, c)
		if refusal != nil {
			return nil
		}
		return p
	}
	keys := map[string]string{} // of the shapes
	for _, shape := range []struct {
		sql       string
		templated bool
	}{
		{"SELECT count(*) FROM people WHERE age BETWEEN %d AND %d", true},
		{"  SELECT count(*) AS n FROM people p WHERE /* éa */ p.age>=%d AND %d>=p.age ", true},
		{"SELECT count(*) FROM people WHERE age > %d AND age < %d", true},
		{"SELECT dp.low(count(*)), 1 FROM people WHERE age BETWEEN %d AND %d", false},
		{"SELECT count(*) FROM people WHERE age BETWEEN %d AND 0%d", false},
		{"SELECT count(*) FROM people WHERE age BETWEEN %d AND %d.0", false},
		{"SELECT count(*) FROM people WHERE age BETWEEN %d AND -%d", false},
		{"SELECT count(*) FROM people WHERE age BETWEEN %d AND '%d'", false},
		{"SELECT count(*) FROM people WHERE age IN (%d, %d)", false},
		{"SELECT count(*) FROM people WHERE age >= %d OR age = %d", false},
		{"SELECT count(*) FROM people WHERE age BETWEEN %d AND %d LIMIT 1", false},
		{"SELECT count(*) FROM people WHERE age BETWEEN %d AND $1 + %d", false},
	} {
		made, answered, left := 0, 0, 0
		var template *Template
		var key string
		for range 200 {
			s := parsedOne(t, fmt.Sprintf(shape.sql, r.Intn(125), r.Intn(125)))
			own := parse.Lift(s, none)
			signed := strings.ReplaceAll(shape.sql, "-%d", "%d") // the grammar takes a sign for the number's
			if other := keys[own.Text]; other != "" && other != signed {
				t.Fatalf("%s and %s have one text", other, signed)
			}
			keys[own.Text] = signed
			if template != nil && own.Text == key {
				if sameAsBuilt(t, c, s, template, none) {
					answered++
				} else {
					left++
				}
			}
			if p := built(s); p != nil && r.Intn(10) == 0 {
				if made := TemplateOf(s, none, p, c); made != nil {
					template, key = made, own.Text
				}
			}
		}
		if made = 0; template != nil {
			made = 1
		}
		if shape.templated != (made > 0 && answered > 0 && left > 0) {
			t.Errorf("%s: %d templates, which answer %d and leave %d", shape.sql, made, answered, left)
		}
	}
	// Of several statements each has its own place.
	statements, refusal := parse.Parse("SELECT 1; /* 20 */ SELECT count(*) FROM people WHERE age BETWEEN 20 AND 31; SELECT count(*) FROM people WHERE age BETWEEN 7 AND 31")
	if refusal != nil {
		t.Fatal(refusal)
	}
	a, b := parse.Lift(statements[1], none), parse.Lift(statements[2], none)
	if a.Empty() || b.Empty() || !strings.HasSuffix(a.Text, b.Text) || !strings.HasPrefix(b.Text, "SELECT count") {
		t.Errorf("%q and %q", a.Text, b.Text)
	}
}
