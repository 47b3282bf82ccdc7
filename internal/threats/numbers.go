package threats

// numbers: the noise and what it is added to.
var numbers = []Row{
	{"T14", "holes of floating-point noise", "100,000 outputs: 0 off the grid, equal supports, 0 imports of math/rand", []string{}, ""},
	{"T15", "order of addition", "1,000 shuffles: 1 distinct sum before noise", []string{}, ""},
	{"T16", "overflow", "bounds at 2^31, 2^62, 1e300, 1e-300: refused at load, or right", []string{}, ""},
	{"T17", "NaN, infinities, -0, subnormals", "each in each aggregate and in keys: finite, on the grid, sensitivity held", []string{}, ""},
	{"T18", "the text form of numbers", "scale, width and type modifier: 0 differences", []string{}, ""},
	{"T19", "the sampler's time", "|Spearman's ρ| of noise and time at most 0.02 over 100,000 draws", []string{}, ""},
	{"T20", "noise used twice", "1,000 paired starts: 0 equal runs; no randomness, no answer", []string{}, ""},
	{"T21", "the wrong sampler or scale", "1,000,000 draws of 12 parameters against exact chances; lower bounds of ε below the claim", []string{"cmd/dpproxy.TestT21LowerBounds", "cmd/dpproxy.TestAuditThroughSQL", "cmd/dpproxy.TestAuditThroughSQLGaussian"}, ""},
	{"T22", "slack of the accountant", "cap 1, price 0.1: exactly 10 answers; a million of 1e-6: at most the cap", []string{}, ""},
}
