package planner

import (
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// An online release answers counting questions that are functions of its cells, one after the other, each analyst's from a
// session of her own (docs/adr/0024). Whether one is used is decided by public things: the policy, what she has paid for,
// how many updates her own session has left, and expected errors. Where a plain histogram of its cells would give less error
// at the same cost, the release is drawn as that histogram, unless the policy insists.

// cellsOf is the measure over the cells of a release, which may be wider than its columns'.
func cellsOf(r *policy.Release) *solved {
	s := identity(r.Table, r.Columns)
	for _, p := range s.parts {
		for i, c := range r.Columns {
			if c != r.Table.Columns[p.columns[0]] {
				continue
			}
			from := r.Cells(i)
			for at, first := range from {
				end := len(p.class)
				if at+1 < len(from) {
					end = from[at+1]
				}
				for cell := first; cell < end; cell++ {
					p.class[cell] = int32(at)
				}
			}
			s.cells = s.cells / p.classes * len(from)
			p.classes = len(from)
		}
	}
	return s
}

// sessionSpec is how an online release is measured.
func sessionSpec(r *policy.Release, cells int) (mechanisms.Spec, error) {
	o := mechanisms.Online{Rule: mechanisms.MultiplicativeWeights, Contribution: r.Table.ContributionTo(cells), Rows: r.Table.ExpectedRows, Updates: r.Updates, Queries: r.Queries, Cost: r.Cost}
	if r.Mechanism == "median" {
		o.Rule = mechanisms.Median
	}
	if d := r.Table.Dataset; d.Neighbors != privacy.ReplaceOne || !d.Unit.Row {
		o.Spare = o.Rows // the guess may be half of what is there
	}
	return mechanisms.NewOnline(o, cells)
}

// onlineRelease is a release as one statement looks at it.
type onlineRelease struct {
	*policy.Release
	cells   *solved
	measure *Measure
	spec    mechanisms.Spec
	own     int64 // half-widths: of an answer of the session,
	plain   int64 // and of a plain histogram's worst one
	drawn   bool  // as a plain histogram
}

// online reads a release; nil: it cannot be measured.
func (ch *chooser) online(r *policy.Release) *onlineRelease {
	o := &onlineRelease{Release: r, cells: cellsOf(r)}
	spec, err := sessionSpec(r, o.cells.cells)
	if err != nil {
		ch.hints.add("release " + r.Name + " is not used: " + err.Error())
		return nil
	}
	if o.own, o.plain, err = spec.Rival(ch.c.Settings.Confidence); err != nil {
		return nil
	}
	o.drawn = !r.Insist && o.plain <= o.own
	o.spec = spec
	kind := policy.OnlineRelease.String()
	if o.drawn {
		kind = policy.HistogramRelease.String()
		o.spec, err = mechanisms.Plain(1, o.cells.cells, r.Table.ContributionTo(o.cells.cells), r.Cost)
		if err != nil {
			return nil
		}
	}
	o.measure = o.cells.measure(kind, r.Name)
	o.measure.Declared, o.measure.Shared, o.measure.Spec, o.measure.Cost = r, o.drawn, o.spec, r.Cost
	if !o.drawn {
		o.measure.described = encodeText(append(o.measure.described, "online"...), r.Name)
		o.measure.Digest = sha256.Sum256(o.measure.described)
	}
	return o
}

// figures names what a session and the plain histogram would be off.
func (o *onlineRelease) figures() string {
	return fmt.Sprintf("its answers are within ±%d, a plain histogram of its %d cells would be within ±%d at the same cost", o.own, o.cells.cells, o.plain)
}

// held is the release as she has paid for it; nil where she has not.
func (ch *chooser) heldOnline(o *onlineRelease, share privacy.Cost) *Measure {
	if ch.c.Holdings == nil {
		return nil
	}
	var found *Holding
	for _, h := range ch.c.Holdings.Held(o.measure.Digest) {
		if (h.Spec.Online == nil) != o.drawn || h.Spec.Cells != o.cells.cells {
			continue
		}
		if found == nil || h.At.After(found.At) {
			found = &h
		}
	}
	if found == nil {
		return nil
	}
	m := *o.measure
	w := &way{measure: &m}
	w.hold(*found, "you have paid for release "+o.Name+"; "+o.figures())
	if m.Declared != nil && ch.isStale(*found, m.Declared) && o.Cost.Fits(share) {
		m.Spec, m.Cost, m.Held, m.HeldID = o.spec, o.Cost, false, 0
		m.Why = "what you have paid for of release " + o.Name + " is of " + epochDate(found.At, o.Refresh) + "; it is bought anew"
		ch.renewals++
	}
	return &m
}

// left is how many updates a held session has left.
func (ch *chooser) left(m *Measure) int {
	if ch.c.Left == nil || !m.Held || m.Spec.Online == nil {
		return math.MaxInt
	}
	return ch.c.Left(m.HeldID)
}

// orSession takes an online release where that is better than w, the best of what she holds otherwise: one that she holds and
// whose error is less; or, where she holds nothing that answers, one to be bought.
func (ch *chooser) orSession(s *solved, w *way, share privacy.Cost) *way {
	columns, ok := s.columns()
	if !ok || len(s.table.Sessions) == 0 || len(columns) == 0 || s.summed() != nil {
		return w
	}
	var best *way
	for _, r := range s.table.Sessions {
		if !containsAll(r.Columns, columns) {
			continue
		}
		o := ch.online(r)
		if o == nil {
			continue
		}
		reading := cover(s, o.cells)
		if reading == nil {
			continue
		}
		if m := ch.heldOnline(o, share); m != nil {
			if ch.left(m) > 0 && (w == nil || ch.worst(m.Spec, reading) < ch.worst(w.measure.Spec, w.reading)) {
				w, best = &way{m, reading}, nil
			} else if ch.left(m) == 0 {
				ch.hints.add("release " + r.Name + " has stopped: its updates are used up")
			}
			continue
		}
		if w == nil && best == nil {
			best = ch.buyOnline(o, reading, share)
		}
	}
	if w != nil {
		return w
	}
	return best
}

// buyOnline buys a release at its first use, where its cost is within the share.
func (ch *chooser) buyOnline(o *onlineRelease, reading *reading, share privacy.Cost) *way {
	if !o.Cost.Fits(share) {
		ch.hints.add(fmt.Sprintf("release %s: ε %s makes every count by %s free; SET dp.epsilon = %s", o.Name, o.Epsilon, columnNames(o.Columns), o.Epsilon))
		return nil
	}
	m := *o.measure
	switch {
	case o.drawn:
		m.Why = "online release " + o.Name + " is drawn as a plain histogram, which gives less error: " + o.figures()
	case o.plain <= o.own:
		m.Why = "the policy insists on online release " + o.Name + ": " + o.figures()
	default:
		m.Why = "online release " + o.Name + " is within dp.epsilon: " + o.figures()
	}
	return &way{&m, reading}
}

// stopped refuses a question that a stopped session of hers would answer, where the policy does not let it be counted
// afresh.
func (ch *chooser) stopped(s *solved) *Refusal {
	columns, ok := s.columns()
	if !ok || len(columns) == 0 || s.summed() != nil {
		return nil
	}
	for _, r := range s.table.Sessions {
		if r.Recount || !containsAll(r.Columns, columns) {
			continue
		}
		o := ch.online(r)
		if o == nil || cover(s, o.cells) == nil {
			continue
		}
		if m := ch.heldOnline(o, privacy.Cost{}); m != nil && ch.left(m) == 0 {
			return sessionStopped.at(-1, r.Name, r.Updates, s.table.Name)
		}
	}
	return nil
}
