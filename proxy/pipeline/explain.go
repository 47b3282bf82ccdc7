package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

// explanation is the plan of a SELECT as EXPLAIN shows it, in text and JSON alike. It is made without a charge and
// without the private database.
type explanation struct {
	planNode
	ReadAs     string            `json:"Read As,omitempty"`
	Cost       string            `json:"Cost"`
	Priced     string            `json:"Priced,omitempty"`
	Balance    string            `json:"Balance After,omitempty"`
	AsOf       string            `json:"Rows As Of,omitempty"`
	Confidence float64           `json:"Confidence"`
	Outer      string            `json:"Outer Query"`
	OuterSQL   string            `json:"Outer SQL,omitempty"`
	Leaves     []explainedLeaf   `json:"Plans"`
	Columns    []explainedColumn `json:"Columns"`
	Ways       []explainedWay    `json:"Alternatives,omitempty"`
	Notes      []string          `json:"Notes,omitempty"`

	errors []string // of an answer whose columns are not known
}

// planNode is what pgAdmin, DBeaver and their kin read of a node when they draw the tree of EXPLAIN (FORMAT JSON): the
// names are PostgreSQL's, a cost is ε or ρ, rows are those that the policy's domains allow, and a width is in bytes.
type planNode struct {
	Type         string      `json:"Node Type"`
	Relationship string      `json:"Parent Relationship,omitempty"`
	Relation     string      `json:"Relation Name,omitempty"`
	Alias        string      `json:"Alias,omitempty"`
	StartupCost  json.Number `json:"Startup Cost"`
	TotalCost    json.Number `json:"Total Cost"`
	Rows         int         `json:"Plan Rows"`
	Width        int         `json:"Plan Width"`
}

// priced is what a node costs, as a number.
func priced(c privacy.Cost) json.Number {
	if c.Rho.Pico() != 0 {
		return json.Number(c.Rho.String())
	}
	return json.Number(c.Epsilon.String())
}

type explainedLeaf struct {
	planNode
	Name        string   `json:"Name"`
	SQL         string   `json:"Leaf,omitempty"`
	Table       string   `json:"Table"`
	Measure     string   `json:"Measure"`
	Kind        string   `json:"Kind"`
	Source      string   `json:"Answered From"`
	Mechanism   string   `json:"Mechanism"`
	Why         string   `json:"Why,omitempty"`
	Sensitivity string   `json:"Sensitivity"`
	Cost        string   `json:"Cost"`
	Errors      []string `json:"Expected Error"`
	Mix         []string `json:"Read As,omitempty"`
	Bound       string   `json:"Row Bound,omitempty"`
	Scan        string   `json:"Scan,omitempty"`
	Query       string   `json:"Query,omitempty"`
	Arguments   []any    `json:"Arguments,omitempty"`
}

type explainedColumn struct {
	Name  string `json:"Name"`
	Type  string `json:"Type"`
	Error string `json:"Expected Error,omitempty"`
}

// explain describes a plan.
func (a *Answerer) explain(ctx context.Context, s *Session, plan *plans.Plan) (explanation, *refuse.Refusal) {
	queries, above, refusal := a.render(ctx, plan)
	if refusal != nil {
		return explanation{}, refusal
	}
	for i, m := range plan.Measures {
		if m.Held && m.Reads() == plans.EachStep {
			var err error
			if queries[i], err = renderQueried(plan, i, a.database.backend.Dialect()); err != nil {
				return explanation{}, unrendered(ctx, a.log, m, err)
			}
		}
	}
	e := explained(plan, queries, above)
	e.Balance = a.account.balanceAfter(ctx, s, plan.Cost, plan.Charge())
	if a.needsRows(plan) && a.database.backend != nil {
		e.AsOf = dateOf(a.database.backend.AsOf(s.Policy))
	}
	if refusal = a.explainFinds(ctx, plan, &e); refusal != nil {
		return e, refusal
	}
	return e, a.explainInner(ctx, plan, &e)
}

// explained describes a plan and its SQL.
func explained(plan *plans.Plan, queries []rewrite.Query, above outer.Query) explanation {
	e := explanation{planNode: planNode{Type: "Result", StartupCost: "0", TotalCost: priced(plan.Cost)}, Cost: plan.Cost.String(), Priced: plan.Priced, Confidence: plan.Confidence.Float(), Outer: outerText(plan), OuterSQL: above.SQL, Notes: plan.Notes, Leaves: []explainedLeaf{}}
	if plan.Cost.IsZero() {
		e.Cost = "nothing"
	}
	shown := map[int]string{} // the leaf beside which a measure's query is shown
	for _, leaf := range plan.Leaves {
		e.Rows = max(e.Rows, leaf.Rows)
		measures := leaf.Measures()
		if len(measures) == 0 {
			e.Leaves = append(e.Leaves, explainedLeaf{planNode: leafNode(leaf, "Values Scan"), Name: leaf.Name, SQL: leaf.SQL, Kind: "public rows", Source: "the policy alone", Cost: "nothing", Errors: []string{"none"}})
			continue
		}
		for i, m := range measures { // a leaf that is read from several measures has an entry for each
			one := explainLeaf(plan, leaf, m, queries[m])
			if i == 0 {
				one.Mix = mixTexts(plan, leaf)
			}
			one.scanned(queries, m, shown)
			e.Leaves = append(e.Leaves, one)
		}
	}
	errors := columnErrors(plan)
	for i, c := range plan.Columns {
		e.Columns = append(e.Columns, explainedColumn{Name: c.Name, Type: c.Type.Name(), Error: errors[i]})
		e.Width += widthOfType(c.Type)
	}
	if len(plan.Columns) == 0 {
		e.errors = errorParts(plan, nil)
	}
	if d := plan.Outer.Direct; d != nil && d.Limit >= 0 {
		e.Rows = int(min(int64(e.Rows), d.Limit))
	}
	e.Ways = explainWays(plan)
	return e
}

// scanned says with which others a measure is read in one scan, whose query is beside the first of them.
func (l *explainedLeaf) scanned(queries []rewrite.Query, measure int, shown map[int]string) {
	q := queries[measure]
	if !q.Valid() || len(q.Measures()) == 1 {
		return
	}
	for other, leaf := range shown {
		if other != measure && queries[other].Beside(q) {
			l.Scan = fmt.Sprintf("in that of %s, as measure %d", leaf, q.Number())
			l.Bound, l.Query, l.Arguments = "", "", nil
			return
		}
	}
	shown[measure] = l.Name
	l.Scan = fmt.Sprintf("its rows are read once for %d measures, of which this is %d", len(q.Measures()), q.Number())
}

func outerText(plan *plans.Plan) string {
	if plan.Outer.Direct != nil {
		return "computed by the proxy from released values; costs nothing"
	}
	return "run in the sandbox on released values; costs nothing"
}

// sourceText says where the numbers of a measure come from.
func sourceText(m *plans.Measure) string {
	switch alarms := m.Reads() == plans.EachQuestion; {
	case m.Held && m.HeldID == 0:
		return "the numbers of the keys that are found first"
	case m.Held && alarms:
		return "your run of alarms " + m.Name
	case alarms:
		return "a new run of alarms, bought by this query"
	case m.Held:
		return "release " + m.Name + ", which you have paid for"
	case m.Refines():
		return "release " + m.Name + ", which you have paid for, refined"
	case m.Declared != nil:
		return "release " + m.Name + ", bought by this query"
	case mechanisms.Is[*mechanisms.Choice](m.Spec):
		return "a fresh choice"
	case m.Kind == "range":
		return "a new range release, bought by this query"
	}
	return "a fresh count"
}

func explainLeaf(plan *plans.Plan, leaf *plans.Leaf, measure int, q rewrite.Query) explainedLeaf {
	m := plan.Measures[measure]
	e := explainedLeaf{planNode: leafNode(leaf, "Aggregate"), Name: leaf.Name, SQL: leaf.SQL, Table: m.Table.Schema + "." + m.Table.Name, Measure: m.Name, Kind: m.Kind, Why: m.Why}
	e.Relation, e.TotalCost = m.Table.Name, priced(m.Cost)
	e.Source = sourceText(m)
	contribution := m.Contribution()
	e.Mechanism = MechanismText(m)
	spec := m.Paid()
	of := ""
	if weighted(m.Spec.Counts().Strategy) {
		of = " of the weighted sums"
	}
	e.Sensitivity = fmt.Sprintf("L1 %d, L2 %s%s (%s, at most %s)", spec.Sensitivity(contribution).L1, root(spec.L2Squared(contribution)), of, contribution.Neighbors, boundText(contribution))
	if derived.IsLaddered(m.Table) {
		norm := "L1"
		if derived.BySquares(m.Table) { // its shares come to more in L1
			norm = "L2"
		}
		e.Sensitivity = fmt.Sprintf("%s 1 share, which is all that a %s has (%s)", norm, m.Table.Dataset.Unit.Name, contribution.Neighbors)
	}
	if mechanisms.Is[*mechanisms.Choice](m.Spec) && m.Spec.Spread() > 0 {
		e.Sensitivity = fmt.Sprintf("one %s moves one candidate's score by at most %d more than another's (%s, at most %s)", m.Table.Dataset.Unit.Name, m.Spec.Spread(), contribution.Neighbors, boundText(contribution))
	}
	e.Cost = m.Cost.String()
	if m.Held {
		e.Cost, e.TotalCost = "nothing", "0"
	}
	e.Errors = leafErrors(plan, leaf, measure)
	if q.Valid() {
		e.Query, e.Arguments = sent(q)
		if len(q.Proven()) > 0 {
			e.Bound = "the query bounds each unit's rows; where a unique constraint proves the bound in its own snapshot, it runs without"
		}
	}
	return e
}

// leafNode is the node of a leaf below the outer query's.
func leafNode(leaf *plans.Leaf, kind string) planNode {
	n := planNode{Type: kind, Relationship: "Outer", Alias: leaf.Name, StartupCost: "0", TotalCost: "0", Rows: leaf.Rows}
	for _, c := range leafColumns(leaf) {
		n.Width += widthOfType(c.Type)
	}
	return n
}

func boundText(c mechanisms.Contribution) string {
	if c.Groups > 0 {
		return fmt.Sprintf("%d group%s a unit with %d row%s in each", c.Groups, plural(int(c.Groups)), c.PerGroup, plural(int(c.PerGroup)))
	}
	text := fmt.Sprintf("%d row%s a unit", c.Rows, plural(int(c.Rows)))
	if c.PerGroup > 0 && c.PerGroup < c.Rows {
		text += fmt.Sprintf(", %d in a group", c.PerGroup)
	}
	return text
}

// aboveText is for sessions whose errors of totals bound what is above their clamps.
func aboveText(plan *plans.Plan) string {
	if plan.CoversAll {
		return ", and what may be above that"
	}
	return ""
}

// leafErrors gives, per count, the half-widths over the leaf's rows that are read from a measure.
func leafErrors(plan *plans.Plan, leaf *plans.Leaf, measure int) []string {
	var lines []string
	confidence := plan.Confidence
	if m := plan.Measures[measure]; mechanisms.Is[*mechanisms.Alarm](m.Spec) {
		return []string{fmt.Sprintf("an answer is right where the count is at least %d away from its threshold, at %s", m.Spec.Margin(confidence), percent(confidence))}
	}
	if leaf.Synthetic != nil {
		return []string{"none is promised of made-up rows"}
	}
	for _, c := range leaf.Counts {
		widest, together, rows := int64(-1), int64(0), rowsOf(c, measure)
		for _, run := range c.Runs {
			if !readsFrom(&run, measure) || len(run.Spans) == 0 {
				continue
			}
			if run.Selected != nil {
				lines = append(lines, c.Name+": "+pickText(run.Selected, "at "+percent(confidence)))
				continue
			}
			if run.Ladder != nil {
				lines = append(lines, c.Name+": "+clampText(plan.OffByClamp(&run), &run, plan))
				continue
			}
			widest = max(widest, runWidth(plan, &run, confidence))
			if each, err := mechanisms.NewConfidence(1 - (1-confidence.Float())/float64(rows)); err == nil && run.Mix != nil {
				together = max(together, runWidth(plan, &run, each))
			} else if err == nil {
				together = max(together, widest, plan.Measures[measure].Spec.Only(run.Counter).Error(widestSpans(run.Spans), each).HalfWidth)
			}
		}
		if widest < 0 {
			continue
		}
		unit := c.Unit
		if unit == nil {
			unit = big.NewRat(1, 1)
		}
		in := func(n int64) string { return figure(new(big.Rat).Mul(unit, new(big.Rat).SetInt64(n))) }
		line := fmt.Sprintf("%s: ±%s a value at %s", c.Name, in(widest), percent(confidence))
		if sum := summedIn(c, measure, plan.Measures[measure]); sum != (mechanisms.Bound{Low: 0, High: 1}) {
			line += fmt.Sprintf(", of a sum of %s from %s to %s", numbersOf(unit), scaled(unit, sum.Low), scaled(unit, sum.High))
		}
		if rows > 1 {
			line += fmt.Sprintf(", ±%s for all %d values together", in(together), rows)
		}
		lines = append(lines, line)
	}
	return together(lines)
}

// numbersOf names what is added up.
func numbersOf(unit *big.Rat) string {
	if unit.Cmp(big.NewRat(1, 1)) == 0 {
		return "whole numbers"
	}
	return "numbers"
}

// scaled is n units.
func scaled(unit *big.Rat, n int64) string {
	x := new(big.Rat).Mul(unit, new(big.Rat).SetInt64(n))
	if x.IsInt() {
		return x.Num().String()
	}
	text := strings.TrimRight(x.FloatString(12), "0")
	return strings.TrimSuffix(text, ".")
}

// together gives what is said of several columns once: "n1: …" and "n2: …" become "n1, n2: …".
func together(lines []string) (out []string) {
	at := map[string]int{}
	for _, line := range lines {
		name, text, _ := strings.Cut(line, ": ")
		if i, said := at[text]; said {
			names, _, _ := strings.Cut(out[i], ": ")
			out[i] = names + ", " + name + ": " + text
			continue
		}
		at[text] = len(out)
		out = append(out, line)
	}
	return out
}

// rowsOf is the number of a column's rows that are read from a measure.
func rowsOf(c plans.CountColumn, measure int) (rows int) {
	for _, run := range c.Runs {
		if readsFrom(&run, measure) {
			rows += len(run.Spans)
		}
	}
	return rows
}

// maxHalfWidths bounds the rows whose half-widths are computed: those with the largest variances, among which the
// largest half-width is.
const maxHalfWidths = 8

// widestHalfWidth is the largest half-width over the rows of a count.
func widestHalfWidth(spec mechanisms.Spec, rows [][]mechanisms.Span, confidence mechanisms.Confidence) int64 {
	errors := spec.Errors(confidence)
	type row struct {
		spans    []mechanisms.Span
		variance float64
	}
	var looked []row
	for r := 0; r < len(rows); r += errors.Every(len(rows)) {
		looked = append(looked, row{rows[r], errors.Variance(rows[r])})
	}
	slices.SortStableFunc(looked, func(a, b row) int { return cmp.Compare(b.variance, a.variance) })
	var widest int64
	for i, r := range looked {
		if i == maxHalfWidths {
			break
		}
		widest = max(widest, errors.Of(r.spans).HalfWidth)
	}
	return widest
}

// widestSpans are the spans that sum the most cells.
func widestSpans(rows [][]mechanisms.Span) []mechanisms.Span {
	best, most := rows[0], -1
	for _, spans := range rows {
		if n := mechanisms.CellsIn(spans); n > most {
			best, most = spans, n
		}
	}
	return best
}

// sent is a query as EXPLAIN shows it, with its arguments: lists of many numbers by their first ones. What is looked up
// beside other columns goes to the database as such lists (docs/adr/0146), of 80,000 numbers
//
//	'[3,7,12,13,21,22,30,31, … 80000 numbers]'
func sent(q rewrite.Query) (sql string, args []any) {
	for _, a := range q.Args() {
		if text, ok := a.(string); ok {
			a = shortened(text)
		}
		args = append(args, a)
	}
	return shortened(q.SQL()), args
}

const shownOfList = 8

var (
	longList = regexp.MustCompile(`(?:-?[0-9]+|NULL)(?:, ?(?:-?[0-9]+|NULL)){63,}`)
	longBits = regexp.MustCompile(`[01]{257,}`) // of which each says whether a number is in a list
)

func shortened(text string) string {
	text = longList.ReplaceAllStringFunc(text, func(list string) string {
		items := strings.SplitN(list, ",", shownOfList+1)
		return strings.Join(items[:shownOfList], ",") + fmt.Sprintf(", … %d numbers", strings.Count(list, ",")+1)
	})
	return longBits.ReplaceAllStringFunc(text, func(bits string) string {
		return bits[:shownOfList] + fmt.Sprintf("… %d bits", len(bits))
	})
}

// weighted reports whether a strategy observes more than plain sums of cells.
func weighted(y mechanisms.Strategy) bool {
	return y.Kind > mechanisms.Tree || y.Weights != nil
}

// root writes √n, as a whole number where it is one, and rounded where n is long.
func root(n *big.Int) string {
	if r := new(big.Int).Sqrt(n); new(big.Int).Mul(r, r).Cmp(n) == 0 {
		return r.String()
	}
	if n.Cmp(big.NewInt(1_000_000)) >= 0 {
		f, _ := new(big.Float).SetInt(n).Float64()
		return fmt.Sprintf("%.1f", math.Sqrt(f))
	}
	return "√" + n.String()
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
