package engines

import (
	"errors"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
)

// TestRefusedPolicy: what a policy that is inspected and does not come into force names may change, and what the one in
// force names may not, whatever the other says of it.
func TestRefusedPolicy(t *testing.T) {
	t.Parallel()
	h := backendtest.PostgresHouse(t)
	h.Change("CREATE TABLE more (person_id bigint PRIMARY KEY, age integer); GRANT SELECT ON more TO PUBLIC")
	backendtest.Inspect(t, h)
	ready := func(when string, want error, p *policy.Policy) {
		t.Helper()
		if err := h.Ready(t.Context()); err != want {
			t.Errorf("%s: Ready says %v, want %v", when, err, want)
		}
		if p == nil {
			return
		}
		if err := h.Ready(t.Context(), backendtest.Render(t, backendtest.Measure(t, p, "people", "age"), h)); err != want {
			t.Errorf("%s: Ready says of a query %v, want %v", when, err, want)
		}
	}
	look := func(p *policy.Policy) {
		t.Helper()
		if findings, err := h.Inspect(t.Context(), p, p.Datasets[0]); err != nil || inspect.Fatal(findings) {
			t.Fatal(findings, err)
		}
	}
	other := backendtest.TestPolicy(t, h.Policy.Backend.URL)
	people := other.Datasets[0].Tables[0]
	people.Source.Name, people.Columns = "more", people.Columns[:1]
	look(other)
	ready("another policy was looked at", nil, h.Policy)
	h.Change("ALTER TABLE more ALTER COLUMN age TYPE text")
	ready("what it names has changed", nil, h.Policy)
	h.Change("DROP TABLE more")
	ready("and is gone", nil, h.Policy)

	next := backendtest.TestPolicy(t, h.Policy.Backend.URL)
	people = next.Datasets[0].Tables[0]
	age := backendtest.TestColumn(t, "age", "bigint", policy.OutsideClamp, "0", "119", "1")
	age.Table, people.Columns[0] = people, age
	h.Change("ALTER TABLE people ALTER COLUMN age TYPE bigint")
	look(next)
	ready("a third says what people is like now", backend.ErrDrift, h.Policy)
	h.Adopt(next)
	ready("the third is in force", nil, next)
	if err := h.Ready(t.Context(), backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age"), h)); err != backend.ErrDrift {
		t.Errorf("of a query under the policy before: %v", err)
	}
	h.Change("ALTER TABLE visits ADD COLUMN harmless integer")
	ready("a column that none names", nil, next)
	h.Change("ALTER TABLE people ALTER COLUMN income TYPE numeric(20,6)")
	ready("and one that the third does", backend.ErrDrift, next)
}

// TestRefusedPolicyOfSnapshots: nor does it keep the policy in force from its copies, nor let one through.
func TestRefusedPolicyOfSnapshots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		house  func(*testing.T) *backendtest.House
		change string
	}{"PostgreSQL": {backendtest.SnapshotHouse, "ALTER TABLE visits ALTER COLUMN minutes TYPE bigint"}, "DuckDB": {backendtest.DuckSnapshotHouse, "ALTER TABLE visits ALTER COLUMN minutes TYPE bigint"}, "MariaDB": {backendtest.MariaHouse, "ALTER TABLE visits MODIFY minutes bigint"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := c.house(t)
			look := func(columns func([]*policy.Column) []*policy.Column) {
				t.Helper()
				other := backendtest.TestPolicyLike(t, h)
				for i, table := range other.Datasets[0].Tables {
					table.Source = h.Policy.Datasets[0].Tables[i].Source
				}
				visits := other.Datasets[0].Tables[1]
				visits.Columns = columns(visits.Columns)
				if _, err := h.Inspect(t.Context(), other, other.Datasets[0]); err != nil {
					t.Fatal(err)
				}
			}
			look(func(list []*policy.Column) []*policy.Column { return list[:1] })
			if err := backendtest.Renewed(t, h, 3*time.Second); err != nil {
				t.Errorf("another policy was looked at: %v", err)
			}
			h.Source(c.change)
			look(func(list []*policy.Column) []*policy.Column {
				minutes := backendtest.TestColumn(t, "minutes", "bigint", policy.OutsideClamp, "0", "59", "1")
				minutes.Table = list[1].Table
				return []*policy.Column{list[0], minutes}
			})
			if err := backendtest.Renewed(t, h, 3*time.Second); !errors.Is(err, backend.ErrDrift) {
				t.Errorf("as the other policy says the column is now: %v", err)
			}
		})
	}
}
