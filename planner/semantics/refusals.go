package semantics

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// What an expression may not be.
var (
	UnknownColumn = refuse.New("unknown-column", "42703", `column "%s" does not exist`, "SELECT * FROM dp.columns lists the columns.", `SELECT count(*) FROM people WHERE agee > 3`)
	NoOperator    = refuse.New("unknown-operator", "42883", `operator does not exist: %s`, "Casts may help.", `SELECT count(*) FROM people WHERE age ~~~ 3`)
	NotAllowed    = refuse.New("function-not-permitted", "42501", `function %s is not permitted`, "Only functions that read nothing but their arguments are answered.", `SELECT pg_read_file('x')`)
	WindowIn      = refuse.New("window-misplaced", "42P20", "window functions are not allowed in %s", "Compute them in a sub-query in FROM.", `SELECT count(*) FROM people WHERE row_number() OVER () > 3`)
	rowLengths    = refuse.New("row-lengths", "42601", "unequal number of entries in row expressions", "Compare rows of as many columns.", `SELECT count(*) FROM people WHERE (age, kids) < (30, 2, 1)`)
	notBoolean    = refuse.New("not-boolean", "42804", "argument of %s must be type boolean", "Compare the value with something.", `SELECT count(*) FROM people WHERE age`)
	Evaluation    = refuse.New("evaluation-error", "22000", "%s", "", `SELECT count(*) FROM people WHERE 1 / age > 3`)
	OpenColumn    = refuse.New("open-column", "DP002", `the values of column "%s" are not declared: rows can be grouped by it, and it can be compared with constants by =, <>, IN and LIKE`, "Write column = 'value', column IN (…) or column LIKE '…', or GROUP BY it and put the condition into HAVING or an outer SELECT.", "")
	anyText       = refuse.New("any-text", "DP002", `nothing is known of the texts of %[1]s but what is asked of each by itself, with constants`, "Ask by LIKE, =, <>, IN, IS NULL, starts_with, left, right, substring, split_part, lower, upper, trim, length or strpos: count(*) FILTER (WHERE %[1]s LIKE '%%word%%').", `SELECT count(*) FROM visits WHERE note > 'a'`)
	textQuestion  = refuse.New("text-question", "DP002", `this cannot be asked of a text: %s`, "Ask for less of it: LIKE, =, IN and starts_with with shorter constants, left(column, n), substring(column, from, n).", `SELECT count(*) FROM visits WHERE note LIKE 'a\'`)
	foldedText    = refuse.New("folded-text", "DP002", `%s of a text is answered for constants of ASCII alone: how other letters change their case differs from server to server`, "Use LIKE or = without lower, upper and ILIKE, or constants of the letters a to z.", `SELECT count(*) FROM visits WHERE note ILIKE '%é%'`)
	NoForm        = refuse.New("no-private-form", "DP002", "%s over private rows has no private form", "Use comparisons, IN, BETWEEN, LIKE, CASE and functions of the declared columns.", `SELECT count(*) FROM people WHERE ROW(age, sex) IS NULL`)
	collation     = refuse.New("collation", "DP002",
		`texts of private rows are compared by their bytes, and not by the collation "%s"`, `Leave COLLATE out, or write COLLATE "C", which compares so: cells do in any case.`, `SELECT count(*) FROM people WHERE sex COLLATE "en_US" = 'f'`)
	Unsupported = refuse.New("unsupported-expression", "DP002", "%s", "This form is known to PostgreSQL but has no evaluation on public cells yet; write it with casts, date_trunc, EXTRACT or CASE.", `SELECT count(*) FROM people WHERE to_timestamp(sex, 'YYYY') > now()`)
	RowSubquery = refuse.New("subquery-on-rows", "DP002", "this sub-query in a condition on private rows is not answered", "One that reads no row around it is answered first. One that does is x IN (SELECT y FROM …), EXISTS, or an aggregate: day >= (SELECT max(day) FROM …), not day >= ALL (SELECT day FROM …).", `SELECT count(*) FROM visits v WHERE day >= ALL (SELECT day FROM visits w WHERE w.person_id = v.person_id)`)
	offGrid     = refuse.New("off-grid-expression", "DP002",
		`this expression is not constant within the steps of column "%[1]s"`, `Compare %[1]s by itself with constants, in a key by CASE WHEN %[1]s < … THEN … END, or use values that fall on its steps of %[2]s.`, `SELECT count(*) FROM people WHERE income * income > 100`)
	zoneOffGrid   = refuse.New("off-grid-zone", "DP002", `the clock of time zone "%[1]s" does not keep to the steps of column "%[2]s"`, `Its offset from UTC is no whole number of steps of %[3]s: SET timezone to one whose offset is, or name one in AT TIME ZONE; or compare the bare column with constants.`, `SELECT count(*) FROM people WHERE date_trunc('day', seen AT TIME ZONE 'Asia/Kathmandu') = '2024-03-23'`)
	DomainMissing = refuse.New("open-domain", "DP002", `column "%s" has no declared domain`, "The data owner declares a domain in the policy.", "")
)

// Refusals are all of this package, in the order of the documentation.
var Refusals = []*refuse.Reason{UnknownColumn, NoOperator, NotAllowed, WindowIn, rowLengths, notBoolean, Evaluation,
	OpenColumn, anyText, textQuestion, foldedText, NoForm, Unsupported, RowSubquery, collation, offGrid, zoneOffGrid, DomainMissing}

// What is shown of a plan to people: notices, each once, and the steps of columns in them ("1 day", "0.01").

// StepOf writes the step of a column for people.
func StepOf(c *policy.Column) string {
	d := c.Domain
	if BetweenMoments(c) {
		step := d.Min.(int64)
		return StepText(&policy.Domain{Type: policy.TimestampT, Min: policy.Timestamp(step), Max: policy.Timestamp(d.Max.(int64)), Step: d.Step})
	}
	return StepText(d)
}

// BetweenMoments tells a computed column of what lies between two moments, in microseconds.
func BetweenMoments(c *policy.Column) bool {
	if c.Domain == nil {
		return false
	}
	_, whole := c.Domain.Min.(int64)
	operands := derived.OperandsOf(c)
	return whole && len(operands) > 0 && isInstant(operands[0].Type)
}

// StepText writes the step of an ordered domain for people.
func StepText(d *policy.Domain) string {
	switch d.Min.(type) {
	case policy.Date:
		return Plural(d.Step.Whole, "day")
	case policy.Timestamp, policy.Timestamptz:
		for _, u := range []struct {
			name   string
			micros int64
		}{{"day", 86_400_000_000}, {"hour", 3_600_000_000}, {"minute", 60_000_000}, {"second", 1_000_000}, {"microsecond", 1}} {
			if d.Step.Whole%u.micros == 0 {
				return Plural(d.Step.Whole/u.micros, u.name)
			}
		}
	case int64:
		return predicate.Text(d.Step.Whole)
	}
	return predicate.Text(predicate.CanonicalValue(d.Step.Decimal))
}

// Plural counts units for people: 1 row, 2 rows.
func Plural(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return predicate.Text(n) + " " + unit + "s"
}

// Notes are what the NOTICE will say, each once.
type Notes []string

// Add adds a notice, if it is not there, in whatever case of letters.
func (n *Notes) Add(text string) {
	for _, have := range *n {
		if strings.EqualFold(have, text) {
			return
		}
	}
	*n = append(*n, text)
}

// AddAll adds several.
func (n *Notes) AddAll(texts []string) {
	for _, text := range texts {
		n.Add(text)
	}
}

// PlaceOf is the position of the innermost part that fails so.
func (e *Expr) PlaceOf(err error) int {
	for _, a := range e.Args {
		if inner := scalar.Fails(a.Expr); inner != nil && inner.Error() == err.Error() {
			return a.PlaceOf(err)
		}
	}
	return e.Pos
}

// FailsOnRows is the error with which e ends on every row, as scalar.Fails tells it. What the statement itself chooses
// (CASE, NULLIF) may be NULL on all of them, so that what reads it need not fail. That of an average may, too, where
// there is nobody, and is an error all the same.
func (e *Expr) FailsOnRows() error {
	if e.chooses() {
		return e.Args[0].FailsOnRows()
	}
	if e.holdsChoice() {
		return nil
	}
	return scalar.Fails(e.Expr)
}

// chooses tells CASE and NULLIF of the statement's own, which are no constants.
func (e *Expr) chooses() bool {
	return !e.Formula && !e.IsConstant() && (e.Op == "case0" || e.Op == "case1" || e.Op == "nullif")
}

func (e *Expr) holdsChoice() bool {
	return !e.Formula && (e.chooses() || slices.ContainsFunc(e.Args, (*Expr).holdsChoice))
}

// FailingAlways evaluates the constant parts that every row evaluates, those that depend on the session among them.
func (e *Expr) FailingAlways() *refuse.Refusal {
	if e.IsConstant() {
		_, refusal := e.Value(nil)
		return refusal
	}
	switch e.Op {
	case "and", "or", "case0", "case1", "coalesce":
		return e.Args[0].FailingAlways()
	}
	for _, a := range e.Args {
		if refusal := a.FailingAlways(); refusal != nil {
			return refusal
		}
	}
	return nil
}
