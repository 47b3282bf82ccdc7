package planner

import (
	"sort"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// TestRecordedCatalogStatements: what real clients ask of the catalogs is planned for the engine. Left out are
// statements on the tables of the recording, which this policy does not have, and those that do more than read.
func TestRecordedCatalogStatements(t *testing.T) {
	c := testContext(t, testPolicy(t))
	planned, refusedBy := 0, map[string][]string{}
	for _, text := range material.Statements(t) {
		statements, refusal := parse.Parse(text)
		if refusal != nil {
			if refusal.ID != "syntax-error" {
				t.Errorf("%s: %.200s", refusal.ID, text)
			}
			continue
		}
		for _, s := range statements {
			if s.Kind != parse.KindSelect {
				continue
			}
			p, refusal := Build(s, nil, c)
			if refusal == nil {
				planned++
				checkPlan(t, text, p)
				continue
			}
			refusedBy[refusal.ID] = append(refusedBy[refusal.ID], refusal.Message)
		}
	}
	allowed := map[string]bool{"unknown-table": true, "other-database": true, "function-not-permitted": true, refuse.UnknownFunction.ID: true, refuse.IntoTable.ID: true, refuse.RowLocks.ID: true, refuse.Writes.ID: true, "unknown-column": true}
	for id, messages := range refusedBy {
		sort.Strings(messages)
		text := strings.Join(unique(messages), "; ")
		t.Logf("%s: %d: %.1500s", id, len(messages), text)
		if !allowed[id] {
			t.Errorf("%d recorded statements refused as %s: %.1500s", len(messages), id, text)
		}
	}
	if planned < 400 {
		t.Errorf("only %d statements planned", planned)
	}
}

func unique(sorted []string) []string {
	var out []string
	for _, s := range sorted {
		if len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	return out
}
