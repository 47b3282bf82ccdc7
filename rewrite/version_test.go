package rewrite_test

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestTablesAreReadByVersion: in a text for Spark each table's name is replaced, and no column whose name looks like
// one is.
func TestTablesAreReadByVersion(t *testing.T) {
	t.Parallel()
	for _, names := range [][2]string{{"clinic", "people"}, {"c`l", "`p"}, {"x`.`y", "p` AS t"}, {"a.b", "c"}} {
		for _, column := range []string{"sex", "`spark_catalog`.`clinic`.`people`", "``lake``.``clinic``.``people", "`", "x`.`lake`.`a.b`.`c"} {
			for _, d := range []dialect.Dialect{dialect.Spark, dialect.SparkIn("lake"), dialect.SparkIn("l`k")} {
				people, _, _ := tables(t)
				people.Source = policy.Source{Schema: names[0], Name: names[1]}
				c := people.Column("sex")
				c.Source = column
				q, err := rewrite.Render(&plans.Measure{Table: people, Grain: []*policy.Column{c}, Counters: []predicate.Pred{nil}}, d)
				if err != nil {
					t.Fatal(err)
				}
				name := rewrite.Named(people, d)
				if got := q.Reading(func(_ *policy.Table, name string) string { return name }); got != q.SQL() {
					t.Errorf("%q, %q: the text changes:\n%s\n%s", names, column, q.SQL(), got)
				}
				got := q.Reading(func(read *policy.Table, at string) string {
					if read != people || at != name {
						t.Errorf("%q, %q: it reads %s", names, column, at)
					}
					return "«versioned»"
				})
				if strings.Count(got, "«versioned»") != strings.Count(q.SQL(), " "+name+" AS t") || !strings.Contains(got, "FROM «versioned» AS t") || !strings.Contains(got, "t."+d.QuoteAs(column)) {
					t.Errorf("%q, %q:\n%s\n%s", names, column, q.SQL(), got)
				}
			}
		}
	}
}
