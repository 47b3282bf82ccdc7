package bounds

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

var base = policytest.Over("postgres://dpproxy@127.0.0.1/x") + `
  - id: firm
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: people
        max_rows_per_unit: 1
        columns:
          COLUMN
          - {name: note, type: text, domain: {values: [x]}}
      - name: visits
        unit: visits.person_id = people.person_id
        max_groups_per_unit: 3
        max_rows_per_group: 2
        columns: [{name: cost, type: numeric, domain: private}, {name: ward, type: text, domain: {values: [a]}}]
      - name: stays
        unit: stays.person_id = people.person_id
        max_rows_per_unit: 5
        row_rank: rank
        columns: [{name: nights, type: integer, domain: private}]
      - name: regions
        public: true
        columns: [{name: code, type: text}]
      - name: old
        source: SELECT person_id, note FROM people
        columns: [{name: note, type: text}]
`

func parsed(t *testing.T, column string) *policy.Dataset {
	t.Helper()
	p, err := policy.Parse([]byte(strings.Replace(base, "COLUMN", column, 1)), "policy.yaml")
	if err != nil {
		t.Fatalf("%s: %v", column, err)
	}
	return p.Datasets[0]
}

var cost = privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)}

// TestYAMLIsPolicy: whatever ends are found of a column of any type, what is printed is read by the policy, with an
// ordered domain of no more than a domain's cells that holds all values between the ends; and what the line had beside
// the domain stays.
func TestYAMLIsPolicy(t *testing.T) {
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(130, 9))
	for _, kind := range []string{"smallint", "integer", "bigint", "numeric", `"numeric(12,2)"`, `"numeric(4,2)"`, `"numeric(5,5)"`, `"numeric(38,30)"`, "real", "double precision", "date", "timestamp", "timestamptz"} {
		for i, name := range []string{`salary, type: ` + kind, `"a, b: {c}", source: "so\"ur#ce", type: ` + kind + `, comment: "it's 100 % of: \"pay\" # or \\ so"`, `yes, source: x, type: ` + kind} {
			d := parsed(t, "- {name: "+name+", domain: private}")
			c := d.Tables[0].Columns[0]
			ask, err := Ask(d.Tables[0], []*policy.Column{c}, false, false, cost)
			if err != nil {
				t.Fatal(err)
			}
			q := ask.Questions[0]
			for range 15 {
				from := r.IntN(q.Values())
				to := from + 1 + r.IntN(q.Values()-from)
				a := q.Answer(mechanisms.Ends{From: from, To: to}, confidence)
				found := parsed(t, a.YAML()).Tables[0].Columns[0]
				if found.Name != c.Name || found.Source != c.Source || found.Type != c.Type || found.Typmod != c.Typmod || found.Comment != c.Comment || found.Private || !found.Domain.Ordered() {
					t.Fatalf("%s is read as %+v", a.YAML(), found)
				}
				for _, cell := range []int{from, (from + to - 1) / 2, to - 1} {
					if _, inside := found.Domain.Cell(q.Domain.Low(cell)); !inside {
						t.Errorf("%s: %v of cell %d is outside of %s", kind, q.Domain.Low(cell), cell, a.YAML())
					}
				}
				if most := map[bool]int{false: 400_000, true: 3_300_000}[c.Type.Moment()]; i == 0 && found.Domain.Regular > most {
					t.Errorf("%d cells: %s", found.Domain.Regular, a.YAML())
				}
			}
			if nothing := q.Answer(mechanisms.Ends{}, confidence); !parsed(t, nothing.YAML()).Tables[0].Columns[0].Private {
				t.Errorf("of nothing: %s", nothing.YAML())
			}
		}
	}
}

// TestAsk: a question counts one row of a unit, or its number of rows; the price is split evenly and never exceeded;
// what cannot be asked says why.
func TestAsk(t *testing.T) {
	d := parsed(t, "- {name: salary, type: numeric, domain: private}")
	people, visits, stays := d.Table("", "people"), d.Table("", "visits"), d.Table("", "stays")
	r, err := Ask(visits, []*policy.Column{visits.Column("cost")}, true, false, privacy.Cost{Epsilon: privacy.MicroEpsilon(101)})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Questions) != 2 || r.Cost.Epsilon.Micro() != 100 || r.Questions[0].Measure.Cost.Epsilon.Micro() != 50 {
		t.Errorf("%d questions for %s", len(r.Questions), r.Cost)
	}
	for _, q := range r.Questions {
		if c := q.Measure.Contribution(); c.Rows != 1 || c.Groups > 1 || q.Measure.Spec.Sensitivity(c).L1 != 1 {
			t.Errorf("%s: %+v", q.Name(), c)
		}
	}
	if visits.MaxGroups != 3 || !visits.Column("cost").Private {
		t.Error("the policy's table has changed")
	}
	for _, stored := range []bool{false, true} {
		r, err := Ask(stays, []*policy.Column{stays.Column("nights")}, true, stored, cost)
		if err != nil {
			t.Fatal(err)
		}
		most := int64(maxRows)
		if stored { // the copy has no rows of higher ranks
			most = 5
		}
		if own := r.Questions[0].Measure.Table; (own.RowRank != "") != stored || r.Questions[1].Domain.Max != most || r.Questions[1].Measure.Table.Derived.(*derived.PerUnit).From.MaxRowsPerUnit != most {
			t.Errorf("stored %t: rank %q, to %v rows", stored, own.RowRank, r.Questions[1].Domain.Max)
		}
	}
	for want, ask := range map[string]func() (*Request, error){
		"is public":     func() (*Request, error) { return Ask(d.Table("", "regions"), nil, false, false, cost) },
		"a SELECT over": func() (*Request, error) { return Ask(d.Table("", "old"), nil, true, false, cost) },
		"has bounds":    func() (*Request, error) { return Ask(people, people.Columns[1:], false, false, cost) },
		"too little": func() (*Request, error) {
			return Ask(people, people.Columns[:1], true, false, privacy.Cost{Epsilon: privacy.MicroEpsilon(1)})
		},
		"no column": func() (*Request, error) { return Ask(people, nil, false, false, cost) },
	} {
		if _, err := ask(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// TestKnow: what is held and at least as exact is free; what is coarser, or of something else, is bought.
func TestKnow(t *testing.T) {
	d := parsed(t, "- {name: salary, type: numeric, domain: private}")
	people := d.Table("", "people")
	asked := func(micro int64) *Request {
		r, err := Ask(people, people.Columns[:1], false, false, privacy.Cost{Epsilon: privacy.MicroEpsilon(micro)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	held := func(id, micro int64) Held {
		m := asked(micro).Questions[0].Measure
		return Held{ID: id, Digest: m.Digest, Spec: m.Spec}
	}
	for _, c := range []struct {
		held []Held
		id   int64
	}{{nil, 0}, {[]Held{held(3, 99_999)}, 0}, {[]Held{held(3, 100_000)}, 3}, {[]Held{held(3, 200_000), held(4, 300_000), held(5, 250_000)}, 4}} {
		r := asked(100_000)
		r.Know(c.held)
		m := r.Questions[0].Measure
		if m.HeldID != c.id || m.Held != (c.id != 0) || r.Cost.IsZero() != m.Held || r.Plan(mechanisms.Confidence{}).Cost != r.Cost {
			t.Errorf("%d held: %d, %s", len(c.held), m.HeldID, r.Cost)
		}
	}
	other := held(7, 400_000)
	other.Digest[0]++
	r := asked(100_000)
	if r.Know([]Held{other}); !r.Cost.Fits(cost) || r.Cost.IsZero() {
		t.Errorf("what means something else is taken: %s", r.Cost)
	}
}

func ExampleAnswer_YAML() {
	p, err := policy.Parse([]byte(strings.Replace(base, "COLUMN", `- {name: salary, type: "numeric(10,2)", domain: private}`, 1)), "policy.yaml")
	if err != nil {
		panic(err)
	}
	people := p.Datasets[0].Table("", "people")
	r, err := Ask(people, people.Columns[:1], false, false, cost)
	if err != nil {
		panic(err)
	}
	q := r.Questions[0]
	zero, _ := q.Domain.Cell(policy.NewNumeric(0, 0))
	top, _ := q.Domain.Cell(policy.NewNumeric(4800, 0))
	confidence, _ := mechanisms.NewConfidence(0.95)
	fmt.Println(q.Answer(mechanisms.Ends{From: zero, To: top + 1}, confidence).YAML())
	// Output: - {name: salary, type: "numeric(10,2)", domain: {min: 0, max: 5000, step: 0.5}, outside: clamp}
}
