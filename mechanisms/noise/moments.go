package noise

import "math"

// Probability is a probability, to keep it apart from other floats.
type Probability float64

// parameter returns t, or σ².
func (d Distribution) parameter() float64 { return float64(d.num) / float64(d.den) }

// Variance returns the variance of one noise.
func (d Distribution) Variance() float64 {
	p := d.parameter()
	if d.kind == Laplace {
		c := -math.Expm1(-1 / p)
		return 2 * math.Exp(-1/p) / (c * c)
	}
	if p > 4 {
		return p // less exp(−2π²·4) of it
	}
	mass, second := 1.0, 0.0
	for k := 1.0; k*k < 100*p+1; k++ {
		w := 2 * math.Exp(-k*k/(2*p))
		mass += w
		second += w * k * k
	}
	return second / mass
}

// Mass returns P(k).
func (d Distribution) Mass(k int64) Probability {
	p, x := d.parameter(), math.Abs(float64(k))
	if d.kind == Laplace {
		return Probability(-math.Expm1(-1/p) / (1 + math.Exp(-1/p)) * math.Exp(-x/p))
	}
	return Probability(math.Exp(-x*x/(2*p)) / d.gaussianMass())
}

// gaussianMass returns Σ exp(−k²/(2σ²)) over all integers.
func (d Distribution) gaussianMass() float64 {
	p := d.parameter()
	if p > 4 {
		return math.Sqrt(2 * math.Pi * p) // Poisson summation: times 1 + 2·exp(−2π²σ²) + …
	}
	mass := 1.0
	for k := 1.0; k*k < 100*p+1; k++ {
		mass += 2 * math.Exp(-k*k/(2*p))
	}
	return mass
}

// logCharacteristic returns ln E cos(u·noise): never above 0, even, of period 2π, and falling from 0 to π (the
// Laplace's visibly, the Gaussian's by Jacobi's triple product). The logarithm keeps its digits where it is near 0, so
// that a million times it has them too.
func (d Distribution) logCharacteristic() func(u float64) float64 {
	p := d.parameter()
	if d.kind == Laplace {
		c, q := -math.Expm1(-1/p), math.Exp(-1/p)
		ratio := 4 * q / (c * c)
		return func(u float64) float64 {
			s := math.Sin(u / 2)
			return -math.Log1p(ratio * s * s)
		}
	}
	if p < narrowVariance {
		mass, weights := d.gaussianMass(), []float64(nil)
		for k := 1.0; k*k < 100*p+1; k++ {
			weights = append(weights, 4*math.Exp(-k*k/(2*p))/mass)
		}
		return func(u float64) float64 {
			lost := 0.0
			for i, weight := range weights {
				s := math.Sin(u * float64(i+1) / 2)
				lost += weight * s * s
			}
			return math.Log1p(-lost)
		}
	}
	if p > 32 { // what is wrapped around is below exp(−46) of 1 everywhere, and below exp(−100) where φ is not
		return func(u float64) float64 {
			u = math.Remainder(u, 2*math.Pi)
			return -p * u * u / 2
		}
	}
	others := func(u float64) float64 { // Poisson summation, less the term of u; each further one is below exp(−9π²/4·11)
		sum := 0.0
		for j := 1.0; j <= 3; j++ {
			up, down := u+2*math.Pi*j, u-2*math.Pi*j
			sum += math.Exp(p*(u*u-up*up)/2) + math.Exp(p*(u*u-down*down)/2)
		}
		return math.Log1p(sum)
	}
	at0 := others(0)
	return func(u float64) float64 {
		u = math.Remainder(u, 2*math.Pi)
		return min(0, others(u)-at0-p*u*u/2)
	}
}

// narrowVariance is the Gaussian's parameter below which its few likely values are added up, and above which Poisson's
// summation has few terms and pθ²/2 is as good as the logarithm of the moment.
const narrowVariance = .5

// logMoment returns ln E exp(θ·noise), or a bound of it from above, for 0 ≤ θ < limit.
func (d Distribution) logMoment() (f func(theta float64) float64, limit float64) {
	p := d.parameter()
	switch {
	case d.kind == Laplace:
		return laplaceLogMoment(p), 1 / p
	case p < narrowVariance:
		return d.narrowLogMoment, math.Inf(1)
	}
	return func(theta float64) float64 { return p * theta * theta / 2 }, math.Inf(1)
}

func laplaceLogMoment(t float64) func(theta float64) float64 {
	if 1/t > 500 { // the sinh below would overflow, and nothing is near enough to 1 to lose digits
		return func(theta float64) float64 {
			return 2*math.Log1p(-math.Exp(-1/t)) - math.Log1p(-math.Exp(theta-1/t)) - math.Log1p(-math.Exp(-theta-1/t))
		}
	}
	c, q := -math.Expm1(-1/t), math.Exp(-1/t)
	ratio := 4 * q / (c * c)
	return func(theta float64) float64 {
		s := math.Sinh(theta / 2)
		if ratio*s*s >= 1 {
			return math.Inf(1)
		}
		return -math.Log1p(-ratio * s * s)
	}
}

// narrowLogMoment adds up the values that tilting by exp(θk) makes likely: those around p·θ. Far out the Gaussian bound
// pθ²/2 replaces it, which every discrete Gaussian keeps.
func (d Distribution) narrowLogMoment(theta float64) float64 {
	p := d.parameter()
	center := p * theta
	if !(center < 64) {
		return center * theta / 2
	}
	exponent := func(k float64) float64 { return theta*k - k*k/(2*p) }
	last := math.Ceil(center) + 10 // beyond it the weights are below exp(−100) of the greatest
	greatest := max(0, exponent(math.Floor(center)), exponent(math.Ceil(center)))
	sum := 0.0
	for k := 1.0; k <= last; k++ { // 2(cosh θk − 1) = exp(θk)·(1 − exp(−θk))²
		rest := math.Expm1(-theta * k)
		sum += math.Exp(exponent(k)-greatest) * rest * rest
	}
	if greatest < 100 {
		return math.Log1p(math.Exp(greatest) * sum / d.gaussianMass())
	}
	return greatest + math.Log(sum+math.Exp(-greatest)) // ÷ mass, which is above 1
}

// nonzero returns P(noise ≠ 0).
func (d Distribution) nonzero() float64 {
	p := d.parameter()
	if d.kind == Laplace {
		q := math.Exp(-1 / p)
		return 2 * q / (1 + q)
	}
	if p > 4 {
		return 1 - 1/d.gaussianMass()
	}
	sum := 0.0
	for k := 1.0; k*k < 100*p+1; k++ {
		sum += 2 * math.Exp(-k*k/(2*p))
	}
	return sum / d.gaussianMass()
}
