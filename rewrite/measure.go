package rewrite

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// The SQL of a measure: the cells and counts, over the rows of its table (source.go) that satisfy the predicate.

// maxTexts stays below the 65535 arguments that PostgreSQL's protocol can carry.
const maxTexts = 60000

// checkMeasure refuses a measure that no plan has: SQL for it might count otherwise than it says.
func checkMeasure(m *plans.Measure) error {
	switch {
	case m == nil || m.Table == nil || m.Table.Dataset == nil:
		return errors.New("rewrite: a measure without a table")
	case m.Table.Public:
		return errors.New("rewrite: a measure of a public table")
	case len(m.Counters) == 0:
		return errors.New("rewrite: a measure without counters")
	case m.Open != nil && !m.Finding.Valid():
		return errors.New("rewrite: keys that are found for no cost")
	case m.Open != nil && (m.Table.Derived != nil || m.Table.Dataset.Unit.Row || !slices.Contains(m.Table.Columns, m.Open) || m.Open.Open == nil):
		return errors.New("rewrite: keys of a column that is not open")
	}
	for _, t := range m.Table.Base() {
		switch {
		case t.UnitColumn == "" && t.Via == nil && !t.Dataset.Unit.Row:
			return errors.New("rewrite: a table that does not name its unit")
		case !t.Dataset.Unit.Row && t.MaxRowsPerUnit < 1:
			return errors.New("rewrite: a table without a bound of rows per unit")
		case t.Dataset.Unit.Row && !onlyMatched(m.Table):
			return errors.New("rewrite: a derived table over rows that are units")
		}
	}
	if m.Open == nil && m.Table.AnyRows && m.PerGroup != 1 {
		return errors.New("rewrite: a measure by rows of which a unit may have any number")
	}
	if !checkLaddered(m) || !apart(m) {
		return errors.New("rewrite: another question to a ladder than its shares")
	}
	if m.Sums != nil && len(m.Sums) != len(m.Counters) {
		return errors.New("rewrite: sums of another number than the counters")
	}
	for i, c := range m.Grain {
		if slices.Contains(m.Grain[:i], c) {
			return errors.New("rewrite: a grain that names a column twice")
		}
	}
	if err := checkCuts(m); err != nil {
		return err
	}
	if v := m.Window; v != nil && (m.Table.Appends == nil || m.Table.Appends.Column != v.Column || v.From < 0 || v.To <= v.From || v.To > v.Column.Domain.Regular) {
		return errors.New("rewrite: a window of another column than rows are added by")
	}
	return checkGroups(m)
}

// cellsInRuns returns how many cells the runs of a grouping have, or -1 if one is of no class of it.
func cellsInRuns(g plans.Grouping) (cells int) {
	for _, r := range g.Runs {
		if r.Length < 1 || r.Length > g.Cells || r.Class < -1 || int(r.Class) >= g.Classes {
			return -1
		}
		cells += r.Length
	}
	return cells
}

// checkGroups holds the groups against the grain where they bound anything.
func checkGroups(m *plans.Measure) error {
	if m.Table.MaxGroups == 0 {
		return nil
	}
	at := 0
	for _, g := range m.Groups {
		combinations := 1
		for range g.Columns {
			if at >= len(m.Grain) || m.Grain[at].Domain == nil {
				return errors.New("rewrite: groups of other columns than the grain")
			}
			combinations *= m.Size(at)
			at++
		}
		if g.Columns < 1 || combinations != g.Cells || g.Runs != nil && cellsInRuns(g) != g.Cells || g.Runs == nil && g.Classes != g.Cells {
			return errors.New("rewrite: groups of other cells than the grain's")
		}
	}
	if at != len(m.Grain) {
		return errors.New("rewrite: groups of other columns than the grain")
	}
	return nil
}

// statement writes the query of a measure, or that of several (joint.go), which takes for proven what is assumed.
func statement(list []*plans.Measure, d dialect.Dialect, a assumed) (text, error) {
	w := writerOf(list[0], d, a)
	if len(list) > 1 {
		return w.finished(w.joint(list))
	}
	return w.finished(w.measure(list[0]))
}

// measure writes the query of one measure.
func (w *writer) measure(m *plans.Measure) string {
	if m.Open != nil {
		return w.discovery(m)
	}
	bounded := w.groupsBounded(m)
	if bounded && countsAlone(m) {
		return w.groupedCounts(m)
	}
	if w.countsRows(m) {
		return w.unitCounts()
	}
	asStored := w.asStored(m)
	if asStored {
		m = hoisted(m)
	}
	if asStored && w.tallies(m) {
		return w.tallied(m)
	}
	w.marginal = w.marginalOf(m)
	items, keys := w.counted(m)
	var conditions []string
	switch {
	case m.Where != nil && asStored:
		w.where = w.onStored(m.Where)
	case !bounded:
		conditions = w.conditions(m.Where)
	}
	if asStored {
		w.asIs = w.settledColumns(m)
	}
	rows := w.source
	if bounded {
		rows = func() (from string, bound []string) { return w.groupedRows(m) }
	}
	from, bound := rows()
	return selected(items, from, append(bound, conditions...), keys)
}

// counted writes the cells and counts of a measure, of normalised rows s, and what they are grouped by.
func (w *writer) counted(m *plans.Measure) (items, keys []string) {
	for i, c := range m.Grain {
		n := w.use(c)
		items = append(items, w.output(w.piece(m, i, n), "c"+strconv.Itoa(i+1)))
		if c.Domain != nil && c.Domain.Single() && (m.Cuts == nil || m.Cuts[i] == nil) {
			keys = append(keys, n)
		} else {
			keys = append(keys, strconv.Itoa(i+1))
		}
	}
	for i := range m.Counters {
		count, summed := w.counter(m, i)
		items = append(items, w.outputCounter(count, summed, "k"+strconv.Itoa(i+1)))
	}
	return items, keys
}

// selected writes a query of items from rows called s.
func selected(items []string, from string, conditions, keys []string) string {
	sql := "SELECT " + strings.Join(items, ",\n       ") + "\nFROM " + from + " AS s" + where("", conditions)
	if len(keys) > 0 {
		sql += "\nGROUP BY " + strings.Join(keys, ", ")
	}
	return sql
}

// conditions are a predicate, where there is one.
func (w *writer) conditions(p predicate.Pred) []string {
	if p == nil {
		return nil
	}
	return []string{w.predicate(p)}
}

// only says which rows are read, and filter which an aggregate sees.
func (w *writer) only(p predicate.Pred) string {
	if p == nil {
		return ""
	}
	return " WHERE " + w.predicate(p)
}

func (w *writer) filter(p predicate.Pred) string {
	if p == nil {
		return ""
	}
	return " FILTER (WHERE " + w.predicate(p) + ")"
}

// finished is the text of a query, if it could be written.
func (w *composed) finished(sql string) (text, error) {
	if w.err == nil && len(w.seen) > maxTexts {
		w.fail("the query needs more than %d constants", maxTexts)
	}
	if w.err != nil {
		return text{}, w.err
	}
	return text{sql, w.args, w.reads, w.equals}, nil
}

// MaxSQL bounds a text, in bytes beside its constants (docs/adr/0195): what an engine parses, binds and optimises grows
// with a statement's text, not with a domain. Lists of cells, of numbers and of texts are constants, which have bounds
// of their own and are read once.
const MaxSQL = 64 << 10

// MaxConstants bounds a text with all its constants: a list of 2^19 cells, or of 2^17 rows that are looked up.
const MaxConstants = 4 << 20

// ErrTooLong says that a text has so many parts that it is not written to its end: each would be longer than MaxSQL
// allows them to be together.
var ErrTooLong = errors.New("rewrite: the SQL of a question is longer than 64 KiB")

// besideConstants is how long a text is without the digits of its numbers and what is quoted as a constant.
func besideConstants(sql string) (n int) {
	quote := byte(0)
	for i := range len(sql) {
		switch c := sql[i]; {
		case quote == '\'':
			if c == quote {
				quote = 0
			}
			continue
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"' || c == '`'):
			quote = c
		case quote == 0 && '0' <= c && c <= '9':
			continue
		}
		n++
	}
	return n
}

// output names a value of the answer and gives it the type that the backend expects.
func (w *composed) output(expression, name string) string {
	kind := "int8"
	if strings.HasPrefix(name, "c") {
		kind = "int4"
	}
	return w.cast(expression, kind) + " AS " + name
}

// outputCounter names a counter's value, of which only what rows add up to has not yet the type that the backend
// expects.
func (w *composed) outputCounter(count string, summed bool, name string) string {
	if summed {
		return w.output(w.cut(count), name)
	}
	return count + " AS " + name
}

// where writes the conditions under which rows are read, below a margin.
func where(margin string, conditions []string) string {
	if len(conditions) == 0 {
		return ""
	}
	return "\n" + margin + "WHERE " + strings.Join(conditions, "\n"+margin+"  AND ")
}

// relation writes a table's name in full.
func (w *composed) relation(t *policy.Table) string {
	if w.dialect.Ready {
		return w.held(copyName(t))
	}
	if t.View.Text != "" {
		return "(" + w.view(t) + "\n)" // on a line of its own: the text may end with a comment
	}
	schema, name := Relation(t.Source, w.dialect)
	return dialect.Fill(w.dialect.Relation, w.name(schema), w.name(name))
}

// held writes the name of a table of a snapshot in full.
func (w *composed) held(name string) string {
	return dialect.Fill(w.dialect.Relation, dialect.QuoteName(w.dialect.Schema), dialect.QuoteName(name))
}

// view is the data owner's own SELECT, which one parser has found to be one.
func (w *composed) view(t *policy.Table) string {
	if !t.View.Trusted {
		w.fail("a table that is a SELECT over others")
	}
	return t.View.Text
}

// Relation returns the schema and name of a base relation in a database of that dialect. A source without a schema lies
// in the dialect's default schema.
func Relation(s policy.Source, d dialect.Dialect) (schema, name string) {
	if s.Schema == "" {
		return d.Schema, s.Name
	}
	return s.Schema, s.Name
}

// at is the place of a column in the writer's table.
func (w *columns) at(c *policy.Column) int {
	at := slices.Index(w.table.Columns, c)
	if at < 0 || c.Domain == nil || c.Table != w.table {
		w.fail("a column that the measure's table does not have")
		return 0
	}
	return at
}

// use notes that the query reads a column and returns its normalised value's name, or, of rows as they are stored, how
// the value is normalised.
func (w *writer) use(c *policy.Column) string {
	at := w.at(c)
	if w.err != nil {
		return "NULL"
	}
	if !slices.Contains(w.used, c) && (!w.onRaw || w.looksUp(c)) {
		w.used = append(w.used, c)
	}
	if w.onRaw {
		return w.value(c)
	}
	return w.alias + ".n" + strconv.Itoa(at+1)
}

// useKey notes that the query reads a join key and returns its name.
func (w *writer) useKey(k *policy.Column) string {
	at := slices.Index(w.table.Keys, k)
	if at < 0 {
		w.fail("a key that the table does not have")
		return "NULL"
	}
	if k.Unit {
		return w.alias + ".u"
	}
	if !slices.Contains(w.usedKeys, k) {
		w.usedKeys = append(w.usedKeys, k)
	}
	return w.alias + ".j" + strconv.Itoa(at+1)
}

// writer writes the rows of one table, under an alias, and notes which of its columns and keys are read of them.
type writer struct {
	columns
	alias    string
	open     *policy.Column // whose values are read as they are; nil means none's
	used     []*policy.Column
	usedKeys []*policy.Column
	where    string    // a condition on rows as they are stored (stored.go)
	marginal *marginal // that is read in the place of the rows; nil means these are
	copying  bool      // a snapshot is written: open columns are texts
	packs    []Field   // of the rows that are put in order for one, where some hold several columns
}

// columns writes the columns of one table, as they are stored or as they are normalised.
type columns struct {
	cells
	table *policy.Table
	end   *end                      // a part of a count is written
	asIs  []*policy.Column          // whose stored values are their normalised ones in every row that counts (total.go)
	onRaw bool                      // predicates are written for rows as they are stored
	tally map[*policy.Column]string // the names of those that a tally has
}

// cells writes what is calculated of normalised values: cells, pieces, limbs and numbers on a grid.
type cells struct{ *composed }

// composed is what has been written of one query, in the words of its dialect. The first failure is kept in err; what
// is written after it is void.
type composed struct {
	dialect dialect.Dialect
	proven  []*policy.Table
	unique  []derived.Unique
	ranks   rankProof
	args    []any
	reads   []string // described at text, as equals is
	equals  []string
	seen    map[string]string // each text, as it is written
	depth   int
	window  *plans.Window // rows outside of which the caller leaves out
	err     error

	numberings int  // of rows, that have been written
	allRows    bool // rows are read whatever bounds the policy has: a ladder's
}

// writer is one of the query for a table.
func (w *composed) writer(t *policy.Table, alias string) *writer {
	return &writer{columns: columns{cells: cells{w}, table: t}, alias: alias}
}

// newWriter is one of a query of its own.
func newWriter(d dialect.Dialect, t *policy.Table, alias string) *writer {
	return (&composed{dialect: d, seen: map[string]string{}}).writer(t, alias)
}

// over is a writer of the same query for another table.
func (w *writer) over(t *policy.Table, alias string) *writer {
	return w.composed.writer(t, alias)
}

// tooLong is for what is not written because it would be longer than MaxSQL.
func (w *composed) tooLong() {
	if w.err == nil {
		w.err = ErrTooLong
	}
}

func (w *composed) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("rewrite: "+format, args...)
	}
}
