package truth

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// What a policy does to rows before they are counted, and what the notice says of each (privacy rule 22).
const (
	clamping = "values outside a domain count as its nearest end"
	bounding = "rows beyond the bound of a unit are left out"
	leaving  = "rows are left out that have no value in a column's domain"
)

// club has members; visits, of which each member has up to four and one is counted; loans, of which some name no member
// and count each, and some keys are NULL; and fees, whose bounds snap to steps. Unlike in the other schemas the
// policy's rules change what is counted.
func club(seed uint64) *schema {
	d := newDice(seed, 9)
	key := func(name, stored string) column {
		return column{name: name, stored: stored, declared: "integer", rules: "keys: join", kind: keyKind}
	}
	member := &table{name: "member", named: "member_id", bound: 1, keys: []string{"PRIMARY KEY (member_id)"}, columns: []column{
		key("member_id", "integer"),
		{name: "level", stored: "text", declared: "text", rules: "domain: {values: [gold, silver]}", kind: textKind, values: []string{"'gold'", "'silver'"}},
		{name: "born", stored: "date", declared: "date", rules: "domain: {min: 1990-01-01, max: 2009-12-31}, outside: clamp", truth: "greatest(least(born, '2009-12-31'), '1990-01-01')", kind: dateKind, values: []string{"'1990-01-01'", "'2000-06-15'", "'2009-12-31'", "'2015-01-01'", "'1980-01-01'"}},
		{name: "active", stored: "boolean", declared: "boolean", kind: boolKind},
	}}
	visit := &table{name: "visit", named: "member_id", unit: "visit.member_id = member.member_id", bound: 1, columns: []column{
		key("visit_id", "integer"),
		key("member_id", "integer NOT NULL"),
		{name: "minutes", stored: "integer", declared: "integer", rules: "domain: {min: 0, max: 100}, outside: clamp", truth: "CASE WHEN minutes IS NOT NULL THEN greatest(0, least(100, minutes)) END", kind: wholeKind, values: []string{"0", "60", "100", "101", "-1"}},
		{name: "room", stored: "text", declared: "text", rules: "domain: {values: [gym, pool, sauna]}", kind: textKind, values: []string{"'gym'", "'pool'", "'bar'"}},
		{name: "guest", stored: "boolean", declared: "boolean", kind: boolKind},
	}}
	loan := &table{name: "loan", named: "member_id", unit: "loan.member_id = member.member_id", bound: 6, each: true, columns: []column{
		key("member_id", "integer"),
		key("visit_id", "integer"),
		{
			name: "days", stored: "smallint", declared: "smallint", kept: "days BETWEEN 1 AND 9",
			rules: "domain: {min: 1, max: 9}, nulls: exclude, outside: exclude",
			kind:  wholeKind, values: []string{"1", "4", "9"},
		},
		{name: "thing", stored: "text", declared: "text", rules: "domain: {values: [ball, towel]}", kind: textKind, values: []string{"'ball'", "'towel'"}},
	}}
	fee := &table{name: "fee", named: "member_id", unit: "fee.member_id = member.member_id", bound: 3, columns: []column{
		key("member_id", "integer NOT NULL"),
		{name: "due", stored: "numeric(6,1)", declared: "numeric(6,1)", rules: "domain: {min: 0, max: 50, step: 0.5}, offgrid: snap", kind: moneyKind, values: []string{"0", "9.8", "25", "25.3"}},
		{name: "paid", stored: "numeric(6,1)", declared: "numeric(6,1)", rules: "domain: {min: 0, max: 40, step: 0.1}, outside: clamp", truth: "CASE WHEN paid IS NOT NULL THEN greatest(0, least(40, paid)) END", kind: moneyKind, values: []string{"0", "10.5", "40", "41"}},
	}}
	visits := 0
	for id := 1; id <= 120; id++ {
		who, born := strconv.Itoa(id), day("1990-01-01", d.IntN(7305))
		if d.chance(8) {
			born = d.one("1950-01-01", "2020-02-02")
		}
		member.rows = append(member.rows, []string{who, d.one("gold", "silver", null), born, d.one("t", "f", null)})
		for range d.IntN(5) {
			visits++
			minutes := strconv.Itoa(d.IntN(101))
			if d.chance(6) {
				minutes = d.one("150", "-20", null)
			}
			visit.rows = append(visit.rows, []string{strconv.Itoa(visits), who, minutes, d.one("gym", "pool", "sauna"), d.one("t", "f")})
		}
		for range d.IntN(4) {
			of, on := who, strconv.Itoa(1+d.IntN(visits+1))
			if d.chance(9) {
				of = null
			}
			if d.chance(9) {
				on = null
			}
			days := strconv.Itoa(1 + d.IntN(9))
			if d.chance(9) {
				days = d.one("30", null)
			}
			loan.rows = append(loan.rows, []string{of, on, days, d.one("ball", "towel", null)})
		}
		for range d.IntN(4) {
			fee.rows = append(fee.rows, []string{who, halves(d.IntN(101)), d.one("10.5", "40", "77.7", "0.1", null)})
		}
	}
	return &schema{name: "club", unit: "member.member_id", tables: []*table{member, visit, loan, fee}, edges: []edge{
		{"visit", "member", [][2]string{{"member_id", "member_id"}}, true},
		{"loan", "member", [][2]string{{"member_id", "member_id"}}, true},
		{"fee", "member", [][2]string{{"member_id", "member_id"}}, true},
		{"loan", "visit", [][2]string{{"visit_id", "visit_id"}}, false},
	}}
}

// rules are what a policy does to rows, each to those that the ones before have made.
var rules = []string{leaving, clamping, bounding}

// asMade is the SQL of a schema with the rows as the first so many rules make them. Of rows beyond a bound it leaves
// out some, which need not be those that dpproxy leaves out: an answer that depends on which depends on the bound.
func (s *schema) asMade(first int) (list []string) {
	made := rules[:first]
	list = append(list, "CREATE SCHEMA "+schemaOf(first))
	for _, t := range s.stored() {
		var columns []string
		whole := "true"
		for _, c := range t.columns {
			value := c.name
			if slices.Contains(made, leaving) && c.kept != "" {
				whole += " AND " + c.kept
			}
			if slices.Contains(made, clamping) && strings.Contains(c.rules, "outside: clamp") {
				value = c.truth
			}
			columns = append(columns, "("+value+")::"+strings.TrimSuffix(c.stored, " NOT NULL")+" AS "+c.name)
		}
		kept := ""
		if slices.Contains(made, bounding) {
			kept = fmt.Sprintf(" WHERE t.%s IS NULL OR n <= %d", t.named, t.bound)
		}
		list = append(list, fmt.Sprintf("CREATE TABLE %s.%s AS SELECT %s FROM (SELECT *, row_number() OVER (PARTITION BY %s ORDER BY md5(q::text)) AS n FROM public.%[2]s q WHERE %[6]s) t%[5]s",
			schemaOf(first), t.name, strings.Join(columns, ", "), t.named, kept, whole))
	}
	return append(list, "ANALYZE")
}

func schemaOf(first int) string { return fmt.Sprint("made", first) }

// What a notice says of the rules, and of what else an answer may differ from PostgreSQL's by.
var (
	saysOfRule = map[string]*regexp.Regexp{
		clamping: regexp.MustCompile(`values of (?:\w+\.)?(\w+) outside its domain count as its nearest end`),
		bounding: regexp.MustCompile(`± does not cover what is left out`),
		leaving:  regexp.MustCompile(`rows of (\w+) are left out where`),
	}
	saysOfBound = regexp.MustCompile(`(?:one row|rows) of each person (?:is|are) counted in (\w+)`)
	saysOther   = regexp.MustCompile(`snap to its steps|name no person|` + regexp.QuoteMeta(nowhere) + `|` + unlisted + `|that nobody is in|a few rows go unseen|are NULL where the count of their rows is within|put together where they are of one person|is taken to be NULL where`)
)

// TestNoticesOfRules: whatever the policy's rules change in the answer to a drawn statement a notice names, and no
// notice names a rule that the statement cannot meet.
//
// Law. If PostgreSQL's answers over rows and over what a rule makes of them differ, the notice of that rule is there;
// likewise where PostgreSQL's answer is another once keys that are NULL are left out of a NOT IN. If dpproxy's answer
// is not PostgreSQL's over the stored rows, some notice says why: snapping, rows of no unit, keys that are NULL. And a
// column or table that a notice of a rule names is one that the statement names, of which the policy has the rule.
// -truth-statements decides how many are drawn: a fifth of them.
func TestNoticesOfRules(t *testing.T) {
	if !chosen("club", "duckdb") {
		t.Skip("another schema or engine is chosen")
	}
	s := club(*seed)
	p := pairOver(t, s, "duckdb", func(*schema) {})
	server := pgtest.Shared(t)
	_, database := s.database(t, server)
	rows := make([]*client, len(rules)+1)
	for first := range rows {
		server.Exec(t, database, s.asMade(first)...)
		rows[first] = dial(t, server.URLFor("postgres", database)+"&options=-csearch_path%3D"+schemaOf(first), "SELECT 1")
	}
	g := &grammar{dice: newDice(*seed, 10), s: s}
	answered, met := 0, map[string]int{}
	for i := range max(1, *statements/5) {
		drawn := g.statement()
		switch i % 6 {
		case 0:
			drawn = g.missing("loan")
		case 1:
			drawn = g.beyond()
		case 2:
			drawn = g.several()
		}
		drawn.limit = 0
		if drawn.text != "" {
			drawn.truth = drawn.text
		}
		if p.paid++; p.paid > *held {
			p.fresh()
		}
		got := p.ask(drawn.sql(false))
		if got.err != nil {
			continue
		}
		answered++
		for _, fault := range p.unsaid(drawn, got, rows, met) {
			t.Errorf("%s\n  %s\n  notes: %q", fault, drawn.sql(false), got.said)
		}
		if t.Failed() && *statements < 5000 {
			break
		}
	}
	t.Logf("%d statements answered; notices that had to be there: %v", answered, met)
	for _, rule := range append(rules, nowhere) {
		if met[rule] == 0 {
			t.Errorf("no answer differs because %s: the law has seen nothing", rule)
		}
	}
}

// missing is a statement that counts what has no row in a table.
func (g *grammar) missing(in string) *statement {
	for {
		p := g.tablePlace(g.private())
		if condition, known, _ := g.semi(p); strings.Contains(condition, " NOT IN (SELECT ") && strings.Contains(condition, " FROM "+in+" ") {
			return &statement{from: p.text, where: []string{condition}, known: [2]string{condition, known}, outs: []output{{sql: "count(*)", name: "a1", role: countRole}}}
		}
	}
}

// beyond is a statement that compares a clamped column alone, often with what is beyond its ends: of its rows, or of
// the members who have such rows.
func (g *grammar) beyond() *statement {
	for {
		p := g.tablePlace(g.private())
		for _, c := range p.columns {
			if !strings.Contains(c.rules, "outside: clamp") {
				continue
			}
			condition := c.name + g.one(" > ", " >= ", " < ", " <= ") + g.value(c)
			if p.single.unit != "" && g.chance(2) {
				condition = "m.member_id" + g.one(" IN ", " NOT IN ") + "(SELECT " + p.unit + " FROM " + p.text + " WHERE " + condition + ")"
				p.text = "member AS m"
			}
			return &statement{from: p.text, where: []string{condition}, outs: []output{{sql: "count(*)", name: "a1", role: countRole}}}
		}
	}
}

// several is a statement that counts who has so many rows in a table that bounds may leave nobody to count.
func (g *grammar) several() *statement {
	for {
		p := g.tablePlace(g.private())
		if n, ok := g.ofUnit(p); ok && strings.HasPrefix(n, "(SELECT count(") {
			return &statement{from: p.text, where: []string{n + g.one(" > 1", " >= 2", " > 3")}, outs: []output{{sql: "count(*)", name: "a1", role: countRole}}}
		}
	}
}

// unsaid lists what is wrong with the notices of an answer; rows are PostgreSQL's clients by how many rules have made
// theirs.
func (p *pair) unsaid(s *statement, got answer, rows []*client, met map[string]int) (faults []string) {
	sql, said := strings.ReplaceAll(s.sql(false), "public.", ""), strings.Join(got.said, "\n")
	stored := rows[0].ask(sql)
	if stored.err != nil {
		return nil
	}
	any, before := saysOther.MatchString(said), stored
	for i, rule := range rules {
		says := saysOfRule[rule]
		any = any || says.MatchString(said)
		made := rows[i+1].ask(sql)
		if !slices.EqualFunc(loosely(made), loosely(before), slices.Equal[[]string]) {
			if met[rule]++; !says.MatchString(said) {
				faults = append(faults, "no notice says that "+rule)
			}
		}
		before = made
	}
	if known := rows[0].ask(strings.ReplaceAll(s.sql(true), "public.", "")); !slices.EqualFunc(loosely(known), loosely(stored), slices.Equal[[]string]) {
		if met[nowhere]++; !strings.Contains(said, nowhere) {
			faults = append(faults, "no notice says that keys that are NULL are nowhere, "+nowhere)
		}
	}
	if v := judge(s, got, stored); v.class == wrong {
		if met["other"]++; !any {
			faults = append(faults, "no notice says why the answer is not PostgreSQL's: "+v.why)
		}
	}
	for _, m := range saysOfRule[clamping].FindAllStringSubmatch(said, -1) {
		if !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(sql) {
			faults = append(faults, "a notice says that "+m[1]+" is clamped, which the statement does not read")
		}
	}
	for _, m := range saysOfRule[leaving].FindAllStringSubmatch(said, -1) {
		if m[1] != "loan" || !strings.Contains(sql, "loan") {
			faults = append(faults, "a notice says that rows of "+m[1]+" are left out, which are not read, or not left out")
		}
	}
	bounded := false
	for _, m := range saysOfBound.FindAllStringSubmatch(said, -1) {
		if !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(sql) {
			faults = append(faults, "a notice says that rows of "+m[1]+" are bounded, which the statement does not read")
		}
		bounded = bounded || m[1] != "member"
	}
	if saysOfRule[bounding].MatchString(said) && !bounded {
		faults = append(faults, "a notice says that rows are left out of tables with one row of each member")
	}
	return faults
}
