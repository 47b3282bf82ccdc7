package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// TestFilledAreThoseWithRows: what is called filled has rows, of every database, of a dataset or of a session, and nothing else.
func TestFilledAreThoseWithRows(t *testing.T) {
	static, err := catalog.Static("census")
	if err != nil {
		t.Fatal(err)
	}
	p, filled := sandboxtest.Census(), map[string]bool{}
	for _, table := range slices.Concat(static, catalog.Dataset(p, "census"), catalog.Dataset(sandboxtest.Keyed(t), "census")) {
		filled[table.Name] = filled[table.Name] || len(table.Rows.Data) > 0
	}
	for _, rel := range pgcatalog.Relations() {
		name := rel.Schema + "." + rel.Name
		_, session := catalog.SessionRows(p, sandboxtest.Session, name)
		if rel.Schema != "dp" && pgcatalog.Filled(rel.Schema, rel.Name) != (filled[name] || session) {
			t.Errorf("%s: filled %v, rows %v, of the session %v", name, pgcatalog.Filled(rel.Schema, rel.Name), filled[name], session)
		}
	}
	for name := range filled {
		schema, relation, _ := strings.Cut(name, ".")
		if schema != "dpproxy" && pgcatalog.Lookup(schema, relation) == nil {
			t.Errorf("%s is no relation of the catalogs", name)
		}
	}
}
