package draft

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// listing is a column's line in the policy, or why it has none.
type listing struct {
	typ    string // as the policy declares it
	rules  string // "domain: {min: 0, max: 119}", "keys: join"
	ends   bool   // its least and largest value are a guess
	dates  bool   // its first and last day are
	some   bool   // which codes it has is
	remark string // what she may know
	hidden string // why the column is not listed
}

// firstDay and lastDay are the ends of dates that nothing is known of.
const (
	firstDay, lastDay   = "2000-01-01", "2039-12-31"
	firstBorn, lastBorn = "1900-01-01", "2029-12-31"
)

// Public is what was read of a public table.
type Public struct {
	Rows   int64
	Values map[string]map[string]int64 // how many rows have each text, by column, of those that have few different texts
}

// column decides on a column of a table whose rows lead to the unit.
func (d *drafter) column(p *part, c *Column) listing {
	t := p.table
	if c.Name == d.unit.Column && t == d.unit.Table {
		return listing{hidden: "it names the " + d.unitName() + "; rows are joined by it all the same"}
	}
	if p.role == private && c.Name == p.paths[0].column && d.direct(p) {
		return listing{hidden: "it names the " + d.unitName() + "; rows are joined by it all the same"}
	}
	if why := unnamed(c); why != "" {
		return listing{hidden: why}
	}
	if slices.Contains(t.Unsure, c.Name) {
		return listing{hidden: "its foreign key is not valid, or leads to a table that was not read"}
	}
	if t.ofItself(c.Name) {
		return listing{hidden: "it names another row of this table, mostly another " + d.unitName() + "'s"}
	}
	for _, r := range t.references() {
		if r.column == c.Name {
			return d.asKey(p, c, d.foreign(c, r))
		}
	}
	if why := cmp.Or(personal(c), t.beside(c)); why != "" {
		return listing{hidden: why}
	}
	if slices.Contains(t.Primary, c.Name) && (len(t.Primary) == 1 || kindOf(c) == naming) {
		return joinKey(c)
	}
	about, as := t.counterpart(c.Name)
	if as == nil {
		about, as = t, c
	}
	return d.asKey(p, c, d.values(about, as))
}

// beside says that a number tells where somebody is, as a coordinate does whose name begins alike, or that a moment is
// a secret's: home_tile beside home_lat, restore_expiry beside restore_token. Where that is the table's own name, all
// names may begin so.
func (t *Table) beside(c *Column) string {
	list, k := words(c.Name), kindOf(c)
	if len(list) < 2 || slices.Equal(list[:len(list)-1], words(t.Name)) {
		return ""
	}
	for _, o := range t.Columns {
		other := words(o.Name)
		place, hidden := coordinateWords[last(other)], kindOf(o) == secret
		alike := len(other) > 0 && slices.Equal(other[:len(other)-1], list[:len(list)-1])
		if alike && (place && k == measure || hidden && k == moment) {
			return "it tells of " + o.Name
		}
	}
	return ""
}

// unnamed says that a policy cannot write a column's name; "" means it can.
func unnamed(c *Column) string {
	if strings.ContainsFunc(c.Name, unprintable) {
		return "its name has a character that no policy can write"
	}
	return ""
}

// asKey lets rows be joined by a column that is a part of a key: of the table's own, or of one elsewhere that it names.
// What no two rows have the same of is no category.
func (d *drafter) asKey(p *part, c *Column, l listing) listing {
	if l.rules == "keys: discover" && p.table.alone(c.Name) {
		return listing{hidden: "no two rows have the same"}
	}
	_, elsewhere := p.table.counterpart(c.Name)
	if strings.HasPrefix(c.Type, "character(") || len(c.Labels) > 0 { // is not compared with the text that a key elsewhere is
		return l
	}
	if (elsewhere != nil || slices.Contains(p.table.Primary, c.Name)) && l.hidden == "" && !strings.Contains(l.rules, "keys: ") {
		l.rules += ", keys: join"
	}
	return l
}

func unlistedRow(r reference) string {
	return "it names a row of " + r.to.Name + ", which is left out"
}

// joinKey lists a column for joins alone.
func joinKey(c *Column) listing {
	if c.Domain != "" || len(c.Labels) > 0 {
		return listing{hidden: "a key of a type that the database made"}
	}
	if _, _, err := policy.ParseType(declared(c)); err != nil {
		return listing{hidden: "a key of type " + c.Type}
	}
	return listing{typ: declared(c), rules: "keys: join", remark: "rows are joined by it; it is never shown"}
}

// foreign decides on a column that names a row elsewhere.
func (d *drafter) foreign(c *Column, r reference) listing {
	switch to := d.part(r.to); to.role {
	case unitTable, private, backward:
		return joinKey(c)
	case leftOut:
		return listing{hidden: unlistedRow(r)}
	}
	if listing, ok := d.keysOf(c, r); ok {
		return listing
	}
	l := d.values(r.to, c)
	if b := learn(r.to, c); textual(c) {
		l = text(c, category, b)
	}
	l.remark = "it names a row of " + r.to.Name
	return l
}

// values decides on a column by its kind, type, constraints and comment.
func (d *drafter) values(t *Table, c *Column) listing {
	b, k := learn(t, c), kindOf(c)
	known := len(b.values) > 0 || len(c.Labels) > 0 || b.low != "" // a constraint's word is more than a name's
	switch {
	case k == secret, k == identity, k == naming && !known:
		return listing{hidden: why[k]}
	case len(c.Labels) > 0 && c.Domain != "":
		return listing{hidden: "its type is a domain over an enumerated type, which a view as source can cast to text"}
	case len(c.Labels) > 0:
		return listing{typ: "enum", rules: valueList(c.Labels)}
	case k == flag:
		return listing{typ: c.Type}
	case numbers(c) && declarable(declared(c)): // as numeric(5,-2) is not
		return number(c, b)
	case dated(c):
		return d.day(c, b)
	case textual(c) && declarable(declared(c)) || strings.HasPrefix(c.Type, "character"):
		return text(c, k, b)
	}
	return listing{hidden: "no domain can be guessed for " + c.Type}
}

// text decides on text: a list of values where one is known; else those of categories are found, and free text is never
// shown. Anything else is not listed.
func text(c *Column, k kind, b bounds) listing {
	typ := declared(c)
	if strings.HasPrefix(typ, "char(") {
		typ = "text" // nothing but a list is a char's
	}
	switch {
	case len(b.values) > 0:
		return listing{typ: declared(c), rules: valueList(b.values)}
	case k == free:
		return listing{typ: typ, rules: "domain: any",
			remark: "any text: conditions on it are answered (LIKE, =), and its values are never shown"}
	case k == category:
		return listing{typ: typ, rules: "keys: discover",
			remark: "its values are found where enough units have them; a list answers more"}
	}
	return listing{hidden: why[k]}
}

// ends are the usual least and largest value of what a name says.
type ends struct{ low, high string }

var usual = map[string]ends{
	"age": {"0", "119"}, "year": {"1900", "2100"}, "month": {"1", "12"}, "quarter": {"1", "4"}, "week": {"1", "53"},
	"weekday": {"0", "7"},
	"percent": {"0", "100"}, "percentage": {"0", "100"}, "pct": {"0", "100"},
	"rating": {"0", "10"}, "semester": {"1", "20"}, "star": {"0", "10"},
	"priority": {"0", "10"}, "severity": {"0", "10"},
}

// born are those of parts of a birthday.
var born = map[string]ends{"year": {"1900", "2029"}, "month": {"1", "12"}, "day": {"1", "31"}}

// shareWords are names of what is mostly a part of one.
var shareWords = vocabularyOf("discount rate tax vat share ratio fraction probability")

// number decides on a number. Constraints know best, then the comment, then the name, and then only the owner does.
func number(c *Column, b bounds) listing {
	typ, step, most, parts := declared(c), "1", "1000", false // parts of a whole: digits enough for 0 to 9
	if fractional(c) {
		if p, s, ok := digits(c.Type); ok {
			step = fraction(s)
			if n := p - s; n < 3 {
				most, parts = "1"+strings.Repeat("0", n), n < 2
			}
		}
	}
	l := listing{typ: typ}
	b.enumerate()
	known := b.low != "" && (b.high != "" || b.below != "")
	guess, named := ends{"0", most}, false
	head := last(words(c.Name)) // year_of_study is no year, release_year is one
	if e, ok := usual[head]; ok && !spans(c, head) {
		guess, named = e, true
	} else if e, ok := born[last(subject(words(c.Name)))]; ok && birthWords.in(c.Name) {
		guess, named = e, true
	} else if parts && shareWords[head] {
		guess, named = ends{"0", "1"}, true
	}
	low, high := guess.low, "max: "+guess.high
	if b.low != "" {
		low = b.low
	}
	switch {
	case b.high != "":
		high = "max: " + b.high
	case b.below != "" && c.Type != "real" && c.Type != "double precision":
		high = "below: " + b.below
	}
	if !ordered(low, high) {
		low, high, known = guess.low, "max: "+guess.high, false
	}
	if !known && !named {
		l.ends = true
	} else if !known {
		l.remark = "as its name says"
	}
	low, high, step = fit(c, low, high, step)
	l.rules = fmt.Sprintf("domain: {min: %s, %s, step: %s}", low, high, step)
	if !known {
		l.rules += ", outside: clamp"
	}
	return l
}

// spans reports whether a number is how long something lasts: term_months has more than 12.
func spans(c *Column, head string) bool {
	_, dated := born[head]
	return (dated || head == "week" || head == "quarter") && strings.HasSuffix(strings.ToLower(c.Name), "s")
}

// ordered reports whether a lower end is below an upper one, "max: 10" or "below: 10".
func ordered(low, high string) bool {
	_, end, _ := strings.Cut(high, ": ")
	a, okA := new(big.Rat).SetString(low)
	z, okZ := new(big.Rat).SetString(end)
	return okA && okZ && a.Cmp(z) < 0
}

// fit has the ends of a domain within its type and on its steps, which are made larger where there would be more cells
// than a domain has: CHECK (price > 0.5 AND price < 50000000) of numeric(12,2) gives 0 to 50000000 in steps of 0.1.
func fit(c *Column, low, high, step string) (string, string, string) {
	word, end, _ := strings.Cut(high, ": ")
	a, z, s := new(big.Rat), new(big.Rat), new(big.Rat)
	for to, text := range map[*big.Rat]string{a: low, z: end, s: step} {
		if _, ok := to.SetString(text); !ok {
			return low, high, step
		}
	}
	most := maxOf(c)
	if most != nil {
		least := new(big.Rat).Neg(most)
		if a.Cmp(least) < 0 {
			a = least
		}
		if z.Cmp(most) > 0 {
			z, word = most, "max" // below would be beyond the type
		}
	}
	ten := big.NewRat(10, 1)
	for {
		from, to := onStep(a, s, false), onStep(z, s, true)
		if most != nil && to.Cmp(most) > 0 {
			to = onStep(z, s, false)
		}
		cells := new(big.Rat).Sub(to, from)
		if cells.Quo(cells, s); cells.Cmp(big.NewRat(policy.MaxDomain-1, 1)) < 0 {
			return plainNumber(low, from), word + ": " + plainNumber(end, to), plainNumber(step, s)
		}
		s = new(big.Rat).Mul(s, ten)
	}
}

// maxOf is the largest number of a whole type; nil means it is none.
func maxOf(c *Column) *big.Rat {
	bits := map[string]uint{"smallint": 15, "integer": 31, "bigint": 63}[c.Type]
	if bits == 0 {
		return nil
	}
	most := new(big.Int).Lsh(big.NewInt(1), bits)
	return new(big.Rat).SetInt(most.Sub(most, big.NewInt(1)))
}

// onStep is the next multiple of a step, down or up.
func onStep(x, step *big.Rat, up bool) *big.Rat {
	q := new(big.Rat).Quo(x, step)
	n := new(big.Int).Div(q.Num(), q.Denom()) // which rounds down
	if up && !q.IsInt() {
		n.Add(n, big.NewInt(1))
	}
	return q.Mul(new(big.Rat).SetInt(n), step)
}

// plainNumber writes a number, as it was where it is the same one and has no exponent.
func plainNumber(was string, n *big.Rat) string {
	if r, ok := new(big.Rat).SetString(was); ok && r.Cmp(n) == 0 && !strings.ContainsAny(was, "eE/_xX") {
		return was
	}
	digits, _ := n.FloatPrec()
	return n.FloatString(digits)
}

// digits are the precision and scale of numeric(p,s).
func digits(typ string) (precision, scale int, ok bool) {
	inner, found := strings.CutPrefix(typ, "numeric(")
	if !found {
		return 0, 0, false
	}
	p, s, _ := strings.Cut(strings.TrimSuffix(inner, ")"), ",")
	precision, err := strconv.Atoi(p)
	scale, err2 := strconv.Atoi(s)
	return precision, scale, err == nil && err2 == nil && scale >= 0 && scale <= precision
}

// fraction is 10^-scale, of which money has two; finer ones are cut to four.
func fraction(scale int) string {
	if scale = min(scale, 4); scale == 0 {
		return "1"
	}
	return "0." + strings.Repeat("0", scale-1) + "1"
}

// day decides on a date or a moment.
func (d *drafter) day(c *Column, b bounds) listing {
	from, until, remark, guess := d.options.From, d.options.Until, "as --from and --until say", false
	if from == "" {
		from, until, remark, guess = firstDay, lastDay, "a guess", b.low == "" || b.high == ""
	}
	if birthWords.in(c.Name) {
		from, until, remark, guess = firstBorn, lastBorn, "as its name says", false
	}
	if isDay(b.low) {
		from = b.low
	}
	if isDay(b.high) {
		until = b.high
	}
	if from >= until {
		from, until = firstDay, lastDay
	}
	moments := fmt.Sprintf("domain: {min: %s, below: %s, step: 1 hour}", from, dayAfter(until))
	l := listing{typ: declared(c), rules: moments, remark: remark, dates: guess}
	if c.Type == "date" {
		l.rules = fmt.Sprintf("domain: {min: %s, max: %s}", from, until)
	}
	return l
}

// dayAfter is the day after one: --until names the last day, and moments of that day are before the next one.
func dayAfter(day string) string {
	d, err := time.Parse(time.DateOnly, day)
	if next := d.AddDate(0, 0, 1); err == nil && next.Year() <= 9999 { // a policy has no later one
		return next.Format(time.DateOnly)
	}
	return day
}

func isDay(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// declared is a column's type as a policy names it.
func declared(c *Column) string {
	base, rest, found := strings.Cut(c.Type, "(")
	switch base {
	case "character varying":
		if found {
			return "varchar(" + rest
		}
		return "text"
	case "character":
		if found {
			return "char(" + rest
		}
		return "text"
	case "timestamp without time zone":
		return "timestamp"
	case "timestamp with time zone":
		return "timestamptz"
	}
	return c.Type
}

func valueList(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(v)
	}
	return "domain: {values: [" + strings.Join(quoted, ", ") + "]}"
}

// quote writes a name or value as YAML: as it is where no reader takes it for anything else.
func quote(s string) string {
	for i, r := range s {
		if i > 0 && (r == '.' || r >= '0' && r <= '9') {
			continue
		}
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_') {
			return strconv.Quote(s)
		}
	}
	switch strings.ToLower(s) {
	case "", "yes", "no", "on", "off", "true", "false", "null", "y", "n":
		return strconv.Quote(s)
	}
	return s
}

// declarable reports whether a public table may have a column of a type.
func declarable(typ string) bool {
	_, _, err := policy.ParseType(typ)
	return err == nil
}
