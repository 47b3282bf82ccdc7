package pipeline

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// mostAnswerCells bounds the cells of the answers that are kept whole, some 100 MB: those that were free and will be the same when asked again, since
// everything came from releases that the user holds, in Go, and nothing depended on the time.
const mostAnswerCells = 1 << 20

// cellsOf is what keeping an answer takes of that.
func cellsOf(key string, r Result) int {
	rows := r.Rows.Value()
	return 8 + len(key)/8 + len(rows.Data)*len(rows.Columns)
}

// repeatable tells whether an answer is worth keeping: it was free, made in Go, and does not depend on the time.
func repeatable(plan *plans.Plan, bought purchase) bool {
	if plan.Outer.Direct == nil || isOnline(plan) || len(plan.Measures) == 0 || !bought.charged.IsZero() || !plan.Timeless() {
		return false
	}
	for _, m := range plan.Measures {
		if !m.Held {
			return false
		}
	}
	return true
}

// answerKey is everything that an answer depends on besides the policy and the holdings: a statement, and its parameters. It is empty
// for parameters of rare types, whose answers are not kept.
func answerKey(s *Session, stmt parse.Statement, params []policy.Value, copies int64) string {
	b := statementKey(s, stmt, copies)
	for _, v := range params {
		switch v := v.(type) {
		case nil:
			b = append(b, 'n')
		case int64:
			b = binary.AppendVarint(append(b, 'i'), v)
		case bool:
			b = fmt.Appendf(b, "b%t", v)
		case string:
			b = append(binary.AppendUvarint(append(b, 's'), uint64(len(v))), v...)
		case float64:
			b = binary.BigEndian.AppendUint64(append(b, 'f'), math.Float64bits(v))
		case policy.Date:
			b = binary.AppendVarint(append(b, 'd'), int64(v))
		case policy.Timestamp:
			b = binary.AppendVarint(append(b, 't'), int64(v))
		case policy.Timestamptz:
			b = binary.AppendVarint(append(b, 'z'), int64(v))
		default:
			return ""
		}
	}
	return string(b)
}

// statementKey is who asks, what, with which types of parameters and settings, over which copies of the public tables.
func statementKey(s *Session, stmt parse.Statement, copies int64) []byte {
	b := binary.AppendVarint(make([]byte, 0, 256), copies)
	text := func(t string) {
		b = binary.AppendUvarint(b, uint64(len(t)))
		b = append(b, t...)
	}
	text(s.User)
	text(s.Dataset.ID)
	text(stmt.Text)
	b = binary.AppendUvarint(b, uint64(len(stmt.ParamTypes)))
	for _, t := range stmt.ParamTypes {
		b = binary.AppendUvarint(b, uint64(t))
	}
	set := &s.Settings.Settings
	b = binary.AppendVarint(append(b, '|'), set.Epsilon.Micro())
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(set.Confidence.Float()))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(set.MaxError))
	b = binary.AppendVarint(binary.AppendVarint(b, int64(set.Alarms)), set.Delta.Atto())
	b = append(b, flag(set.ErrorColumns), flag(set.Release), flag(set.Probes), byte(set.OffGrid))
	if set.Zone != nil {
		text(set.Zone.String())
	}
	b = binary.AppendUvarint(b, uint64(len(set.SearchPath)))
	for _, schema := range set.SearchPath {
		text(schema)
	}
	return b
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}
