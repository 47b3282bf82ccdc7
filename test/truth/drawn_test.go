package truth

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/semantics"
)

// drawn is a statement over the schema kinds, with marks for its constants.
type drawn struct {
	text, truth string // truth is what PostgreSQL is asked
	given       []given
	outs        []output
	ordered     bool
	by          way
	settings    []string
}

// drawer draws statements: in each an expression may be wherever SQL has one.
type drawer struct {
	dice
	below, above *language
}

// functionsAbove are those that an outer query may call, with what PostgreSQL's catalog says of their types.
func (p *pair) functionsAbove(t testing.TB, from *language) *language {
	t.Helper()
	l := &language{of: map[sqlType][]production{}, implicit: from.implicit, explicit: from.explicit}
	for of, list := range from.of {
		for _, production := range list {
			if production.sign {
				l.of[of] = append(l.of[of], production)
			}
		}
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(semantics.EngineFunctions)), func(name string) bool {
		return name == "hashtext" || strings.HasPrefix(name, "pg_") && !strings.HasPrefix(name, "pg_size_") || strings.HasPrefix(name, "current_") || strings.HasPrefix(name, "has_")
	})
	a := p.plain.ask(`SELECT proname, array_to_string(proargtypes::oid[], '+') || '=' || prorettype FROM pg_proc
		WHERE proname = ANY ('{` + strings.Join(names, ",") + `}') AND prokind = 'f' AND NOT proretset AND provolatile <> 'v' AND provariadic = 0 AND pronargs > 0 AND pronamespace = 'pg_catalog'::regnamespace ORDER BY 1, 2`)
	if a.err != nil {
		t.Fatal(a.err)
	}
	for _, row := range a.rows {
		l.add(row[0], row[1], false)
	}
	return l
}

// merged is what is in scope of several relations.
func merged(list ...map[sqlType][]string) map[sqlType][]string {
	out := map[sqlType][]string{}
	for _, m := range list {
		for _, of := range slices.Sorted(maps.Keys(m)) {
			out[of] = append(out[of], m[of]...)
		}
	}
	return out
}

// named puts an alias before each column that a text has as @name.
func named2(alias string, scope map[sqlType][]string) map[sqlType][]string {
	out := map[sqlType][]string{}
	for of, list := range scope {
		for _, text := range list {
			out[of] = append(out[of], strings.ReplaceAll(text, "@", alias))
		}
	}
	return out
}

// thingColumns are the columns of thing, and what is constant within a cell of those that have wider steps.
func thingColumns(alias string) map[sqlType][]string {
	return named2(alias, map[sqlType][]string{
		boolType: {"@b"}, int2Type: {"@i2"}, int4Type: {"@i4"}, int8Type: {"@i8"}, numericType: {"@n", "@m"}, textType: {"@t", "@t", "@mood"}, varcharType: {"@v"}, charType: {"@c5", "@c2"}, dateType: {"@d"}, uuidType: {"@u"},
		real8Type: {"@i4::float8", "(@i2 / 7.0::float8)", "(@n::float8 / 3)"}, real4Type: {"@n::real", "(@i2::real / 3)"}, momentType: {"date_trunc('hour', @ts)", "@d::timestamp", "(@d + interval '90 minutes')"},
		zonedType: {"date_trunc('hour', @tz)", "@d::timestamptz", "(@d + interval '02:30')::timestamptz"}, intervalType: {"(@i4 * interval '1 day 00:00:01.5')", "(@i2 * interval '1 month')", "age(@d::timestamp, '2000-02-29')"},
	})
}

func eventColumns(alias string) map[sqlType][]string {
	return named2(alias, map[sqlType][]string{boolType: {"@yes"}, int4Type: {"@i4"}, numericType: {"@n"}, varcharType: {"@v8"}, charType: {"@c3"}, dateType: {"@d"}, real8Type: {"(@i4 * 0.1::float8)"}, intervalType: {"(@i4 * interval '-1 day 1 hour')"}})
}

func sortColumns(alias string) map[sqlType][]string {
	return named2(alias, map[sqlType][]string{boolType: {"@yes"}, int2Type: {"@small"}, int8Type: {"@big"}, numericType: {"@amount", "@rate"}, real4Type: {"@r"}, real8Type: {"@f"}, textType: {"@label"}, varcharType: {"@code"}, charType: {"@tag"},
		dateType: {"@day"}, momentType: {"@ts"}, zonedType: {"@tz"}, uuidType: {"@u"}})
}

// beside are columns of thing and of sort that one may join by.
var beside = [][2]string{{"c5", "code"}, {"c2", "code"}, {"v", "code"}, {"t", "code"}, {"t", "label"}, {"c5", "tag"}, {"c2", "tag"}, {"v", "tag"}, {"t", "tag"}, {"i2", "small"}, {"i4", "small"}, {"i8", "big"}, {"i4", "big"}, {"n", "amount"}, {"n", "rate"}, {"i4", "amount"}, {"d", "day"}, {"d", "ts"}, {"d", "tz"}, {"u", "u"}, {"b", "yes"}}

// source is what is in FROM, and before the statement.
type source struct{ with, from, where string }

// rows draws private rows, and what is in scope of them.
func (g *drawer) rows(w *writer, deep bool) source {
	switch k := g.IntN(12); {
	case k == 0:
		w.scope = thingColumns("")
		return source{from: "thing"}
	case k == 1:
		w.scope = eventColumns("e.")
		return source{from: "event e"}
	case k == 2:
		w.scope = merged(thingColumns("x."), eventColumns("e."))
		return source{from: g.one("thing x JOIN event AS e ON e.thing_id = x.thing_id", "event e JOIN thing x USING (thing_id)", "event e LEFT JOIN thing x ON x.thing_id = e.thing_id", "thing x, event e", "thing AS x LEFT JOIN event e USING (thing_id)")}.linked()
	case k <= 4:
		w.scope = merged(thingColumns("x."), sortColumns("s."))
		on := beside[g.IntN(len(beside))]
		return source{from: "thing x" + g.one(" JOIN ", " JOIN ", " LEFT JOIN ") + "public.sort s ON " + g.one("x."+on[0]+" = s."+on[1], "s."+on[1]+" = x."+on[0])}
	case k == 5: // an expression is looked up
		w.scope = thingColumns("x.")
		of := []sqlType{textType, varcharType, charType, int4Type, dateType, numericType}[g.IntN(6)]
		e, a, b := w.expr(of, 1), w.constant(of), w.mixed(of, -1)
		w.scope = merged(w.scope, map[sqlType][]string{int4Type: {"v.w", "v.w"}, of: {"v.k"}})
		_ = b
		return source{from: "thing AS x" + g.one(" JOIN ", " LEFT JOIN ") + "(VALUES (" + a + ", 1), (" + w.constant(of) + ", 2)) AS v(k, w) ON " + g.one("v.k = "+e, e+" = v.k")}
	case k == 6: // USING, over columns of two types
		w.scope = thingColumns("x.")
		column := g.one("c5", "v", "t", "i2", "i4", "d", "n")
		value := map[string]string{"c5": g.one("'ab'::varchar", "'ab'::text", "'abc'"), "v": g.one("'ab '::text", "'ab'::bpchar", "'ab'"), "t": g.one("'ab'::varchar", "'ab '"), "i2": g.one("1", "1::bigint", "1.0"), "i4": g.one("1::smallint", "2::bigint"), "d": "'2024-02-29'::date", "n": g.one("1.50::numeric(4,1)", "1::int")}[column]
		w.scope[int4Type] = append(w.scope[int4Type], "v.w")
		return source{from: "thing x JOIN (VALUES (" + value + ", 1)) AS v(" + column + ", w) USING (" + column + ")"}
	case k <= 8 && deep:
		return g.derived(w)
	}
	alias := g.one("x", "x", `"X y"`, "event") // a name that is another table's
	w.scope = thingColumns(alias + ".")
	return source{from: "thing AS " + alias}
}

// linked gives two relations without a condition theirs.
func (s source) linked() source {
	if s.from == "thing x, event e" {
		s.where = "x.thing_id = e.thing_id"
	}
	return s
}

// derived are rows of a sub-query or of a CTE whose columns are expressions.
func (g *drawer) derived(w *writer) source {
	in := g.rows(w, false)
	var list []string
	scope, name := map[sqlType][]string{}, g.one("q", `"Q"`, "sort", "thing")
	for i := range 2 + g.IntN(3) {
		of := ordinary[g.IntN(len(ordinary))]
		column := g.one(fmt.Sprint("c", i), fmt.Sprintf(`"C %d"`, i), []string{"i4", "d", "t", "n", "b"}[i])
		list = append(list, w.expr(of, g.IntN(3))+" AS "+column)
		scope[of] = append(scope[of], name+"."+column)
	}
	where := in.where
	if g.chance(3) {
		where = and(where, w.expr(boolType, 1))
	}
	if where != "" {
		where = " WHERE " + where
	}
	w.scope = scope
	inner := in.with + "SELECT " + strings.Join(list, ", ") + " FROM " + in.from + where
	if g.chance(2) {
		return source{from: "(" + inner + ") AS " + name}
	}
	return source{with: "WITH " + name + " AS (" + inner + ") ", from: name}
}

func and(list ...string) string {
	list = slices.DeleteFunc(list, func(s string) bool { return s == "" })
	return strings.Join(list, " AND ")
}

// key is a column of a drawn answer.
type key struct {
	sql, name string
	of        sqlType
}

// grouped draws a statement that counts rows by keys. What it returns besides are its keys.
func (g *drawer) grouped(w *writer, d *drawn, more bool) (text, truth string, keys []key, outs []output) {
	s := g.rows(w, true)
	where := s.where
	if g.chance(2) {
		condition, of := w.shallow()
		if of != boolType || g.chance(3) {
			condition = w.expr(boolType, 1+g.IntN(2))
		}
		where = and(where, condition)
	}
	for i := range g.IntN(3) {
		of := ordinary[g.IntN(len(ordinary))]
		sql := ""
		if g.chance(2) {
			sql, of = w.shallow()
		} else {
			sql = w.expr(of, g.IntN(3))
		}
		keys = append(keys, key{sql, []string{"k1", "k2", "k3"}[i], of})
	}
	if !more && g.chance(6) && len(keys) > 0 { // a name that a column has
		keys[0].name = g.one("d", "i4", `"count"`, `"K 1"`, "t")
	}
	var list, plain, by []string
	for i, k := range keys {
		list = append(list, k.sql+" AS "+k.name)
		shown := k.sql
		if k.of == charType && d.by == copied && !isColumn.MatchString(k.sql) { // a choice among chars is shown without blanks (docs/policy.md), and a copy does not tell its type
			shown = "(" + shown + ")::text"
		}
		plain = append(plain, shown+" AS "+k.name)
		by = append(by, g.one(fmt.Sprint(i+1), k.sql))
		outs = append(outs, output{sql: k.sql, name: k.name, role: windowRole, equals: k.of == intervalType})
	}
	measures := []output{{sql: "count(*)", name: "n"}}
	if !more {
		for i := range g.IntN(3) {
			measures = append(measures, output{sql: g.measured(w), name: fmt.Sprint("a", i+1)})
		}
	}
	for _, m := range measures {
		m.role = windowRole
		if strings.HasPrefix(m.sql, "sum(") || strings.HasPrefix(m.sql, "avg(") {
			m.role = valueRole
		}
		list, plain, outs = append(list, m.sql+" AS "+m.name), append(plain, m.sql+" AS "+m.name), append(outs, m)
	}
	rest := " FROM " + s.from
	if where != "" {
		rest += " WHERE " + where
	}
	if len(by) > 0 {
		rest += " GROUP BY " + strings.Join(by, ", ")
	}
	rest += " HAVING count(*) > 0"
	if g.chance(5) && len(keys) > 0 {
		scope := w.scope
		w.scope = map[sqlType][]string{}
		for _, k := range keys {
			w.scope[k.of] = append(w.scope[k.of], k.sql)
		}
		rest += " AND " + w.expr(boolType, 1)
		w.scope = scope
	}
	return s.with + "SELECT " + strings.Join(list, ", ") + rest, s.with + "SELECT " + strings.Join(plain, ", ") + rest, keys, outs
}

// measured is an aggregate of expressions.
func (g *drawer) measured(w *writer) string {
	of := ordinary[g.IntN(len(ordinary))]
	switch g.IntN(9) {
	case 0:
		return "count(" + w.expr(of, 2) + ")"
	case 1, 2:
		return "count(*) FILTER (WHERE " + w.expr(boolType, 2) + ")"
	case 3:
		return g.one("sum(", "sum(", "avg(") + w.expr([]sqlType{int4Type, int4Type, int2Type, numericType}[g.IntN(4)], 1+g.IntN(2)) + ")"
	case 4:
		return "sum(CASE WHEN " + w.expr(boolType, 2) + " THEN " + g.one("1", "2", "-1") + " ELSE 0 END)"
	case 5:
		return g.one("bool_or(", "bool_and(", "every(") + w.expr(boolType, 1) + ")"
	case 6:
		return "count(DISTINCT " + w.expr(of, g.IntN(2)) + ")"
	case 7:
		return "count(CASE WHEN " + w.expr(boolType, 1) + " THEN " + w.expr(of, 1) + " END)"
	}
	return "count(nullif(" + w.expr(of, 1) + ", " + w.mixed(of, 1) + "))"
}

// isColumn tells a column from an expression.
var isColumn = regexp.MustCompile(`^[a-z0-9_.]+$`)

// over draws what is above counts: every clause of an outer query.
func (g *drawer) over(w *writer, d *drawn) {
	inner, truth, keys, _ := g.grouped(w, d, true)
	w.below, w.l, w.scope = false, g.above, map[sqlType][]string{int8Type: {"q.n", "q.n"}}
	all := []string{"q.n"}
	for _, k := range keys {
		w.scope[k.of] = append(w.scope[k.of], "q."+k.name)
		all = append(all, "q."+k.name)
	}
	d.ordered = false
	anything := func(depth int) string {
		if g.chance(3) {
			text, _ := w.shallow()
			return text
		}
		types := slices.Concat(ordinary, []sqlType{byteaType, clockType, zonedClock, textsType, wholesType, textType, intervalType})
		return w.expr(types[g.IntN(len(types))], depth)
	}
	rest := ""
	wrap := func(in string) string { return "FROM (" + in + ") AS q" }
	if g.chance(3) {
		wrap = func(in string) string { return "FROM q" }
	}
	beside := g.chance(5)
	if beside { // what is public
		on := ""
		switch of := ordinary[g.IntN(len(ordinary))]; g.IntN(3) {
		case 0:
			w.scope, on = merged(w.scope, sortColumns("s.")), g.one(" JOIN ", " LEFT JOIN ")+"sort s ON "
			on += w.expr(of, 1) + " = " + w.mixed(of, 1)
			all = append(all, "s.label", "s.big", "s.f")
		case 1:
			on = g.one(" JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ") + "(VALUES (" + w.constant(of) + ", 1), (" + w.constant(of) + ", 2)) AS v(k1, w) USING (k1)"
			all = append(all, "v.w")
			w.scope[int4Type] = append(w.scope[int4Type], "v.w")
		default:
			on = " NATURAL " + g.one("", "LEFT ") + "JOIN (VALUES (" + w.constant(of) + ", 1), (" + w.constant(of) + ", 2)) AS v(k1, w)"
			all = append(all, "v.w")
			w.scope[int4Type] = append(w.scope[int4Type], "v.w")
		}
		bare := wrap
		wrap = func(in string) string { return bare(in) + on }
	}
	var list []string
	order := "ORDER BY " + strings.Join(all, ", ")
	switch k := g.IntN(8); {
	case k < 4 || k == 7 && beside:
		for range 1 + g.IntN(3) {
			list = append(list, anything(1+g.IntN(2)))
		}
		if g.chance(3) {
			list = append(list, g.one("row_number() OVER ("+order+")", "rank() OVER (ORDER BY q.n DESC)", "sum(q.n) OVER ("+order+")", "lag(q.n) OVER ("+order+")", "first_value(q.n) OVER ("+order+")", "sum(q.n) OVER ("+order+" ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
				"ntile(3) OVER ("+order+")", "count(*) OVER (PARTITION BY "+anything(1)+")", "max("+w.expr(textType, 1)+") OVER ()", "percent_rank() OVER (ORDER BY q.n)", "lead("+w.expr(textType, 0)+", 1, 'none') OVER ("+order+")"))
		}
		if g.chance(2) {
			rest = " WHERE " + w.expr(boolType, 2)
		}
	case k < 6: // grouped again
		for range 1 + g.IntN(2) {
			list = append(list, anything(1))
		}
		by := strings.Join(list, ", ")
		if len(list) > 1 && g.chance(2) && strings.Contains(list[0], ".") && strings.Contains(list[1], ".") { // PostgreSQL 15 takes a constant for one in all sets
			by = g.one("ROLLUP (", "CUBE (", "GROUPING SETS ((), ") + by + ")"
		}
		for range 1 + g.IntN(2) {
			list = append(list, g.one("sum(q.n)", "count(*)", "max(q.n)", "avg(q.n)", "min("+w.expr(textType, 1)+")", "max("+w.expr(dateType, 1)+")", "count(DISTINCT "+anything(0)+")", "bool_or("+w.expr(boolType, 1)+")",
				"string_agg("+w.expr(textType, 1)+", ',' "+order+")", "count(*) FILTER (WHERE "+w.expr(boolType, 1)+")", "percentile_disc(0.5) WITHIN GROUP (ORDER BY q.n)", "array_agg(q.n "+order+")", "min("+w.expr(intervalType, 1)+")", "sum("+w.expr(numericType, 1)+")", "stddev(q.n)"))
		}
		rest = " GROUP BY " + by
		if g.chance(4) {
			rest += " HAVING " + g.one("count(*) > 1", "sum(q.n) % 2 = 0", "bool_or("+w.expr(boolType, 0)+")")
		}
	case k == 6:
		list = append(list, anything(1), anything(1))
		list[0] = "DISTINCT " + list[0]
	default: // a set of sets
		of := ordinary[g.IntN(len(ordinary))]
		a, b := w.expr(of, 1), w.mixed(of, 1)
		list = append(list, a)
		rest = g.one(" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT ", " EXCEPT ALL ") + "SELECT " + b + " FROM q WHERE " + w.expr(boolType, 1)
		wrap = func(string) string { return "FROM q" }
	}
	for i := range list {
		list[i] += fmt.Sprint(" AS a", i+1)
		d.outs = append(d.outs, output{sql: list[i], name: fmt.Sprint("a", i+1), role: windowRole})
	}
	if g.chance(3) {
		d.ordered = true
		var by []string
		for i := range list {
			by = append(by, fmt.Sprint(i+1)+g.one("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
		}
		rest += " ORDER BY " + strings.Join(by, ", ") + g.one("", " LIMIT 3", " LIMIT 5 OFFSET 1", " OFFSET 2", " FETCH FIRST 2 ROWS ONLY")
	}
	build := func(in string) string {
		with := ""
		if strings.HasPrefix(wrap(""), "FROM q") {
			with = "WITH q AS (" + in + ") "
		}
		return with + "SELECT " + strings.Join(list, ", ") + " " + wrap(in) + rest
	}
	d.text, d.truth = build(inner), build(truth)
}

// statement draws one.
func (g *drawer) statement() *drawn {
	d := &drawn{settings: g.session(), by: way(g.IntN(int(ways)))}
	if g.chance(3) {
		d.by = simple
	}
	w := &writer{dice: g.dice, l: g.below, scope: map[sqlType][]string{}, below: true}
	switch k := g.IntN(10); {
	case k < 5:
		d.text, d.truth, _, d.outs = g.grouped(w, d, false)
	case k < 8:
		g.over(w, d)
	default: // no private rows: constants, or public ones
		w.l, w.below = g.above, false
		if g.chance(2) {
			w.l = g.below
		}
		from := ""
		if k == 9 {
			w.scope, from = sortColumns("s."), " FROM sort s"
			if g.chance(2) {
				from += " WHERE " + w.expr(boolType, 2)
			}
		}
		var list []string
		for i := range 1 + g.IntN(2) {
			types := slices.Concat(ordinary, []sqlType{byteaType, clockType, zonedClock, textsType, wholesType})
			list = append(list, fmt.Sprint(w.expr(types[g.IntN(len(types))], 1+g.IntN(2)), " AS a", i+1))
			d.outs = append(d.outs, output{sql: list[i], name: fmt.Sprint("a", i+1), role: windowRole})
		}
		d.text = "SELECT " + strings.Join(list, ", ") + from
		d.truth = d.text
	}
	d.given = w.given
	if d.by == copied || d.by == cursor || d.by == simple {
		return d
	}
	for i := range d.given {
		g := &d.given[i]
		g.always = i > 8 || !slices.Contains(ordinary, g.of) // PREPARE does not know time
	}
	return d
}

// judged asks both, under the same settings.
func (p *pair) drawn(d *drawn) (verdict, answer, answer) {
	for _, s := range d.settings {
		if got, want := p.proxy.ask("SET "+s), p.plain.ask("SET "+s); got.err != nil || want.err != nil {
			return verdict{wrong, fmt.Sprint("SET ", s, ": ", got.err, "; PostgreSQL: ", want.err)}, got, want
		}
	}
	if p.paid == *held {
		p.fresh()
	}
	p.paid++
	got := p.proxy.put(d, d.text, d.by)
	if got.err != nil && got.err.Code == "DP001" {
		p.fresh()
		got = p.proxy.put(d, d.text, d.by)
	}
	want := p.plain.put(d, strings.ReplaceAll(d.truth, "public.", ""), d.by)
	s := &statement{text: d.text, outs: d.outs}
	if d.ordered {
		s.order = []string{"all"}
	}
	switch {
	case got.err == nil && want.err != nil:
		return verdict{lenient, want.err.Code + " " + want.err.Message}, got, want
	case d.by == copied && got.err == nil:
		return p.lines(s, got, want), got, want
	}
	v := judge(s, got, want)
	if v.class == wrong && d.by != binary {
		if again := judge(s, p.measured(s, got), p.measured(s, want)); !again.bad() {
			v = again
		}
	}
	return v, got, want
}

// measured is an answer with the length of each interval that is a key in place of its text: of equal ones, a month and
// thirty days, each may be the group's.
func (p *pair) measured(s *statement, a answer) answer {
	a.rows = slices.Clone(a.rows)
	for i, row := range a.rows {
		a.rows[i] = slices.Clone(row)
		for j, o := range s.outs {
			if !o.equals || j >= len(row) || row[j] == null {
				continue
			}
			if l := p.plain.ask("SELECT extract(epoch FROM justify_interval('" + row[j] + "'::interval))::text"); l.err == nil {
				a.rows[i][j] = l.rows[0][0]
			}
		}
	}
	return a
}

// lines compares what COPY wrote.
func (p *pair) lines(s *statement, got, want answer) verdict {
	if len(got.rows) > 0 && len(want.rows) > 0 && len(got.rows[0]) != len(want.rows[0]) {
		return verdict{wrong, "other columns"}
	}
	for _, a := range []*answer{&got, &want} {
		for i := range s.outs { // their types are not said
			a.columns = append(a.columns, field(s.outs[i].name, uint32(numericType))) // where both are numbers they are compared as such
		}
	}
	return judge(s, got, want)
}

// TestKinds asks drawn statements over columns of every type, in every way, under every setting.
func TestKinds(t *testing.T) {
	l := written(t)
	for i, engine := range engines() {
		if !chosen("kinds", engine) {
			continue
		}
		t.Run(engine, func(t *testing.T) {
			p := pairOver(t, kinds(*seed), engine, func(*schema) {})
			p.hunt(t, &drawer{dice: newDice(*seed, uint64(6+i)), below: l, above: p.functionsAbove(t, l)}, *statements/2)
		})
	}
}

// sent is what was sent where it had parameters.
func (d *drawn) sent() string {
	if d.by < extended || d.by > prepared {
		return wayNames[d.by]
	}
	q := d.written(d.text, true, d.by == binary)
	return fmt.Sprint(wayNames[d.by], ": ", q.sql, " of ", q.types)
}

// hunt asks n drawn statements.
func (p *pair) hunt(t *testing.T, g *drawer, n int) {
	tl, shown, wrongs := newTally(), map[string]int{}, 0
	for range n {
		d := g.statement()
		v, got, want := p.drawn(d)
		tl.asked++
		tl.classes[v.class]++
		why := brief(v.why)
		if v.class == refused || v.class == lenient {
			tl.refusals[why]++
		}
		if v.class == wrong {
			why = ""
		}
		if bad := v.bad(); bad || *verbose && (v.class == refused || v.class == lenient) && shown[why] < 2 {
			if shown[why]++; bad && v.class != wrong && shown[why] > 2 {
				continue
			}
			report := t.Logf
			if bad {
				report = t.Errorf
				wrongs++
			}
			report("%s, %s, %s: %s\n  %s;\n  %s\n  SET %s\n  dpproxy:    %s\n  PostgreSQL: %s", p.engine, v.class, wayNames[d.by], v.why, d.written(d.text, false, false).sql, d.sent(), strings.Join(d.settings, "; SET "), text30(got), text30(want))
		}
		if wrongs > enough()*5 {
			t.Errorf("%s: the rest is not asked", p.engine)
			break
		}
	}
	t.Log(tl.line(p, 0))
}
