package planner

import (
	"testing"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// TestCharColumns: constants without a type are compared with a char(n) without their trailing blanks, what is text
// with them. PostgreSQL's own answers are in test/truth.
func TestCharColumns(t *testing.T) {
	c := charContext(t)
	c.Dataset.Buying.Cells = 0
	where := func(condition string) string {
		statements, refusal := parse.Parse("SELECT count(*) FROM people WHERE " + condition)
		if refusal != nil {
			t.Fatal(refusal)
		}
		plan, refusal := Build(statements[0], nil, c)
		if refusal != nil {
			return refusal.ID
		}
		if len(plan.Measures) == 0 {
			return "none"
		}
		return predText(plan.Measures[0].Where)
	}
	male := where("sex = 'Male'")
	for condition, want := range map[string]string{
		"sex = 'Male  '": male, "'Male ' = sex": male, "sex IN ('Male ', 'Male')": male, "sex = ANY ('{Male }')": male, "NOT sex <> 'Male    '": male,
		"sex = 'Males'::char(4)": male, "sex = 'Male'::bpchar": male, "sex::text = 'Male'": male, "sex || '' = 'Male'": male, "sex LIKE 'Male%'": male, "sex LIKE 'Male    '": male,
		"sex = 'Male '::varchar": male, "coalesce(sex, 'x ') = 'Male '": male, "nullif(sex, 'x') = 'Male '": male, "CASE WHEN sex = 'Male' THEN sex END = 'Male '": male, "CASE WHEN sex = 'Female' THEN 'x ' ELSE sex END || '|' = 'Male|'": male,
		"octet_length(sex) = 8 AND sex = 'Male'": male, "concat(sex, '|') = 'Male    |'": male, "concat_ws('-', sex, 'x') = 'Male    -x'": male, "sex = ANY ('{\"Male \"}'::bpchar[])": male, "sex = ANY (ARRAY['Male'])": male,
		"coalesce(sex, 'x'::text) = 'Male '": male, "CASE WHEN sex = 'Male' THEN 'Male '::text ELSE sex END = 'Male' AND sex = 'Male'": male, "sex IN ('Male '::text, 'x')": male, "sex = ANY (ARRAY['Male '::bpchar, 'x '])": male, "sex = ANY ('{\"Male \"}'::varchar[])": male, "sex::varchar = ANY ('{\"Male \",x}'::bpchar[])": male, "sex::varchar IN ('Male '::bpchar, 'x')": male, "octet_length(nullif(sex, 'x')) = 8 AND sex = 'Male'": male,
		"CASE WHEN sex = 'Male' THEN sex ELSE 'x'::text END = 'Male '": "none", "sex IN ('Male '::text)": "none", "concat(coalesce(sex, 'x'), '|') = 'x|'": semantics.NoForm.ID, "coalesce(sex, 'x'::bpchar) LIKE 'x'": semantics.NoForm.ID, "concat(nullif(sex, 'x '::text), '|') = 'Male    |'": "none",
		"sex = ANY (ARRAY['Male '])": "none", "sex = ANY (ARRAY['Male ', 'x '])": "none", "sex <> ALL (ARRAY['Male ', 'x ']) IS FALSE": "none", "concat(CASE WHEN sex = 'Male' THEN sex END, '|') = 'Male    |'": male, "sex = ANY ('{\"Male \"}'::text[])": "none", "concat(sex, '|') = 'Male|'": "none",
		"sex = 'Male '::text": "none", "sex::text = 'Male '": "none", "sex LIKE 'Male'": "none",
		"sex ~ 'Male$'": "none", "sex = ' Male'": "none", "sex = E'Male\\t'": "none",
		"sex::char(4) = 'Male'": refuse.BlankPadded.ID,
	} {
		if got := where(condition); got != want {
			t.Errorf("%s asks for %s, must for %s", condition, got, want)
		}
	}
}

// charContext is a context in which people.sex is a char(8).
func charContext(t *testing.T) reuse.Context {
	t.Helper()
	return testContext(t, testPolicy(t, "name: sex, type: text", "name: sex, type: char(8)"))
}

// TestParametersBesideChars: a parameter beside a char is described as one, and what it is then loses the blanks at its
// end, as in PostgreSQL: as a text, 'Male ' was nobody's.
func TestParametersBesideChars(t *testing.T) {
	c := charContext(t)
	c.Dataset.Buying.Cells = 0
	asked := func(sql string, values []policy.Value) string {
		statements, refusal := parse.Parse("SELECT count(*) FROM people WHERE " + sql)
		if refusal != nil {
			t.Fatal(refusal)
		}
		s := statements[0]
		if values != nil {
			d, _, refusal := Describe(s, nil, c)
			if refusal != nil {
				return refusal.ID
			}
			for i, typ := range d.Params {
				if typ != policy.Bpchar {
					t.Errorf("%s: $%d is %v", sql, i+1, typ)
				}
			}
			s.ParamTypes = d.Params
		}
		plan, refusal := Build(s, values, c)
		if refusal != nil {
			return refusal.ID
		}
		return predText(plan.Measures[0].Where)
	}
	male := asked("sex = 'Male'", nil)
	for sql, values := range map[string][]policy.Value{
		"sex = $1": {"Male  "}, "$1 = sex": {"Male"}, "NOT sex <> $1": {"Male "}, "sex IN ($1, $2)": {"Male ", "Male"}, "sex IS NOT DISTINCT FROM $1": {"Male "}, "sex BETWEEN $1 AND $2": {"Male  ", "Male "},
		"nullif(sex, $1) IS NULL AND sex IS NOT NULL": {"Male "}, "coalesce(sex, $1) = 'Male '": {"x  "},
	} {
		if got := asked(sql, values); got != male {
			t.Errorf("%s of %q asks for %s, must for %s", sql, values, got, male)
		}
	}
}

// TestCharsAboveTheCounts: what comes out of a leaf is the char that its key is, in the plan's columns and leaves, for
// an engine and without one. What they are worth beside PostgreSQL's is test/truth's.
func TestCharsAboveTheCounts(t *testing.T) {
	c := charContext(t)
	char, ragged, text := policy.CharTypmod(8), int32(-1), int32(-2)
	for sql, want := range map[string]int32{
		"SELECT sex, count(*) FROM people GROUP BY sex":                                                                              char,
		"SELECT DISTINCT sex FROM people":                                                                                            char,
		"SELECT * FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) q WHERE sex = 'Male  '":                                  char,
		"SELECT sex, rank() OVER (ORDER BY count(*)) FROM people GROUP BY sex":                                                       char,
		"SELECT lag(sex) OVER (ORDER BY sex) FROM (SELECT sex, count(*) AS n FROM people GROUP BY sex) q":                            ragged,
		"SELECT sex FROM people LIMIT 0":                                                                                             char,
		"SELECT coalesce(sex, 'x'), count(*) FROM people GROUP BY 1":                                                                 ragged,
		"SELECT coalesce(sex, 'x'::text), count(*) FROM people GROUP BY 1":                                                           ragged,
		"SELECT sex || '', count(*) FROM people GROUP BY 1":                                                                          text,
		"SELECT sex::text, count(*) FROM people GROUP BY sex":                                                                        text,
		"SELECT mode() WITHIN GROUP (ORDER BY sex) FROM people":                                                                      char,
		"SELECT sex, count(*) FROM people WHERE sex IN (SELECT sex FROM people GROUP BY sex) GROUP BY sex":                           char,
		"SELECT q.sex, count(*) FROM people p JOIN (SELECT sex, count(*) AS n FROM people GROUP BY 1) q ON q.sex = p.sex GROUP BY 1": char,
	} {
		statements, refusal := parse.Parse(sql)
		if refusal != nil {
			t.Fatal(refusal)
		}
		plan, refusal := Build(statements[0], nil, c)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
			continue
		}
		if got := plan.Columns[0]; want == text && got.Type != policy.Text || want != text && (got.Type != policy.Bpchar || got.Typmod != want) {
			t.Errorf("%s has a column of %s, %d", sql, got.Type, got.Typmod)
		}
		for _, in := range plan.Inner {
			if got := in.Plan.Columns[0]; got.Type != policy.Bpchar || got.Typmod != char {
				t.Errorf("%s: what is answered first has a column of %s, %d", sql, got.Type, got.Typmod)
			}
		}
	}
}
