package bind

import (
	"math"
	"math/big"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Frames of window functions. Of RANGE BETWEEN '7 days' PRECEDING AND CURRENT ROW the distance is 7 where a column of
// days orders the rows, and 604,800,000,000 where one of moments does.

// PostgreSQL's bits of frames.
const (
	frameRange, frameRows, frameGroups     = 0x2, 0x4, 0x8
	frameFirst, frameLast                  = 0x20, 0x100
	frameFromHere, frameToHere             = 0x200, 0x400
	framePreceding, frameToPreceding       = 0x800, 0x1000
	frameFollowing, frameToFollowing       = 0x2000, 0x4000
	frameExcludes                      int = 0x8000 | 0x10000 | 0x20000
)

// frame binds which rows the function sees.
func (v *windows) frame(over *pg.WindowDef, c *derived.WindowColumn) *refuse.Refusal {
	bits := int(over.FrameOptions)
	rows := bits&frameRows != 0
	if refusal := framed(bits, len(over.OrderClause), int(over.Location)); refusal != nil {
		return refusal
	}
	bound := func(n *pg.Node, sign int64, inward bool) (int64, *refuse.Refusal) {
		far, refusal := v.distance(n, rows, c.Order, inward)
		if refusal == nil && far < 0 {
			refusal = windowConstant.At(ast.Location(n))
		}
		return sign * far, refusal
	}
	c.Frame = derived.WindowFrame{Rows: rows, Start: derived.FrameFirst}
	var refusal *refuse.Refusal
	switch {
	case bits&framePreceding != 0:
		c.Frame.Start, refusal = bound(over.StartOffset, -1, false)
	case bits&frameFollowing != 0:
		c.Frame.Start, refusal = bound(over.StartOffset, 1, true)
	case bits&frameFromHere != 0:
		c.Frame.Start = 0
	}
	if refusal != nil {
		return refusal
	}
	switch {
	case bits&frameLast != 0:
		c.Frame.End = derived.FrameLast
	case bits&frameToPreceding != 0:
		c.Frame.End, refusal = bound(over.EndOffset, -1, true)
	case bits&frameToFollowing != 0:
		c.Frame.End, refusal = bound(over.EndOffset, 1, false)
	}
	if len(over.OrderClause) == 0 && !rows { // all rows tie
		c.Frame = derived.WindowFrame{Start: derived.FrameFirst, End: derived.FrameLast}
	}
	return refusal
}

// framed refuses frames of GROUPS, those that exclude rows, and distances in no order or in one of several values.
func framed(bits, items, pos int) *refuse.Refusal {
	reaches := bits&(framePreceding|frameToPreceding|frameFollowing|frameToFollowing) != 0
	switch {
	case bits&frameExcludes != 0 || bits&frameGroups != 0 && reaches:
		return windowFrame.At(pos, "a window")
	case bits&frameRows == 0 && reaches && items != 1:
		return windowRange.At(pos)
	}
	return nil
}

// distance reads how far from a row a frame begins or ends: in rows, or of RANGE in units of the column that orders it,
// a number, and of days and moments an interval. An end inward is rounded up, since dates are whole days, others down.
// It is at most one more than from end to end of the domain, so that no engine counts beyond its integers.
func (v *windows) distance(n *pg.Node, rows bool, order []derived.WindowOrder, inward bool) (int64, *refuse.Refusal) {
	if rows {
		far, refusal := v.whole(n)
		return min(far, math.MaxInt32), refusal
	}
	by, width := spanned(order)
	if by == nil {
		return 0, windowRange.At(ast.Location(n))
	}
	typ, unit := policy.IntervalT, big.NewInt(1)
	switch {
	case by.Type.Integer():
		typ = policy.Int8
	case by.Type == policy.DateType:
		unit = semantics.StepsOf(policy.Date(1)).Num()
	}
	value, refusal := v.constant(n, typ)
	if i, ok := value.(policy.Interval); ok && !isFixed(i, by, v.b.Env.Zone) {
		refusal = windowRange.At(ast.Location(n))
	}
	if refusal != nil {
		return 0, refusal
	}
	far := new(big.Int).Set(semantics.StepsOf(value).Num())
	if inward && far.Sign() > 0 {
		far.Add(far, unit).Sub(far, big.NewInt(1))
	}
	if beyond := big.NewInt(width + 1); far.Div(far, unit).Cmp(beyond) > 0 {
		far = beyond
	}
	return max(far.Int64(), -1), nil
}

// isFixed reports whether an interval is of one length wherever it begins: months are not, nor days by a clock that
// changes, of which some have 23 hours.
func isFixed(i policy.Interval, by *policy.Column, zone *time.Location) bool {
	return i.Months == 0 && (i.Days == 0 || by.Type != policy.TimestampTZ || semantics.IsFixed(zone))
}

// spanned is the column that orders a window, and how far its domain is from end to end, or nil if that is no integer.
func spanned(order []derived.WindowOrder) (by *policy.Column, width int64) {
	if len(order) == 0 || order[0].Column.Domain == nil {
		return nil, 0
	}
	d := order[0].Column.Domain
	least, counted := policy.UnitsOf(d.Min)
	most, also := policy.UnitsOf(d.Max)
	if !counted || !also || least < -1<<61 || most > 1<<61 {
		return nil, 0
	}
	return order[0].Column, most - least
}
