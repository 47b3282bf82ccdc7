package semantics

import (
	"math/big"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Binary digits of the whole numbers of a domain: of values from 8 to 15 three are open, and 8 is in all of them.

// Digit is one that the values of a domain may differ in: those have it for which (x − from) % modulus ≥ half.
type Digit struct {
	from, modulus, half *big.Int
	Worth               *big.Int // what it adds to the number: the sign's is negative
	sign                bool     // those have it for which x − from is below half
}

// OpenDigits are the digits in which whole numbers from least to most may differ, in two's complement, and the number
// that the others make.
func OpenDigits(least, most int64) (common *big.Int, digits []Digit) {
	n := max(new(big.Int).Xor(big.NewInt(least), big.NewInt(least>>63)).BitLen(), new(big.Int).Xor(big.NewInt(most), big.NewInt(most>>63)).BitLen())
	crosses := least < 0 && most >= 0
	common = new(big.Int)
	if !crosses {
		n = new(big.Int).Xor(big.NewInt(least), big.NewInt(most)).BitLen()
		common.Lsh(common.Rsh(big.NewInt(least), uint(n)), uint(n)) // towards −∞: the lowest n digits are none
	}
	power := func(k int) *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(k)) }
	from := common
	if crosses {
		from = new(big.Int).Neg(power(n))
		digits = append(digits, Digit{from: from, modulus: power(n + 1), half: power(n), Worth: from, sign: true})
	}
	for k := range n {
		digits = append(digits, Digit{from: from, modulus: power(k + 1), half: power(k), Worth: power(k)})
	}
	return common, digits
}

// WholeRange is a domain of all whole numbers between its ends.
func WholeRange(d *policy.Domain) (least, most int64, ok bool) {
	if d == nil || d.Step.Whole != 1 {
		return 0, 0, false
	}
	least, ok = d.Min.(int64)
	most, whole := d.Max.(int64)
	return least, most, ok && whole
}

// Holds is that a value has the digit, or has it not. Numerics do not overflow, so that it fails for no value.
func (d Digit) Holds(x *pg.Node, has bool, t *Translator, pos int) (*Expr, *refuse.Refusal) {
	e, refusal := t.Expr(ast.Cast(x, policy.NumericType))
	op := ">="
	if has == d.sign {
		op = "<"
	}
	for _, step := range []struct {
		op string
		by *big.Int
	}{{"-", d.from}, {"%", d.modulus}, {op, d.half}} {
		if refusal != nil {
			return nil, refusal
		}
		constant, refused := t.Expr(ast.Cast(pg.MakeAConstStrNode(step.by.String(), int32(pos)), policy.NumericType))
		if refused != nil {
			return nil, refused
		}
		e, refusal = t.Combine(step.op, pos, e, constant)
	}
	return e, refusal
}
