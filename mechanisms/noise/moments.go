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

// characteristic returns E cos(u·noise), a positive, even function of period 2π that falls from 0 to π (the Laplace's
// visibly, the Gaussian's by Jacobi's triple product).
func (d Distribution) characteristic() func(u float64) float64 {
	p := d.parameter()
	if d.kind == Laplace {
		c, q := -math.Expm1(-1/p), math.Exp(-1/p)
		ratio := 4 * q / (c * c)
		return func(u float64) float64 {
			s := math.Sin(u / 2)
			return 1 / (1 + ratio*s*s)
		}
	}
	if p < .5 {
		mass := d.gaussianMass()
		return func(u float64) float64 {
			sum := 1.0
			for k := 1.0; k*k < 100*p+1; k++ {
				sum += 2 * math.Exp(-k*k/(2*p)) * math.Cos(u*k)
			}
			return sum / mass
		}
	}
	wrapped := func(u float64) float64 { // Poisson summation; each further term is below exp(−9π²/4·11)
		sum := 0.0
		for j := -3.0; j <= 3; j++ {
			v := u + 2*math.Pi*j
			sum += math.Exp(-p * v * v / 2)
		}
		return sum
	}
	at0 := wrapped(0)
	return func(u float64) float64 { return wrapped(math.Remainder(u, 2*math.Pi)) / at0 }
}

// logMoment returns ln E exp(θ·noise), or a bound of it from above, for |θ| below limit.
func (d Distribution) logMoment() (f func(theta float64) float64, limit float64) {
	p := d.parameter()
	if d.kind == Gaussian {
		return func(theta float64) float64 { return p * theta * theta / 2 }, math.Inf(1)
	}
	c, q := -math.Expm1(-1/p), math.Exp(-1/p)
	ratio := 4 * q / (c * c)
	return func(theta float64) float64 {
		s := math.Sinh(theta / 2)
		rest := 1 - ratio*s*s
		if rest <= 0 {
			return math.Inf(1)
		}
		return -math.Log(rest)
	}, 1 / p
}
