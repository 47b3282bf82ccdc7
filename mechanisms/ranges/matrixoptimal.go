package ranges

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// The share of the mean of G's diagonal that is added to it, and the bounds of the iteration.
const (
	leastShare = 1e-6
	maxRounds  = 60
	enough     = 1e-3
)

// optimalGram returns X with diagonal 1 that all but minimises tr(G·X⁻¹), and a bound of that from below.
func optimalGram(g *mat.SymDense) (*mat.SymDense, float64, error) {
	n := g.SymmetricDim()
	share := leastShare * mat.Trace(g) / float64(n)
	whole := mat.NewSymDense(n, nil)
	whole.CopySym(g)
	v, last := make([]float64, n), make([]float64, n)
	for i := range n {
		whole.SetSym(i, i, g.At(i, i)+share)
		v[i] = 1
	}
	var x *mat.SymDense
	best := math.Inf(1)
	for range maxRounds {
		s, err := newScaledRoot(whole, v)
		if err != nil {
			return nil, 0, err
		}
		if e := s.normalisedError(whole); e < best {
			best, x = e, s.normalised()
		}
		sum := 0.0
		for i := range v {
			sum += v[i]
			last[i], v[i] = v[i], s.root.At(i, i)
		}
		if best < s.trace*s.trace/sum*(1+enough) {
			break
		}
	}
	s, err := newScaledRoot(g, last)
	if err != nil {
		return nil, 0, err
	}
	sum := 0.0
	for _, v := range last {
		sum += v
	}
	return x, s.trace * s.trace / sum, nil
}

// scaledRoot is S = (V^½GV^½)^½.
type scaledRoot struct {
	root, inverse *mat.SymDense
	trace         float64
}

func newScaledRoot(g *mat.SymDense, v []float64) (scaledRoot, error) {
	n := g.SymmetricDim()
	scaled := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			scaled.SetSym(i, j, g.At(i, j)*math.Sqrt(v[i]*v[j]))
		}
	}
	values, vectors, err := spectrum(scaled)
	if err != nil {
		return scaledRoot{}, err
	}
	s := scaledRoot{}
	for k, value := range values {
		values[k] = math.Sqrt(max(value, 0))
		s.trace += values[k]
	}
	s.root = recomposed(values, vectors)
	for k, value := range values {
		values[k] = 1 / max(value, s.trace*1e-15)
	}
	s.inverse = recomposed(values, vectors)
	return s, nil
}

func spectrum(s *mat.SymDense) ([]float64, *mat.Dense, error) {
	var e mat.EigenSym
	if !e.Factorize(s, true) {
		return nil, nil, fmt.Errorf("queries of %d cells have no spectrum in floating point", s.SymmetricDim())
	}
	var vectors mat.Dense
	e.VectorsTo(&vectors)
	return e.Values(nil), &vectors, nil
}

// recomposed returns Σ value·vector·vector'.
func recomposed(values []float64, vectors *mat.Dense) *mat.SymDense {
	n := len(values)
	half := mat.NewDense(n, n, nil)
	for i := range n {
		for k, value := range values {
			half.Set(i, k, vectors.At(i, k)*math.Sqrt(value))
		}
	}
	s := mat.NewSymDense(n, nil)
	s.SymOuterK(1, half)
	return s
}

// normalised returns S with its diagonal brought to 1, which is V^−½SV^−½ so brought.
func (s scaledRoot) normalised() *mat.SymDense {
	n := s.root.SymmetricDim()
	x := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			x.SetSym(i, j, s.root.At(i, j)/math.Sqrt(s.root.At(i, i)*s.root.At(j, j)))
		}
	}
	return x
}

// normalisedError returns tr(G·normalised⁻¹).
func (s scaledRoot) normalisedError(g *mat.SymDense) float64 {
	n, sum := g.SymmetricDim(), 0.0
	for i := range n {
		for j := range n {
			sum += g.At(i, j) * s.inverse.At(i, j) * math.Sqrt(s.root.At(i, i)*s.root.At(j, j))
		}
	}
	return sum
}

// rootOfGram returns the upper triangular A with A'A = X.
func rootOfGram(x *mat.SymDense) *mat.Dense {
	var c mat.Cholesky
	c.Factorize(x)
	var u mat.TriDense
	c.UTo(&u)
	return mat.DenseCopyOf(&u)
}
