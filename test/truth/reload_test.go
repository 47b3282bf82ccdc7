package truth

import (
	"context"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// reloading is a sandbox that is given another policy, whose public table has no label, in the moment before each
// query.
type reloading struct {
	sandbox.Engine
	next  *policy.Policy
	table sandbox.Table
}

func (r reloading) Query(ctx context.Context, s sandbox.Session, q outer.Query, tables []sandbox.Table) (privacy.Released[sandbox.Rows], error) {
	err := r.Catalog(ctx, r.next)
	if err == nil {
		err = r.Load(ctx, r.next.Datasets[0].ID, r.table)
	}
	if err != nil {
		return privacy.Released[sandbox.Rows]{}, err
	}
	return r.Engine.Query(ctx, s, q, tables)
}

// TestReloadBetweenChargeAndAnswer: a statement that was charged is answered by the public tables that it was planned
// by, whatever comes into force before its answer is put together.
func TestReloadBetweenChargeAndAnswer(t *testing.T) {
	for _, engine := range []string{"duckdb", "postgres"} {
		p := pairOver(t, kinds(*seed), engine, func(*schema) {})
		h := p.house
		d := *h.policy.Datasets[0]
		d.Tables = slices.Clone(d.Tables)
		at := slices.IndexFunc(d.Tables, func(t *policy.Table) bool { return t.Name == "sort" })
		sort := *d.Tables[at]
		sort.Columns = slices.DeleteFunc(slices.Clone(sort.Columns), func(c *policy.Column) bool { return c.Name != "code" })
		d.Tables[at] = &sort
		next := *h.policy
		next.Datasets = []*policy.Dataset{&d}
		own := h.engine
		h.engine = reloading{own, &next, sandbox.Table{Schema: "public", Name: "sort", Rows: privacy.Published(sandbox.Rows{
			Columns: []sandbox.Column{{Name: "code", Type: policy.Varchar, Typmod: 12}}, Data: [][]policy.Value{{"abc"}}})}}
		p.fresh()
		const counts = `(SELECT v8, count(*) AS n FROM event GROUP BY 1 HAVING count(*) > 0) q`
		for _, sql := range []string{
			`SELECT q.v8, s.label, s.amount * 2 AS twice FROM ` + counts + ` JOIN sort s ON rtrim(s.code) = rtrim(q.v8) ORDER BY 1, 2`,
			`SELECT q.v8, (SELECT max(sort.small) FROM sort WHERE sort.code = q.v8) AS m FROM ` + counts + ` ORDER BY 1`,
			`WITH s AS (SELECT code, label FROM sort) SELECT v8, s.*, day FROM ` + counts + `, s, sort WHERE s.code = q.v8 AND sort.code = s.code ORDER BY 1`,
		} {
			got, want := p.ask(sql), p.plain.ask(sql)
			if got.err != nil || len(want.rows) == 0 || !slices.EqualFunc(got.rows, want.rows, slices.Equal[[]string]) {
				t.Errorf("%s: %s\ngot  %v, %v\nwant %v", engine, sql, got.rows, got.err, want.rows)
			}
		}
	}
}
