package online

import (
	"io"
	"math"
	weak "math/rand/v2"
	"sort"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

const seed = "32 bytes for the test's generator"

func seeded(stream byte) io.Reader { return generator(stream) }

func generator(stream byte) *weak.ChaCha8 {
	key := [32]byte([]byte(seed)[:32])
	key[31] = stream
	return weak.NewChaCha8(key)
}

// The set-up of Turbo's Covid experiment (Kostopoulou and others 2023): positive 2 × gender 2 × age 4 × ethnicity 8.
// Its case counts are not public here, so rates of about the right size replace them.
const covidCells = 128

func covidRates() []float64 {
	age := []float64{.22, .44, .19, .15}
	ethnicity := []float64{.39, .35, .15, .06, .02, .015, .01, .005}
	positiveByAge := []float64{.03, .09, .07, .05}
	positiveByEthnicity := []float64{1.5, .7, .5, 1.1, .8, 1.2, 1.6, 1}
	older := []float64{.5, 1.6, 1.2, 1, .4, 1, .7, 1} // how ethnicity leans to age
	rates, total := make([]float64, covidCells), 0.0
	for i := range rates {
		e, a, g, p := i%8, i/8%4, i/32%2, i/64
		r := ethnicity[e] * age[a] * math.Pow(older[e], float64(a)-1.2) * (.49 + .02*float64(g))
		sick := positiveByAge[a] * positiveByEthnicity[e]
		if p == 0 {
			sick = 1 - sick
		}
		rates[i] = r * sick
		total += rates[i]
	}
	for i := range rates {
		rates[i] /= total
	}
	return rates
}

// covidRows draws n rows, cell by cell, by the normal approximation of the binomial; the rest falls into the last cell.
func covidRows(n int64, random *weak.Rand) []int64 {
	cells, left, mass := make([]int64, covidCells), float64(n), 1.0
	for i, r := range covidRates() {
		p := min(r/mass, 1)
		x := math.Round(left*p + random.NormFloat64()*math.Sqrt(max(left*p*(1-p), 0)))
		x = min(max(x, 0), left)
		if i == covidCells-1 {
			x = left
		}
		cells[i], left, mass = int64(x), left-x, mass-r
	}
	return cells
}

// covidPool returns all products of non-empty subsets: 3·3·15·255 = 34,425 counting queries.
func covidPool() []Query {
	var pool []Query
	for p := 1; p < 4; p++ {
		for g := 1; g < 4; g++ {
			for a := 1; a < 16; a++ {
				for e := 1; e < 256; e++ {
					q, err := Members(covidCells, func(i int) bool {
						return p>>(i/64)&1&(g>>(i/32%2))&(a>>(i/8%4))&(e>>(i%8)) == 1
					})
					if err != nil {
						panic(err)
					}
					pool = append(pool, q)
				}
			}
		}
	}
	return pool
}

// zipf returns the numbers of the queries asked: uniform for 0, else with probability 1/rank over a random order.
func zipf(pool, asked int, power float64, random *weak.Rand) []int {
	order, at, total := random.Perm(pool), make([]float64, pool), 0.0
	for i := range at {
		total += math.Pow(float64(i+1), -power)
		at[i] = total
	}
	asks := make([]int, asked)
	for i := range asks {
		asks[i] = order[sort.SearchFloat64s(at, random.Float64()*total)]
	}
	return asks
}

// covid is one cell of the table.
type covid struct {
	rows  int64
	asked int
	power float64
	alpha float64
}

const covidMiss = noise.Probability(.001)

func (c covid) spec(median bool, accountant privacy.Accountant, updates int) Spec {
	return Spec{
		Cells: covidCells, Contribution: privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, Rows: c.rows,
		Updates: updates, Median: median, Accountant: accountant,
	}
}

func (c covid) target() Target {
	return Target{Width: int64(c.alpha * float64(c.rows)), Miss: covidMiss}
}

// outcome is a row of the table.
type outcome struct {
	answered, hard int
	declared, used float64
	largest, mean  float64 // as shares of the rows
}

func (o *outcome) add(off, rows int64) {
	share := math.Abs(float64(off)) / float64(rows)
	o.largest = max(o.largest, share)
	o.mean += (share - o.mean) / float64(o.answered+1)
	o.answered++
}

func (c covid) session(median bool, accountant privacy.Accountant, updates int, cells []int64, pool []Query, asks []int) (outcome, error) {
	p, err := planFor(c.spec(median, accountant, updates), c.target())
	if err != nil {
		return outcome{}, err
	}
	session, err := open(p, nil, cells, seeded(1), keep)
	if err != nil {
		return outcome{}, err
	}
	memo, err := NewMemo(session, len(pool))
	if err != nil {
		return outcome{}, err
	}
	o := outcome{}
	for _, i := range asks {
		a, err := memo.Answer(pool[i])
		if err != nil {
			break
		}
		o.add(a.Value().Value-pool[i].sum(cells), c.rows)
	}
	o.hard = session.state.used()
	declared, err := p.Cost()
	if err != nil {
		return o, err
	}
	p.spec.Updates = max(1, o.hard)
	used, err := p.Cost()
	o.declared, o.used = declared.Epsilon.Float()+declared.Rho.Float(), used.Epsilon.Float()+used.Rho.Float()
	return o, err
}
