package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/policy"
)

// rows bounds the pairs of one unit: each row of one side with each of the other, but one to one where a key that they are
// equal in is on one side in one row of the unit at most.
func (p *Paired) rows() int64 {
	left, right := p.Left.MaxRowsPerUnit, p.Right.MaxRowsPerUnit
	rows := left * right
	base := slices.Concat(p.Left.Base(), p.Right.Base())
	for _, e := range p.On {
		if isSingle(p.Right, e.Right, base) {
			rows = min(rows, left)
		}
		if isSingle(p.Left, e.Left, base) && !p.Outer {
			rows = min(rows, right)
		}
		if isSingle(p.Left, e.Left, base) && p.Outer {
			rows = min(rows, left+right) // rows of the left without a partner stay
		}
	}
	return rows
}

// isSingle tells that no unit has two rows of t with the same value of key k. In a table of the policy a constraint must
// prove it: one that the measure needs in any case, since the units of one of its tables are found through the key.
func isSingle(t *policy.Table, k *policy.Column, base []*policy.Table) bool {
	at := slices.Index(t.Keys, k)
	if at < 0 {
		return false
	}
	switch d := t.Derived.(type) {
	case nil:
		return slices.ContainsFunc(base, func(b *policy.Table) bool { return b.Via != nil && b.Via.Table == t && b.Via.Key == k.Source })
	case *Marked:
		return isSingle(d.From, d.From.Keys[at], base)
	case *PerUnit:
		return len(d.Keys) == 0 && len(d.JoinKeys) == 1 && keyOf(t, d, d.JoinKeys[0]) == k
	case *Paired:
		own, other, ownKey, otherKey := d.Left, d.Right, func(e Equal) *policy.Column { return e.Left }, func(e Equal) *policy.Column { return e.Right }
		if d.KeyOrigins[at].Right {
			own, other, otherKey = other, own, ownKey
		}
		if !isSingle(own, d.KeyOrigins[at].Column, base) {
			return false
		}
		return other.MaxRowsPerUnit == 1 || slices.ContainsFunc(d.On, func(e Equal) bool { return isSingle(other, otherKey(e), base) })
	}
	return false
}
