package backend

import (
	"errors"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// TestPins: what was seen for a policy decides once it is in force; that of the one before serves its own tables still, and of others nothing is left.
func TestPins(t *testing.T) {
	t.Parallel()
	var p pins[int]
	policies := make([]*policy.Policy, 5)
	for i := range policies {
		policies[i] = &policy.Policy{Datasets: []*policy.Dataset{{ID: "clinic"}}}
	}
	check := func(when string, deciding int, known ...int) {
		t.Helper()
		list := p.deciding()
		for i, of := range policies {
			d := of.Datasets[0]
			got, has := p.of(d)
			want := false
			for _, k := range known {
				want = want || k == i
			}
			if _, decides := list[d]; decides != (i == deciding) || has != want || has && got != i {
				t.Errorf("%s: of policy %d %d is known (%v), and decides (%v)", when, i, got, has, decides)
			}
		}
	}
	see := func(i int) { p.note(policies[i], policies[i].Datasets[0], i) }
	check("at first", -1)
	see(0)
	check("inspected", -1, 0)
	p.adopt(policies[0])
	check("in force", 0, 0)
	see(1)
	check("another inspected", 0, 0, 1)
	see(2)
	check("that refused, and a third inspected", 0, 0, 2)
	p.adopt(policies[2])
	check("the third in force", 2, 0, 2)
	see(2)
	p.adopt(policies[2])
	check("again", 2, 0, 2)
	see(3)
	check("a fourth inspected", 2, 0, 2, 3)
	p.adopt(policies[3])
	check("the fourth in force", 3, 2, 3)
	see(4)
	p.adopt(policies[3])
	check("a fifth refused", 3, 2, 3)
}

const leveledPolicy = `version: 1
backend: {url: "duckdb:clinic.duckdb"}
ledger: {url: "sqlite:ledger.db"}
users: []
datasets:
  - id: clinic
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 3}
    levels: {guests: 0.1}
    budgets: {"*": {epsilon: 1, level: guests}}
    tables:
      - name: people
        max_rows_per_unit: 1
        columns: [{name: age, type: integer, domain: {min: 0, max: 99, step: 1}}]
        releases: [{kind: histogram, columns: [age], epsilon: 0.5}]
`

// TestPinsOfLevels: who is at a level reads tables of her own policy, of which nothing was inspected; what was seen for the whole one is held against her
// queries, and says which of the tables have versions.
func TestPinsOfLevels(t *testing.T) {
	t.Parallel()
	whole, err := policy.Parse([]byte(leveledPolicy), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	view := whole.For("dave")
	d, own := whole.Datasets[0], view.Datasets[0]
	if view == whole || own == d {
		t.Fatal("she has the whole policy")
	}
	var p pins[int]
	p.note(whole, d, 7)
	p.adopt(whole)
	if got, known := p.of(own); got != 7 || !known {
		t.Errorf("of her dataset %d is known (%v)", got, known)
	}
	if got := p.all(view); len(got) != 1 || got[d] != 7 {
		t.Errorf("of her policy %v is known", got)
	}
	next, err := policy.Parse([]byte(leveledPolicy+"# changed\n"), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p.note(next, next.Datasets[0], 8)
	p.adopt(next)
	if got, known := p.of(own); got != 7 || !known || len(p.deciding()) != 1 || p.deciding()[d] != 0 {
		t.Errorf("her query under the policy before is held against %v (%v), others against %v", got, known, p.deciding())
	}

	spark := &Spark{}
	table := sparkTable{provider: "delta", columns: []sparkColumn{{"age", "int"}}}
	spark.pins.note(whole, d, map[string]sparkTable{sparkKey(d.Tables[0]): table})
	spark.Adopt(whole)
	if at, known := spark.inspected(own.Tables[0]); !known || !at.same(table) {
		t.Error("a changed schema of Spark's is not noticed for her")
	}
	if !spark.haveVersions(view) {
		t.Error("the tables of Spark's have no versions for her")
	}

	copies := []*copied{{policies: map[*policy.Policy]bool{}}, {policies: map[*policy.Policy]bool{whole: true}}}
	if ofPolicy(copies, view)[0] != copies[1] {
		t.Error("her copy is another one than the whole policy's")
	}
}

// TestRefusedPolicy: what a policy that is inspected and does not come into force names may change, and what the one in force names may not, whatever the other says of it.
func TestRefusedPolicy(t *testing.T) {
	t.Parallel()
	h := postgresHouse(t)
	h.change("CREATE TABLE more (person_id bigint PRIMARY KEY, age integer); GRANT SELECT ON more TO PUBLIC")
	inspect(t, h)
	ready := func(when string, want error, p *policy.Policy) {
		t.Helper()
		if err := h.Ready(t.Context()); err != want {
			t.Errorf("%s: Ready says %v, want %v", when, err, want)
		}
		if p == nil {
			return
		}
		if err := h.Ready(t.Context(), render(t, measure(t, p, "people", "age"), h)); err != want {
			t.Errorf("%s: Ready says of a query %v, want %v", when, err, want)
		}
	}
	look := func(p *policy.Policy) {
		t.Helper()
		if findings, err := h.Inspect(t.Context(), p, p.Datasets[0]); err != nil || fatal(findings) {
			t.Fatal(findings, err)
		}
	}
	other := testPolicy(t, h.policy.Backend.URL)
	people := other.Datasets[0].Tables[0]
	people.Source.Name, people.Columns = "more", people.Columns[:1]
	look(other)
	ready("another policy was looked at", nil, h.policy)
	h.change("ALTER TABLE more ALTER COLUMN age TYPE text")
	ready("what it names has changed", nil, h.policy)
	h.change("DROP TABLE more")
	ready("and is gone", nil, h.policy)

	next := testPolicy(t, h.policy.Backend.URL)
	people = next.Datasets[0].Tables[0]
	age := testColumn(t, "age", "bigint", policy.OutsideClamp, "0", "119", "1")
	age.Table, people.Columns[0] = people, age
	h.change("ALTER TABLE people ALTER COLUMN age TYPE bigint")
	look(next)
	ready("a third says what people is like now", ErrDrift, h.policy)
	h.Adopt(next)
	ready("the third is in force", nil, next)
	if err := h.Ready(t.Context(), render(t, measure(t, h.policy, "people", "age"), h)); err != ErrDrift {
		t.Errorf("of a query under the policy before: %v", err)
	}
	h.change("ALTER TABLE visits ADD COLUMN harmless integer")
	ready("a column that none names", nil, next)
	h.change("ALTER TABLE people ALTER COLUMN income TYPE numeric(20,6)")
	ready("and one that the third does", ErrDrift, next)
}

// TestRefusedPolicyOfSnapshots: nor does it keep the policy in force from its copies, nor let one through.
func TestRefusedPolicyOfSnapshots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		house  func(*testing.T) *house
		change string
	}{"PostgreSQL": {snapshotHouse, "ALTER TABLE visits ALTER COLUMN minutes TYPE bigint"}, "DuckDB": {duckSnapshotHouse, "ALTER TABLE visits ALTER COLUMN minutes TYPE bigint"}, "MariaDB": {mariaHouse, "ALTER TABLE visits MODIFY minutes bigint"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := c.house(t)
			look := func(columns func([]*policy.Column) []*policy.Column) {
				t.Helper()
				other := testPolicyLike(t, h)
				for i, table := range other.Datasets[0].Tables {
					table.Source = h.policy.Datasets[0].Tables[i].Source
				}
				visits := other.Datasets[0].Tables[1]
				visits.Columns = columns(visits.Columns)
				if _, err := h.Inspect(t.Context(), other, other.Datasets[0]); err != nil {
					t.Fatal(err)
				}
			}
			look(func(list []*policy.Column) []*policy.Column { return list[:1] })
			if err := renewed(t, h, 3*time.Second); err != nil {
				t.Errorf("another policy was looked at: %v", err)
			}
			h.source(c.change)
			look(func(list []*policy.Column) []*policy.Column {
				minutes := testColumn(t, "minutes", "bigint", policy.OutsideClamp, "0", "59", "1")
				minutes.Table = list[1].Table
				return []*policy.Column{list[0], minutes}
			})
			if err := renewed(t, h, 3*time.Second); !errors.Is(err, ErrDrift) {
				t.Errorf("as the other policy says the column is now: %v", err)
			}
		})
	}
}
