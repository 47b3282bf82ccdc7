package mechanisms

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/quantiles"
	"github.com/dpproxy/dpproxy/mechanisms/selection"
)

// ChoiceKind names what a measurement chooses.
type ChoiceKind uint8

// The kinds of choices. The zero value is invalid. The numbers are in ledgers: never change one.
const (
	Quantiles ChoiceKind = 1 + iota // of each group, the cells at given shares of its rows
	Largest                         // of each group, the cells with the most rows, the first one first
	Popular                         // the counters with the largest weight · rows, a row being counted by any number of them
	Dearest                         // the candidates with the largest weight · (rows from some cell on)
)

// MaxChosen bounds what is chosen of one group.
const MaxChosen = quantiles.MaxQuantiles

// Choice is a measurement that chooses cells instead of counting them: its observations are, group by group, the
// numbers of the chosen cells within their group. A group is a run of cells; a row is in at most one cell.
type Choice struct {
	Kind    ChoiceKind
	Blocks  []Block // the groups, in order; of Popular and Dearest one block of one group
	Shares  []Share // Quantiles: which, by place in the observations
	Most    int     // of the others: how many are chosen
	Weights []int64 // Dearest: of the candidates; Popular: of the counters, nil means 1
	From    []int64 // Dearest: the first cell that counts, by candidate
	Each    Contribution
	Cost    privacy.Cost // of the choice in one group, for the contribution Each
}

// Block is a number of groups with the same number of cells.
type Block struct{ Groups, Cells int }

// MaxWeight is the largest weight of a score.
const MaxWeight = selection.MaxWeight

// Share is a part of the rows, Num/Den, from 0 to 1: 1/2 asks for the median.
type Share struct{ Num, Den int64 }

// MaxShare is the largest denominator of a Share in lowest terms, and the largest common one of a choice's.
const MaxShare = quantiles.MaxDenominator

// NewChoice returns the Spec of a choice, of which Kind, Blocks and what they need are given, at the given cost.
//
// Claim: Release of it is ε-DP or ρ-zCDP for c and cost, in however many groups a unit's rows are. Proof, one group: c
// and cost are the mechanism's own. Several: each group's mechanism is calibrated for T rows that one unit adds or
// removes, T = c.Rows, or 2·c.Rows under replace-one, at the whole cost. Neighbours are T steps apart, each of which
// adds or removes one row of one group. The spreads that the mechanisms are calibrated by are linear in the rows
// (quantiles.Mechanism.spread, selection.Scores.Spread of counts), so a step changes the logarithms of the
// probabilities of that group's outcomes by amounts that lie in an interval of length ε'/T, for a draw (a level of
// draws) that is calibrated to ε', and of the other groups' not at all, the groups being drawn independently. Over T
// steps these add up to an interval of length ε' for the outcomes of all groups together: they have range ε' and are
// ε'-DP and, by the exponential mechanism, ε'²/8-zCDP, as one group is. Levels compose one after another as in one
// group. So the cost does not depend on the number of groups: a unit whose rows are spread over many moves each of them
// less.
func NewChoice(ch Choice, c Contribution, cost privacy.Cost) (Spec, error) {
	if err := checkContribution(c); err != nil {
		return Spec{}, err
	}
	s := Spec{Counters: 1, Kind: &ch}
	for _, b := range ch.Blocks {
		s.Cells += b.Groups * b.Cells
	}
	if ch.Kind == Popular {
		s.Counters, s.Cells = s.Cells, 1
	}
	if ch.Each, ch.Cost = c, cost; ch.groups() > 1 {
		rows := c.Rows
		if c.Neighbors == privacy.ReplaceOne {
			rows *= 2
		}
		ch.Each = Contribution{Rows: rows, Neighbors: privacy.AddRemove}
	}
	return s, s.check()
}

func (ch *Choice) groups() (n int) {
	for _, b := range ch.Blocks {
		n += b.Groups
	}
	return n
}

// chosen returns how many cells are chosen of each group.
func (ch *Choice) chosen() int {
	if ch.Kind == Quantiles {
		return len(ch.Shares)
	}
	return ch.Most
}

func (ch *Choice) errors(Spec, Confidence) *Errors { panic(countsNothing) }

func (ch *Choice) hasNoise() bool { return !ch.Cost.IsZero() }

// check refuses every choice that NewChoice would not make.
func (ch *Choice) check(s Spec) error {
	switch {
	case ch.Kind < Quantiles || ch.Kind > Dearest:
		return fmt.Errorf("choice is %d, must be from %d to %d", ch.Kind, Quantiles, Dearest)
	case len(ch.Blocks) == 0:
		return errors.New("choice has no groups, must have one")
	case ch.Kind != Quantiles && (ch.Most < 1 || ch.Most > MaxChosen):
		return fmt.Errorf("number of the chosen is %d, must be from 1 to %d", ch.Most, MaxChosen)
	case ch.Kind != Quantiles && ch.groups() > 1 && (ch.Kind != Largest || ch.Most > 1):
		return errors.New("several are chosen of each of several groups, must be one")
	}
	cells := 0
	for _, b := range ch.Blocks {
		if b.Groups < 1 || b.Cells < 1 || b.Groups > MaxCells || b.Cells > MaxCells || cells+b.Groups*b.Cells > MaxCells {
			return fmt.Errorf("%d groups have %d cells each, must be at least 1 and together at most %d", b.Groups, b.Cells, MaxCells)
		}
		cells += b.Groups * b.Cells
	}
	if s.Cells*s.Counters != cells || s.Counters != 1 && ch.Kind != Popular {
		return fmt.Errorf("number of cells is %d, must be the %d of the groups", s.Cells*s.Counters, cells)
	}
	if s.Counters > MaxCounters {
		return fmt.Errorf("number of counters is %d, must be at most %d", s.Counters, MaxCounters)
	}
	if n := ch.groups() * ch.chosen(); n > MaxObservations {
		return fmt.Errorf("number of observations is %d, must be at most %d", n, MaxObservations)
	}
	_, err := ch.choosers()
	return err
}

// choosers returns the mechanism of each block.
func (ch *Choice) choosers() ([]chooser, error) {
	all := make([]chooser, len(ch.Blocks))
	for i, b := range ch.Blocks {
		var err error
		if all[i], err = ch.chooser(b.Cells); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// chooser chooses in one group: how far, in rows, what it chooses is off at most, but with probability alpha.
type chooser struct {
	spread int64 // of the scores; 0 means of quantiles
	choose func(truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[[]int], error)
	bound  func(alpha noise.Probability) float64
	name   string
	ranges func(rows quantiles.ExpectedRows, deviation quantiles.Deviation) bool
}

func (ch *Choice) chooser(cells int) (chooser, error) {
	switch ch.Kind {
	case Quantiles:
		shares := make([]quantiles.Quantile, len(ch.Shares))
		for i, share := range ch.Shares {
			var err error
			if shares[i], err = quantiles.NewQuantile(share.Num, share.Den); err != nil {
				return chooser{}, err
			}
		}
		m, err := quantiles.New(cells, shares, ch.Each, ch.Cost)
		if err != nil {
			return chooser{}, err
		}
		return chooser{0, m.Release, ch.rankBound(m, cells), selection.RuleFor(ch.Cost).String(), m.PreferRanges}, nil
	case Largest, Popular:
		scored := selection.Counts
		if ch.Kind == Popular {
			scored = selection.Columns
		}
		if ch.Kind == Popular && len(ch.Weights) > 0 {
			if len(ch.Weights) != cells {
				return chooser{}, fmt.Errorf("number of weights is %d, must be the number of counters, %d", len(ch.Weights), cells)
			}
			scored = func(int) (selection.Scores, error) { return selection.Weighted(ch.Weights) }
		}
		scores, err := scored(cells)
		if err != nil {
			return chooser{}, err
		}
		return ch.best(scores)
	}
	from := intsOf(ch.From)
	scores, err := selection.Tails(cells, ch.Weights, from)
	if err != nil {
		return chooser{}, err
	}
	return ch.best(scores)
}

// best chooses by scores: one candidate, or several.
func (ch *Choice) best(scores selection.Scores) (chooser, error) {
	spread, err := scores.Spread(ch.Each)
	if err != nil {
		return chooser{}, err
	}
	if ch.Most > 1 {
		t, err := selection.ChooseTop(ch.Most, scores, ch.Each, ch.Cost)
		if err != nil {
			return chooser{}, err
		}
		return chooser{spread: spread, choose: t.Select, bound: t.LossBound, name: "top " + fmt.Sprint(ch.Most) + " by " + t.Method().String()}, nil
	}
	rule := selection.RuleFor(ch.Cost)
	m, err := selection.New(rule, scores, ch.Each, ch.Cost)
	if err != nil {
		return chooser{}, err
	}
	one := func(truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[[]int], error) {
		chosen, err := m.Select(truth, random)
		if err != nil {
			return privacy.Released[[]int]{}, err
		}
		return privacy.PostProcess(chosen, func(n int) []int { return []int{n} }), nil
	}
	return chooser{spread: spread, choose: one, bound: m.LossBound, name: rule.String()}, nil
}

// rankBound bounds the rank error of the worst of several quantiles (of one: Smith 2011).
//
// Each draw is off by at most e = ln(places·draws/α)/rate rows of its part, but with probability α/draws, with rate =
// s/(2T·max(q, 1−q)) a row for a share q of the part; an extreme is moved inwards by at most ln(8·places)/rate rows
// more (quantiles.Mechanism.slack). A share q of a part whose ends are off by a and b is off by (1−q)·a + q·b besides.
func (ch *Choice) rankBound(m quantiles.Mechanism, cells int) func(alpha noise.Probability) float64 {
	levels := float64(m.Levels())
	strength := ch.Cost.Epsilon.Float() / levels
	if ch.Cost.Rho.Pico() != 0 {
		strength = math.Sqrt(8 * ch.Cost.Rho.Float() / levels)
	}
	rows := float64(ch.Each.Rows)
	if ch.Each.Neighbors == privacy.ReplaceOne {
		rows *= 2
	}
	places := float64(cells)
	if levels > 1 {
		places = max(places, 1<<18) // as many as cells are divided into
	}
	shares := make([]float64, len(ch.Shares))
	for i, share := range ch.Shares {
		shares[i] = float64(share.Num) / float64(share.Den)
	}
	slices.Sort(shares)
	shares = slices.Compact(shares)
	return func(alpha noise.Probability) float64 {
		own := func(q float64, extreme bool) float64 {
			e := math.Log(places * float64(len(shares)) / float64(alpha))
			if extreme {
				e += math.Log(8 * places)
			}
			return e * 2 * rows * max(q, 1-q) / strength
		}
		return worstRank(shares, 0, 1, 0, 0, own)
	}
}

// worstRank is the largest error of shares that lie in a part of the rows whose ends are off by below and above.
func worstRank(shares []float64, from, to, below, above float64, own func(q float64, extreme bool) float64) float64 {
	if len(shares) == 0 {
		return 0
	}
	middle := len(shares) / 2
	at := shares[middle]
	q := 1.0
	if to > from {
		q = (at - from) / (to - from)
	}
	e := own(q, at == 0 || at == 1) + (1-q)*below + q*above
	return max(e, worstRank(shares[:middle], from, at, below, e, own), worstRank(shares[middle+1:], at, to, e, above, own))
}

// release draws a choice: see NewChoice for the claim.
// Limits: a placement that panics leaves its group of rows out, as in Release. The time depends on the cells.
func (ch *Choice) release(s Spec, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader) (privacy.Released[Noisy], error) {
	var none privacy.Released[Noisy]
	choosers, err := ch.choosers()
	if err != nil {
		return none, err
	}
	cells, err := Tally(s.Counters, s.Cells, place, truth)
	if err != nil {
		return none, err
	}
	var lists []privacy.Released[[]int]
	at := 0
	for i, b := range ch.Blocks {
		for range b.Groups {
			from := at
			own := sealed.Map(cells, func(all []int64) []int64 { return all[from : from+b.Cells : from+b.Cells] })
			chosen, err := choosers[i].choose(own, random)
			if err != nil {
				return none, err
			}
			lists = append(lists, chosen)
			at += b.Cells
		}
	}
	return privacy.PostProcess(lists[0], func([]int) Noisy {
		out := Noisy{Observations: make([]int64, 0, len(lists)*ch.chosen())}
		for _, list := range lists {
			for _, cell := range list.Value() {
				out.Observations = append(out.Observations, int64(cell))
			}
		}
		return out
	}), nil
}

func intsOf(list []int64) []int {
	out := make([]int, len(list))
	for i, n := range list {
		out[i] = int(n)
	}
	return out
}
