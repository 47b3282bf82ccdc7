package proxy

import (
	"fmt"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// mechanismText names the strategy, the noise, and for a range release what the strategy gains.
func mechanismText(s mechanisms.Spec, cost privacy.Cost, c mechanisms.Contribution) string {
	switch {
	case s.Choice != nil:
		return choiceText(s)
	case s.Alarm != nil:
		return alarmText(s)
	case s.Online != nil:
		return onlineText(s)
	case s.Synthetic != nil:
		return syntheticText(s)
	}
	noise := noiseText(s.Noise)
	if s.Sums != nil {
		noise = sumsText(s.Sums)
	}
	if s.Strategy.Kind == mechanisms.Identity {
		if s.Cells > 1 {
			return fmt.Sprintf("histogram of %d cells; %s", s.Cells, noise)
		}
		return noise
	}
	if s.Strategy.IsCube() {
		return fmt.Sprintf("%s, %d cells, least squares; %s", s.Strategy, s.Cells, noise)
	}
	text := fmt.Sprintf("%s over %d cells, least squares; %s", strategyText(s.Strategy), s.Cells, noise)
	text += fmt.Sprintf("; all ranges have RMSE %.1f", s.RMSE(mechanisms.AllRanges))
	if plain, err := mechanisms.Plain(1, s.Cells, c, cost); err == nil {
		text += fmt.Sprintf(", sums of a histogram's cells %.1f at this price", plain.RMSE(mechanisms.AllRanges))
	}
	return text
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
	return fmt.Sprintf("%.6g", float64(n.Num)/float64(n.Den))
}
