package semantics

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// What a statement asks of texts that nobody declared (`domain: any`, docs/adr/0145). Of
//
//	WHERE note LIKE '%late%' AND left(phone, 2) IN ('13', '31')
//
// `note LIKE '%late%'` and `left(phone, 2)` are functions of one text and constants, readings of it, and each becomes a
// column of the rows' table: the first is a boolean, of the second the values that the statement names are known. From
// there on they are columns like others.
//
// Claim: a row lies in exactly one cell of such a column, and which one it is depends on that row alone. Neighbours: as
// of any column. Proof: a reading is a total function of one row's text (policy.Part); its values are false and true,
// the numbers from 0 to what is read of a text, or texts, of which those that are not named are one cell; NULL is one
// more. Limits: constants are the statement's, so that what is asked, what it costs and whether it is refused is
// public.

// Texts tells of the rows that are translated over, and takes what is asked of a text that they have no column for yet.
type Texts struct {
	Of   func() *policy.Table
	Want func(of *policy.Column, r policy.Reading) (ok bool, err error)
}

// reading gives a function of a text, once it is translated, as a column. What is none it leaves as it is.
func (t *Translator) reading(e *Expr) (*Expr, *refuse.Refusal) {
	if t.Texts == nil || len(e.Cols) != 1 || len(e.Args) == 0 {
		return e, nil
	}
	subject, table := bareText(e.Args[0]), t.Texts.Of()
	if e.Cols[0] >= len(table.Columns) || subject.Form != FormColumn { // a public list's columns come after all others
		return e, nil
	}
	c := table.Columns[e.Cols[0]]
	if !c.Any && (c.Open == nil || e.Type() != policy.Bool || !c.Type.Textual() || c.Type == policy.Bpchar) { // of keys that are found conditions are read, and no texts
		return e, nil
	}
	if refusal := t.folded(e); refusal != nil {
		return nil, refusal
	}
	parts, negated, known, refusal := t.partsOf(e)
	if !known || refusal != nil {
		return e, refusal
	}
	out, refusal := t.readingColumn(c, append(slices.Clone(c.Reading), parts...), e.Pos)
	if refusal == nil && negated {
		return t.Not(out)
	}
	return out, refusal
}

// readingColumn is the column of a reading r of the text that c is, or is a reading of.
func (t *Translator) readingColumn(c *policy.Column, r policy.Reading, pos int) (*Expr, *refuse.Refusal) {
	of := c
	if c.Reading != nil {
		of = c.Beside
	}
	if err := r.Check(); err != nil {
		return nil, textQuestion.At(pos, err.Error())
	}
	if of == nil {
		return nil, anyText.At(pos, c.Name)
	}
	at := slices.IndexFunc(t.Texts.Of().Columns, func(have *policy.Column) bool {
		return have.Reading != nil && have.Beside == of && slices.Equal(have.Reading, r)
	})
	if at >= 0 {
		return ColumnExpr(at, r.Type(), -1, pos), nil
	}
	ok, err := t.Texts.Want(of.Open, r)
	if err != nil {
		return nil, textQuestion.At(pos, err.Error())
	}
	if !ok { // these rows have lost it on the way
		return nil, anyText.At(pos, c.Name)
	}
	return ConstantExpr(nil, r.Type(), pos), nil // its placeholder until the statement is bound again
}

// coalesced is a function of coalesce(x, c), where x is a text that nobody declared and c a constant, of arguments of
// which one is that (anyCoalesces); nil means the function is none of these, or there are other arguments beside it. Of
//
//	coalesce(note, '') LIKE '%late%'  it is  coalesce(note LIKE '%late%', '' LIKE '%late%')
//
// whose first part is a reading.
//
// Claim. The two are equal. Proof. f is a reading, or =, <> or IN with constants that are not NULL: it is NULL where x
// is, and nowhere else. Where x is not NULL both are f(x), where it is both are f(c).
func (t *Translator) coalesced(args []*Expr, of func(args []*Expr) (*Expr, *refuse.Refusal)) (*Expr, *refuse.Refusal) {
	at := -1
	for i, a := range args {
		switch {
		case a.IsConstant() && MustConstant(a) != nil:
		case at < 0 && t.coalesces(bareText(a)):
			at = i
		default:
			return nil, nil
		}
	}
	whole := bareText(args[at])
	c, refusal := whole.Args[1].Value(nil)
	if refusal != nil || c == nil {
		return nil, nil
	}
	with := func(x *Expr) (*Expr, *refuse.Refusal) {
		own := slices.Clone(args)
		own[at] = x
		return of(own)
	}
	first, refusal := with(whole.Args[0])
	if refusal != nil {
		return nil, refusal
	}
	if asked := first; asked.Form != FormCompare && asked.Form != formIn {
		if asked.Form == formNot {
			asked = asked.Args[0]
		}
		if asked.Form != FormColumn && !asked.IsConstant() { // until the statement is bound again a reading is a constant
			return nil, nil
		}
	}
	second, refusal := with(ConstantExpr(c, whole.Args[0].Type(), whole.Args[1].Pos))
	if refusal != nil {
		return nil, refusal
	}
	s, err := t.Env.Coalesce(first.Expr, second.Expr)
	return Made(FormOther, "coalesce", s, err, whole.Pos, first, second)
}

// anyCoalesces reports whether one of some arguments may be that.
func (t *Translator) anyCoalesces(args []*Expr) bool {
	return t.Texts != nil && slices.ContainsFunc(args, func(a *Expr) bool { return t.coalesces(bareText(a)) })
}

// coalesces reports whether e is coalesce(x, c) of such a text and a constant.
func (t *Translator) coalesces(e *Expr) bool {
	if t.Texts == nil || e.Op != "coalesce" || len(e.Args) != 2 || e.Args[0].Form != FormColumn || !e.Args[1].IsConstant() {
		return false
	}
	table := t.Texts.Of()
	at := e.Args[0].Cols[0]
	return at < len(table.Columns) && (table.Columns[at].Any || table.Columns[at].Open != nil) && e.Args[0].Type().Textual() && e.Args[0].Type() != policy.Bpchar
}

// folded refuses a text whose letters changed their case beside a constant with letters that servers change in
// different ways.
func (t *Translator) folded(e *Expr) *refuse.Refusal {
	if t.Texts == nil || len(e.Cols) != 1 || e.Cols[0] >= len(t.Texts.Of().Columns) || !t.Texts.Of().Columns[e.Cols[0]].Reading.Folds() {
		return nil
	}
	for _, a := range e.Args {
		if !a.IsConstant() {
			continue
		}
		v, err := a.Eval(nil)
		if text, is := v.(string); is && err == nil && !isASCII(text) {
			return foldedText.At(e.Pos, "a comparison of lower or upper")
		}
	}
	return nil
}

// bareText takes casts of a text to text off.
func bareText(e *Expr) *Expr {
	for len(e.Args) == 1 && strings.HasPrefix(e.Op, "cast:") && e.Type().Textual() && e.Typmod() < 0 && e.Args[0].Type().Textual() {
		e = e.Args[0]
	}
	return e
}

// constantsOf are arguments that are all constants, by their kind; not known: some are none, or NULL, of which each
// function of a text is NULL.
func constantsOf(args []*Expr) (texts []string, numbers []int, known bool, refusal *refuse.Refusal) {
	for _, a := range args {
		if !a.IsConstant() {
			return nil, nil, false, nil
		}
		v, refusal := a.Value(nil)
		if refusal != nil {
			return nil, nil, false, refusal
		}
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case int64:
			numbers = append(numbers, int(min(max(v, math.MinInt32), math.MaxInt32))) // of which a place and a length add up
		default:
			return nil, nil, false, nil
		}
	}
	return texts, numbers, true, nil
}

// bareParts are the parts of functions of a text without constants.
var bareParts = map[string]policy.Reading{
	"lower ": {{Word: policy.Lower}}, "upper ": {{Word: policy.Upper}},
	"ltrim ": {{Word: policy.TrimLeft}}, "rtrim ": {{Word: policy.TrimRight}}, "btrim ": {{Word: policy.TrimLeft}, {Word: policy.TrimRight}},
	"length ": {{Word: policy.Length}}, "char_length ": {{Word: policy.Length}}, "character_length ": {{Word: policy.Length}},
}

// partsOf are the parts of a reading that an expression over a text is, the last ones; not known: it is none.
func (t *Translator) partsOf(e *Expr) (parts policy.Reading, negated, known bool, refusal *refuse.Refusal) {
	texts, numbers, known, refusal := constantsOf(e.Args[1:])
	if !known || refusal != nil {
		return nil, false, false, refusal
	}
	shape := e.Op + " " + strings.Repeat("t", len(texts)) + strings.Repeat("n", len(numbers))
	if parts = bareParts[shape]; parts != nil {
		return parts, false, true, nil
	}
	switch shape {
	case "!~~ t", "!~~* t", "~~ t", "~~* t":
		negated = e.Op[0] == '!'
		pattern := policy.Part{Word: policy.Like, Text: texts[0]}
		if !strings.HasSuffix(e.Op, "*") {
			return policy.Reading{pattern}, negated, true, nil
		}
		if !isASCII(pattern.Text) {
			return nil, false, false, foldedText.At(e.Pos, "ILIKE")
		}
		pattern.Text = strings.ToLower(pattern.Text)
		return policy.Reading{{Word: policy.Lower}, pattern}, negated, true, nil
	case "starts_with t", "^@ t":
		pattern := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(texts[0]) + "%"
		return policy.Reading{{Word: policy.Like, Text: pattern}}, false, true, nil
	case "strpos t", "position t":
		if texts[0] != "" {
			return policy.Reading{{Word: policy.Position, Text: texts[0]}}, false, true, nil
		}
	}
	part, known, refusal := t.stretchOf(e, shape, texts, numbers)
	return policy.Reading{part}, false, known, refusal
}

// stretchOf is the part of a reading that gives a stretch of a text, by numbers of characters or fields; not known: it
// is none.
func (t *Translator) stretchOf(
	e *Expr, shape string, texts []string, numbers []int,
) (part policy.Part, known bool, refusal *refuse.Refusal) {
	nothing := policy.Part{Word: policy.Cut, From: 1} // what follows all that is read of a text
	switch shape {
	case "left n", "right n":
		word := map[string]policy.Word{"left": policy.Left, "right": policy.Right}[e.Op]
		return policy.Part{Word: word, Length: min(numbers[0], policy.MaxTextLength)}, numbers[0] >= 0, nil
	case "substring n", "substr n":
		if numbers[0] > policy.MaxTextLength {
			return nothing, true, nil
		}
		return policy.Part{Word: policy.Cut, From: max(numbers[0], 1), Length: policy.MaxTextLength}, true, nil
	case "substring nn", "substr nn":
		if numbers[1] < 0 {
			_, err := t.Env.Call("substr", scalar.Constant("", policy.Text), e.Args[1].Expr, e.Args[2].Expr)
			return part, false, ScalarRefusal(err, e.Pos)
		}
		from, end := max(numbers[0], 1), numbers[0]+numbers[1]
		if from > policy.MaxTextLength || end <= from {
			return nothing, true, nil
		}
		return policy.Part{Word: policy.Cut, From: from, Length: min(end-from, policy.MaxTextLength)}, true, nil
	case "split_part tn":
		if numbers[0] > policy.MaxTextLength && texts[0] != "" {
			return nothing, true, nil
		}
		return policy.Part{Word: policy.Field, Text: texts[0], From: numbers[0]}, numbers[0] >= 1 && texts[0] != "", nil
	}
	return part, false, nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c >= utf8.RuneSelf }) < 0
}

// Columns that a policy declares as char(n) are text without trailing blanks (policy/types.go). PostgreSQL compares them
// as char:
//
//	SELECT count(*) FROM sales WHERE store = 'BB ' OR store IN ('CC   ', 'DD') OR store = 'EE '::char(3)
//
// finds BB, CC, DD and EE, as a constant without a type becomes a char there, and its trailing blanks do not count.
// With what is text the column is compared as text, where 'BB'::char(3) is 'BB' and 'BB '::text is not. Patterns see
// the blanks: store LIKE 'BB' is not true of a char(3), and so do octet_length and concat. Other functions of text, ||
// among them, do not. A choice whose first value is one (coalesce(store, 'none '), CASE, NULLIF) is a char, and a
// varchar is compared with one as a char; ARRAY['BB '] is of texts. What is chosen has the blanks that it had:
// concat(coalesce(store, 'a'), '|') is 'a|' where there is no store, and as a cell's value does not tell whence it
// came, it is refused.

// patterns are the operators that match a char with the blanks that fill it up.
var patterns = WordSet("~~ !~~ ~~* !~~* ~ !~ ~* !~*")

// fills are the functions that take a char as it is sent, with the blanks that fill it up.
var fills = WordSet("octet_length concat concat_ws")

// untyped is the text of a constant that has no type yet.
func untyped(e *Expr) (string, bool) {
	if e.Type() != policy.Unknown || !e.IsConstant() {
		return "", false
	}
	v, err := e.Eval(nil)
	text, ok := v.(string)
	return text, err == nil && ok
}

// Filled is a char with the blanks that fill it up, as text; anything else is as it is.
func (t *Translator) Filled(e *Expr) (*Expr, *refuse.Refusal) {
	if e.Type() != policy.Bpchar {
		return e, nil
	}
	if e.Ragged() {
		return nil, NoForm.At(e.Pos, "the blanks at the end of a choice among chars of several lengths, or of a char without one,")
	}
	length := ConstantExpr(int64(policy.CharLength(e.Typmod())), policy.Int4, e.Pos)
	own, err := t.Env.Call("length", e.Expr)
	if err != nil {
		return nil, ScalarRefusal(err, e.Pos)
	}
	whole, err := t.Env.Call("greatest", own, length.Expr) // outside: other is no value of the type, and not cut
	if err != nil {
		return nil, ScalarRefusal(err, e.Pos)
	}
	s, err := t.Env.Call("rpad", e.Expr, whole)
	return Made(FormOther, "rpad", s, err, e.Pos, e, length)
}

// char reads a constant that is cast to char(n), which cuts it: 'gold '::char(3) is 'gol'; nil means it is another
// cast. (Of what is no constant, and where it may be shown, with its blanks, it is refused.)
func (t *Translator) char(c *pg.TypeCast) *Expr {
	name := strings.TrimPrefix(ast.TypeName(c.TypeName), "pg_catalog.")
	s := c.Arg.GetAConst().GetSval()
	if name != "bpchar" || s == nil || len(c.TypeName.ArrayBounds) > 0 || t.Place != "WHERE" && t.Place != "FILTER" {
		return nil
	}
	length, ok := charLength(c.TypeName)
	if !ok {
		return nil
	}
	return charConstant(s.Sval, length, len(c.TypeName.Typmods) == 0, int(c.Location))
}

// charLength is n of char(n), and the longest where a char has none.
func charLength(typ *pg.TypeName) (length int, ok bool) {
	length = maxCharLength
	if len(typ.Typmods) == 1 {
		length = int(typ.Typmods[0].GetAConst().GetIval().GetIval())
	}
	return length, length >= 1 && length <= maxCharLength && len(typ.Typmods) <= 1
}

// Ragged reports whether e is a char of which values may be shorter, and are then not filled up: one of no length.
func (e *Expr) Ragged() bool { return e.Type() == policy.Bpchar && policy.CharLength(e.Typmod()) == 0 }

// Worth is a value of what an expression is, as a constant.
func (e *Expr) Worth(v policy.Value, pos int) *Expr { return ValueExpr(v, e.Type(), e.Typmod(), pos) }

// charConstant is a text as a char, which cuts it.
func charConstant(text string, length int, ragged bool, pos int) *Expr {
	if utf8.RuneCountInString(text) > length {
		text = string([]rune(text)[:length])
	}
	if ragged {
		return ConstantExpr(text, policy.Bpchar, pos)
	}
	return ValueExpr(text, policy.Bpchar, policy.CharTypmod(length), pos)
}

// maxCharLength is PostgreSQL's bound of char(n).
const maxCharLength = 10485760

// The text of a key, by which groups are found: 1.0 and 1.00 have one.

// KeyText is the text of several keys together, one for all lists of equal values.
func KeyText(values []policy.Value) string {
	if len(values) == 1 {
		if values[0] == nil {
			return "n"
		}
		return "=" + keyText(values[0])
	}
	var b strings.Builder
	for _, v := range values {
		text := "n"
		if v != nil {
			text = "=" + keyText(v)
		}
		b.Write(predicate.EncodeText(nil, text))
	}
	return b.String()
}

// keyText is the text of a key: equal values have one, 1.0 and 1.00, −0 and 0, a day and 24 hours among them.
func keyText(v policy.Value) string {
	switch v := v.(type) {
	case float64:
		return predicate.Text(v + 0) // −0 + 0 is 0
	case policy.Interval:
		days, rest := int64(v.Months)*30+int64(v.Days)+v.Micros/dayMicros, v.Micros%dayMicros
		if rest < 0 {
			days, rest = days-1, rest+dayMicros
		}
		return "i" + strconv.FormatInt(days, 10) + "/" + strconv.FormatInt(rest, 10)
	}
	return predicate.Text(predicate.CanonicalValue(v))
}
