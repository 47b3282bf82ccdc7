package threats

// attacks: many answers put together.
var attacks = []Row{
	{"T64", "differencing", "2,000 pairs at ε each: right at most e^(2ε)/(1+e^(2ε)) of the time; raw: always", []string{"test/attacks.TestT64Differencing"}, ""},
	{"T65", "linear reconstruction", "raw at least 99 %; at ε 1 in all at most 0.60 in the mean of 5 runs", []string{"examples/attacks.TestAttacks"}, ""},
	{"T66", "noise that depends on the question", "cloned queries at ε 1 in all: right at most 0.73", []string{"test/attacks.TestT66Clones"}, "0.73 and three standard errors of the run"},
	{"T67", "attacks found by search", "the best of a search: no better than the total ε allows", []string{"test/attacks.TestT67AttackSearch"}, ""},
	{"T68", "data that change", "one more person between two queries: both charged, the pair within its ε", []string{"test/attacks.TestT68DataThatChange"}, ""},
	{"T69", "statements chosen for what they cost", "an hour of 50 sessions with the dearest that a search finds: 0 crashes, memory below the policy's limit, another's slowest answer at most 3 times her quiet one", []string{"test/hostile.TestHostileAnalyst"}, "the last figure is printed in tests, and asserted by make hostile: it is of a machine that does nothing else"},
	{"T70", "one statement or user that takes all", "a session of the sandbox takes statement_memory beside what it holds at rest; one user never has all slots", []string{"sandbox/cluster.TestBoundOfASession", "sandbox.TestConformance", "proxy/admission.TestNobodyHoldsAllSlots", "proxy/admission.TestEveryUserHasASlot", "proxy/admission.TestStatementEndsAtItsLimits", "proxy.TestKeptIsBounded", "proxy.TestLostClient"}, ""},
	{"T71", "a process that cannot be stopped", "ended within 5 s of SIGTERM whatever it does; what was saved is there afterwards", []string{"cmd/dpproxy.TestShutdownWithinFiveSeconds"}, ""},
	{"T72", "a certificate, a password or a token of nobody", "certificates of others, expired, of another signer or of nobody: 0 let in; directories bound with no password, by another's name, or that hang: 0 let in, others log in meanwhile; tokens expired, forged, unsigned, for others, by a key that was taken back: 0 let in", []string{"proxy/login.TestCertificates", "proxy/login.TestDirectory", "proxy/login.TestDirectoryThatHangs", "proxy/login.TestTokens", "proxy/login.TestBearerMessage", "proxy/login.TestNamesThatDoNotExist", "proxy/login.TestGuessesElsewhere", "policy.TestLogins", "cmd/dpproxy.TestPeopleInARunningProxy"}, "the directory is Debian's slapd, the provider is made for the test; no certificate is revoked by a list: disable the user"},
}

// shown is what an operator sees.
var shown = []Row{
	{"T78", "what clients write in what the operator is shown", "30 statements, parameters and names with a canary, at each stage: 0 words of them in the log at its most talkative, in the metrics or in spans; each line is one event; over neighbouring databases both are equal", []string{"test/attacks.TestLogHasNoWords", "test/attacks.TestOperatorSeesEqualNeighbours", "test/attacks.TestSpansHaveNoWords", "proxy/spans.TestWhereTo", "proxy/spans.TestOff", "sandbox/twin.TestTwinHostileTexts", "internal/request.TestLines"}, ""},
}
