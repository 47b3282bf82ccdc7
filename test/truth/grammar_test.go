package truth

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// grammar writes statements over a schema, weighted like what BI tools and reports send: mostly one table or a join
// along keys, one to three keys, a few aggregates, one or two conditions, a wrapper around it in one of five.
type grammar struct {
	dice
	s     *schema
	names int // aliases given out
}

// role says what an output is, and so what it is in a group in which nobody is.
type role int

const (
	keyRole    role = iota
	countRole       // 0 in an empty group
	valueRole       // NULL or 0 in an empty group
	windowRole      // made of other groups too
)

// output is one column of a select list.
type output struct {
	sql, name string
	role      role
	truth     string   // what PostgreSQL is asked instead, where the notice says that the answer is of another thing
	of        column   // whose variance or deviation it is
	pair      []column // whose product is added up
	equals    bool     // a key of which equal values have several texts: an interval
	found     bool     // a key whose groups are those of the texts that enough people have
	values    string   // what a DISTINCT aggregate of declared values is of, in PostgreSQL's words
}

// statement is a SELECT in parts, so that a failing one can be made smaller by leaving parts out.
type statement struct {
	text    string   // one that is not in parts
	truth   string   // what PostgreSQL is asked instead of text; empty means the same
	with    string   // common table expressions before it
	outs    []output // keys first
	from    string
	where   []string
	there   string    // the rest of known[1], where what is before NOT IN may be NULL
	known   [2]string // a part of it, and what PostgreSQL is asked instead, where the notice says that keys that are NULL are nowhere
	sets    string    // ROLLUP, CUBE or nothing
	byName  bool      // GROUP BY 1, 2 instead of expressions
	having  string
	order   []string // of the outer select; its columns have names
	limit   int
	wrapper string // around it: %s is the statement, its columns have names
	fixed   bool   // the wrapper reads all columns: none may be left out
	// union are further statements with as many columns.
	union []*statement
}

func (s *statement) keys() (list []output) {
	for _, o := range s.outs {
		if o.role == keyRole {
			list = append(list, o)
		}
	}
	return list
}

// found reports whether a key's groups are those of texts that enough people have: others are in no group, and in
// totals over them.
func (s *statement) found() bool {
	return slices.ContainsFunc(s.outs, func(o output) bool { return o.found })
}

// grouped reports whether rows of the answer are groups, so that groups of the domain in which nobody is may be there.
func (s *statement) grouped() bool { return len(s.keys()) > 0 }

// stepped reports whether an output is of the steps of a domain instead of its values.
func (s *statement) stepped() bool {
	return slices.ContainsFunc(s.outs, func(o output) bool { return o.truth != "" })
}

func (s *statement) core(plain bool) string {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i, o := range s.outs {
		if i > 0 {
			b.WriteString(", ")
		}
		if plain && o.truth != "" {
			o.sql = o.truth
		}
		b.WriteString(o.sql + " AS " + o.name)
	}
	b.WriteString(" FROM " + s.from)
	if len(s.where) > 0 {
		where := strings.Join(s.where, " AND ")
		if plain && s.known[0] != "" {
			where = strings.ReplaceAll(where, s.known[0], s.known[1])
		}
		b.WriteString(" WHERE " + where)
	}
	if keys := s.keys(); len(keys) > 0 {
		var list []string
		for i, k := range keys {
			if s.byName {
				list = append(list, fmt.Sprint(i+1))
			} else {
				list = append(list, k.sql)
			}
		}
		if s.sets == "GROUPING SETS" {
			b.WriteString(" GROUP BY GROUPING SETS ((" + strings.Join(list, ", ") + "), (" + list[0] + "), ())")
		} else if s.sets != "" {
			b.WriteString(" GROUP BY " + s.sets + " (" + strings.Join(list, ", ") + ")")
		} else {
			b.WriteString(" GROUP BY " + strings.Join(list, ", "))
		}
	}
	if s.having != "" {
		b.WriteString(" HAVING " + s.having)
	}
	return b.String()
}

// sql is the statement; plain as PostgreSQL is asked it: without its LIMIT.
func (s *statement) sql(plain bool) string {
	if plain && s.truth != "" {
		return s.truth
	}
	if s.text != "" {
		return s.text
	}
	text := s.core(plain)
	for _, u := range s.union {
		text += " UNION ALL " + u.core(plain)
	}
	if s.wrapper != "" {
		text = fmt.Sprintf(s.wrapper, text)
	}
	text = s.with + text
	if len(s.order) > 0 {
		text += " ORDER BY " + strings.Join(s.order, ", ")
	}
	if s.limit > 0 && !plain {
		text += fmt.Sprint(" LIMIT ", s.limit)
	}
	return text
}

// literally is the statement of which PostgreSQL is asked what dpproxy is; nil means it is that already.
func (s *statement) literally() *statement {
	if s.known[0] == s.known[1] {
		return nil
	}
	c := *s
	c.known = [2]string{}
	return &c
}

// before is the statement of which PostgreSQL is asked what dpproxy is, but for what is before NOT IN.
func (s *statement) before() *statement {
	c := *s
	c.known[1] = s.known[0] + s.there
	return &c
}

// width is what the notice says of averages and variances of few rows, rarely of values that few rows have; about is an
// average or a variance, with its FILTER.
var (
	rarely  = regexp.MustCompile(`is of the declared values that more than (\d+) rows have`)
	width   = regexp.MustCompile(`are NULL where the count of their rows is within its own error, at most (\d+)`)
	shareOf = regexp.MustCompile(`^(?:percent_rank|cume_dist)\(\S+ WITHIN GROUP \([^)]*\)(.*)$`)
	about   = regexp.MustCompile(`^(?:round\()?(?:avg|var|stddev)\w*(\(.*)$`)
)

// largest returns the largest number that a notice says, or "" if it says none.
func largest(notice *regexp.Regexp, said []string) (found string) {
	for _, m := range notice.FindAllStringSubmatch(strings.Join(said, "\n"), -1) {
		if len(m[1]) > len(found) || len(m[1]) == len(found) && m[1] > found {
			found = m[1]
		}
	}
	return found
}

// clearOf is the statement with, for each average or variance, a last column that is NULL where it is of no more rows
// than the notice says, and with some DISTINCT aggregates of the values that more rows have than the notice says, which
// does not say of which it speaks: all of them first. It is empty if no notice says anything of these.
func (s *statement) clearOf(said []string) (list []*statement) {
	few := largest(rarely, said) != ""
	if largest(width, said) == "" && !few || s.text != "" {
		return nil
	}
	distinct := 0
	for _, o := range s.outs {
		if few && o.values != "" {
			distinct++
		}
	}
	for without := range 1 << distinct {
		if c := s.clearBut(said, without); c != nil {
			list = append(list, c)
		}
	}
	return list
}

// clearBut is one of them: without has a bit for each DISTINCT aggregate that stays as it is.
func (s *statement) clearBut(said []string, without int) *statement {
	rows, least := largest(width, said), largest(rarely, said)
	c := *s
	c.outs, c.union = slices.Clone(s.outs), slices.Clone(s.union)
	for i, o := range s.outs {
		stays := false
		if o.values != "" {
			stays, without = without&1 == 1, without>>1
		}
		if least != "" && o.values != "" && !stays {
			name, _, _ := strings.Cut(o.sql, "(")
			c.outs[i].truth = fmt.Sprintf("(SELECT %s(u) FROM (SELECT u FROM unnest(array_agg(%s)) AS u "+
				"WHERE u IS NOT NULL GROUP BY u HAVING count(*) > %s) AS q)", name, o.values, least)
		}
		if rows == "" {
			continue
		}
		if behind := s.behind(o, rows); behind != "" {
			c.outs = append(c.outs, output{sql: behind, name: "clear_" + o.name, role: windowRole})
		}
	}
	for i, u := range c.union {
		if c.union[i] = u.clearBut(said, 0); u.text != "" {
			return nil
		}
	}
	return &c
}

// behind is the column that says how clear an output is, where counts may be off by so many rows: whether an average
// has more, which digits of bit_and or bit_or few rows do not decide, and by −1 less these that all its rows are few.
func (s *statement) behind(o output, rows string) string {
	if m := s.few(o); m != "" {
		return "CASE WHEN count" + m + " > " + rows + " THEN 1 END"
	}
	m := digitwise.FindStringSubmatch(o.sql)
	if m == nil || o.role != valueRole {
		return ""
	}
	var digits []string
	for d := range 31 {
		digit := 1 << d
		digits = append(digits, fmt.Sprintf("CASE WHEN count(CASE WHEN %s & %d %s 0 THEN 1 END)%s BETWEEN 1 AND 2 * %s THEN 0 ELSE %[2]d END",
			m[2], digit, map[string]string{"and": "=", "or": "<>"}[m[1]], m[3], rows))
	}
	clear := strings.Join(digits, " + ")
	return "CASE WHEN count(" + m[2] + ")" + m[3] + " > " + rows + " THEN " + clear + " ELSE -1 - (" + clear + ") END"
}

// digitwise is an aggregate that is answered digit by digit: which, of what, and its FILTER.
var digitwise = regexp.MustCompile(`^bit_(and|or)\((?:DISTINCT )?([\w.]+)\)(.*)$`)

// few is what an average's or a variance's rows are counted by; empty means the output is neither.
func (s *statement) few(o output) string {
	if m := shareOf.FindStringSubmatch(o.sql); m != nil {
		return "(*)" + m[1]
	}
	if m := about.FindStringSubmatch(o.sql); m != nil && o.role == valueRole {
		return strings.TrimSuffix(m[1], ", 2)")
	}
	return ""
}

// smaller are the statements with one part less.
func (s *statement) smaller() (list []*statement) {
	if s.text != "" {
		return nil
	}
	add := func(change func(c *statement)) {
		c := *s
		c.outs, c.where, c.order, c.union = slices.Clone(s.outs), slices.Clone(s.where), slices.Clone(s.order), slices.Clone(s.union)
		change(&c)
		list = append(list, &c)
	}
	if s.wrapper != "" {
		add(func(c *statement) { c.wrapper, c.fixed, c.order, c.limit = "", false, nil, 0 })
	}
	if s.limit > 0 {
		add(func(c *statement) { c.limit = 0 })
	}
	if len(s.order) > 0 {
		add(func(c *statement) { c.order, c.limit = nil, 0 })
	}
	if s.having != "" {
		add(func(c *statement) { c.having = "" })
	}
	if s.sets != "" {
		add(func(c *statement) { c.sets = "" })
	}
	for i := range s.union {
		add(func(c *statement) { c.union = slices.Delete(c.union, i, i+1) })
	}
	for i := range s.where {
		add(func(c *statement) { c.where = slices.Delete(c.where, i, i+1) })
	}
	if !s.fixed && len(s.union) == 0 && len(s.outs) > 1 {
		for i := range s.outs {
			add(func(c *statement) {
				name := c.outs[i].name
				c.outs = slices.Delete(c.outs, i, i+1)
				c.order, c.limit = slices.DeleteFunc(c.order, func(o string) bool { return o == name || strings.HasPrefix(o, name+" ") }), 0
			})
		}
	}
	return list
}

// place is what is in FROM: its text, the columns that can be named, and the column that names the unit.
type place struct {
	text    string
	columns []column // names qualified
	unit    string
	where   string // a condition that belongs to it
	single  *table // the table, where it is one
	alias   string
}

func (g *grammar) alias(name string) string {
	g.names++
	return name[:1] + fmt.Sprint(g.names)
}

func qualified(alias string, columns []column) (list []column) {
	for _, c := range columns {
		if !c.unlisted {
			c.name = alias + "." + c.name
			list = append(list, c)
		}
	}
	return list
}

func (g *grammar) private() *table {
	for {
		if t := g.s.tables[g.IntN(len(g.s.tables))]; !t.public {
			return t
		}
	}
}

// place picks what to read.
func (g *grammar) place() place {
	if g.chance(12) {
		p, ok := g.windowed()
		if g.chance(3) {
			p, ok = g.united()
		}
		if ok {
			return p
		}
	}
	switch k := g.IntN(20); {
	case k < 9:
		return g.tablePlace(g.private())
	case k < 15:
		return g.joined(g.tablePlace(g.private()), 1+g.IntN(2))
	case k == 15:
		return g.beside()
	case k < 17:
		return g.virtual()
	default:
		return g.perUnit()
	}
}

func (g *grammar) tablePlace(t *table) place {
	a := g.alias(t.name)
	p := place{text: t.name + " AS " + a, columns: qualified(a, t.columns), single: t, alias: a}
	if g.chance(3) {
		p.text = "public." + t.name + " " + a
	}
	for _, c := range t.columns {
		if c.name == t.named && (t.unit == "" || strings.HasSuffix(t.unit, " = "+g.s.unit)) {
			p.unit = a + "." + c.name
		}
	}
	return p
}

// joined adds tables along the schema's edges.
func (g *grammar) joined(p place, n int) place {
	type end struct {
		table *table
		alias string
	}
	ends := []end{{p.single, p.alias}}
	for range n {
		from := ends[g.IntN(len(ends))]
		var list []edge
		var other []string
		for _, e := range g.s.edges {
			if e.child == from.table.name {
				list, other = append(list, e), append(other, e.parent)
			}
			if e.parent == from.table.name && !(from.table.public) {
				list, other = append(list, e), append(other, e.child)
			}
		}
		if len(list) == 0 {
			return p
		}
		at := g.IntN(len(list))
		e, t := list[at], g.s.table(other[at])
		a := g.alias(t.name)
		var on, using []string
		for _, c := range e.on {
			mine, its := c[0], c[1]
			if e.child != from.table.name {
				mine, its = its, mine
			}
			left, right := from.alias+"."+mine, a+"."+its
			if g.chance(2) {
				left, right = right, left
			}
			on, using = append(on, left+" = "+right), append(using, mine)
		}
		kind := g.one(" JOIN ", " JOIN ", " INNER JOIN ", " LEFT JOIN ", " LEFT JOIN ")
		p.text += kind + t.name + " AS " + a
		switch {
		case e.natural && len(ends) == 1 && n == 1 && g.chance(3):
			p.text += " USING (" + strings.Join(using, ", ") + ")"
		default:
			p.text += " ON " + strings.Join(on, " AND ")
			if g.chance(6) {
				p.text += " AND " + g.condition(qualified(a, t.columns))
			}
		}
		added := g.tablePlace(t)
		p.columns = append(p.columns, qualified(a, t.columns)...)
		if p.unit == "" && kind != " LEFT JOIN " && added.unit != "" {
			p.unit = a + "." + t.named
		}
		ends = append(ends, end{t, a})
	}
	p.single = nil
	return p
}

// beside joins what depends on the unit alone: a table with itself or another of the unit's, or a count for each unit.
func (g *grammar) beside() place {
	var list []place
	for _, t := range g.s.tables {
		if p := g.tablePlace(t); p.unit != "" {
			list = append(list, p)
		}
	}
	p := list[g.IntN(len(list))]
	o := g.tablePlace(list[g.IntN(len(list))].single)
	switch g.IntN(4) {
	case 0:
		p.text += ", " + o.text
		p.where = p.unit + " = " + o.unit
		p.columns = append(p.columns, o.columns...)
	case 1:
		a, where := g.alias("q"), ""
		if g.chance(2) {
			where = " WHERE " + g.condition(o.columns)
		}
		p.text += g.one(" JOIN ", " LEFT JOIN ") + "(SELECT " + o.unit + " AS who, count(*) AS n FROM " + o.text + where + " GROUP BY 1) AS " + a + " ON " + a + ".who = " + p.unit
		p.columns = append(p.columns, column{name: a + ".n", kind: wholeKind, values: []string{"0", "1", "2", "3"}})
	case 2:
		p.text = p.text + " RIGHT JOIN " + o.text + " ON " + p.unit + " = " + o.unit
		p.columns, p.unit = append(p.columns, o.columns...), o.unit
	default:
		p.text += " JOIN " + o.text + " ON " + p.unit + " = " + o.unit
		if c, ok := g.pick(p.columns, dateKind, wholeKind); ok && g.chance(2) {
			if m, ok := g.pick(o.columns, c.kind); ok {
				p.text += " AND " + c.name + g.one(" < ", " >= ", " <> ") + m.name
			}
		}
		p.columns = append(p.columns, o.columns...)
	}
	p.single = nil
	return p
}

// virtual is a sub-query that a tool wraps: some columns under names of their own.
func (g *grammar) virtual() place {
	in := g.tablePlace(g.private())
	if g.chance(2) {
		in = g.joined(in, 1)
	}
	a := g.alias("virtual_table")
	p := place{alias: a}
	var list []string
	for i, c := range in.columns {
		if c.kind == keyKind || g.chance(4) {
			continue
		}
		name := fmt.Sprint("c", i)
		list = append(list, c.name+" AS "+name)
		c.name = a + "." + name
		p.columns = append(p.columns, c)
	}
	if in.unit != "" {
		list = append(list, in.unit+" AS who")
		p.unit = a + ".who"
	}
	if len(list) == 0 {
		return in
	}
	where := ""
	if g.chance(2) {
		where = " WHERE " + g.condition(in.columns)
	}
	p.text = "(SELECT " + strings.Join(list, ", ") + " FROM " + in.text + where + ") AS " + a
	return p
}

// perUnit is a sub-query with a row for each unit, or for each unit and key.
func (g *grammar) perUnit() place {
	in := g.tablePlace(g.private())
	for in.unit == "" || in.single.bound == 1 {
		in = g.tablePlace(g.private())
		if in.unit == "" && g.chance(3) {
			in = g.joined(in, 1)
			if in.unit == "" {
				in = g.tablePlace(g.private())
			} else {
				break
			}
		}
	}
	a := g.alias("per_unit")
	p := place{alias: a, unit: a + ".who"}
	where := ""
	if g.chance(2) {
		where = " WHERE " + g.condition(in.columns)
	}
	list, keys := []string{in.unit + " AS who"}, []string{in.unit}
	var by column
	if c, ok := g.pick(in.columns, textKind, boolKind, foundKind); ok && g.chance(2) {
		by = c
		list, keys = append(list, c.name+" AS k"), append(keys, c.name)
		c.name = a + ".k"
		p.columns = append(p.columns, c)
	}
	if by.name != "" && g.chance(3) {
		p.text = "(SELECT DISTINCT " + strings.Join(list, ", ") + " FROM " + in.text + where + ") AS " + a
		return p
	}
	list = append(list, "count(*) AS n")
	p.columns = append(p.columns, column{name: a + ".n", kind: wholeKind, values: []string{"0", "1", "2", "3"}})
	if c, ok := g.pick(in.columns, wholeKind); ok && g.chance(2) {
		list = append(list, g.one("sum", "max", "min")+"("+c.name+") AS m")
		p.columns = append(p.columns, column{name: a + ".m", kind: wholeKind, values: c.values})
	}
	if g.chance(2) {
		sql, c := g.ofRows(in.columns)
		list = append(list, sql+" AS v")
		c.name = a + ".v"
		p.columns = append(p.columns, c)
	}
	p.text = "(SELECT " + strings.Join(list, ", ") + " FROM " + in.text + where + " GROUP BY " + strings.Join(keys, ", ") + ") AS " + a
	return p
}

// ofRows is an aggregate of an expression over rows of a unit, and what is like it.
func (g *grammar) ofRows(in []column) (sql string, like column) {
	numbers := column{kind: wholeKind, values: []string{"0", "1", "2"}}
	truths := column{kind: boolKind, values: []string{"true", "false"}}
	p, filter := g.predicate(in, 1), ""
	if g.chance(4) {
		filter = " FILTER (WHERE " + g.predicate(in, 0) + ")"
	}
	switch k := g.IntN(8); {
	case k == 0:
		return g.one("max", "min", "sum") + "(CASE WHEN " + p + " THEN " + g.one("1", "2") + " ELSE 0 END)" + filter, numbers
	case k == 1:
		return g.one("max", "min") + "(CASE WHEN " + p + " THEN 2 WHEN " + g.predicate(in, 0) + " THEN 1 END)" + filter, numbers
	case k == 2:
		if c, ok := g.pick(in, textKind); ok {
			return g.one("max(", "min(") + c.name + " COLLATE \"C\")" + filter, c
		}
	case k == 3:
		if c, ok := g.pick(in, dateKind, timeKind); ok {
			text := g.one("max", "min") + "(extract(" + g.one("year", "month") + " FROM " + c.name + ")::int)" + filter
			return text, column{kind: wholeKind, values: []string{"1", "6", "2024"}}
		}
	case k == 4, k == 5:
		if c, ok := g.pick(in, wholeKind, moneyKind); ok {
			return "avg(" + c.name + ")" + filter + g.one(" > ", " <= ", " = ") + g.value(c), truths
		}
	case k == 6:
		if c, ok := g.pick(in, wholeKind); ok {
			return g.one("max", "min", "sum") + "(" + c.name + g.one(" % 3", " + 1", " * 2") + ")" + filter, numbers
		}
	}
	return g.one("bool_or", "bool_and", "every") + "(" + p + ")" + filter, truths
}

// pick picks a column of one of the kinds.
func (g *grammar) pick(columns []column, kinds ...kind) (column, bool) {
	var list []column
	for _, c := range columns {
		if slices.Contains(kinds, c.kind) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return column{}, false
	}
	return list[g.IntN(len(list))], true
}

var valueKinds = []kind{textKind, wholeKind, moneyKind, realKind, boolKind, dateKind, timeKind, zonedKind}

// condition is a predicate over some columns.
func (g *grammar) condition(columns []column) string { return g.predicate(columns, 2) }

func (g *grammar) predicate(columns []column, depth int) string {
	switch k := g.IntN(12); {
	case k == 0 && depth > 0:
		return "(" + g.predicate(columns, depth-1) + " OR " + g.predicate(columns, depth-1) + ")"
	case k == 1 && depth > 0:
		return "NOT (" + g.predicate(columns, depth-1) + ")"
	case k == 2 && depth > 0:
		return "(" + g.predicate(columns, depth-1) + " AND " + g.predicate(columns, depth-1) + ")"
	case k == 3 && depth > 0:
		return "CASE WHEN " + g.predicate(columns, depth-1) + " THEN " + g.one("true", "false", g.predicate(columns, 0)) + " ELSE " + g.one("false", "NULL", g.predicate(columns, 0)) + " END"
	}
	if depth > 0 && g.chance(16) { // every value fulfils it, or none, and NULL does not
		p := g.predicate(columns, depth-1)
		return g.one("("+p+" OR NOT ("+p+"))", "NOT ("+p+" AND NOT ("+p+"))", "("+p+" AND NOT ("+p+"))")
	}
	if depth > 0 && g.chance(20) {
		return "(" + g.predicate(columns, depth-1) + ")" + g.one(" IS TRUE", " IS NOT TRUE", " IS FALSE", " IS NOT FALSE", " IS UNKNOWN", " IS NOT UNKNOWN")
	}
	c, ok := g.pick(columns, valueKinds...)
	if text, is := g.pick(columns, noteKind, foundKind); is && g.chance(6) {
		c, ok = text, true
	}
	if !ok {
		return "true"
	}
	if g.chance(12) {
		return c.name + g.one(" IS NULL", " IS NOT NULL")
	}
	if len(c.values) > 1 && g.chance(10) {
		return g.unusual(c, columns)
	}
	return g.compared(c, columns)
}

// unusual is a comparison that people write seldom: with NULL in a list, of rows, of arrays, with ends in any order.
func (g *grammar) unusual(c column, columns []column) string {
	v, w := g.value(c), g.value(c)
	o, ok := g.pick(columns, c.kind)
	switch k := g.IntN(10); {
	case k == 0:
		return c.name + g.one(" IN (", " NOT IN (") + v + ", NULL)"
	case k >= 8:
		return g.constants(c, columns)
	case k == 1 && c.kind != foundKind && c.kind != noteKind:
		return c.name + g.one(" BETWEEN SYMMETRIC ", " NOT BETWEEN SYMMETRIC ") + v + " AND " + w
	case k == 2:
		return c.name + g.one(" IS DISTINCT FROM ", " IS NOT DISTINCT FROM ") + g.one(v, "NULL")
	case k == 3 && ok && len(o.values) > 0:
		return "(" + c.name + ", " + o.name + ")" + g.one(" = ", " <> ", " IN ", " NOT IN ", " < ") + "((" + v + ", " + g.value(o) + "))"
	case k == 4 && c.kind == textKind:
		return c.name + g.one(" = ANY (ARRAY[", " <> ALL (ARRAY[", " < ANY (ARRAY[") + v + ", " + w + "])"
	case k == 5 && c.kind == textKind:
		return g.one("concat("+c.name+", '|') = 'gold|'", "concat_ws('-', "+c.name+", 'x') <> "+v, "octet_length("+c.name+") > 3", c.name+" = "+v+"::varchar", c.name+" LIKE '%!%%' ESCAPE '!'", c.name+" SIMILAR TO '(w|s|g)%'",
			c.name+" ~ '[a-f]$'", "nullif("+c.name+", "+v+") = "+w, "greatest("+c.name+", "+v+") = "+w, "CASE WHEN "+c.name+" = "+v+" THEN "+c.name+" ELSE "+w+" END = "+w, "reverse("+c.name+") > 'l'", c.name+" || '' = "+v)
	case k == 6 && (c.kind == wholeKind || c.kind == moneyKind):
		return g.one("nullif("+c.name+", "+v+") > "+w, "greatest("+c.name+", "+v+") = "+w, "least("+c.name+", NULL, "+v+") < "+w, "-"+c.name+" < -("+v+")", "abs("+c.name+") = "+v, "sign("+c.name+") >= 0", "round("+c.name+") = round("+v+")",
			c.name+"::numeric / 2 > "+v, c.name+"::float8 > "+v, "mod("+c.name+"::numeric, 3) = 1", c.name+"::text = ("+v+")::text", c.name+" = ANY ('{1,5,NULL}')", c.name+" <> ALL (ARRAY["+v+", 3])", "div("+c.name+"::numeric, 2) = 1")
	case k == 7 && c.kind == dateKind:
		return g.one(c.name+"::timestamp >= "+v+"::timestamp + interval '12 hours'", c.name+" > timestamptz "+w+" - interval '1 hour'", "to_char("+c.name+", 'YYYY-MM-DD') = "+v, "date_part('month', "+c.name+") IN (1, 6)",
			"age("+c.name+", "+v+") > interval '1 month'", c.name+" - "+v+"::date BETWEEN -30 AND 30", "greatest("+c.name+", "+v+") = "+w, "("+c.name+" + interval '1 month')::date > "+v, "extract(epoch FROM "+c.name+") > 1600000000", "make_date(2023, 5, 31) < "+c.name)
	}
	return g.compared(c, columns)
}

// constants is a comparison with constants in words that only an engine knows, with what has no end, and by functions
// that are comparisons.
func (g *grammar) constants(c column, columns []column) string {
	v, w := c.values[g.IntN(len(c.values))], c.values[g.IntN(len(c.values))]
	o, _ := g.pick(columns, c.kind)
	any := g.one(" = ANY (", " <> ALL (")
	among := g.one(" IN (", " NOT IN (")
	typed := map[kind]string{dateKind: "DATE ", timeKind: "TIMESTAMP ", zonedKind: "TIMESTAMPTZ "}[c.kind]
	switch c.kind {
	case textKind:
		return g.one(c.name+any+"string_to_array("+v+" || ',' || "+w+", ','))",
			c.name+any+"regexp_split_to_array("+v+" || '|' || "+w+", '[|]'))",
			c.name+any+"string_to_array("+v+" || ',,', ',', ''))", c.name+any+"string_to_array(NULL, ','))",
			c.name+among+"VALUES ("+v+"), ("+w+"))", c.name+among+"SELECT unnest(ARRAY["+v+", "+w+"]))",
			c.name+" = (ARRAY["+v+", "+w+"])[1]", c.name+" = (string_to_array("+v+", ','))["+g.one("1", "2")+"]",
			"array_position(ARRAY["+v+", "+w+"], "+c.name+"::text)"+g.one(" IS NOT NULL", " = 2"),
			"num_nulls("+c.name+", "+o.name+") = 1", "num_nonnulls("+c.name+", "+v+", NULL) = 2",
			"format('%s-%L', "+c.name+", "+v+") = format('%s-%L', "+w+", "+v+")")
	case wholeKind:
		return g.one(c.name+any+"ARRAY(SELECT generate_series(least("+v+", 2), "+w+")))",
			c.name+among+"SELECT generate_series(1, "+w+", 2))", c.name+among+"VALUES ("+v+"), ("+w+"))",
			c.name+any+"string_to_array(concat("+v+", ',', "+w+"), ',')::int[])",
			c.name+g.one(" < ", " >= ")+"ALL (ARRAY["+v+"] || ARRAY["+w+"])",
			c.name+"::integer <@ int4range(least("+v+", 2), "+w+")",
			"int4range(NULL, "+w+", '[]') @> "+c.name+"::integer", c.name+" > cardinality(ARRAY["+v+", "+w+"])")
	case moneyKind, realKind:
		return g.one(c.name+among+"VALUES ("+v+"), ("+w+"))",
			c.name+"::numeric <@ numrange(least("+v+", 1), "+w+", '(]')", c.name+" > (ARRAY["+v+", "+w+"])[2]",
			"num_nulls("+c.name+", "+o.name+")"+g.one(" = 0", " > 0"))
	case dateKind:
		if g.chance(3) {
			return g.one(c.name+" <@ daterange("+v+", 'infinity')", "daterange(NULL, "+w+", '[]') @> "+c.name,
				c.name+any+"ARRAY(SELECT generate_series(DATE "+v+", DATE "+v+" + 9, interval '1 day')::date))")
		}
		fallthrough
	case timeKind, zonedKind:
		return g.one(c.name+g.one(" > ", " = ", " <> ")+"'-infinity'", c.name+" BETWEEN "+v+" AND 'infinity'",
			"NOT "+c.name+" < "+typed+"'infinity'", "coalesce("+c.name+", 'infinity') > "+typed+v,
			"coalesce("+c.name+", '-infinity')"+g.one(" < ", " >= ")+v,
			"("+c.name+", "+o.name+") OVERLAPS ("+typed+v+", "+typed+w+")", "("+typed+v+", "+g.one("NULL",
				typed+w)+") OVERLAPS ("+c.name+", "+c.name+")",
			"("+c.name+", interval '2 days') OVERLAPS ("+typed+v+", "+typed+w+")",
			"(("+c.name+", "+o.name+") OVERLAPS ("+typed+v+", NULL)) IS NULL", c.name+" - "+typed+v+g.one(" > ",
				" <= ")+map[bool]string{true: "30", false: "interval '1 day 10 seconds'"}[c.kind == dateKind],
			typed+v+" - "+c.name+" < "+map[bool]string{true: "30",
				false: "interval '90 minutes 1 second'"}[c.kind == dateKind])
	}
	return g.compared(c, columns)
}

func (g *grammar) value(c column) string {
	v := c.values[g.IntN(len(c.values))]
	switch c.kind {
	case dateKind:
		return g.one("DATE ", "") + v
	case timeKind:
		return g.one("TIMESTAMP ", "") + v
	case zonedKind:
		return g.one("TIMESTAMPTZ ", "timestamp with time zone ", "") + v
	}
	return v
}

// compared is a comparison of a column, of its kind's sort.
func (g *grammar) compared(c column, columns []column) string {
	operator := g.one(" = ", " <> ", " < ", " <= ", " > ", " >= ")
	switch c.kind {
	case boolKind:
		return g.one(c.name, "NOT "+c.name, c.name+" IS TRUE", c.name+" IS NOT TRUE", c.name+" = false", c.name+" IS DISTINCT FROM true")
	case noteKind:
		return g.asked(c.name)
	case foundKind:
		switch g.IntN(6) {
		case 4:
			return c.name + g.one(" LIKE ", " NOT LIKE ", " ILIKE ") + g.one("'B%'", "'%e%'", "'b_rn'", "'%'", `'100\%'`)
		case 5:
			return g.one("starts_with("+c.name+", 'Ba')", "coalesce("+c.name+", '') LIKE '%n'", c.name+" LIKE ANY (string_to_array('B%,O%', ','))")
		case 0:
			return c.name + g.one(" IN (", " NOT IN (") + g.value(c) + ", " + g.value(c) + ")"
		case 1:
			return "coalesce(" + c.name + ", 'none')" + g.one(" = ", " <> ") + g.one(g.value(c), "'none'")
		case 2:
			return c.name + g.one(" IS DISTINCT FROM ", " IS NOT DISTINCT FROM ", " = ANY (ARRAY['Basel']) OR 'Bern' = ", " <> ALL ('{Bern,n}') AND 'x' <> ") + g.value(c)
		}
		return c.name + g.one(" = ", " = ", " <> ") + g.value(c)
	case textKind:
		switch g.IntN(8) {
		case 0:
			return c.name + g.one(" IN (", " NOT IN (") + g.value(c) + ", " + g.value(c) + ")"
		case 1:
			return c.name + g.one(" LIKE ", " NOT LIKE ", " ILIKE ") + g.one("'%e%'", "'w%'", "'%r'", "'_'", "'F%'", "'S%'")
		case 2:
			return g.one("upper(", "lower(", "coalesce(", "trim(") + c.name + ")" + g.one(" = ", " <> ") + g.value(c)
		case 3:
			return "coalesce(" + c.name + ", 'none')" + g.one(" = ", " <> ") + g.one(g.value(c), "'none'")
		case 4:
			return c.name + g.one(" IS DISTINCT FROM ", " IS NOT DISTINCT FROM ") + g.value(c)
		case 5:
			return "length(" + c.name + ")" + operator + fmt.Sprint(g.IntN(8))
		case 6:
			return g.one("substring("+c.name+", 1, 1)", "left("+c.name+", 2)") + g.one(" = ", " <> ", " > ") + g.one("'g'", "'w'", "'F'", "'de'", "'s'")
		}
		return c.name + g.one(" = ", " = ", " <> ", " > ", " <= ") + g.value(c)
	case wholeKind, moneyKind, realKind:
		switch g.IntN(8) {
		case 0:
			return c.name + g.one(" BETWEEN ", " NOT BETWEEN ") + g.value(c) + " AND " + g.value(c)
		case 1:
			return c.name + g.one(" IN (", " NOT IN (") + g.value(c) + ", " + g.value(c) + ")"
		case 2:
			if c.kind == wholeKind {
				return c.name + " % " + fmt.Sprint(2+g.IntN(4)) + g.one(" = ", " <> ") + fmt.Sprint(g.IntN(3))
			}
		case 3:
			return c.name + g.one(" * 2", " + 1", " - 1") + operator + g.value(c)
		case 4:
			return "coalesce(" + c.name + ", " + g.value(c) + ")" + operator + g.value(c)
		case 5:
			if o, ok := g.pick(columns, wholeKind, moneyKind); ok && o.name != c.name && c.kind != realKind {
				return g.one(c.name+operator+o.name, c.name+" - "+o.name+operator+g.value(c), c.name+operator+o.name+g.one(" * 10", " * 1.5 + 0.25", " - 3"),
					"abs("+c.name+" - "+o.name+")"+operator+"2", "3 * "+c.name+" - 2 * "+o.name+" IS NULL", c.name+" + "+o.name+" BETWEEN 1 AND "+g.value(c))
			}
		}
		return c.name + operator + g.value(c)
	case dateKind, timeKind, zonedKind:
		switch g.IntN(8) {
		case 0:
			return c.name + g.one(" BETWEEN ", " NOT BETWEEN ") + g.value(c) + " AND " + g.value(c)
		case 1:
			return "extract(" + g.one("month", "year", "dow", "day", "quarter", "week", "doy") + " FROM " + c.name + ")" + operator + fmt.Sprint(1+g.IntN(12))
		case 2:
			return "date_trunc('" + g.one("month", "year", "week", "quarter") + "', " + c.name + ")" + operator + c.values[g.IntN(len(c.values))]
		case 3:
			return c.name + g.one(" + interval '1 month'", " - interval '7 days'", " + interval '1 year'") + operator + c.values[g.IntN(len(c.values))]
		case 4:
			if o, ok := g.pick(columns, c.kind); ok && o.name != c.name && c.kind == dateKind {
				return g.one(o.name+" - "+c.name+operator+fmt.Sprint(g.IntN(30)), o.name+operator+c.name, o.name+operator+c.name+" + 7", "abs("+o.name+" - "+c.name+")"+operator+"9")
			} else if ok && o.name != c.name {
				return g.one(o.name+" - "+c.name+operator+g.one("interval '1 day'", "'2 days 03:00:00'", "interval '90 minutes'"), o.name+operator+c.name, o.name+operator+c.name+" + interval '36 hours'",
					"extract(epoch FROM "+o.name+" - "+c.name+")"+operator+"7200")
			}
			if o, ok := g.pick(columns, dateKind, timeKind); ok && o.kind != c.kind && c.kind != zonedKind {
				return o.name + operator + c.name
			}
		case 5:
			return c.name + " >= " + g.value(c) + " AND " + c.name + " < " + g.value(c)
		case 6:
			if c.kind != dateKind {
				return g.one(c.name+"::time"+operator+"'12:00'", "CAST("+c.name+" AS time) NOT BETWEEN '06:30' AND time '18:00'", c.name+"::time IN ('00:00', '12:30')", "extract(hour FROM "+c.name+"::time)"+operator+"12")
			}
		}
		return c.name + operator + g.value(c)
	}
	return "true"
}

// asked is a condition on a text that nobody declared.
func (g *grammar) asked(note string) string {
	operator := g.one(" = ", " <> ", " < ", " <= ", " > ", " >= ")
	switch g.IntN(7) {
	case 0:
		return note + g.one(" = ", " <> ") + g.one("'so late'", "''", "'Late'", "'none such'")
	case 1:
		return note + g.one(" IN (", " NOT IN (") + g.one("'so late', ''", "'Late', 'a_b', '100% wrong'", "'x'") + ")"
	case 2:
		return g.one("left("+note+", 2)", "right("+note+", 4)", "substring("+note+" FROM 1 FOR 2)", "lower("+note+")", "upper(left("+note+", 4))", "trim("+note+")", "split_part("+note+", ' ', 2)") +
			g.one(" = ", " <> ", " IN ", " NOT IN ") + g.one("('late')", "('sp')", "('')", "('a_')")
	case 3:
		return g.one("length("+note+")", "position('late' IN "+note+")", "strpos("+note+", ' ')") + operator + fmt.Sprint(g.IntN(12))
	case 4:
		return "starts_with(" + note + ", " + g.one("'so'", "'100%'", "''") + ")"
	}
	return note + g.one(" LIKE ", " NOT LIKE ", " ILIKE ", " NOT ILIKE ") + g.one("'%late%'", "'%special%requests%'", `'%\%%'`, "'a_b'", `'a\_b'`, "'_'", "'s%'", "'%t_ li%'")
}

// key is an expression to group by.
func (g *grammar) key(columns []column) (string, bool) {
	if note, is := g.pick(columns, noteKind); is && g.chance(20) {
		return g.one(note.name+" LIKE '%late%'", "CASE WHEN "+g.asked(note.name)+" THEN 'asked' END", note.name+" IS NULL", "left("+note.name+", 2) = 'sp'"), true
	}
	c, ok := g.pick(columns, textKind, textKind, wholeKind, boolKind, dateKind, timeKind, zonedKind, moneyKind)
	if found, is := g.pick(columns, foundKind); is && g.chance(8) {
		c, ok = found, true
	}
	if !ok {
		return "", false
	}
	if g.chance(12) {
		return "CASE WHEN " + g.condition(columns) + " THEN 'yes' " + g.one("ELSE 'no' ", "") + "END", true
	}
	if g.chance(16) {
		return "CASE WHEN " + g.compared(c, columns) + " THEN 'first' WHEN " + g.condition(columns) + " THEN 'second' ELSE 'third' END", true
	}
	if g.chance(12) {
		if key, ok := g.differenceKey(c, columns); ok {
			return key, true
		}
	}
	switch c.kind {
	case foundKind:
		return g.one(c.name, c.name, c.name, c.name, "coalesce("+c.name+", 'none')", "left("+c.name+", 1)", "length("+c.name+")", c.name+" = "+c.values[0], c.name+" IS NULL",
			"CASE WHEN "+c.name+" IN ("+c.values[0]+", "+c.values[1]+") THEN 'a' ELSE 'b' END", "CASE "+c.name+" WHEN "+c.values[0]+" THEN 1 WHEN "+c.values[2]+" THEN 2 END"), true
	case textKind:
		return g.one(c.name, c.name, c.name, "upper("+c.name+")", "coalesce("+c.name+", 'none')", "CAST("+c.name+" AS TEXT)", "left("+c.name+", 1)",
			"CASE WHEN "+c.name+" IN ("+c.values[0]+", "+c.values[1]+") THEN 'a' ELSE 'b' END", c.name+" = "+c.values[0],
			"concat("+c.name+", '.')", "nullif("+c.name+", "+c.values[0]+")", c.name+" || '-'", "octet_length("+c.name+")", "reverse("+c.name+")", "greatest("+c.name+", "+c.values[1]+")"), true
	case wholeKind:
		return g.one(c.name, c.name, c.name+" / 3", c.name+" % 2", c.name+" > "+c.values[1], "CASE WHEN "+c.name+" < "+c.values[1]+" THEN 'low' ELSE 'high' END",
			"width_bucket("+c.name+", 0, 20, 4)", "coalesce("+c.name+", 0)",
			"nullif("+c.name+", "+c.values[0]+")", "-"+c.name+" / 2", c.name+"::numeric / 4", c.name+"::text || 'x'", "("+c.name+" - 2) % 3", "round("+c.name+" / 3.0, 1)", "("+c.name+"::float8 / 3)::numeric(10,3)", c.name+" BETWEEN SYMMETRIC 4 AND 2"), true
	case moneyKind, realKind:
		return g.one("floor("+c.name+" / 50) * 50", "FLOOR((("+c.name+" - 0.0) / 25.0)) * 25.0 + 0.0", c.name+" > "+c.values[1], "width_bucket("+c.name+", 0, 500, 5)", "round("+c.name+" / 100)", "trunc("+c.name+" / 100) * 100"), true
	case boolKind:
		return g.one(c.name, c.name, "NOT "+c.name, c.name+" IS NULL", "coalesce("+c.name+", false)"), true
	case dateKind:
		return g.one("date_trunc('month', "+c.name+")", "DATE_TRUNC('quarter', "+c.name+")::date", "extract(year FROM "+c.name+")", "CAST(extract(dow from "+c.name+") AS integer)", "to_char("+c.name+", 'YYYY-MM')",
			"date_trunc('week', "+c.name+")::date", "extract(month FROM "+c.name+") > 6", c.name+" < "+c.values[1], "to_char("+c.name+", 'YYYY')", "CAST(TRUNC(EXTRACT(YEAR FROM "+c.name+")) AS INTEGER)"), true
	default:
		return g.one("date_trunc('day', "+c.name+")", "CAST("+c.name+" AS date)", "extract(hour FROM "+c.name+")", "date_trunc('month', "+c.name+")", "extract(dow FROM "+c.name+")",
			"(DATE("+c.name+" AT TIME ZONE 'UTC'))", "floor(extract(epoch from "+c.name+")/86400)*86400", "date_trunc('hour', "+c.name+")::time", c.name+"::time < '12:00'", "to_char("+c.name+", 'YYYY-MM-DD')"), true
	}
}

// foundBy reports whether a key's values are found: a text of keys: discover, or what a function makes of it.
func foundBy(key string, columns []column) bool {
	return slices.ContainsFunc(columns, func(c column) bool {
		return c.kind == foundKind && slices.Contains([]string{c.name, "coalesce(" + c.name + ", 'none')", "left(" + c.name + ", 1)", "length(" + c.name + ")"}, key)
	})
}

// differenceKey groups by a sum or difference of a column and another one of its sort.
func (g *grammar) differenceKey(c column, columns []column) (string, bool) {
	kinds := []kind{c.kind}
	if c.kind == wholeKind || c.kind == moneyKind {
		kinds = []kind{wholeKind, moneyKind}
	}
	o, ok := g.pick(columns, kinds...)
	if !ok || o.name == c.name {
		return "", false
	}
	d := c.name + " - " + o.name
	switch c.kind {
	case wholeKind, moneyKind:
		return g.one("floor(("+d+") / 50)", "CASE WHEN "+d+" > 2 THEN 'more' WHEN "+d+" <= 0 THEN 'less' ELSE 'some' END", c.name+" > "+o.name, "("+c.name+" + 2 * "+o.name+") > 30", "sign("+d+" - 1)"), true
	case dateKind:
		return g.one("("+d+") / 30", "CASE WHEN "+d+" > 10 THEN 'late' WHEN "+d+" > 3 THEN 'soon' ELSE 'now' END", c.name+" < "+o.name, "width_bucket("+d+", 0, 60, 4)", "greatest("+d+", 0) / 90"), true
	case timeKind, zonedKind:
		return g.one("floor(extract(epoch FROM "+d+") / 86400)", "CASE WHEN "+d+" > interval '3 days' THEN 'late' WHEN "+d+" >= interval '0' THEN 'now' ELSE 'never' END", c.name+" < "+o.name), true
	}
	return "", false
}

// aggregate is one, with its role.
func (g *grammar) aggregate(p place) output {
	if c, ok := g.pick(p.columns, valueKinds...); ok && g.chance(24) {
		o := output{sql: "count(DISTINCT " + c.name + ")", role: countRole, values: c.name}
		if c.step != "" {
			o.values = fmt.Sprintf(c.step, c.name)
			o.truth = "count(DISTINCT " + o.values + ")"
		}
		return o
	}
	if c, ok := g.pick(p.columns, wholeKind, moneyKind); ok && c.step == "" && g.chance(24) {
		sql := g.one("sum", "avg", "var_samp", "stddev_pop") + "(DISTINCT " + c.name + ")"
		return output{sql: sql, role: valueRole, of: c, values: c.name}
	}
	sql, role := g.measure(p)
	o := output{sql: sql, role: role, pair: factorsOf(sql, p.columns)}
	if name, argument, _ := strings.Cut(sql, "("); strings.HasPrefix(name, "var") || strings.HasPrefix(name, "stddev") {
		argument, _, _ = strings.Cut(argument, ")")
		o.of = p.columns[slices.IndexFunc(p.columns, func(c column) bool { return c.name == argument })]
	}
	return o
}

var multiplied = regexp.MustCompile(`^(?:sum|avg)\(([\w.]+) \* ([\w.]+)\)`)

// factorsOf are the two columns whose product is added up, if it is that.
func factorsOf(sql string, columns []column) (list []column) {
	m := multiplied.FindStringSubmatch(sql)
	for _, c := range columns {
		for i := 1; i < len(m); i++ {
			if c.name == m[i] {
				list = append(list, c)
			}
		}
	}
	return list
}

func (g *grammar) measure(p place) (string, role) {
	filter := ""
	if g.chance(6) {
		filter = " FILTER (WHERE " + g.condition(p.columns) + ")"
	}
	number, numeric := g.pick(p.columns, wholeKind, wholeKind, moneyKind, realKind)
	any, some := g.pick(p.columns, append([]kind{foundKind}, valueKinds...)...)
	switch k := g.IntN(24); {
	case k < 6 || !some:
		return "count(*)" + filter, countRole
	case k == 6 && numeric && g.chance(2):
		rank := g.one("rank(", "percent_rank(", "cume_dist(") + g.one("0", "2", "3.5") + ")"
		return rank + " WITHIN GROUP (ORDER BY " + number.name + g.one("", " DESC", " NULLS FIRST") + ")" + filter, valueRole
	case k == 6:
		return "count(" + any.name + ")" + filter, countRole
	case k == 7:
		if c, ok := g.pick(p.columns, wholeKind); ok {
			return g.one("bit_and(", "bit_or(", "bit_or(DISTINCT ") + c.name + ")" + filter, valueRole
		}
	case k == 8 && p.unit != "":
		return "count(DISTINCT " + p.unit + ")" + filter, countRole
	case k == 9:
		return "sum(CASE WHEN " + g.condition(p.columns) + " THEN " + g.one("1 ELSE 0", "1", "2", "5 ELSE 1", "1 ELSE 0.0", "-1 ELSE 3", "2.5") + " END)" + filter, valueRole
	case k == 10 && numeric:
		return "sum(CASE WHEN " + g.condition(p.columns) + " THEN " + number.name + g.one("", " ELSE 0") + " END)" + filter, valueRole
	case k == 11:
		return g.one("sum(2)", "sum(-3)", "sum(1)", "sum(0.5)", "sum(7)") + filter, valueRole
	case k == 12 && numeric:
		return "coalesce(sum(" + number.name + "), 0)", valueRole
	case k == 13 && numeric:
		return g.one("stddev(", "variance(", "var_pop(", "stddev_pop(", "stddev_samp(", "var_samp(") + number.name + ")" + filter, valueRole
	case k == 14 && numeric:
		return "round(avg(" + number.name + "), 2)", valueRole
	case k == 15 && p.single != nil && g.chance(3):
		return "count(*) * 100.0 / (SELECT count(*) FROM " + p.single.name + ")", valueRole
	case k == 15:
		return "100.0 * count(*) FILTER (WHERE " + g.condition(p.columns) + ") / NULLIF(count(*), 0)", valueRole
	case k == 16 && numeric:
		other, _ := g.pick(p.columns, wholeKind, moneyKind)
		return "sum(" + number.name + g.one(" * ", " + ", " - ") + g.one("2", "3", other.name) + ")" + filter, valueRole
	case k == 17:
		if c, ok := g.pick(p.columns, boolKind); ok {
			return "sum(" + c.name + "::int)", valueRole
		}
	case k == 18:
		if c, ok := g.pick(p.columns, dateKind); ok {
			if o, _ := g.pick(p.columns, dateKind); o.name != c.name {
				return g.one("sum(", "avg(") + c.name + " - " + o.name + ")" + filter, valueRole
			}
		}
	case k == 19:
		return "count(CASE WHEN " + g.condition(p.columns) + " THEN 1 END)", countRole
	case k == 20 && numeric:
		return "sum(" + number.name + ")::float / NULLIF(count(*), 0)", valueRole
	case k <= 21 && numeric:
		return "avg(" + number.name + ")" + filter, valueRole
	case numeric:
		return "sum(" + number.name + ")" + filter, valueRole
	}
	return "count(*)" + filter, countRole
}

// semi is a condition on what the unit or the row has elsewhere.
func (g *grammar) semi(p place) (condition, known, there string) {
	if p.single == nil {
		return "", "", ""
	}
	for range 4 {
		e := g.s.edges[g.IntN(len(g.s.edges))]
		its, mine, other := 0, 1, e.child
		if e.parent != p.single.name {
			if e.child != p.single.name {
				continue
			}
			its, mine, other = 1, 0, e.parent
		}
		if len(e.on) > 1 {
			continue
		}
		t := g.s.table(other)
		a := g.alias(t.name)
		where := ""
		if g.chance(2) {
			where = g.condition(qualified(a, t.columns))
		}
		inner, outer := a+"."+e.on[0][its], p.alias+"."+e.on[0][mine]
		if g.chance(2) {
			if where != "" {
				where = " AND " + where
			}
			for g.chance(2) { // beside the row around
				c, ok := g.pick(p.columns, wholeKind, dateKind, moneyKind)
				o, also := g.pick(qualified(a, t.columns), c.kind)
				if ok && also {
					where += " AND " + o.name + g.one(" < ", " >= ", " <> ", " = ") + c.name
				}
			}
			condition = g.one("", "NOT ") + "EXISTS (SELECT 1 FROM " + t.name + " AS " + a + " WHERE " + inner + " = " + outer + where + ")"
			return condition, condition, ""
		}
		known = " WHERE " + inner + " IS NOT NULL"
		there = " AND " + outer + " IS NOT NULL" // of no row at all NOT IN holds for NULL
		if t.public {                            // whose keys are known
			known, there = " WHERE true", ""
		}
		if where != "" {
			known += " AND " + where
			where = " WHERE " + where
		}
		begin := outer + g.one(" IN ", " NOT IN ") + "(SELECT " + inner + " FROM " + t.name + " AS " + a
		return begin + where + ")", begin + known + ")" + there, there
	}
	return "", "", ""
}

// statement writes one.
func (g *grammar) statement() *statement {
	g.names = 0
	p := g.place()
	s := &statement{from: p.text, byName: g.chance(2)}
	if p.where != "" {
		s.where = append(s.where, p.where)
	}
	for range g.IntN(3) {
		s.where = append(s.where, g.condition(p.columns))
	}
	if g.chance(8) {
		if w, known, there := g.semi(p); w != "" {
			s.where, s.known, s.there = append(s.where, w), [2]string{w, known}, there
		}
	}
	if g.chance(14) {
		if w := g.first(p); w != "" {
			s.where = append(s.where, w)
		}
	}
	if n, ok := g.ofUnit(p); ok && g.chance(8) {
		if g.chance(3) {
			s.outs = append(s.outs, output{sql: n, name: "k0", role: keyRole})
		} else {
			s.where = append(s.where, n+g.one(" > 1", " = 0", " <= 2", " IS NULL", " BETWEEN 1 AND 3", " <> 1"))
		}
	}
	for i := range []int{0, 0, 1, 1, 1, 1, 2, 2, 3}[g.IntN(9)] {
		if k, ok := g.key(p.columns); ok && !slices.ContainsFunc(s.outs, func(o output) bool { return o.sql == k }) {
			s.outs = append(s.outs, output{sql: k, name: fmt.Sprint("k", i+1), role: keyRole, found: foundBy(k, p.columns)})
		}
	}
	keys := len(s.outs)
	for i := range 1 + g.few(0, 3) {
		o := g.aggregate(p)
		o.name = fmt.Sprint("a", i+1)
		s.outs = append(s.outs, o)
	}
	if keys == 0 && g.chance(12) {
		s.having = "count(*) > 0"
	}
	if keys > 0 {
		g.grouping(s, keys)
	}
	switch g.IntN(13) {
	case 12:
		if keys == 1 {
			s.outs[0].name = "k1"
		}
		g.around(s, keys)
	case 0:
		s.with, s.wrapper = "", "SELECT * FROM (%s) AS virtual_table"
	case 1:
		s.wrapper = "WITH q AS (%s) SELECT * FROM q"
	case 2:
		if s.having == "" && keys > 0 && s.sets == "" && s.outs[keys].role == countRole && !s.found() {
			s.having = "count(*) > 0"
			s.wrapper, s.fixed, s.order, s.limit = "SELECT count(*) AS k1, sum(a1) AS a1, min(a1) AS a2, max(a1) AS a3 FROM (%s) AS q", true, nil, 0
		}
	case 4:
		if s.limit == 0 && len(s.order) == 0 && s.sets == "" && s.having == "" && keys == 1 && !strings.Contains(s.from, " RIGHT ") {
			k := s.outs[0].sql
			first := &statement{from: s.from, where: s.where, known: s.known, outs: []output{{sql: k, name: "k1", role: keyRole, found: s.found()}, {sql: "count(*)", name: "n1", role: countRole}}}
			second := *first
			second.outs = []output{first.outs[0], {sql: "count(*)", name: "n2", role: countRole}}
			second.where = append(slices.Clone(s.where), g.condition(p.columns))
			// Groups of the second in which nobody is are not there in PostgreSQL: a LEFT JOIN and coalesce make both
			// say 0.
			both := func(plain bool) string {
				return "WITH x AS (" + first.core(plain) + "), y AS (" + second.core(plain) + ") SELECT x.k1 AS k1, x.n1 AS n1, coalesce(y.n2, 0) AS n2 FROM x LEFT JOIN y ON x.k1 IS NOT DISTINCT FROM y.k1"
			}
			return &statement{text: both(false), truth: both(true), outs: []output{first.outs[0], first.outs[1], {name: "n2", role: countRole}}}
		}
	case 3:
		if len(s.order) == 0 && s.sets == "" && keys == 0 {
			s.outs = append([]output{{sql: "'all'", name: "k0", role: windowRole}}, s.outs...)
			other := *s
			other.outs = slices.Clone(s.outs)
			other.outs[0] = output{sql: "'some'", name: "k0", role: windowRole}
			other.where = append(slices.Clone(s.where), g.condition(p.columns))
			s.union = append(s.union, &other)
		}
	}
	return s
}

// grouping adds what is around groups.
func (g *grammar) grouping(s *statement, keys int) {
	if keys <= 2 && g.chance(10) {
		s.sets = g.one("ROLLUP", "ROLLUP", "CUBE", "GROUPING SETS")
	}
	if g.chance(6) {
		s.having = g.one("count(*) > 5", "count(*) >= 1", "(COUNT(*) > 20)", "count(*) > 0", "count(*) BETWEEN 10 AND 200")
	}
	if s.sets == "" && !s.found() && g.chance(10) {
		s.outs = append(s.outs, output{sql: "count(*)", name: "n", role: countRole},
			output{sql: g.one("sum(count(*)) OVER ()", "rank() OVER (ORDER BY count(*) DESC)", "count(*) * 100.0 / sum(count(*)) OVER ()"), name: "w", role: windowRole})
	}
	var names []string
	for _, o := range s.outs[:keys] {
		names = append(names, o.name)
	}
	switch g.IntN(4) {
	case 0:
		s.order = names
	case 1:
		if s.outs[keys].role == countRole {
			s.order = append([]string{"a1 DESC"}, names...)
		}
	}
	if len(s.order) > 0 && s.sets == "" && g.chance(3) {
		s.limit = 1 + g.IntN(10)
	}
}
