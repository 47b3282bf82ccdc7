package pipeline

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/sandbox"
)

// leastRedraws and mostRedraws bound the number of times that the outer query is run again on noise drawn afresh around
// the released values.
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
	return max(leastRedraws, int(n))
}

// withErrors gives each noisy column x two more, x_low and x_high, and puts the bounds of what dp.low and dp.high are
// asked of in its place. What is counts and sums times constants takes its half-width. Another computed column takes
// the quantiles of its values over redraws of the noise around the released values: a parametric bootstrap, which is
// post-processing, and the same whenever it is made of the same releases. Rows of a redraw are matched by their columns
// without noise; where those do not tell rows apart, or a row is seldom there, the bounds are NULL.
func (r *reader) withErrors(ctx context.Context, s *Session, p compiled, ids []int64, released privacy.Released[sandbox.Rows]) (privacy.Released[sandbox.Rows], error) {
	plan, rows := p.plan, released.Value()
	if len(rows.Columns) != len(plan.Columns) {
		return privacy.PostProcess(released, func(rows sandbox.Rows) sandbox.Rows { return withoutBounds(plan, rows) }), nil
	}
	samples := map[string][][]policy.Value{}
	if needsRedraws(plan) {
		noise := redrawn(plan, ids)
		most := s.Policy.Server.Limits.StatementMemory / 2
		size := int64(0)
		for range redrawsFor(plan.Confidence.Float()) {
			again, err := r.redraw(ctx, s, p, ids, noise)
			if err != nil {
				return released, err
			}
			if size += again.Value().Size(); most > 0 && size > most {
				return released, pgerror.New("54000", "error columns of so many rows need more than "+policy.SizeText(most)+" (half of server.limits.statement_memory)").
					WithHint("SET dp.error_columns = off, or ask for fewer rows. What was paid for stays free.")
			}
			collect(samples, plan, again.Value())
		}
	}
	return privacy.PostProcess(released, func(rows sandbox.Rows) sandbox.Rows {
		return sandbox.Rows{Columns: errorColumns(plan), Data: addBounds(plan, rows, samples)}
	}), nil
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

// needsRedraws reports whether bounds are asked for of a column that has no half-width.
func needsRedraws(plan *plans.Plan) bool {
	return isRedrawn(plan) && slices.ContainsFunc(plan.Columns, func(c plans.OutColumn) bool {
		_, known := widthOf(c)
		return c.Noisy && !known && (plan.ErrorColumns || c.Bound != plans.Unbounded)
	})
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

// redraw runs the outer query once more on fresh noise around the released values.
func (r *reader) redraw(ctx context.Context, s *Session, p compiled, ids []int64, noise []io.Reader) (privacy.Released[sandbox.Rows], error) {
	readings, err := r.readings(ctx, s, p.plan, ids)
	if err != nil {
		return privacy.Released[sandbox.Rows]{}, err
	}
	for i := range readings {
		readings[i].estimate = readings[i].estimate.Redraw(noise[i])
	}
	leaves, err := leafTables(ctx, p.plan, readings, nil)
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

func addBounds(plan *plans.Plan, rows sandbox.Rows, samples map[string][][]policy.Value) [][]policy.Value {
	out := make([][]policy.Value, len(rows.Data))
	for r, row := range rows.Data {
		drawn := samples[rowKey(plan, row)]
		for i, c := range plan.Columns {
			if c.Bound == plans.Unbounded || !c.Noisy {
				out[r] = append(out[r], row[i])
			}
			if !c.Noisy || !plan.ErrorColumns && c.Bound == plans.Unbounded {
				continue
			}
			low, high := policy.Value(nil), policy.Value(nil)
			if _, known := widthOf(c); known {
				low, high = barOf(c, row[i])
			} else {
				low, high = quantiles(c.Type, drawn, i, plan.Confidence.Float())
			}
			switch c.Bound {
			case plans.Unbounded:
				out[r] = append(out[r], low, high)
			case plans.LowBound:
				out[r] = append(out[r], low)
			case plans.HighBound:
				out[r] = append(out[r], high)
			}
		}
	}
	return out
}

// quantiles are the two ends of a column's redrawn values between which another draw lies with probability share at
// least. Of n values the k-th from either end do where 2k ≤ (n+1)(1−share), since each of n+1 draws is as likely as the
// others to be the last one. A redraw that gave NULL, such as an average over a count that came out within its own
// error, may be beyond either end and counts as beyond both. NULL where more such redraws than an end leaves out are
// among them, where rows could not be told apart, or where fewer than half of the redraws hold the row.
func quantiles(t policy.Type, drawn [][]policy.Value, column int, share float64) (policy.Value, policy.Value) {
	beyond := int(math.Floor(float64(len(drawn)+1)*(1-share)/2+1e-9)) - 1 // at each end
	if len(drawn) < redrawsFor(share)/2 || beyond < 0 {
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
	slices.SortFunc(values, func(x, y policy.Value) int { return scalar.Compare(t, x, y) })
	return values[beyond], values[len(values)-1-beyond]
}
