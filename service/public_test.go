package service

import (
	"context"
	"errors"
	"testing"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// counting is a database whose public tables hold the number of the copy that reads them, and of which one cannot be
// read.
type counting struct {
	backend.Backend
	copies int64
	broken string
}

func (b *counting) ReadPublic(_ context.Context, t *policy.Table) (none privacy.Released[[][]policy.Value], _ error) {
	if t.Name == b.broken {
		return none, errors.New("away")
	}
	return privacy.Published([][]policy.Value{{b.copies}}), nil
}

// holding is a sandbox that keeps what it is given.
type holding struct {
	sandbox.Engine
	tables map[string]int64
}

func (e *holding) Load(_ context.Context, _ string, tables ...sandbox.Table) error {
	for _, t := range tables {
		e.tables[t.Name] = t.Rows.Value().Data[0][0].(int64)
	}
	return nil
}

// TestPublicTablesAreCopiedTogether: where one public table of a dataset cannot be read, plans and the sandbox keep the
// earlier copies of all: they would join different rows of one table.
func TestPublicTablesAreCopiedTogether(t *testing.T) {
	d := &policy.Dataset{ID: "shop"}
	for _, name := range []string{"parts", "suppliers"} {
		d.Tables = append(d.Tables, &policy.Table{Name: name, Schema: "public", Public: true, Dataset: d})
	}
	database, engine := &counting{copies: 1}, &holding{tables: map[string]int64{}}
	s := &Service{Backend: database, Engine: engine}
	s.putInForce(&policy.Policy{Datasets: []*policy.Dataset{d}})
	check := func(want int64) {
		t.Helper()
		for _, table := range d.Tables {
			rows, _ := s.Public.Rows(table)
			if got := rows[0][0]; got != want || engine.tables[table.Name] != want {
				t.Errorf("%s: plans have copy %v, the sandbox %d; must be %d", table.Name, got, engine.tables[table.Name], want)
			}
		}
	}
	if err := s.loadPublic(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	check(1)
	database.copies, database.broken = 2, "suppliers"
	if err := s.loadPublic(t.Context(), d); err == nil {
		t.Error("a table that cannot be read was copied")
	}
	check(1)
	database.copies, database.broken = 3, ""
	if err := s.loadPublic(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	check(3)
}
