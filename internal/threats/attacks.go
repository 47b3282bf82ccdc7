package threats

// attacks: many answers put together.
var attacks = []Row{
	{"T64", "differencing", "2,000 pairs at ε each: right at most e^(2ε)/(1+e^(2ε)) of the time; raw: always", []string{"cmd/dpproxy.TestT64Differencing"}, ""},
	{"T65", "linear reconstruction", "raw at least 99 %; at ε 1 in all at most 0.60 in the mean of 5 runs", []string{"examples/attacks.TestAttacks"}, ""},
	{"T66", "noise that depends on the question", "cloned queries at ε 1 in all: right at most 0.73", []string{"cmd/dpproxy.TestT66Clones"}, "0.73 and three standard errors of the run"},
	{"T67", "attacks found by search", "the best of a search: no better than the total ε allows", []string{"cmd/dpproxy.TestT67AttackSearch"}, ""},
	{"T68", "data that change", "one more person between two queries: both charged, the pair within its ε", []string{"cmd/dpproxy.TestT68DataThatChange"}, ""},
}
