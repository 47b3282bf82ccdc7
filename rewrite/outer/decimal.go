package outer

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A numeric whose values all have one scale and a bounded number of digits is DuckDB's own decimal beside the text in which numerics
// are held (ADR 158): what is added, multiplied, summed and compared then needs no function of ours for each row. Of
//
//	SELECT part, sum(cost * pieces) FROM offers GROUP BY part
//
// where cost is numeric(15,2) and pieces an integer, the products are DECIMAL(25,2) and the sums DECIMAL(34,2).
//
// Claim: where an expression has a decimal, that is PostgreSQL's value, and its scale is the one that PostgreSQL shows. Proof, form by form: a
// column of numeric(p,s) holds values of scale s below 10^(p-s) (backend.copyTable refuses others); a + b, a - b and a * b are exact in both, and their
// scales are max(s, t) and s + t in both; a sum has the largest scale of its values, which is theirs; min and max are values; a whole number is a numeric of
// scale 0. No digit is lost: the digits of each result are bounded by those of its parts, what could have more than 38 has no decimal, and
// each is written with operands so wide that DuckDB computes in 128 bits where 64 would not do. Division, averages and everything else are package
// scalar's, as they were.

// maxDigits are those of DuckDB's widest decimal.
const maxDigits = 38

// digitsOfRows are how many digits a sum may have beyond those of its values: of more than 10^9 rows, which no query gets to in its time, the cast
// to the sum's width would fail, and not come out wrong.
const digitsOfRows = 9

// decimal is a numeric as DuckDB's DECIMAL.
type decimal struct {
	sql    string
	digits int    // all values are less than 10^digits units
	scale  int    // of which 10^scale are 1
	typ    string // DuckDB's, where it is known
}

// decimalType is DuckDB's type of so many digits.
func decimalType(digits, scale int) string {
	return "DECIMAL(" + strconv.Itoa(max(digits, scale, 1)) + ", " + strconv.Itoa(scale) + ")"
}

// wide is a decimal with at least so many digits and places.
func (d *decimal) wide(digits, scale int) string {
	if d.typ == decimalType(digits, scale) {
		return d.sql
	}
	return "CAST(" + d.sql + " AS " + decimalType(digits, scale) + ")"
}

// fits tells that there is such a decimal.
func fits(digits, scale int) bool { return digits <= maxDigits && scale >= 0 && scale <= maxDigits }

// declaredDecimal is what a column of numeric(p,s) is held as; not ok: it is none, or is wider.
func declaredDecimal(t policy.Type, mod int32) (digits, scale int, ok bool) {
	if t != policy.NumericType || mod < 4 {
		return 0, 0, false
	}
	digits, scale = int((mod-4)>>16), int((mod-4)&0xffff)
	return digits, scale, scale <= digits && digits <= maxDigits
}

// DecimalColumn is what stands beside a column of a public table: its values as DuckDB's decimals, under a name that no other column has.
type DecimalColumn struct {
	Of            int // the column
	Name, Type    string
	Digits, Scale int32
}

// DecimalsOf are the decimals that stand beside a public table's columns.
func DecimalsOf(columns []Column) (out []DecimalColumn) {
	for i, c := range columns {
		digits, scale, ok := declaredDecimal(c.Type, c.Typmod)
		if !ok {
			continue
		}
		d := DecimalColumn{Of: i, Name: "decimal " + strconv.Itoa(i+1), Type: decimalType(digits, scale), Digits: int32(digits), Scale: int32(scale)}
		for slices.ContainsFunc(columns, func(c Column) bool { return strings.EqualFold(c.Name, d.Name) }) {
			d.Name += "'"
		}
		out = append(out, d)
	}
	return out
}

// besides gives columns of a query the decimals that its targets have, and returns the items that make them. Queries in the
// select list stand in its text once.
func besides(targets []target, columns []column) (items []string) {
	for i, t := range targets {
		if d := t.expr.decimal; d != nil && !t.expr.series && !strings.Contains(d.sql, "(SELECT ") {
			columns[i].decimal = &decimal{sql: columnName("x", i), digits: d.digits, scale: d.scale}
			items = append(items, d.sql+" AS "+columns[i].decimal.sql)
		}
	}
	return items
}

// plain is a query without decimals beside its columns.
func (b *binder) plain(q relation) relation {
	if !slices.ContainsFunc(q.columns, func(c column) bool { return c.decimal != nil }) {
		return q
	}
	columns := withoutDecimals(q.columns)
	return relation{sql: "SELECT " + columnList(columns) + " FROM (" + q.sql + ") AS " + b.fresh("q") + q.orderBy, columns: columns, certain: q.certain}
}

// wholeConstant is a constant that is a whole number.
var wholeConstant = regexp.MustCompile(`^CAST\(-?([0-9]+) AS (?:INTEGER|BIGINT)\)$`)

// digitsOf are the digits of the types of whole numbers.
var digitsOf = map[policy.Type]int{policy.Int2: 5, policy.Int4: 10, policy.Int8: 19}

// decimalOf is an expression as a decimal, whole numbers too; nil: it has none.
func decimalOf(e expr) *decimal {
	digits, whole := digitsOf[e.oid]
	if !whole || e.literal != nil {
		return e.decimal
	}
	if constant := wholeConstant.FindStringSubmatch(e.sql); constant != nil {
		digits = len(constant[1])
	}
	typ := decimalType(digits, 0)
	return &decimal{sql: "CAST(" + e.sql + " AS " + typ + ")", digits: digits, typ: typ}
}

// constantDecimal is a constant as a decimal; nil: it has too many digits.
func constantDecimal(v policy.Value) *decimal {
	n, ok := v.(policy.Numeric)
	if !ok || n.Coefficient == nil || n.Scale < 0 {
		return nil
	}
	digits := len(strings.TrimLeft(n.Coefficient.String(), "-"))
	if !fits(digits, int(n.Scale)) {
		return nil
	}
	typ := decimalType(digits, int(n.Scale))
	return &decimal{sql: "CAST(" + dialect.QuoteText(n.String()) + " AS " + typ + ")", digits: digits, scale: int(n.Scale), typ: typ}
}

// numericOf is the numeric that a decimal is.
func numericOf(d *decimal) expr {
	return expr{sql: "num_in(" + d.text() + ")", typed: of(policy.NumericType), decimal: d}
}

// evenNumeric is an aggregate of x that is a decimal of the digits of d.
func evenNumeric(sql string, d *decimal, x expr) expr {
	out := numericOf(&decimal{sql: sql, digits: d.digits, scale: d.scale})
	out.even = x.even
	return out
}

// text is a decimal as PostgreSQL writes it, but for a zero before the point.
func (d *decimal) text() string { return "CAST(" + d.sql + " AS VARCHAR)" }

// arithmetic is +, - or * of two numerics as decimals; not ok: package scalar computes it.
func arithmetic(op string, l, r expr) (expr, bool) {
	if l.oid != policy.NumericType && r.oid != policy.NumericType {
		return expr{}, false
	}
	a, b := decimalOf(l), decimalOf(r)
	if a == nil || b == nil {
		return expr{}, false
	}
	out := &decimal{}
	switch op {
	case "+", "-":
		out.scale = max(a.scale, b.scale)
		out.digits = max(a.digits-a.scale, b.digits-b.scale, 0) + out.scale + 1
	case "*":
		out.scale, out.digits = a.scale+b.scale, a.digits+b.digits
	default:
		return expr{}, false
	}
	if !fits(out.digits, out.scale) {
		return expr{}, false
	}
	if op == "*" {
		digits := a.digits
		if max(a.digits, a.scale)+max(b.digits, b.scale) > 18 { // DuckDB would keep to 64 bits, and fail
			digits = max(digits, 19)
		}
		out.sql = "(" + a.wide(digits, a.scale) + " * " + b.wide(b.digits, b.scale) + ")"
	} else {
		out.sql = "(" + a.wide(out.digits, out.scale) + " " + op + " " + b.wide(out.digits, out.scale) + ")"
	}
	return numericOf(out), true
}

// aligned are numerics that compare as their decimals do, of one type; nil: some has none.
func aligned(list ...expr) []string {
	digits, scale := 0, 0
	for _, e := range list {
		d := e.decimal
		if e.oid != policy.NumericType || d == nil {
			return nil
		}
		digits, scale = max(digits, d.digits-d.scale), max(scale, d.scale)
	}
	if digits += scale; !fits(digits, scale) {
		return nil
	}
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = e.decimal.sql
		if len(list) > 1 {
			out[i] = e.decimal.wide(digits, scale)
		}
	}
	return out
}

// keysOf are the texts by which two values compare.
func (b *binder) keysOf(l, r expr) (string, string) {
	if both := aligned(l, r); both != nil {
		return both[0], both[1]
	}
	return b.textKey(l), b.textKey(r)
}
