package mechanisms

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Noise in steps. A sum of money has a noise of 10^9 cents and more, which the samplers have no parameter for, and of
// which the single cents say nothing. Its noise is X = c·Z + U: Z is discrete Laplace or Gaussian, as wide as the
// samplers draw, the step c is odd, and U is uniform on the c integers from −(c−1)/2 to (c−1)/2. The sum itself is not
// rounded: X has every integer as its value, and only its law is in steps, P(X = x) = P(Z = [x/c])/c with [·] the
// nearest whole number.
//
// Claim: with c·Z + U on each of integers that move by Δ_j, the release costs what it does with Z on integers that move
// by ⌈|Δ_j|/c⌉; so Z is calibrated by a bound of these (movesBy). Theorem and proof: let x be an outcome and k = [(x −
// true)/c], which is its Z, of which x is a function given its residue r = x mod c. The residue is uniform whatever the
// true value is, as U is, and independent of Z. For a neighbour whose true value is larger by Δ the same x has [(x −
// true − Δ)/c] = k − d, where r decides d, between ⌊Δ/c⌋ and ⌈Δ/c⌉, since [·] of two numbers that are Δ/c apart is. So
// given the residues of all outcomes the release is that of Z moved by whole numbers d_j of at most ⌈|Δ_j|/c⌉ in size:
// it costs what the claim says by the theorems at Release. Residues that say nothing of the data may be
// shown beside, for nothing, and what is then shown is the outcome. Levels of one draw share the step: c·Z₂ + U is made
// of c·Z₁ + U by adding c times what Z₂ is more than Z₁ (levels.go, finest.go), and U stays as it was drawn.

// maxNoise keeps noise inside of what a release can say: MaxNoisy is 16 scales away, or deviations.
const maxNoise = 1 << 58

// step is how many integers one step of the noise is wide.
func (n Noise) step() int64 { return max(n.Step, 1) }

// checkStep refuses steps that no plan has.
func (n Noise) checkStep() error {
	if n.Step < 0 || n.Step > 1 && n.Step%2 == 0 || n.Step == 1 {
		return fmt.Errorf("step of the noise is %d, must be absent, or odd and above 1", n.Step)
	}
	if n.Step == 0 {
		return nil
	}
	size := float64(n.Num) / float64(n.Den)
	if n.Kind == DiscreteGaussian {
		size = math.Sqrt(size)
	}
	if size*float64(n.Step) > maxNoise {
		return fmt.Errorf("noise is %g wide, must be at most 2^58", size*float64(n.Step))
	}
	return nil
}

// calibrateSum is calibrate for one counter of a Spec: where the noise is too wide for the samplers, in the least steps
// in which it is not. The noise is not chosen finer than needed, nor coarser: its Z is then near the widest that can be
// drawn, so that a step is a 2^−30th of the noise or less.
func (s Spec) calibrateSum(c Contribution, sum Sum, cost privacy.Cost, share *big.Rat) (Noise, error) {
	n, err := calibrate(s.movesOf(c, sum), cost, share)
	if err == nil {
		_, err = n.distribution()
	}
	if err == nil {
		return n, err
	}
	large, _ := sum.extremes()
	for step := int64(3); step <= large; step = 2*step + 1 {
		n, refused := calibrate(s.movesBy(c, sum, step), cost, share)
		if refused != nil {
			continue
		}
		n.Step = step
		if _, refused = n.distribution(); refused == nil {
			return n, nil
		}
	}
	return Noise{}, err
}

// movesBy bounds the change of one counter's observations in steps, each rounded up: Σ⌈|Δ_j|/c⌉ and Σ⌈|Δ_j|/c⌉².
//
// Claim: it is what moves bounds for a row that adds from −⌈−Low/c⌉ to ⌈High/c⌉; for a matrix under replace-one, twice
// and four times what add-remove does. Proof: with M' and l' the rounded M and l of moves. Numbers of rows n and
// weights w are whole, so ⌈w·n·M/c⌉ ≤ w·n·M' and ⌈w·(M·max(n, n̄) + l·min(n, n̄))/c⌉ ≤ w·(M'·max(n, n̄) + l'·min(n,
// n̄)): the bounds that the proof of moves begins with hold with M' and l', and it goes on as it does. Of a matrix,
// whose entries a are whole, ⌈|Σ v·a|/c⌉ ≤ Σ|a|·⌈|v|/c⌉ ≤ M'·Σ|a| over a unit's rows, whose norms add up; of two units,
// ⌈|x + y|/c⌉ ≤ ⌈|x|/c⌉ + ⌈|y|/c⌉.
func (s Spec) movesBy(c Contribution, sum Sum, step int64) moves {
	if step <= 1 {
		return s.movesOf(c, sum)
	}
	up, down := max(sum.High, 0), -min(sum.Low, 0)
	sum.Bound = Bound{Low: -((down + step - 1) / step), High: (up + step - 1) / step}
	if s.matrix() != nil && c.Neighbors == privacy.ReplaceOne {
		sum.Low = min(sum.Low, -1) // as for values of both signs
	}
	return s.movesOf(c, sum)
}

// fill draws noise.
func (n Noise) fill(reader *noise.Reader, out []int64) error {
	d, err := n.distribution()
	if err != nil {
		return err
	}
	d.Fill(reader, out)
	if step := n.step(); step > 1 {
		for i, z := range out {
			out[i] = addFar(timesStep(z, step), int64(reader.Below(uint64(step)))-(step-1)/2)
		}
	}
	return nil
}

// timesStep is z·step, cut at the int64 range.
func timesStep(z, step int64) int64 {
	high, low := bits.Mul64(magnitude(z), uint64(step))
	if high != 0 || low > math.MaxInt64 {
		low = math.MaxInt64
	}
	sign := z >> 63 // without a branch on it: see noise.FixedWork
	return (int64(low) ^ sign) - sign
}

// addFar is a+b, cut at the int64 range, without a branch on either: see noise.FixedWork.
func addFar(a, b int64) int64 {
	sum := a + b
	over := (a ^ sum) & (b ^ sum) >> 63 // all ones where both have the sign that the sum has not
	return sum&^over | (math.MaxInt64^a>>63)&over
}

// variance is that of one noise; of Noise that was planned.
func (n Noise) variance() float64 {
	d, _ := n.distribution()
	step := float64(n.step())
	return step*step*d.Variance() + (step*step-1)/12
}

// halfWidth is that of a sum of noise whose Z have one of so many steps, where the weights of the sum add up to weight
// in size: |Σ w·U| is at most weight·(c−1)/2.
func (n Noise) halfWidth(steps int64, weight float64) int64 {
	step := n.step()
	if step == 1 {
		return steps
	}
	return int64(math.Ceil(min(float64(step)*(float64(steps)+.5)+weight*float64(step-1)/2, MaxNoisy)))
}

// Spread is the noise's parameter as integers see it: the scale of the Laplace, or the variance parameter.
func (n Noise) Spread() float64 {
	size := float64(n.Num) / float64(n.Den)
	if n.Kind == DiscreteGaussian {
		return size * float64(n.step()) * float64(n.step())
	}
	return size * float64(n.step())
}

// String writes the kind, the parameter and, where there is one, the step.
func (n Noise) String() string {
	if n.Step == 0 {
		return fmt.Sprintf("{%d %d %d}", n.Kind, n.Num, n.Den)
	}
	return fmt.Sprintf("{%d %d %d in steps of %d}", n.Kind, n.Num, n.Den, n.Step)
}
