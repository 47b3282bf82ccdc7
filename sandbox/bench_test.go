package sandbox_test

import (
	"context"
	"testing"

	"github.com/dpproxy/dpproxy/rewrite"
)

// BenchmarkEngine is one outer query over a released table of six rows, child and all.
func BenchmarkEngine(b *testing.B) {
	leaves, tables, _ := released()
	q, refusal := rewrite.Outer(parse(b, "SELECT k, round(100.0 * sum(n) / sum(sum(n)) OVER (), 1) AS share FROM leaf_1 GROUP BY k ORDER BY 2 DESC", leaves...), rewrite.DuckDB)
	if refusal != nil {
		b.Fatal(refusal)
	}
	e := engine(b)
	for b.Loop() {
		if _, err := e.Query(context.Background(), session, q, tables[:1]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCatalog is psql's \dt.
func BenchmarkCatalog(b *testing.B) {
	e := engine(b)
	for b.Loop() {
		if _, err := ask(b, e, `SELECT n.nspname, c.relname, pg_catalog.pg_get_userbyid(c.relowner) FROM pg_catalog.pg_class c
			LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', '') AND n.nspname !~ '^pg_toast'
			AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1, 2`); err != nil {
			b.Fatal(err)
		}
	}
}
