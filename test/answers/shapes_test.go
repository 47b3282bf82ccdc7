package answers

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

var shapesDraws = flag.Int("shapes-draws", 0, "draws of a statement with one row; docs/shapes.md is written with 25")

const shapesFile = "../../docs/shapes.md"

// shapesText is docs/shapes.md.
const shapesText = `# How near answers are where units differ

Counts, sums and averages of three tables in which units differ a lot: a clinic of which most patients have few visits
and some hundreds to thousands, a shop whose customers' orders follow a Pareto law of exponent 1.2, and devices of which
one in five hundred sends a thousand times what the others do; 10,000 units each
([generate.sql](../examples/shapes/generate.sql), [policy.yaml](../examples/shapes/policy.yaml),
[queries.sql](../examples/shapes/queries.sql)). This page is written by ` + "`make shapes`" + `, and was at commit %s.

An error is the median over the answer's rows of |answer − truth| / |truth|, and over %d analysts where an answer has
one row, five where it has more, each with noise of her own; NULL is as far off as 0. *Rows* are answers by the policy's
bounds, which are the largest unit's rows and the largest value of a row; *wide* is where both are 100 times that.
*Ladder* is by ` + "`SET dp.contribution = ladder`" + `. *Best clamp* is by ` + "`SET dp.contribution = N`" + ` with the N,
in brackets, with which the error is least, found among powers of 1.5 by somebody who sees the rows; an average is then
a sum and a count at half of ε each, with the best clamp of each, which need not be what is best for their quotient. The
error is of other draws than the search. Nobody can have that clamp: it is the measure of what there is to gain. What
the last column has is off from run to run by a third or so.
%s`

// TestShapes asks counts, sums and averages of three shapes in each way, and with -update (make shapes) writes
// docs/shapes.md.
func TestShapes(t *testing.T) {
	kit.Beside(t)
	if *shapesDraws == 0 {
		t.Skip("takes ten minutes: run `make shapes`")
	}
	e := &example{folder: "shapes"}
	e.generate(t, 1)
	commit, text := kit.Head(t), ""
	for _, budget := range []struct {
		name, accountant string
		epsilon          float64
	}{
		{"ε 1", "pure", 1}, {"ε 0.1", "pure", .1}, {"ρ 0.5 (zCDP)", "zcdp", 1},
	} {
		var of [2][]clamped
		for i, factor := range []int{1, 100} {
			p := e.serve(t, 1000, func(policy string) string {
				return widened(strings.ReplaceAll(policy, "accountant: pure", "accountant: "+budget.accountant), factor)
			})
			users := 0
			for _, s := range e.statements(t, "queries.sql") {
				dataset, _, _ := strings.Cut(s.name, " ")
				s.keys = strings.Count(s.sql, "GROUP BY")
				a := asker{t, e, p, dataset, budget.epsilon, &users}
				of[i] = append(of[i], a.measure(s, *shapesDraws, factor == 1))
			}
		}
		section := "\n## " + budget.name + "\n\n" + clampedTable(of[0], of[1])
		t.Log(section)
		text += section
	}
	if *kit.Update {
		text = fmt.Sprintf(shapesText, commit, *shapesDraws, text)
		if err := os.WriteFile(shapesFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var declaredBound = regexp.MustCompile(`(max_rows_per_unit: |type: "?(?:numeric|integer).*min: 0, max: )(\d{4,})`)

// widened is a policy of which the bounds of units' rows, and of values, are so many times what they are.
func widened(policy string, factor int) string {
	return declaredBound.ReplaceAllStringFunc(policy, func(found string) string {
		m := declaredBound.FindStringSubmatch(found)
		n, _ := strconv.Atoi(m[2]) // digits
		return m[1] + strconv.Itoa(n*factor)
	})
}
