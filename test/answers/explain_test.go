package answers

import (
	"encoding/json"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestPlansAsToolsReadThem: EXPLAIN (FORMAT JSON) is an array of one plan, whose nodes have the names that PostgreSQL
// gives and tools look for (pgAdmin shows a white page where a node has no type), and whose cost is what is charged.
func TestPlansAsToolsReadThem(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "90", Cap: "90"}, 0))
	w := p.Connect("alice", "lab")
	type node struct {
		Type  string  `json:"Node Type"`
		Start float64 `json:"Startup Cost"`
		Total float64 `json:"Total Cost"`
		Rows  int     `json:"Plan Rows"`
		Plans []node
	}
	for _, c := range []struct {
		sql   string
		types []string
		total float64
		rows  int
	}{
		{`SELECT hiv, count(*) FROM people GROUP BY hiv`, []string{"Aggregate"}, 0.1, 3},
		{`SELECT DISTINCT hiv FROM people`, []string{"Values Scan"}, 0, 3},
		{`SELECT 1`, nil, 0, 0},
	} {
		var read []struct{ Plan node }
		text := w.Ask(`EXPLAIN (FORMAT JSON, VERBOSE, COSTS) ` + c.sql).Rows[0][0]
		if err := json.Unmarshal([]byte(text), &read); err != nil || len(read) != 1 {
			t.Fatalf("%s: %v\n%s", c.sql, err, text)
		}
		root := read[0].Plan
		ok := root.Type == "Result" && root.Total == c.total && root.Rows == c.rows && len(root.Plans) == len(c.types)
		for i := range c.types {
			ok = ok && root.Plans[i].Type == c.types[i]
		}
		if !ok {
			t.Errorf("%s: %s", c.sql, text)
		}
	}
	w.Ask(`SELECT hiv, count(*) FROM people GROUP BY hiv`)
	var read []struct{ Plan node }
	if err := json.Unmarshal([]byte(w.Ask(`EXPLAIN (FORMAT JSON) SELECT hiv, count(*) FROM people GROUP BY hiv`).Rows[0][0]), &read); err != nil || read[0].Plan.Total != 0 || read[0].Plan.Plans[0].Total != 0 {
		t.Errorf("what is held has a cost: %v %+v", err, read)
	}
}
