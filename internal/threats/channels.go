package threats

// channels: what leaks beside the numbers.
var channels = []Row{
	{"T1", "errors that only some rows raise", "40 forms × 6 places × 2 engines: 0 errors of the database, 0 differences between neighbours", []string{"test/attacks.TestT1ErrorOracle"}, ""},
	{"T2", "error text that carries cells", "10,000 failing queries: 0 bytes of a canary in frames, logs, metrics", []string{"test/attacks.TestT2NoCellInAnyText", "test/attacks.TestT1CatchesForwarding"}, ""},
	{"T3", "a failing database as a bit", "after each injected fault: an answer, its charge kept, the operator told", []string{"test/timing.TestT3AnswersThroughFaults", "test/attacks.TestRule5AfterTheChargeOnlyAnAnswer", "test/attacks.TestSlotBeforeTheCharge", "test/attacks.TestSlotsOfUserAndDatabase"}, "no dataset closes after faults: that would be a bit about its rows (ADR 36)"},
	{"T4", "which groups exist", "a key of one person, or any of 500: shown in at most δ of 20,000 runs + 3 standard errors; declared keys always there", []string{"mechanisms/keys.TestT4KeysOfOneUnit", "test/attacks.TestKeysAreFoundThroughSQL"}, ""},
	{"T5", "empty sets, NULL, NaN, bounds of zero width", "6 aggregates over nothing: 200 of 200 answers are numbers, at least 2 distinct", []string{"test/attacks.TestT5OverNothing"}, "a ratio is NULL where the noisy count that it is divided by is not positive: a function of what is released"},
	{"T6", "response time", "AUC within 0.02 of 0.5 over 5,000 an arm (CI: 0.05 over 1,200), in a run that tells a pair apart whose step is below the scan", []string{"test/timing.TestT6ResponseTime", "test/timing.TestP3Calibrated", "test/timing.TestT6ClocksInAnswers", "proxy.TestEveryOutcomeIsHeld", "proxy.TestClocksAreAskedOnTheGrid", "proxy/pipeline.TestChoicesEndOnAStep", "backend/engines.TestResultsAtAPublicMoment", "backend/engines.TestTurnsArePublic", "backend/internal/execute.TestTurnsComeSoon", "backend/postgres.TestReadyHasItsOwnConnections"}, ""},
	{"T7", "the time limit as a bit", "500 runs over the deadline on one side only: 0 differences", []string{"test/timing.TestT7DeadlineOnOneSide"}, ""},
	{"T8", "cancelling as a probe", "1,000 cancels: what is charged is saved; shares answered and charged within 3 standard errors, where a step below the scan sets them 5 apart", []string{"test/timing.TestT8CancelAsAProbe", "proxy.TestWaitsEndOnTheGrid"}, ""},
	{"T9", "catalogs and statistics", "every catalog statement: 0 differences, 0 rows of the database's own catalog", []string{"test/clients.TestReplayTellsNothing"}, ""},
	{"T10", "state that a statement leaves behind", "refused without a statement at the database; another session sees 0 locks, notices, changes", []string{"test/attacks.TestT10NothingIsLeftBehind"}, ""},
	{"T11", "the charge as a channel", "100,000 queries planned, 2,000 asked: charges and refusals equal on neighbours", []string{"test/attacks.TestT11ChargesArePublic", "test/attacks.TestRule23CostsArePublic"}, ""},
	{"T12", "order, limit and filter", "never in the database's SQL; the winner of two near groups as the noise predicts", []string{"test/attacks.TestT12OrderIsOfNoisyNumbers"}, ""},
	{"T13", "what only the operator may see", "20 planted true aggregates: 0 hits in any output; 0 operator pages on the analysts' listener", []string{"test/attacks.TestT13TrueAggregates", "test/durability.TestAdminAddress"}, "the operator's listener is of its own address and has no password: check warns where other machines reach it"},
}
