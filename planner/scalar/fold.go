package scalar

import (
	"errors"

	"github.com/dpproxy/dpproxy/policy"
)

// Fold evaluates the constant parts of e once, in the order in which PostgreSQL's planner does: an error in a part that
// no row reads is an error of the statement, unless an AND, OR, CASE or COALESCE has cut the part off before. An
// expression may be evaluated without having been folded; then such errors wait for a row that meets them.
func Fold(e Expr) (Expr, error) {
	switch e := e.(type) {
	case *junction:
		return foldJunction(e)
	case *caseOf:
		return foldCase(e)
	case *coalesce:
		return foldCoalesce(e)
	case *nullIf:
		return foldNullIf(e)
	case parent:
		return foldArguments(e)
	}
	return e, nil
}

func foldArguments(e parent) (Expr, error) {
	args := e.children()
	folded := make([]Expr, len(args))
	constants, null := true, false
	for i, arg := range args {
		f, err := Fold(arg)
		if err != nil {
			return nil, err
		}
		folded[i] = f
		c, ok := f.(*constant)
		constants = constants && ok
		null = null || ok && c.value == nil
	}
	again := e.rebuild(folded)
	if c, ok := e.(*call); ok {
		if null && !c.body.loose {
			return ConstantOf(nil, e.Type(), e.Typmod()), nil
		}
		if c.body.stable {
			return again, nil
		}
	}
	if !constants {
		return again, nil
	}
	return foldValue(again)
}

func foldValue(e Expr) (Expr, error) {
	v, err := e.Eval(nil)
	if err != nil {
		return nil, err
	}
	return ConstantOf(v, e.Type(), e.Typmod()), nil
}

func foldJunction(j *junction) (Expr, error) {
	var rest []Expr
	for _, arg := range j.args {
		f, err := Fold(arg)
		if err != nil {
			return nil, err
		}
		if c, ok := f.(*constant); ok && c.value != nil {
			if c.value.(bool) == j.stop {
				return f, nil
			}
			continue
		}
		rest = append(rest, f)
	}
	switch len(rest) {
	case 0:
		return Constant(!j.stop, policy.Bool), nil
	case 1:
		return rest[0], nil
	}
	for _, f := range rest {
		if _, ok := f.(*constant); !ok {
			return j.rebuild(rest), nil
		}
	}
	return Constant(nil, policy.Bool), nil
}

func foldCase(c *caseOf) (Expr, error) {
	var arms []Expr
	last := len(c.args) - 1
	otherwise := c.args[last]
	for i := 0; i < last; i += 2 {
		condition, err := Fold(c.args[i])
		if err != nil {
			return nil, err
		}
		if k, ok := condition.(*constant); ok {
			if k.value == true {
				otherwise = c.args[i+1]
				break
			}
			continue
		}
		result, err := Fold(c.args[i+1])
		if err != nil {
			return nil, err
		}
		arms = append(arms, condition, result)
	}
	result, err := Fold(otherwise)
	if err != nil {
		return nil, err
	}
	if len(arms) == 0 {
		return result, nil
	}
	return c.rebuild(append(arms, result)), nil
}

func foldCoalesce(c *coalesce) (Expr, error) {
	var args []Expr
	for _, arg := range c.args {
		f, err := Fold(arg)
		if err != nil {
			return nil, err
		}
		k, ok := f.(*constant)
		if ok && k.value == nil {
			continue
		}
		args = append(args, f)
		if ok {
			break
		}
	}
	if len(args) == 0 {
		return ConstantOf(nil, c.typ, c.typmod), nil
	}
	if len(args) == 1 {
		return args[0], nil
	}
	return c.rebuild(args), nil
}

// foldNullIf drops the comparison where one side is NULL.
func foldNullIf(n *nullIf) (Expr, error) {
	left, err := Fold(n.equal.args[0])
	if err != nil {
		return nil, err
	}
	right, err := Fold(n.equal.args[1])
	if err != nil {
		return nil, err
	}
	for _, side := range []Expr{left, right} {
		if k, ok := side.(*constant); ok && k.value == nil {
			return left, nil
		}
	}
	return foldArguments(n)
}

// Fails is the error with which an expression ends on every row, whatever values its columns have there that are
// neither NULL nor NaN: because constants alone fail, or because a call of it fails by those of its arguments that are
// constants. Nil: there may be rows for which it has a value.
//
//	to_char(n, '9.9.9'), n / 0, n / 0 > 5 AND n > 5   fail
//	CASE WHEN n > 5 THEN n / 0 END                    need not
func Fails(e Expr) error {
	folded, err := Fold(e)
	if err != nil {
		return err
	}
	return failsFolded(folded)
}

func failsFolded(e Expr) error {
	switch e.(type) {
	case *junction, *caseOf, *coalesce: // which may come to no part of theirs but the first
		return failsFolded(e.(parent).children()[0])
	}
	if p, ok := e.(parent); ok {
		for _, arg := range p.children() {
			if err := failsFolded(arg); err != nil {
				return err
			}
		}
	}
	if c, ok := e.(*call); ok {
		return c.failsByConstants()
	}
	return nil
}

// asWritten, among harmless arguments, is what to_char writes by the template.
const asWritten = "(as to_char writes it)"

// harmless are the functions that some of their arguments may make fail whatever the others are, each with arguments of
// which none does that: a call that fails with these in the place of all that are no constants fails with any others.
// One behind the last is as the last; moments and intervals have one for all functions (harmlessOf).
var harmless = map[string][]string{
	"/": {"0", "1"}, "%": {"0", "1"}, "mod": {"0", "1"}, "div": {"0", "1"}, "log": {"2", "2"},
	"width_bucket": {"0", "-1234567.891", "1234567.891", "1"}, WidthBucketOf: {"0"},
	"to_char": {"0", ""}, "to_number": {"", ""}, "to_date": {asWritten}, "to_timestamp": {asWritten},
	"date_trunc": {"year", "", "UTC"}, "date_part": {"year"}, "extract": {"year"}, "date_bin": {""}, "timezone": {"UTC"},
	"make_date": {"2000", "1", "1"}, "make_timestamp": {"2000", "1", "1", "0"}, "make_timestamptz": {"2000", "1", "1", "0", "0", "0", "UTC"},
	"~": {""}, "!~": {""}, "~*": {""}, "!~*": {""}, "regexp_like": {""}, "like_escape": {""}, "similar_to_escape": {""},
	"substr": {"", "1", "0"}, "substring": {"", "1", "0"}, "overlay": {"", "", "1", "0"}, "split_part": {"", "", "1"}, "lpad": {"", "0", ""}, "rpad": {"", "0", ""},
}

// harmlessOf are the moments and intervals that are harmless.
var harmlessOf = map[policy.Type]policy.Value{
	policy.DateType: policy.Date(0), policy.TimestampT: policy.Timestamp(0), policy.TimestampTZ: policy.Timestamptz(0), policy.IntervalT: interval{Micros: microsPerHour},
}

// failsByConstants is the error of a call whose constants alone make it fail.
func (c *call) failsByConstants() error {
	texts, decided := harmless[c.name]
	if !decided && !c.body.stable {
		return nil
	}
	args, constants := make([]Expr, len(c.args)), 0
	for i, arg := range c.args {
		if k, ok := arg.(*constant); ok {
			args[i] = k
			constants++
			continue
		}
		if !decided {
			return nil
		}
		v, err := c.harmless(texts[min(i, len(texts)-1)], arg.Type())
		if err != nil || v == nil {
			return err
		}
		args[i] = ConstantOf(v, arg.Type(), arg.Typmod())
	}
	if constants == 0 {
		return nil
	}
	_, err := c.rebuild(args).Eval(nil)
	var fault *Error
	if errors.As(err, &fault) && fault.SQLState == stateText { // of a text that is none of a number, which was not the constant's
		return nil
	}
	return err
}

// harmless is the value that an argument of a type is tried with; nil means there is none.
func (c *call) harmless(text string, t policy.Type) (policy.Value, error) {
	if v, ok := harmlessOf[t]; ok {
		return v, nil
	}
	if text == asWritten {
		template, ok := c.args[len(c.args)-1].(*constant)
		if !ok {
			return nil, nil
		}
		return writeTemplate(template.value.(string), clockFace{}.show)
	}
	v, err := c.env.ParseText(t, text)
	if err != nil { // of a type that the function is not meant for
		return nil, nil
	}
	return v, nil
}
