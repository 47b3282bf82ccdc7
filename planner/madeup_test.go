package planner

import (
	"flag"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

var madeUpDraws = flag.Int("made-up-draws", 3000, "how many SELECTs of rows TestMadeUpRowsHaveTheirName draws")

// rowsStatement draws a SELECT of rows: what is said of it decides what may answer it.
type rowsStatement struct {
	sql      string
	named    bool // it reads the table of made-up rows by name
	look     bool // it is SELECT columns FROM people LIMIT n
	condited bool // it has a condition
	column   bool // it shows one
}

func drawRows(r *rand.Rand) (s rowsStatement) {
	pick := func(list ...string) string { return list[r.Intn(len(list))] }
	from := pick("people", "people", "people p", "public.people")
	if s.named = r.Intn(6) == 0; s.named {
		from = "dp.people_made_up"
	}
	targets := pick("sex", "sex, active", "*", "income AS i, sex", "upper(sex)", "1 AS a", "DISTINCT sex", "sex, row_number() OVER ()")
	s.column = targets != "1 AS a"
	s.look = !s.named && r.Intn(3) == 0
	if s.look {
		s.look = targets == "sex" || targets == "sex, active" || targets == "*" || targets == "income AS i, sex"
	}
	where, order, limit := "", "", " LIMIT "+pick("1", "10", "5000")
	if !s.look {
		where = pick("", " WHERE active", " WHERE sex = 'Female' AND income > 10000")
		order = pick("", " ORDER BY 1")
		limit = pick("", limit, limit+" OFFSET 1", " FETCH FIRST 3 ROWS WITH TIES")
		if strings.Contains(limit, "TIES") {
			order = " ORDER BY 1"
		}
	}
	s.condited = where != ""
	s.sql = "SELECT " + targets + " FROM " + from + where + order + limit
	if r.Intn(20) == 0 {
		limit = " LIMIT " + pick("ALL", "NULL")
		s.sql = "SELECT " + targets + " FROM " + from + where + order + limit
	}
	s.look = !s.named && !strings.HasSuffix(limit, "L") && where+order == "" && strings.HasPrefix(limit, " LIMIT") && !strings.Contains(limit, "OFFSET") && !strings.ContainsAny(targets, "(") && !strings.HasPrefix(targets, "DISTINCT") && s.column
	switch r.Intn(8) {
	case 0:
		s.sql, s.look = "SELECT * FROM ("+s.sql+") AS t LIMIT 10", false
	case 1:
		s.sql, s.look = "WITH x AS ("+s.sql+") SELECT * FROM x LIMIT 3", false
	case 2:
		s.sql, s.look = "COPY ("+s.sql+") TO STDOUT", false
	case 3:
		s.sql, s.look = "DECLARE c CURSOR FOR "+s.sql, false
	case 4:
		s.sql, s.look = "("+s.sql+") UNION ALL ("+s.sql+") LIMIT 4", false
	case 5:
		s.sql, s.look, s.condited = "SELECT EXISTS ("+s.sql+")", false, true
	}
	return s
}

// TestMadeUpRowsHaveTheirName is privacy rule 31: whatever of made-up rows is paid for, a statement shows them where it
// names them, and where a session looks at a table with dp.probes = made_up; nowhere else. Rows that are not there by
// dp.probes = empty answer no condition.
func TestMadeUpRowsHaveTheirName(t *testing.T) {
	p := instancePolicy(t, "{kind: synthetic, name: y, columns: [{column: income, step: 10000}, sex, active], epsilon: 1, rows: 10}",
		"{kind: online, name: o, columns: [sex, {column: income, step: 10000}, active], epsilon: 1, updates: 20, insist: true}")
	c := testContext(t, p)
	c.Settings.Epsilon = epsilon(t, "1")
	c.Left = func(int64) int { return 20 }
	held := map[string]*shelf{"nothing": {}, "synthetic": {}, "online": {}}
	for name, sql := range map[string]string{"synthetic": "SELECT count(*) FROM dp.people_made_up", "online": "SELECT count(*) FROM people WHERE income < 50000 AND active"} {
		plan, refusal := planSession(t, c, sql)
		if refusal != nil {
			t.Fatal(refusal)
		}
		held[name].buy(plan)
	}
	shown := map[string]int{}
	for n := range *madeUpDraws {
		r := rand.New(rand.NewSource(int64(n)))
		s := drawRows(r)
		paid := []string{"nothing", "synthetic", "online"}[r.Intn(3)]
		c.Holdings, c.Settings.Probes = held[paid], plans.Probes(r.Intn(3))
		list, refusal := parse.Parse(s.sql)
		if refusal != nil {
			t.Fatalf("%s: %v", s.sql, refusal)
		}
		statement := list[0]
		if statement.Inner != nil {
			statement = *statement.Inner
		}
		plan, refusal := Build(statement, []policy.Value{}, c)
		madeUp := refusal == nil && len(plan.Leaves) > 0 && plan.Leaves[0].Synthetic != nil
		what := fmt.Sprintf("draw %d, %s paid, dp.probes %d: %s", n, paid, c.Settings.Probes, s.sql)
		may := s.named && paid == "synthetic" || s.look && c.Settings.Probes == plans.ProbesMadeUp && paid != "nothing"
		if madeUp != may {
			t.Errorf("%s: made up %v (%v)", what, madeUp, refusal)
		}
		empty := refusal == nil && len(plan.Probed) > 0
		if empty && (c.Settings.Probes != plans.ProbesEmpty || s.condited || !s.column || list[0].Inner != nil) {
			t.Errorf("%s: no rows are shown", what)
		}
		switch {
		case madeUp:
			shown["made up"]++
		case empty:
			shown["none"]++
		case refusal == nil && !strings.Contains(s.sql, "DISTINCT") && !strings.Contains(s.sql, "EXISTS"):
			t.Errorf("%s: is answered: %s", what, plan.Cost)
		case refusal != nil && (refusal.SQLState == "42501" && !strings.Contains(refusal.Hint, "SELECT")):
			t.Errorf("%s: %s hints at %s", what, refusal.Message, refusal.Hint)
		default:
			shown["refused"]++
		}
	}
	t.Log(shown)
}

// TestMadeUpRowsHideWhatIsHidden: of values that `other: hide` shows no group of, no row is made up.
func TestMadeUpRowsHideWhatIsHidden(t *testing.T) {
	p := instancePolicy(t, "{kind: synthetic, name: y, columns: [{column: income, step: 10000}, sex, active], epsilon: 1, rows: 10}")
	c := testContext(t, p)
	c.Settings.Epsilon = epsilon(t, "1")
	for _, hide := range []bool{false, true} {
		for _, column := range p.Datasets[0].Tables[0].Columns {
			column.Hide = hide && column.Name == "sex"
		}
		plan, refusal := planSession(t, c, "SELECT count(*) FROM dp.people_made_up")
		if refusal != nil {
			t.Fatal(refusal)
		}
		left, hidden := 0, 0
		for cell := range plan.Measures[0].Spec.Cells {
			if values := plan.Leaves[0].Synthetic.Values(0, int32(cell)); values == nil {
				left++
			} else if values[1] == policy.OtherValue {
				hidden++
			}
		}
		if hide != (hidden == 0) || hide != (left > 0) {
			t.Errorf("hide %v: of the cells %d show other values, and %d no row", hide, hidden, left)
		}
	}
}
