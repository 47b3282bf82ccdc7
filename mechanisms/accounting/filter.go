package accounting

import "github.com/dpproxy/dpproxy/mechanisms/privacy"

// Filter is a budget that whoever chooses the next release, its cost and its kind, after seeing all answers so far
// cannot exceed. The accounts of package ledger are Filters: a user's window, a user's life, a dataset's cap.
//
// Claim: as long as every release was drawn after a Charge that the filter held, all answers together are, whatever the
// choices, (ε, δ)-DP where the limit names ε and δ; where it names ρ and δ they are δ-approximately ρ-zCDP, hence (ε',
// δ' + δ)-DP for every pair (ε', δ') that ρ-zCDP implies; where it names ε, ρ and δ they are (ε, δ' + δ)-DP, δ' being
// such that ρ-zCDP implies (ε, δ'). Each also where some of what was charged are interactive mechanisms without a δ of
// their own, charged in full when they are opened, that are alive at the same time, their queries interleaved and
// chosen after each other's answers. Where the limit names ε they may have a δ too, if it is of the kind that the last
// proof is about: online.Basic's is. Neighbours: those of all costs charged, which must be of one relation.
//
// Proof for pure, without δ: a limit that names ε has 0 for ρ, so that it holds no charge of ρ. The probability of a
// transcript on D is the chooser's own choices times, for each mechanism, the probability that it answers its queries
// as it did; its state depends on its own part alone. Between D and D' the choices cancel and mechanism i's factor
// moves by at most exp(ε_i), it being ε_i-DP against whoever asks these queries, however they are interleaved with
// others'. On every transcript Holds keeps Σε_i ≤ ε. Theorem for zCDP, without δ: for each order a, Σaρ_i ≤ aρ is a
// valid filter for Rényi DP of order a (Feldman and Zrnic 2021; Lécuyer 2021), and valid filters of a fixed order stay
// valid when interactive mechanisms are alive at once (Haney, Shoemate, Tian, Vadhan, Vyrros, Xu, Zhang 2023; with
// costs fixed in advance: Lyu 2022, Vadhan and Zhang 2023). All orders together are zCDP. One after the other,
// Whitehouse et al. 2023 prove the filter for approximate zCDP directly.
//
// Proof for releases with a δ_i, one message each, beside interactive mechanisms with none. Such a release is M(D) =
// (1−δ_i)P' + δ_iR, M(D') = (1−δ_i)Q' + δ_iS, P' and Q' within ε_i or ρ_i. Fix neighbours D and D'. A release i, once
// chosen, answers on D by P'_i with probability 1−δ_i, else by R_i: let a hidden coin decide. On every path of the
// interaction the chance that no coin has chosen R so far is Π(1−δ_i) ≥ 1−Σδ_i ≥ 1−δ, as Holds refuses what goes
// beyond; a last coin, of a bias that the path determines, brings it down to 1−δ exactly. Given that all coins were
// good, then, the transcript has exactly the law of the interaction in which every release answers by P'_i: its
// probability is that law's times the constant 1−δ, over 1−δ. The same coins do it on D' with Q'_i. So the transcripts
// are (1−δ)P' + δR and (1−δ)Q' + δS, and P', Q' are the transcripts of a concurrent composition of mechanisms of which
// each is ε_i-DP, or ρ_i-zCDP, on this pair, to which the theorem applies. From ρ and (ε', δ'): (1−δ)P'(O)+δ ≤
// (1−δ)(e^ε' Q'(O)+δ')+δ ≤ e^ε' M(D')(O) + δ'+δ.
//
// Proof for interactive mechanisms with a δ_i, under ε. Fix D and D'. Of mechanism i some outcomes of its coins on D
// are bad, such that, against whoever asks, they have a probability of at most δ_i given what was before it was opened,
// and that every transcript of it is with good coins on D at most exp(ε_i) times as likely as with any on D'.
// Online.Basic is such: bad are coins by which more than B easy answers had a threshold that was not good, and its
// bound on their probability goes from question to question given the past, others' answers in it. A release as above
// is, too: R is what is bad, and (1−δ_i)P' ≤ exp(ε_i)(1−δ_i)Q' ≤ exp(ε_i)M(D'). Between D, all coins good, and D' the
// choices cancel and factors are at most exp(ε_i), as in the proof for pure; some mechanism's coins are bad with at
// most E Σδ_i ≤ δ. So M(D)(O) ≤ e^ε M(D')(O) + δ.
//
// Proof for a limit that names ε and ρ (docs/adr/0102 has it in full, and what the best chooser reaches): it holds a
// charge after which the history satisfies the filter of ε or that of ρ. Of a mechanism that is ρ_i-zCDP alone no ε_i
// is known: the first condition is that no such was charged, and Σε_i ≤ ε; the second Σρ_i ≤ ρ, ε_i counting ε_i²/2.
// Histories without δ_i that fail the second satisfy the first, and each is at most e^ε times as likely on D as on D',
// without a δ. For those that satisfy the second, stop the same chooser before the first charge that would break it:
// what is stopped is ρ-zCDP, hence (ε, δ'), and gives these histories the probability that they have, because a sum
// that is within ρ at the end has been within it all along. Both together are (ε, δ'), and coins bring in the δ_i as
// above.
//
// Limits: the limit is fixed before the first release, or changed by the owner for reasons that are not in the data;
// where it was lowered below what was spent by then, that takes its place in the claim, in its unit. An interactive
// mechanism must stop by itself, and one with a δ of its own is proved for a limit of ε alone: nothing is said of one
// that is still asked when its dataset has become a zCDP one, or under a limit of both, where no policy has it. What is
// left may be shown to those who chose, if costs are functions of public things and of answers. A Filter is a value:
// whoever keeps it must make one charge at a time of it, and make it durable before the draw.
type Filter struct {
	Limit privacy.Cost
	Spent Charge
}

// Charge is what a release takes from a filter, or all of them have taken.
type Charge struct {
	Cost      privacy.Cost
	Converted privacy.Rho // what the ε in it come to under zCDP: to be given wherever there is an ε, as Price does
}

// Price is the charge of one cost. An ε-DP release is ε²/2-zCDP (Bun and Steinke 2016, Proposition 1.4), rounded up; a
// δ stays what it is (there, Lemma 8.8: (ε, δ)-DP implies δ-approximate ε²/2-zCDP).
func Price(c privacy.Cost) Charge { return Charge{c, c.Epsilon.Rho()} }

// Plus adds up two charges that are not negative, unit by unit. A sum that does not fit stays at the largest number.
func (c Charge) Plus(d Charge) Charge { return c.with(d, privacy.Cost.Plus) }

// Less takes off what is a part of a charge, unit by unit, and never below zero.
func (c Charge) Less(d Charge) Charge { return c.with(d, privacy.Cost.Less) }

// Longer is the larger of two sums of the first charges of one account, unit by unit: one of them contains the other.
func (c Charge) Longer(d Charge) Charge { return c.with(d, privacy.Cost.Most) }

func (c Charge) with(d Charge, of func(a, b privacy.Cost) privacy.Cost) Charge {
	return Charge{of(c.Cost, d.Cost), of(privacy.Cost{Rho: c.Converted}, privacy.Cost{Rho: d.Converted}).Rho}
}

// Holds reports whether a charge, which must not be negative, fits into what is left: the filter's condition. Nothing
// always fits: a unit that a charge does not name cannot refuse it, even where more was spent than a limit that was
// lowered since. Limits and spendings are at least zero, so the differences cannot overflow.
func (f Filter) Holds(c Charge) bool {
	free := c.Cost.Epsilon.Micro() == 0 && c.Cost.Rho.Pico() == 0 && c.Converted.Pico() == 0
	return (free || f.holdsPure(c) || f.holdsConcentrated(c)) && holds(c.Cost.Delta.Atto(), f.Limit.Delta.Atto(), f.Spent.Cost.Delta.Atto())
}

func holds(cost, limit, spent int64) bool { return cost == 0 || cost <= limit-spent }

// holdsPure reports whether all that was charged, and c, has an ε and is within the limit's. A limit of ρ has none.
func (f Filter) holdsPure(c Charge) bool {
	return c.Cost.Rho.Pico() == 0 && f.Spent.Cost.Rho.Pico() == 0 && c.Cost.Epsilon.Micro() <= f.Limit.Epsilon.Micro()-f.Spent.Cost.Epsilon.Micro()
}

// holdsConcentrated reports whether what it all comes to under zCDP is within the limit's ρ. A limit of ε has none.
func (f Filter) holdsConcentrated(c Charge) bool {
	left := f.Limit.Rho.Pico() - f.Spent.Cost.Rho.Pico()
	if f.Spent.Converted.Pico() > left {
		return false
	}
	left -= f.Spent.Converted.Pico()
	return c.Converted.Pico() <= left && c.Cost.Rho.Pico() <= left-c.Converted.Pico()
}

// Within reports whether what was spent is within the limit: false after a limit was lowered, a re-pricing or a
// forfeit.
func (f Filter) Within() bool {
	s, l := f.Spent, f.Limit
	return s.Cost.Delta.Atto() <= l.Delta.Atto() &&
		(s.Cost.Rho.Pico() == 0 && s.Cost.Epsilon.Micro() <= l.Epsilon.Micro() || s.Converted.Pico() <= l.Rho.Pico()-s.Cost.Rho.Pico())
}

// Charge is the filter after a charge, before whose draw it must be kept; false, and unchanged, where it does not hold
// it.
func (f Filter) Charge(c Charge) (Filter, bool) {
	if !f.Holds(c) {
		return f, false
	}
	return f.Forfeit(c), true
}

// Forfeit is the filter after a charge that was made whatever it holds: one that a rolled back ledger has lost.
func (f Filter) Forfeit(c Charge) Filter {
	f.Spent = f.Spent.Plus(c)
	return f
}

// Left is what is left, nothing where more was spent than a limit that was lowered since; under a limit of ε and ρ,
// what is left of each by its own filter, of which a charge needs to fit one.
func (f Filter) Left() privacy.Cost { return f.Limit.Less(f.Shown()) }

// Shown is what was spent by each of the two conditions: of ρ also what ε have come to, of ε all that there is after a
// charge of which no ε is known.
func (f Filter) Shown() privacy.Cost {
	c := f.Spent.Cost
	if c.Rho.Pico() != 0 {
		c.Epsilon = privacy.MicroEpsilon(max(c.Epsilon.Micro(), f.Limit.Epsilon.Micro()))
	}
	return c.Plus(privacy.Cost{Rho: f.Spent.Converted})
}

// Doubled re-prices for replace-one neighbours what was priced for add-remove ones. Replacing a unit is removing one
// and adding another, so group privacy for two holds: an ε-DP release is 2ε-DP (Dwork and Roth 2014, Theorem 2.2), a
// ρ-zCDP one 4ρ-zCDP (Bun and Steinke 2016, Proposition 1.9). A sum of ε doubles, a sum of ρ is taken four times, and
// so is what the ε come to, because (2ε)²/2 = 4·ε²/2. There is no such price for δ here: the caller refuses where δ was
// spent.
func (c Charge) Doubled() Charge {
	twice := c.Plus(c)
	fourfold := twice.Plus(twice)
	return Charge{privacy.Cost{Epsilon: twice.Cost.Epsilon, Rho: fourfold.Cost.Rho, Delta: c.Cost.Delta}, fourfold.Converted}
}

// Concentrated re-prices pure charges under zCDP.
func (c Charge) Concentrated() Charge {
	return Charge{Cost: privacy.Cost{Rho: c.Cost.Rho, Delta: c.Cost.Delta}.Plus(privacy.Cost{Rho: c.Converted})}
}
