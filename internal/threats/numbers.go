package threats

// numbers: the noise and what it is added to.
var numbers = []Row{
	{"T14", "holes of floating-point noise", "100,000 outputs: 0 off the grid, equal supports, 0 imports of math/rand", []string{"test/audits.TestT21LowerBounds", "cmd/dpproxy.TestImports"}, ""},
	{"T15", "order of addition", "1,000 shuffles: 1 distinct sum before noise; a row moves it by at most its sensitivity", []string{"rewrite.TestT15OrderOfRows"}, ""},
	{"T16", "overflow", "bounds at 2^31, 2^62, 1e300, 1e-300: refused at load, or right", []string{"test/attacks.TestT16ExtremeBounds"}, ""},
	{"T17", "NaN, infinities, -0, subnormals", "each in each aggregate and in keys: finite, on the grid, sensitivity held", []string{"test/attacks.TestT17SpecialNumbers", "test/attacks.TestT17NaNLowerBound", "rewrite.TestHostileRowsLieInGosCells"}, ""},
	{"T18", "the text form of numbers", "scale, width and type modifier: 0 differences", []string{"test/attacks.TestT18TextOfNumbers"}, ""},
	{"T19", "the sampler's time", "|Spearman's ρ| of noise and time at most 0.02 over 100,000 draws", []string{"mechanisms/noise.TestT19SamplerTime", "test/audits.TestT19NoiseAndTime", "test/audits.TestFixedWorkThroughSQL"}, "releases are drawn by the tabled sampler unless the policy says sampling: fixed-work (ADR 67); what is seen of its time is covered by the grid and measured end to end"},
	{"T20", "noise used twice", "1,000 paired starts: 0 equal runs; no randomness, no answer", []string{"test/audits.TestT20PairedStarts", "test/audits.TestT20NoRandomnessNoAnswer"}, ""},
	{"T21", "the wrong sampler or scale", "1,000,000 draws of 12 parameters against exact chances; lower bounds of ε below the claim", []string{"mechanisms/noise.TestT21ExactChances", "test/audits.TestT21LowerBounds", "test/audits.TestP2Calibrated", "test/audits.TestAuditThroughSQL", "test/audits.TestAuditDeclared", "test/audits.TestAuditThroughSQLGaussian"}, ""},
	{"T22", "slack of the accountant", "cap 1, price 0.1: exactly 10 answers; a million of 1e-6: at most the cap", []string{"ledger.TestT22NoSlack", "mechanisms/accounting.TestFilterAgainstSums", "ledger.TestUpdateIsTheFilter"}, ""},
}
