package pipeline

import (
	"fmt"
	"math"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/totals"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// mechanismText names the strategy, the noise, and for a range release what the strategy gains.
func mechanismText(s mechanisms.Spec, cost privacy.Cost, c mechanisms.Contribution) string {
	switch k := s.Kind.(type) {
	case *mechanisms.Counts:
		return countsText(s, k, cost, c)
	case *mechanisms.Choice:
		return choiceText(s, k)
	case *mechanisms.Alarm:
		return alarmText(k)
	case *mechanisms.Online:
		return onlineText(s, k)
	case *mechanisms.Synthetic:
		return fmt.Sprintf("%d made-up rows by %s over %d cells", k.Drawn, k.Rule, s.Cells)
	}
	return ""
}

func countsText(s mechanisms.Spec, k *mechanisms.Counts, cost privacy.Cost, c mechanisms.Contribution) string {
	noise := noiseText(k.Noise)
	if k.Sums != nil {
		noise = sumsText(k.Sums)
	}
	if k.Strategy.Kind == mechanisms.Identity {
		if s.Cells > 1 {
			return fmt.Sprintf("histogram of %d cells; %s", s.Cells, noise)
		}
		return noise
	}
	if k.Strategy.IsCube() {
		return fmt.Sprintf("%s, %d cells, least squares; %s", k.Strategy, s.Cells, noise)
	}
	text := fmt.Sprintf("%s over %d cells, least squares; %s", strategyText(k.Strategy), s.Cells, noise)
	text += fmt.Sprintf("; all ranges have RMSE %.1f", s.RMSE(mechanisms.AllRanges))
	if plain, err := mechanisms.Plain(1, s.Cells, c, cost); err == nil {
		text += fmt.Sprintf(", sums of a histogram's cells %.1f at this price", plain.RMSE(mechanisms.AllRanges))
	}
	return text
}

// maxMarginals is how many marginals are named.
const maxMarginals = 8

// marginalsText names the marginals of a cube that are observed, and their noise: what is drawn is of one size, and a
// marginal of which more is to be known is multiplied by its weight before. Residuals are weighted as well, which says
// nothing by itself.
func marginalsText(m *plans.Measure) string {
	c, names := m.Spec.Counts(), attributeNames(m)
	var texts []string
	residual := false
	for _, one := range c.Strategy.Marginals {
		text := "all rows"
		if one.Attributes != 0 {
			var own []string
			for i, name := range names {
				if one.Attributes>>i&1 == 1 {
					own = append(own, name)
				}
			}
			text = strings.Join(own, " × ")
		}
		if residual = residual || one.Residual; !one.Residual && c.Sums == nil && one.Weight > 0 {
			text += " (" + weighedNoise(c.Noise, float64(one.Weight)) + ")"
		}
		texts = append(texts, text)
	}
	if n := len(texts); n > maxMarginals {
		texts = append(texts[:maxMarginals], fmt.Sprintf("%d more", n-maxMarginals))
	}
	kind := "marginals"
	if residual {
		kind = "marginals by residuals"
	}
	noise := "discrete Laplace noise"
	if c.Noise.Kind == mechanisms.DiscreteGaussian || c.Sums != nil && c.Sums[0].Noise.Kind == mechanisms.DiscreteGaussian {
		noise = "discrete Gaussian noise"
	}
	return fmt.Sprintf("%s of %d cells, least squares; %s on %s", kind, m.Spec.Cells, noise, strings.Join(texts, ", "))
}

// weighedNoise tells the noise of what was multiplied by a weight, in rows.
func weighedNoise(n mechanisms.Noise, weight float64) string {
	size := n.Spread()
	if n.Kind == mechanisms.DiscreteGaussian {
		return fmt.Sprintf("variance %.4g", size/weight/weight)
	}
	return fmt.Sprintf("scale %.4g", size/weight)
}

// attributeNames are the attributes of a measure's cube, by their columns and numbers of cells.
func attributeNames(m *plans.Measure) []string {
	names, at := make([]string, len(m.Spec.Counts().Strategy.Radices)), 0
	for i, cells := range m.Spec.Counts().Strategy.Radices {
		names[i] = fmt.Sprintf("%d cells", cells)
		if i >= len(m.Groups) || len(m.Groups) != len(names) {
			continue
		}
		var own []string
		for range m.Groups[i].Columns {
			own, at = append(own, m.Grain[at].Name), at+1
		}
		names[i] = fmt.Sprintf("%s[%d]", strings.Join(own, "·"), cells)
	}
	return names
}

func noiseText(n mechanisms.Noise) string {
	if n.Kind == mechanisms.DiscreteGaussian {
		return "discrete Gaussian noise of variance " + ratio(n)
	}
	return "discrete Laplace noise of scale " + ratio(n)
}

// sumsText tells the noise of each counter, which shares the cost with the others.
func sumsText(sums []mechanisms.Sum) string {
	texts := make([]string, len(sums))
	for i, sum := range sums {
		of := fmt.Sprintf("sum of whole numbers from %d to %d", sum.Low, sum.High)
		if sum.Low == 0 && sum.High == 1 {
			of = "count"
		}
		texts[i] = of + " with " + noiseText(sum.Noise)
	}
	return strings.Join(texts, ", ")
}

// strategyText names how the cells of a range release are observed.
func strategyText(y mechanisms.Strategy) string {
	switch y.Kind {
	case mechanisms.Tree:
		return "range " + y.String()
	case mechanisms.PIdentity:
		return y.String() + " (cells and optimised weighted sums of them)"
	case mechanisms.Sine:
		return y.String() + " (sine transform's square root, the best for all ranges)"
	case mechanisms.Cosine:
		return y.String() + " (cosine transform's square root, the best for prefixes)"
	}
	return y.String()
}

func ratio(n mechanisms.Noise) string {
	return fmt.Sprintf("%.6g", n.Spread())
}

// MechanismText describes how a measure is taken, for people.
func MechanismText(m *plans.Measure) string {
	if m.Continual != nil {
		return growthText(m)
	}
	price := m.Cost
	if m.Refines() {
		price.Epsilon = m.Refinement.Level
	}
	k := m.Spec.Counts()
	if k.Strategy.Kind == mechanisms.Marginals {
		return marginalsText(m)
	}
	if derived.IsLaddered(m.Table) && k.Sums != nil {
		return ladderText(m.Spec.Cells, k.Sums[0].Noise)
	}
	return mechanismText(m.Spec, price, m.Contribution())
}

// ladderText tells the noise of units' totals in shares, of which a unit has one in all (package totals).
func ladderText(cells int, n mechanisms.Noise) string {
	text, size := "discrete Laplace noise of scale %.4g", n.Spread()/totals.Parts
	if n.Kind == mechanisms.DiscreteGaussian {
		text, size = "discrete Gaussian noise of variance %.4g", size/totals.Parts
	}
	return fmt.Sprintf("ladder of %d cells, in which each unit has a share of the two steps around its total; "+text+
		" shares", cells, size)
}

// growthText names the strategy and the noise of a release that grows, and how exact it is by now.
func growthText(m *plans.Measure) string {
	s, days := m.Continual.Spec, m.Continual.Through
	how := fmt.Sprintf("%s: the band has the length %d", s.Counts().Strategy.Kind, largest(s.Counts().Strategy.Radices))
	if s.Counts().Strategy.Kind == mechanisms.ContinualTree {
		how = fmt.Sprintf("%s of single cells, each once complete", s.Counts().Strategy.Kind)
		if n := len(s.Counts().Strategy.Radices); n > 0 {
			blocks, block := make([]string, n), 1
			for i := range blocks {
				block *= s.Counts().Strategy.Radices[n-1-i]
				blocks[i] = fmt.Sprint(block)
			}
			how = fmt.Sprintf("%s of single cells and blocks of %s, each once complete", s.Counts().Strategy.Kind, strings.Join(blocks, " and "))
		}
	}
	all, err := mechanisms.NewConfidence(.95)
	if err != nil {
		return how
	}
	sofar := m.Spec.Error([]mechanisms.Span{{From: 0, To: days}}, all).Variance
	return fmt.Sprintf("%s; paid for once with all %d cells, of which %d are closed, and each drawn once when it is; %s; ranges of the closed cells have RMSE %.1f, their sum %.1f",
		how, s.Cells, days, noiseText(s.Counts().Noise), m.Spec.RMSE(mechanisms.AllRanges), math.Sqrt(sofar))
}

// largest is the largest of a few numbers, 0 of none.
func largest(list []int) (most int) {
	for _, n := range list {
		most = max(most, n)
	}
	return most
}

// onlineText names an online release's mechanism.
func onlineText(s mechanisms.Spec, o *mechanisms.Online) string {
	return fmt.Sprintf("%s over %d cells: a sparse vector compares each answer of the hypothesis with the rows; up to %d answers come from the rows, with noise of their own", o.Rule, s.Cells, o.Updates)
}

// alarmText names the mechanism of a run of alarms.
func alarmText(a *mechanisms.Alarm) string {
	return fmt.Sprintf("sparse vector (AboveThreshold) with noise of one side on threshold and count: the run ends at yes number %d; each no before that is free", a.Positives)
}

// explainedWay is a way to answer a leaf that was weighed: EXPLAIN (ALTERNATIVES).
type explainedWay struct {
	Leaf  string `json:"Leaf"`
	Kind  string `json:"Kind"`
	Name  string `json:"Measure"`
	Cost  string `json:"Cost"`
	Error string `json:"Expected Error"`
	Taken bool   `json:"Taken"`
	Why   string `json:"Why"`
}

func explainWays(plan *plans.Plan) []explainedWay {
	at := "at " + percent(plan.Confidence)
	var out []explainedWay
	for _, a := range plan.Alternatives {
		e := explainedWay{Leaf: a.Leaf, Kind: a.Kind, Name: a.Name, Cost: "nothing", Taken: a.Taken, Why: a.Why}
		if !a.Held {
			e.Cost = a.Cost.String()
		}
		if e.Error = fmt.Sprintf("±%d a value %s", a.Error.HalfWidth, at); a.Steps > 1 {
			e.Error = fmt.Sprintf("known once its clamp is chosen, of %d steps", a.Steps)
		} else if a.Rank > 0 {
			e.Error = fmt.Sprintf("±%d rows in rank %s", int64(math.Ceil(a.Rank)), at)
		}
		out = append(out, e)
	}
	return out
}
