package ledger

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// specChoice marks the fourth form of a Spec's bytes: cells that are chosen instead of counted. Numbers are on disk: never
// change one.
const specChoice int64 = -4

func (e *encoder) choiceSpec(s mechanisms.Spec) {
	e.i64(specChoice)
	e.i64(int64(s.Counters))
	e.i64(int64(s.Cells))
	ch := s.Choice
	e.i64(int64(ch.Kind))
	e.i64(int64(len(ch.Blocks)))
	for _, b := range ch.Blocks {
		e.i64(int64(b.Groups))
		e.i64(int64(b.Cells))
	}
	e.i64(int64(len(ch.Shares)))
	for _, share := range ch.Shares {
		e.i64(share.Num)
		e.i64(share.Den)
	}
	e.i64(int64(ch.Most))
	e.list(ch.Weights)
	e.list(ch.From)
	e.i64(ch.Each.Rows)
	e.i64(ch.Each.Groups)
	e.i64(ch.Each.PerGroup)
	e.i64(int64(ch.Each.Neighbors))
	e.cost(ch.Cost)
}

// choiceSpec reads what follows the mark.
func (d *decoder) choiceSpec() mechanisms.Spec {
	s := mechanisms.Spec{Counters: int(d.i64()), Cells: int(d.i64())}
	ch := &mechanisms.Choice{Kind: mechanisms.ChoiceKind(d.i64())}
	if ch.Kind == 0 {
		d.err = errBody
	}
	for range d.count() {
		ch.Blocks = append(ch.Blocks, mechanisms.Block{Groups: int(d.i64()), Cells: int(d.i64())})
	}
	for range d.count() {
		ch.Shares = append(ch.Shares, mechanisms.Share{Num: d.i64(), Den: d.i64()})
	}
	ch.Most, ch.Weights, ch.From = int(d.i64()), d.list(), d.list()
	ch.Each = mechanisms.Contribution{Rows: d.i64(), Groups: d.i64(), PerGroup: d.i64()}
	ch.Each.Neighbors = privacy.Neighbors(d.i64())
	ch.Cost = d.cost()
	s.Choice = ch
	return s
}
