package nested

import (
	"fmt"
	"slices"
	"strings"
)

func (d *Drawer) chance(n int) bool          { return d.dice.IntN(n) == 0 }
func (d *Drawer) one(of ...string) string    { return of[d.dice.IntN(len(of))] }
func (d *Drawer) among(list []column) column { return list[d.dice.IntN(len(list))] }
func (d *Drawer) alias() string              { d.named++; return fmt.Sprint("q", d.named) }
func of(list []column, is func(column) bool) []column {
	return slices.DeleteFunc(slices.Clone(list), func(c column) bool { return !is(c) })
}
func keys(list []column) []column    { return of(list, func(c column) bool { return c.key != "" }) }
func units(list []column) []column   { return of(list, func(c column) bool { return c.key == unitKey }) }
func domains(list []column) []column { return of(list, func(c column) bool { return c.typ != "" }) }
func numbers(list []column) []column {
	return of(list, func(c column) bool { return c.typ == "integer" || c.typ == "smallint" || c.typ == "bigint" })
}

// from is what is in FROM: its text, what is in sight, with names that say of which relation, and a condition that
// joins.
type from struct {
	text    string
	columns []column
	where   string
	join    bool // it is one join
}

// Statement draws a SELECT whose rows are groups that somebody is in, and says what each of its columns is made of.
func (d *Drawer) Statement() (text string, columns []string) {
	d.named, d.ctes, d.shared = 0, nil, nil
	text, columns = d.counted(2)
	switch d.dice.IntN(10) {
	case 0:
		columns = []string{"max(coalesce(g.a1, 0))", "min(coalesce(g.a1, 0))", "count(*)"}
		text = "SELECT " + strings.Join(columns, ", ") + " FROM (" + text + ") AS g"
	case 1:
		columns = []string{"coalesce(g.a1, 0)", "rank() OVER (ORDER BY coalesce(g.a1, 0))", "sum(coalesce(g.a1, 0)) OVER ()"} // released sums of nothing are 0
		d.ctes = append(d.ctes, "g AS ("+text+")")
		text = "SELECT " + strings.Join(columns, ", ") + " FROM g"
	}
	if len(d.ctes) > 0 {
		text = "WITH " + strings.Join(d.ctes, ", ") + " " + text
	}
	return text, columns
}

// counted is an aggregation over drawn rows.
func (d *Drawer) counted(depth int) (text string, columns []string) {
	f := d.from(depth)
	var list, by []string
	for i := range d.dice.IntN(3) {
		if text, _ := d.value(f.columns, depth-1); text != "" {
			list, by = append(list, text+" AS k"+fmt.Sprint(i+1)), append(by, fmt.Sprint(len(list)+1))
			columns = append(columns, text)
		}
	}
	for i := range 1 + d.dice.IntN(2) {
		text := d.aggregate(f.columns, depth-1)
		list, columns = append(list, text+" AS a"+fmt.Sprint(i+1)), append(columns, text)
	}
	text = "SELECT " + strings.Join(list, ", ") + " FROM " + f.text + d.where(f, depth-1)
	if len(by) > 0 {
		text += " GROUP BY " + strings.Join(by, ", ") + " HAVING count(*) > 0"
	}
	return text, columns
}

// aggregate is one over rows.
func (d *Drawer) aggregate(in []column, depth int) string {
	filter := ""
	if d.chance(5) {
		filter = " FILTER (WHERE " + d.condition(in, depth) + ")"
	}
	switch d.dice.IntN(6) {
	case 0, 1:
		if list := keys(in); len(list) > 0 {
			return "count(" + d.one("DISTINCT ", "DISTINCT ", "") + d.among(list).name + ")" + filter
		}
	case 2:
		if list := numbers(in); len(list) > 0 {
			return d.one("sum(", "sum(", "count(DISTINCT ") + d.among(list).name + ")" + filter
		}
	case 3:
		if text, _ := d.value(in, depth); text != "" {
			return "count(" + text + ")" + filter
		}
	case 4:
		if len(in) > 0 && strings.Contains(in[len(in)-1].name, ".") { // a whole row
			return "count(" + strings.TrimSuffix(in[len(in)-1].name, "."+bare(in[len(in)-1].name)) + ")" + filter
		}
	}
	return "count(*)" + filter
}

// where is the WHERE of rows.
func (d *Drawer) where(f from, depth int) string {
	list := []string{}
	if f.where != "" {
		list = append(list, f.where)
	}
	if d.chance(2) {
		list = append(list, d.condition(f.columns, depth))
	}
	if len(list) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(list, " AND ")
}

// from draws one relation, or joins of some.
func (d *Drawer) from(depth int) from {
	first := d.relation(depth)
	f := from{text: first.name, columns: first.columns}
	for n := d.dice.IntN(5); n > 2; n-- {
		f = d.joined(f, d.relation(depth-1))
	}
	if depth > 0 && d.chance(12) {
		f = d.lateral(f, depth)
	}
	return f
}

// equated draws which keys of two relations are equal, and returns those of one name as USING has them too.
func (d *Drawer) equated(f from, r relation) (on, using []string) {
	for _, k := range keys(r.columns) {
		same := of(f.columns, func(c column) bool { return c.key == k.key })
		if len(same) == 0 || k.key == unitKey && len(on) > 0 || k.key != unitKey && !d.chance(2) {
			continue
		}
		other := d.among(same)
		on = append(on, d.one(other.name+" = "+k.name, k.name+" = "+other.name))
		if bare(other.name) == bare(k.name) {
			using = append(using, bare(k.name))
		}
	}
	return on, using
}

// joined joins one relation more, along the unit, by a key through which units are found, or by another key besides.
func (d *Drawer) joined(f from, r relation) from {
	on, using := d.equated(f, r)
	if len(on) == 0 {
		return f
	}
	out := from{columns: append(slices.Clone(f.columns), r.columns...), where: f.where}
	out.join = f.where == ""
	kind := d.one(" JOIN ", " JOIN ", " LEFT JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ")
	switch {
	case len(using) == len(on) && d.chance(3):
		out.text = f.text + kind + r.name + " USING (" + strings.Join(using, ", ") + ")"
	case kind == " JOIN " && !strings.Contains(f.text, " JOIN ") && d.chance(4):
		out.text, out.where, out.join = f.text+", "+r.name, strings.Join(on, " AND "), false
		if f.where != "" {
			out.where = f.where + " AND " + out.where
		}
	default:
		if d.chance(5) {
			on = append(on, d.simple(r.columns))
		}
		if both := d.both(f.columns, r.columns); both != "" && d.chance(10) {
			on = append(on, both)
		}
		out.text = f.text + kind + r.name + " ON " + strings.Join(on, " AND ")
		if kind == " RIGHT JOIN " && f.join { // the same, as joins are nested
			out.text = r.name + " LEFT JOIN (" + f.text + ") ON " + strings.Join(on, " AND ")
		}
	}
	return out
}

// bare is a name without its relation's.
func bare(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// lateral puts an aggregate of the unit's rows elsewhere beside each row.
func (d *Drawer) lateral(f from, depth int) from {
	n, text := d.alias(), d.ofUnit(f.columns, depth-1, "count(*)")
	if text == "" {
		return f
	}
	text = strings.Replace(text, "count(*)", "count(*) AS n", 1)
	f.text += d.one(" LEFT", " INNER") + " JOIN LATERAL " + text + " AS " + n + " ON true"
	f.columns = append(slices.Clone(f.columns), column{name: n + ".n", typ: "bigint", values: []string{"0", "1", "2"}})
	return f
}

// relation is a table or a sub-query under a name, with names that say so.
func (d *Drawer) relation(depth int) relation {
	name := d.alias()
	if depth > 0 && d.dice.IntN(3) > 0 {
		text, shows := d.rows(depth)
		if text != "" {
			if d.chance(4) {
				cte := d.alias()
				d.ctes = append(d.ctes, cte+" AS ("+text+")")
				d.shared = append(d.shared, relation{cte, shows})
				return relation{cte + " AS " + name, qualified(name, shows)}
			}
			return relation{"(" + text + ") AS " + name, qualified(name, shows)}
		}
	}
	if len(d.shared) > 0 && d.chance(4) {
		r := d.shared[d.dice.IntN(len(d.shared))]
		return relation{r.name + " AS " + name, qualified(name, r.columns)}
	}
	t := d.tables[d.dice.IntN(len(d.tables))]
	return relation{t.name + " AS " + name, qualified(name, t.columns)}
}

func qualified(name string, list []column) (out []column) {
	for _, c := range list {
		c.name = name + "." + c.name
		out = append(out, c)
	}
	return out
}

// rows is a SELECT that passes private rows on, and what it shows.
func (d *Drawer) rows(depth int) (string, []column) {
	f := d.from(depth - 1)
	switch d.dice.IntN(8) {
	case 0:
		return d.grouped(f, depth)
	case 1:
		return d.together(f, depth)
	case 2:
		return d.windowed(f, depth)
	}
	list, shows := d.shows(f, depth-1)
	distinct := ""
	if len(units(f.columns)) > 0 && d.chance(3) {
		distinct = "DISTINCT "
		if d.chance(3) && len(domains(f.columns)) > 0 {
			u, by, n := d.among(units(f.columns)), d.among(domains(f.columns)), d.alias()
			return "SELECT DISTINCT ON (" + u.name + ") " + u.name + ", " + by.name + " AS " + n + " FROM " + f.text + d.where(f, depth-1) + " ORDER BY " + u.name + ", " + by.name, // alike rows are alike in what they show
				[]column{{name: bare(u.name), key: u.key}, {name: n, typ: by.typ, values: by.values}}
		}
	}
	return "SELECT " + distinct + list + " FROM " + f.text + d.where(f, depth-1), shows
}

// shows draws what a SELECT shows: keys, columns and values, in any order.
func (d *Drawer) shows(f from, depth int) (string, []column) {
	var shows []column
	var list []string
	add := func(text string, c column) {
		if slices.ContainsFunc(shows, func(have column) bool { return have.name == c.name }) {
			c.name = d.alias()
		}
		if text != c.name && !strings.HasSuffix(text, "."+c.name) {
			text += " AS " + c.name
		}
		shows, list = append(shows, c), append(list, text)
	}
	of := func(c column) {
		own := c
		own.name = bare(c.name)
		if d.chance(4) {
			own.name = d.alias()
		}
		add(c.name, own)
	}
	for _, k := range keys(f.columns) {
		if d.dice.IntN(4) > 0 && !slices.ContainsFunc(shows, func(c column) bool { return c.key == unitKey && k.key == unitKey }) {
			of(k)
		}
	}
	for range 1 + d.dice.IntN(3) {
		if list := domains(f.columns); len(list) > 0 && d.dice.IntN(3) > 0 {
			of(d.among(list))
		} else if text, c := d.value(f.columns, depth); text != "" {
			c.name = d.alias()
			add(text, c)
		}
	}
	if len(list) == 0 {
		of(f.columns[0])
	}
	d.dice.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i]; shows[i], shows[j] = shows[j], shows[i] })
	return strings.Join(list, ", "), shows
}

// grouped has groups of each unit's rows.
func (d *Drawer) grouped(f from, depth int) (string, []column) {
	list := units(f.columns)
	if len(list) == 0 {
		return "", nil
	}
	u := d.among(list)
	by, shows := []string{u.name}, []column{{name: bare(u.name), key: u.key}}
	texts := []string{u.name}
	for range d.dice.IntN(3) {
		of := d.among(f.columns)
		if slices.Contains(by, of.name) || slices.ContainsFunc(shows, func(c column) bool { return c.name == bare(of.name) }) {
			continue
		}
		own := of
		own.name = bare(of.name)
		by, texts, shows = append(by, of.name), append(texts, of.name), append(shows, own)
	}
	for range d.dice.IntN(3) {
		if text, c := d.value(f.columns, depth-1); text != "" && d.chance(3) {
			c.name = d.alias()
			by, texts, shows = append(by, text), append(texts, text+" AS "+c.name), append(shows, c)
			continue
		}
		if d.chance(4) {
			text, c := d.ever(f.columns, depth-1)
			texts, shows = append(texts, text+" AS "+c.name), append(shows, c)
			continue
		}
		n, text := d.alias(), d.aggregate(f.columns, depth-1)
		if list := domains(f.columns); len(list) > 0 && d.chance(3) {
			c := d.among(list)
			text = d.one("min(", "max(") + c.name + ")"
			c.name = n
			texts, shows = append(texts, text+" AS "+n), append(shows, column{name: n, typ: c.typ, values: c.values})
			continue
		}
		texts, shows = append(texts, text+" AS "+n), append(shows, column{name: n, typ: "bigint", values: []string{"0", "1", "2", "3"}})
	}
	text := "SELECT " + strings.Join(texts, ", ") + " FROM " + f.text + d.where(f, depth-1) + " GROUP BY " + strings.Join(by, ", ")
	if d.chance(4) {
		text += " HAVING " + d.aggregate(f.columns, depth-1) + d.one(" > 1", " = 1", " <= 2")
	}
	return text, shows
}

// ever is whether a condition holds of some or all rows, in truth values or numbers.
func (d *Drawer) ever(in []column, depth int) (string, column) {
	of := d.condition(in, depth)
	if d.chance(2) {
		return d.one("bool_or(", "bool_and(", "every(") + of + ")",
			column{name: d.alias(), typ: "boolean", values: []string{"true", "false"}}
	}
	return d.one("max(", "min(", "sum(") + "CASE WHEN " + of + " THEN 1 ELSE 0 END)",
		column{name: d.alias(), typ: "integer", values: []string{"0", "1"}}
}

// together puts rows of two SELECTs together.
func (d *Drawer) together(f from, depth int) (string, []column) {
	list, shows := d.shows(f, 0)
	g := d.from(depth - 1)
	var others []string
	for i, c := range shows {
		same := of(g.columns, func(have column) bool { return have.key == c.key && have.typ == c.typ })
		switch {
		case len(same) > 0:
			others = append(others, d.among(same).name)
		case c.key != "" || len(c.values) == 0: // another condition on the same rows
			g, others = f, nil
		default:
			others = append(others, d.one(c.values...))
		}
		if g.text == f.text {
			break
		}
		_ = i
	}
	second := list
	if g.text != f.text {
		second = strings.Join(others, ", ")
	}
	op := d.one(" UNION ALL ", " UNION ", " INTERSECT ", " EXCEPT ")
	return "SELECT " + list + " FROM " + f.text + d.where(f, depth-1) + op + "SELECT " + second + " FROM " + g.text + d.where(g, depth-1), shows
}

// windowed has what window functions say of a unit's rows.
func (d *Drawer) windowed(f from, depth int) (string, []column) {
	list, by := units(f.columns), domains(f.columns)
	if len(list) == 0 || len(by) == 0 {
		return "", nil
	}
	text, shows := d.shows(f, depth-1)
	partition := "PARTITION BY " + d.among(list).name
	if d.chance(3) {
		partition += ", " + d.among(f.columns).name
	}
	of, n := d.among(by), d.alias()
	order := " ORDER BY " + d.among(by).name
	c := column{name: n, typ: "bigint", values: []string{"1", "2", "3"}}
	calls := []string{"count(*) OVER (" + partition + ")", "rank() OVER (" + partition + order + ")",
		"dense_rank() OVER (" + partition + order + ")", ""}
	if list := numbers(f.columns); len(list) > 0 {
		calls = append(calls, "count(*) OVER ("+partition+" ORDER BY "+d.among(list).name+d.one("", " DESC")+
			d.one(" RANGE 1 PRECEDING)", " RANGE BETWEEN 1 FOLLOWING AND 3 FOLLOWING)",
				" RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING)"))
	}
	call := d.one(calls...)
	if call == "" {
		call = d.one("min(", "max(") + of.name + ") OVER (" + partition + ")"
		c.typ, c.values = of.typ, of.values
	}
	return "SELECT " + text + ", " + call + " AS " + n + " FROM " + f.text + d.where(f, depth-1), append(shows, c)
}

// value is an expression over rows, and what it shows; empty means there is none.
func (d *Drawer) value(in []column, depth int) (string, column) {
	list := domains(in)
	switch k := d.dice.IntN(8); {
	case k == 0 && depth >= 0:
		of := "count(*)"
		c := column{typ: "bigint", values: []string{"0", "1", "2"}}
		if text := d.ofUnit(in, depth-1, of); text != "" {
			return text, c
		}
	case k == 1 && depth >= 0:
		if text := d.ofUnit(in, depth-1, "max"); text != "" {
			return text, column{}
		}
	case k == 2 && len(list) > 0:
		return "CASE WHEN " + d.condition(in, depth-1) + " THEN 1 ELSE 0 END", column{typ: "integer", values: []string{"0", "1"}}
	case k == 3 && len(numbers(in)) > 0:
		c := d.among(numbers(in))
		return c.name + d.one(" + 1", " % 2", " * 2"), column{typ: c.typ, values: c.values}
	case k == 4 && len(list) > 0:
		c := d.among(list)
		return "coalesce(" + c.name + ", " + d.one(c.values...) + ")", column{typ: c.typ, values: c.values}
	case k == 5 && depth >= 0:
		return "CASE WHEN " + d.elsewhere(in, depth) + " THEN 1 ELSE 0 END", column{typ: "integer", values: []string{"0", "1"}}
	}
	if len(list) == 0 {
		return "", column{}
	}
	c := d.among(list)
	return c.name, column{typ: c.typ, values: c.values}
}

// ofUnit is a sub-query that aggregates rows of the row's own unit; empty means there is no key.
func (d *Drawer) ofUnit(in []column, depth int, aggregate string) string {
	r := d.relation(max(depth, 0))
	on := d.equal(in, r.columns)
	if on == "" {
		return ""
	}
	if aggregate == "max" {
		list := of(r.columns, func(c column) bool {
			return c.typ != "" && c.typ != "text" && c.typ != "boolean" && c.typ != "character varying"
		})
		if len(list) == 0 {
			return ""
		}
		aggregate = d.one("max(", "min(", "count(DISTINCT ") + d.among(list).name + ")"
	}
	if d.chance(2) {
		on += " AND " + d.simple(r.columns)
	}
	if both := d.same(in, r.columns); len(both) > 0 && d.chance(4) {
		on += " AND " + both[0] + " = " + both[1]
	}
	return "(SELECT " + aggregate + " FROM " + r.name + " WHERE " + on + ")"
}

// equal equates keys of two relations, the unit's nearly always; empty means they have none in common.
func (d *Drawer) equal(in, others []column) string {
	var on []string
	for _, k := range keys(others) {
		if same := of(in, func(c column) bool { return c.key == k.key }); len(same) > 0 && (k.key == unitKey && len(on) == 0 || d.chance(3)) {
			on = append(on, k.name+" = "+d.among(same).name)
		}
	}
	return strings.Join(on, " AND ")
}

// condition is one on rows.
func (d *Drawer) condition(in []column, depth int) string {
	switch k := d.dice.IntN(8); {
	case k == 0 && depth > 0:
		return "(" + d.condition(in, depth-1) + d.one(" AND ", " OR ") + d.condition(in, depth-1) + ")"
	case k == 1 && depth >= 0:
		return d.elsewhere(in, depth)
	case k == 2 && depth >= 0:
		if text := d.ofUnit(in, depth-1, "count(*)"); text != "" {
			return text + d.one(" > 1", " = 0", " < 3")
		}
	case k == 3 && len(keys(in)) > 0:
		return d.among(keys(in)).name + d.one(" IS NULL", " IS NOT NULL")
	}
	return d.simple(in)
}

// simple is a condition on a column.
func (d *Drawer) simple(in []column) string {
	list := of(in, func(c column) bool { return c.typ != "" && len(c.values) > 0 })
	if len(list) == 0 {
		return "true"
	}
	c := d.among(list)
	switch d.dice.IntN(5) {
	case 0:
		return c.name + d.one(" IS NULL", " IS NOT NULL")
	case 1:
		return c.name + " IN (" + d.one(c.values...) + ", " + d.one(c.values...) + ")"
	case 2:
		return "NOT " + c.name + " = " + d.one(c.values...)
	}
	if c.typ == "text" || c.typ == "boolean" || c.typ == "character varying" {
		return c.name + " = " + d.one(c.values...)
	}
	return c.name + d.one(" > ", " <= ", " = ") + d.one(c.values...)
}
