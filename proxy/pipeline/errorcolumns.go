package pipeline

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/sandbox"
)

// leastRedraws and mostRedraws bound the number of times that the outer query is run again on noise drawn afresh around
// the released values, where bounds of values are asked for.
const (
	leastRedraws = 200
	mostRedraws  = 2000
)

// redrawsFor is the number of redraws for a share of the values, so that each end leaves one out at least; 0 means it
// would be too many, and the bounds are NULL.
func redrawsFor(share float64) int {
	n := math.Ceil(2/(1-share)-1e-9) - 1
	if !(n <= mostRedraws) {
		return 0
	}
	return int(n)
}

// toldRows is of how many rows redraws are made for a notice, at their least number of redraws if that is more.
const toldRows = 2000

// redrawsOf is the number of redraws of a plan. A notice has less than bounds that are asked for where rows are many, but
// two beyond each end at least, so that a redraw without a value does not take all: of 79 at 95 %, the ends are a tenth
// farther apart on average.
func redrawsOf(plan *plans.Plan) int {
	n, rows := redrawsFor(plan.Confidence.Float()), 1
	if n == 0 {
		return 0
	}
	if plan.WantsErrors() {
		return max(n, leastRedraws)
	}
	for _, l := range plan.Leaves {
		rows = max(rows, l.Rows)
	}
	return max(n, min(leastRedraws, max(2*n+1, toldRows/rows)))
}

// withErrors gives each noisy column x two more, x_low and x_high, and puts the bounds of what dp.low and dp.high are
// asked of in its place. What is counts and sums times constants takes its half-width. Another computed column takes
// the quantiles of its values over redraws of the noise around the released values: a parametric bootstrap, which is
// post-processing, and the same whenever it is made of the same releases. Rows of a redraw are matched by their columns
// without noise; where those do not tell rows apart, or a row is seldom there, the bounds are NULL.
func (r *reader) withErrors(
	ctx context.Context, s *Session, p compiled, ids []int64, released privacy.Released[sandbox.Rows], climbed clamps,
) (privacy.Released[sandbox.Rows], []string, error) {
	plan, rows := p.plan, released.Value()
	if len(rows.Columns) != len(plan.Columns) {
		return privacy.PostProcess(released, func(rows sandbox.Rows) sandbox.Rows { return withoutBounds(plan, rows) }), nil, nil
	}
	samples := map[string][][]policy.Value{}
	if needsRedraws(plan) {
		var err error
		if samples, err = r.redraws(ctx, s, p, ids, climbed); err != nil {
			return released, nil, err
		}
	}
	bars := barsOf(plan, rows, samples, climbed)
	return privacy.PostProcess(released, func(rows sandbox.Rows) sandbox.Rows {
		return sandbox.Rows{Columns: errorColumns(plan), Data: addBounds(plan, rows, bars)}
	}), offTexts(plan, rows, bars), nil
}

// redraws are the rows of each redraw by their columns without noise. One that fails, as the square root of a count
// does that is below 0 in it alone, is beyond either end of everything, as NULL is.
func (r *reader) redraws(
	ctx context.Context, s *Session, p compiled, ids []int64, climbed clamps,
) (map[string][][]policy.Value, error) {
	samples := map[string][][]policy.Value{}
	size, most, failed := int64(0), s.Policy.Server.Limits.StatementMemory/2, 0
	noise, began, asked, longest := redrawn(p.plan, ids), time.Now(), p.plan.WantsErrors(), mostToldTime
	if p.plan.Significant {
		longest = mostDigitsTime
	}
	readings, err := r.readings(ctx, s, p.plan, ids)
	if err != nil {
		return nil, err
	}
	for range redrawsOf(p.plan) {
		again, err := r.redraw(ctx, s, p, readings, noise, climbed)
		if !asked && (ctx.Err() != nil || time.Since(began) > longest) {
			return nil, nil
		}
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			failed++
			continue
		}
		if size += again.Value().Size(); most > 0 && size > most {
			if !asked {
				return nil, nil
			}
			return nil, pgerror.New("54000", "error columns of so many rows need more than "+policy.SizeText(most)+" (half of server.limits.statement_memory)").
				WithHint("SET dp.error_columns = off, or ask for fewer rows. What was paid for stays free.")
		}
		collect(samples, p.plan, again.Value())
	}
	for key := range samples {
		for range failed {
			samples[key] = append(samples[key], make([]policy.Value, len(p.plan.Columns)))
		}
	}
	return samples, nil
}

// withoutBounds are the rows of an answer of which no column's error is known: its bounds are NULL.
func withoutBounds(plan *plans.Plan, rows sandbox.Rows) sandbox.Rows {
	if len(plan.Bounds) == 0 {
		return rows
	}
	out := sandbox.Rows{Columns: rows.Columns, Data: make([][]policy.Value, len(rows.Data))}
	for r, row := range rows.Data {
		out.Data[r] = slices.Clone(row)
		for _, b := range plan.Bounds {
			out.Data[r][b.Column] = nil
		}
	}
	return out
}

// errorColumns is the shape of an answer with x_low and x_high.
func errorColumns(plan *plans.Plan) []sandbox.Column {
	var out []sandbox.Column
	for _, c := range plan.Columns {
		out = append(out, sandbox.Column{Name: c.Name, Type: c.Type, Typmod: c.Typmod})
		if plan.ErrorColumns && c.Noisy && c.Bound == plans.Unbounded {
			out = append(out, sandbox.Column{Name: c.Name + "_low", Type: c.Type, Typmod: c.Typmod}, sandbox.Column{Name: c.Name + "_high", Type: c.Type, Typmod: c.Typmod})
		}
	}
	return out
}

// needsRedraws reports whether the errors of a column are looked at that has no half-width.
func needsRedraws(plan *plans.Plan) bool {
	asked := func(c plans.OutColumn) bool {
		return isComputed(c) && (plan.ErrorColumns || c.Bound != plans.Unbounded)
	}
	return isRedrawn(plan) && (slices.Contains(tellsOff(plan), true) || slices.ContainsFunc(plan.Columns, asked))
}

// redrawn is the randomness of the redraws by measure. It follows from the release alone, so that an answer has the
// same bounds whenever it is asked for; what is drawn around released values protects nothing.
func redrawn(plan *plans.Plan, ids []int64) []io.Reader {
	streams := make([]io.Reader, len(plan.Measures))
	for i := range plan.Measures {
		key := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("redraws of release "), uint64(ids[i])))
		block, err := aes.NewCipher(key[:])
		if err != nil {
			panic("pipeline: a key of 32 bytes: " + err.Error())
		}
		streams[i] = cipher.StreamReader{S: cipher.NewCTR(block, make([]byte, aes.BlockSize)), R: zeros{}}
	}
	return streams
}

// zeros are as many as are read.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// redraw runs the outer query once more on fresh noise around the released values, and with their clamps.
func (r *reader) redraw(
	ctx context.Context, s *Session, p compiled, readings []reading, noise []io.Reader, climbed clamps,
) (privacy.Released[sandbox.Rows], error) {
	again := slices.Clone(readings)
	for i := range again {
		again[i].estimate = readings[i].estimate.Redraw(noise[i])
	}
	leaves, err := leafTables(ctx, p.plan, again, nil, climbed)
	if err != nil {
		return privacy.Released[sandbox.Rows]{}, err
	}
	return r.outside.query(ctx, s, p, leaves)
}

// collect files the rows of one redraw under their columns without noise. A key seen twice in one redraw tells nothing
// apart and is marked by a nil sample.
func collect(samples map[string][][]policy.Value, plan *plans.Plan, rows sandbox.Rows) {
	here := map[string]bool{}
	for _, row := range rows.Data {
		key := rowKey(plan, row)
		if here[key] {
			row = nil
		}
		here[key] = true
		samples[key] = append(samples[key], row)
	}
}

func rowKey(plan *plans.Plan, row []policy.Value) string {
	var b strings.Builder
	for i, c := range plan.Columns {
		if !c.Noisy {
			fmt.Fprintf(&b, "%T:%v\x00", row[i], row[i])
		}
	}
	return b.String()
}

// bar is the interval of a value, NULLs where it is not known.
type bar struct{ low, high policy.Value }

// barsOf are the intervals of an answer's values, by row and column.
func barsOf(
	plan *plans.Plan, rows sandbox.Rows, samples map[string][][]policy.Value, climbed clamps,
) [][]bar {
	bars := make([][]bar, len(rows.Data))
	widths, known := make([]width, len(plan.Columns)), make([]bool, len(plan.Columns))
	for i, c := range plan.Columns {
		widths[i], known[i] = widthOf(c)
	}
	for r, row := range rows.Data {
		drawn := samples[rowKey(plan, row)]
		bars[r] = make([]bar, len(row))
		for i, c := range plan.Columns {
			b, w := &bars[r][i], widths[i]
			switch {
			case !c.Noisy:
			case known[i]:
				b.low, b.high = barOf(c, w.rat(), row[i])
			case len(c.Climbs) > 0: // NULL, and so are its bounds, where too few units show
				b.low, b.high = barOf(c, climbed.of(c.Climbs).off, row[i])
			default:
				b.low, b.high = quantiles(plan, drawn, i)
			}
		}
	}
	return bars
}

func addBounds(plan *plans.Plan, rows sandbox.Rows, bars [][]bar) [][]policy.Value {
	out := make([][]policy.Value, len(rows.Data))
	for r, row := range rows.Data {
		for i, c := range plan.Columns {
			b := bars[r][i]
			if c.Bound == plans.Unbounded || !c.Noisy {
				v := row[i]
				if plan.Significant && c.Noisy {
					v = significant(c, v, offOf(v, b))
				}
				out[r] = append(out[r], v)
			}
			switch {
			case !c.Noisy:
			case c.Bound == plans.LowBound:
				out[r] = append(out[r], b.low)
			case c.Bound == plans.HighBound:
				out[r] = append(out[r], b.high)
			case plan.ErrorColumns:
				out[r] = append(out[r], b.low, b.high)
			}
		}
	}
	return out
}

// quantiles are the two ends of a column's redrawn values between which another draw lies with probability share at
// least. Of n values the k-th from either end do where 2k ≤ (n+1)(1−share), since each of n+1 draws is as likely as the
// others to be the last one. A redraw that gave NULL, such as an average over a count that came out within its own
// error, may be beyond either end and counts as beyond both. NULL where more such redraws than an end leaves out are
// among them, where rows could not be distinguished, or where fewer than half of the redraws hold the row.
func quantiles(plan *plans.Plan, drawn [][]policy.Value, column int) (low, high policy.Value) {
	share := plan.Confidence.Float()
	beyond := int(math.Floor(float64(len(drawn)+1)*(1-share)/2+1e-9)) - 1 // at each end
	if len(drawn) < redrawsOf(plan)/2 || beyond < 0 {
		return nil, nil
	}
	values := make([]policy.Value, 0, len(drawn))
	for _, row := range drawn {
		switch {
		case row == nil:
			return nil, nil
		case row[column] != nil:
			values = append(values, row[column])
		case beyond == 0:
			return nil, nil
		default:
			beyond--
		}
	}
	slices.SortFunc(values, func(x, y policy.Value) int { return scalar.Compare(plan.Columns[column].Type, x, y) })
	return values[beyond], values[len(values)-1-beyond]
}

// width is how far a value may be off, in its column's own units: a whole number of rows for a count (±37), and what is
// computed of counts and sums by constants a fraction of anything (±12.5 of avg(income)).
type width struct {
	rows int64
	off  *big.Rat // nil: rows
}

// widthOf is a column's half-width: that of a count, or of a linear function of counts and sums. False means it has
// none that is known by constants.
func widthOf(c plans.OutColumn) (w width, ok bool) {
	if c.Error != nil {
		return width{rows: c.Error.HalfWidth}, true
	}
	return width{off: c.Off}, c.Off != nil
}

func (w width) rat() *big.Rat {
	if w.off != nil {
		return w.off
	}
	return new(big.Rat).SetInt64(w.rows)
}

func (w width) cmp(other width) int {
	if w.off == nil && other.off == nil {
		return cmp.Compare(w.rows, other.rows)
	}
	return w.rat().Cmp(other.rat())
}

// String writes it rounded up: whole numbers as they are, others with as many digits as matter.
func (w width) String() string {
	if w.off == nil {
		return strconv.FormatInt(w.rows, 10)
	}
	return figure(w.off)
}

// figure writes a half-width, rounded up: whole numbers as they are, others with as many digits as matter.
func figure(x *big.Rat) string {
	if x.IsInt() {
		return x.Num().String()
	}
	decimals, scaled, ten := 0, new(big.Rat).Set(x), big.NewRat(10, 1)
	for ; scaled.Cmp(big.NewRat(1000, 1)) < 0 && !scaled.IsInt() && decimals < 30; decimals++ {
		scaled.Mul(scaled, ten)
	}
	up := new(big.Int).Add(scaled.Num(), new(big.Int).Sub(scaled.Denom(), big.NewInt(1)))
	up.Quo(up, scaled.Denom())
	return new(big.Rat).Quo(new(big.Rat).SetInt(up), new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10),
		big.NewInt(int64(decimals)), nil))).FloatString(decimals)
}

// barOf is the interval of a column that has one about a value of it, rounded outwards to a value of its type; NULL
// about NULL.
func barOf(c plans.OutColumn, off *big.Rat, v policy.Value) (low, high policy.Value) {
	if off == nil {
		return nil, nil
	}
	switch v := v.(type) {
	case int64:
		at := new(big.Rat).SetInt64(v)
		low, high = wholeWithin(c.Type, lowEnd(at, off, 0)), wholeWithin(c.Type, highEnd(at, off, 0))
	case policy.Date:
		at := new(big.Rat).SetInt64(int64(v))
		low = policy.Date(wholeWithin(policy.Int4, lowEnd(at, off, 0)))
		high = policy.Date(wholeWithin(policy.Int4, highEnd(at, off, 0)))
	case policy.Numeric:
		at, scale := new(big.Rat).SetFrac(v.Coefficient, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(v.Scale)), nil)), v.Scale
		if c.Typmod < 0 {
			scale = max(scale, decimalsOf(off))
		}
		low, high = policy.Numeric{Coefficient: lowEnd(at, off, scale), Scale: scale}, policy.Numeric{Coefficient: highEnd(at, off, scale), Scale: scale}
	case float64:
		at := new(big.Rat).SetFloat64(v)
		if at == nil { // infinite
			return v, v
		}
		off := new(big.Rat).Add(off, new(big.Rat).Mul(new(big.Rat).Abs(at), lostByFloats(c.Type)))
		low, high = floatBeyond(c.Type, new(big.Rat).Sub(at, off), -1), floatBeyond(c.Type, new(big.Rat).Add(at, off), 1)
	}
	return low, high
}

// lowEnd is at − off in whole 10^−scale, rounded down, and highEnd at + off rounded up.
func lowEnd(at, off *big.Rat, scale int32) *big.Int {
	x := new(big.Rat).Sub(at, off)
	x.Mul(x, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
	return new(big.Int).Div(x.Num(), x.Denom()) // which rounds down, since the divisor is above 0
}

func highEnd(at, off *big.Rat, scale int32) *big.Int {
	end := lowEnd(new(big.Rat).Neg(at), off, scale)
	return end.Neg(end)
}

// wholeWithin is a whole number, cut at the ends of its type.
func wholeWithin(t policy.Type, n *big.Int) int64 {
	most := big.NewInt(math.MaxInt64)
	switch t {
	case policy.Int2:
		most = big.NewInt(math.MaxInt16)
	case policy.Int4:
		most = big.NewInt(math.MaxInt32)
	}
	if n.Cmp(most) > 0 {
		return most.Int64()
	}
	if least := new(big.Int).Not(most); n.Cmp(least) < 0 {
		return least.Int64()
	}
	return n.Int64()
}

// moreDecimals is how many a bound has whose half-width has no last one, as that of sum(x) / 3.
const moreDecimals = 16

// decimalsOf is the number of decimals that a number has.
func decimalsOf(x *big.Rat) int32 {
	n, exact := x.FloatPrec()
	if !exact {
		return moreDecimals
	}
	return int32(min(n, moreDecimals))
}

// lostByFloats is the share of a value that it may be off by since it was calculated in a floating type: a few units of
// its last place.
func lostByFloats(t policy.Type) *big.Rat {
	if t == policy.Float4 {
		return big.NewRat(1, 1<<20)
	}
	return big.NewRat(1, 1<<48)
}

// floatBeyond is a number as a value of a floating type, beyond it in a direction where it is none.
func floatBeyond(t policy.Type, x *big.Rat, direction int) float64 {
	if t == policy.Float4 {
		f, exact := x.Float32()
		if off := new(big.Rat).SetFloat64(float64(f)); !exact && off != nil && off.Cmp(x)*direction < 0 {
			f = math.Nextafter32(f, float32(math.Inf(direction)))
		}
		return float64(f)
	}
	f, exact := x.Float64()
	if off := new(big.Rat).SetFloat64(f); !exact && off != nil && off.Cmp(x)*direction < 0 {
		f = math.Nextafter(f, math.Inf(direction))
	}
	return f
}

// mixedValue reads a row from several releases: the weighted sum of what each says, exact, and then rounded, the half
// away from zero.
func mixedValue(row []plans.Term, readings []reading) int64 {
	sum := new(big.Rat)
	for _, t := range row {
		n := readings[t.Measure].estimate.Sum(t.Counter, t.Spans).Value()
		sum.Add(sum, new(big.Rat).Mul(big.NewRat(t.Num, t.Den), new(big.Rat).SetInt64(n)))
	}
	twice := new(big.Int).Lsh(sum.Num(), 1)
	if sum.Sign() < 0 {
		twice.Sub(twice, sum.Denom())
	} else {
		twice.Add(twice, sum.Denom())
	}
	n := twice.Quo(twice, new(big.Int).Lsh(sum.Denom(), 1))
	most := big.NewInt(mechanisms.MaxNoisy)
	switch {
	case n.Cmp(most) > 0:
		return mechanisms.MaxNoisy
	case n.Cmp(new(big.Int).Neg(most)) < 0:
		return -mechanisms.MaxNoisy
	}
	return n.Int64()
}

// runWidth is the largest half-width over the rows of a run.
func runWidth(plan *plans.Plan, run *plans.Run, confidence mechanisms.Confidence) int64 {
	if run.Mix == nil {
		return widestHalfWidth(plan.Measures[run.Measure].Spec.Only(run.Counter), run.Spans, confidence)
	}
	return plan.WidestError(run, confidence).HalfWidth
}

// readsFrom reports whether a run is read from a measure.
func readsFrom(run *plans.Run, measure int) bool {
	if run.Mix == nil {
		return run.Measure == measure
	}
	for _, row := range run.Mix {
		for _, t := range row {
			if t.Measure == measure {
				return true
			}
		}
	}
	return false
}

// mixTexts say how a leaf's first row is read from several measures.
func mixTexts(plan *plans.Plan, leaf *plans.Leaf) (lines []string) {
	for _, c := range leaf.Counts {
		for _, run := range c.Runs {
			if len(run.Mix) == 0 {
				continue
			}
			text := c.Name + " = " + plan.MixText(run.Mix[0])
			if run.Ladder != nil {
				text = c.Name + " = the steps of a ladder times their cells, up to a clamp"
			}
			if n := len(run.Mix); n > 1 {
				text += " in the first row, and likewise in the others"
			}
			lines = append(lines, text)
			break
		}
	}
	return lines
}
