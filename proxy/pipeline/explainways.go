package pipeline

import (
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/planner/plans"
)

// explainedWay is a way to answer a leaf that was weighed: EXPLAIN (ALTERNATIVES).
type explainedWay struct {
	Leaf  string `json:"Leaf"`
	Kind  string `json:"Kind"`
	Name  string `json:"Measure"`
	Cost  string `json:"Cost"`
	Error string `json:"Expected Error"`
	Taken bool   `json:"Taken"`
	Why   string `json:"Why"`
}

func explainWays(plan *plans.Plan) []explainedWay {
	at := "at " + percent(plan.Confidence)
	var out []explainedWay
	for _, a := range plan.Alternatives {
		e := explainedWay{Leaf: a.Leaf, Kind: a.Kind, Name: a.Name, Cost: "nothing", Taken: a.Taken, Why: a.Why}
		if !a.Held {
			e.Cost = a.Cost.String()
		}
		if e.Error = fmt.Sprintf("±%d a value %s", a.Error.HalfWidth, at); a.Rank > 0 {
			e.Error = fmt.Sprintf("±%d rows in rank %s", int64(math.Ceil(a.Rank)), at)
		}
		out = append(out, e)
	}
	return out
}

// wayLines is the text form.
func wayLines(ways []explainedWay) (lines []string) {
	if len(ways) > 0 {
		lines = append(lines, "Alternatives:")
	}
	for _, w := range ways {
		mark := "not taken"
		if w.Taken {
			mark = "taken"
		}
		lines = append(lines, fmt.Sprintf("  %s: %s %s: cost %s, expected error %s; %s: %s", w.Leaf, w.Kind, w.Name, w.Cost, w.Error, mark, w.Why))
	}
	return lines
}
