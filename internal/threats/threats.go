// Package threats is the table of what dpproxy is attacked with: each threat with the figure that its defence must
// reach, the tests that measure it, and the faults that, planted, must make such a test fail. Only tests import it;
// docs/threats.md is written from it, and `make safety` runs it.
package threats

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// Row is one threat.
type Row struct {
	ID     string   // T1 to T78
	Threat string   // what is tried
	Pass   string   // the figure to reach, at full length
	Tests  []string // "package.Test", the package's directory below the module's root
	Note   string   // where the figure cannot be reached here, or the rules ask for another: why
}

// Table is all of them, in order.
func Table() []Row {
	var all []Row
	for _, section := range [][]Row{channels, numbers, budgets, surface, protocol, attacks, console, shown} {
		all = append(all, section...)
	}
	return all
}

// Full reports whether a test is to run at full length: `make safety-full`. Otherwise it runs at the length that fits
// CI.
func Full() bool { return os.Getenv("DPPROXY_SAFETY_LENGTH") == "full" }

// Night reports whether a test is to run as `make night` has it: longer than each run does, where Full and `make audit`
// are longer still.
func Night() bool {
	return os.Getenv("DPPROXY_NIGHT") != "" || os.Getenv("DPPROXY_AUDIT") == "full" || Full()
}

// ByNight is how much a test does: gate in each run, which must find the planted faults that name the test, and night
// in `make night`.
func ByNight(gate, night int) int {
	if Night() {
		return night
	}
	return gate
}

// Nightly leaves a test to `make night`. Which test of each run finds what it found is said in finds; no planted fault
// may name the test.
func Nightly(t *testing.T, finds string) {
	t.Helper()
	if !Night() {
		t.Skip("make night runs it; in each run its faults are found by " + finds)
	}
}

// Length is n at full length, and short otherwise.
func Length(short, full int) int {
	if Full() {
		return full
	}
	return short
}

// Figure is a line of the file that DPPROXY_SAFETY names.
type Figure struct {
	ID, Test, Figure string
	Full             bool // at full length
	Failed           bool
}

// Reached tells what a test measured of a threat, once the test is over. The figure is made of measured numbers.
func Reached(t testing.TB, id, format string, args ...any) {
	t.Helper()
	figure := fmt.Sprintf(format, args...)
	t.Logf("%s: %s", id, figure)
	name := os.Getenv("DPPROXY_SAFETY")
	if name == "" {
		return
	}
	t.Cleanup(func() {
		if err := note(name, Figure{id, t.Name(), figure, Full(), t.Failed()}); err != nil {
			t.Errorf("the file of figures: %v", err)
		}
	})
}

func note(name string, f Figure) error {
	line, err := json.Marshal(f)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

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

// budgets: the ledger.
var budgets = []Row{
	{"T23", "one budget spent twice at once", "64 connections on 2 proxies, 20 runs: never an answer too many; 200 histories linearizable", []string{"test/durability.TestT23RacingClients", "test/durability.TestT23RacingProxies", "test/durability.TestSharedLedgerUnderFaults", "ledger.TestT23Histories"}, ""},
	{"T24", "trust in an isolation level", "T23 at each isolation level: the same counts", []string{"test/durability.TestT24RacingAtEachIsolationLevel"}, ""},
	{"T25", "a crash between charge and answer", "500 kill -9: every answer seen has its charge; restart within 2 s", []string{"test/durability.TestT25Kills", "ledger.TestKilled", "internal/simulation.TestLedger", "internal/simulation/whole.TestWhole"}, ""},
	{"T26", "a power cut", "200 images of the disk: every answer seen before has its charge in it", []string{"test/durability.TestT26PowerCuts", "ledger.TestPowerCut", "internal/simulation.TestLedger"}, ""},
	{"T27", "fsync fails", "50 windows of EIO: 0 answers until the ledger is verified again", []string{"test/durability.TestT27FailingFlushes", "ledger.TestDiskFaults"}, ""},
	{"T28", "a full disk", "0 uncharged answers; serves again within 5 s of room, by itself", []string{"test/durability.TestFullDisk", "ledger.TestFullDisk"}, ""},
	{"T29", "damage, a torn tail", "10,000 flipped bits, 4,096 cuts: found, or the state is provably equal", []string{"ledger.TestDamageIsFoundOrHarmless"}, ""},
	{"T30", "a ledger put back, or forked", "an old copy refused 20 of 20; a second holder, a careless server, a stale standby refused; 10 standbys promoted without the last rows refused, 10 with them gone on with", []string{"ledger.TestT30OlderDatabaseIsRefused", "ledger.TestT30PromotedStandby", "ledger.TestT30WaitForTheStandby", "ledger.TestT30FollowersWaitForTheStandby", "ledger.TestT30EarlyCommitIsLostWithThePrimary", "test/durability.TestT30PromotedUnderAProxy", "ledger.TestT30CarelessServers", "ledger.TestRollbackIsRefused", "ledger.TestForkIsRefused", "ledger.TestEachChainIsWitnessed"}, "a proxy that has seen none of the rows that a promoted standby lacks takes it: synchronous_standby_names keeps what was acknowledged (ADR 46)"},
	{"T31", "an unknown commit", "1,000 connections cut after COMMIT: 0 answers without a row, 0 rows twice", []string{"test/durability.TestAnswerOutlivesAnOutage", "ledger.TestT31UnknownCommit", "ledger.TestT31EarlyCommitIsConfirmed", "ledger.TestSharedSimulated"}, ""},
	{"T32", "clients' transactions", "100 answers rolled back: 100 charges", []string{"test/attacks.TestTransactionsGiveNothingBack"}, ""},
	{"T33", "execution again, fetching again", "a portal fetched again: 1 charge, the same values; Describe: none", []string{"test/attacks.TestExecutedAgain", "test/answers.TestFetchedForFree", "proxy.TestDrawnOnce"}, ""},
	{"T34", "averaging by rewording", "error of the mean of 100 spellings at least 0.9 of what the total ε allows", []string{"test/attacks.TestAveragingGainsNothing"}, ""},
	{"T35", "a storm of retries", "500 clients: the ledger adds up, others' wait at most doubles", []string{"test/durability.TestRetryStorm", "proxy/admission.TestSlots", "proxy/admission.TestTokens"}, "others' p99 is reported, not asserted: up to 4 times the idle one here, where the storm's clients run on the same two cores"},
	{"T36", "clock games", "100 steps of ±2 windows: no window above its cap, none open again", []string{"ledger.TestT36ClockGames", "ledger.TestRule7WindowsAndTheLedgersTime"}, ""},
	{"T37", "policy reloads under load", "1,000 reloads: each answer of the policy that it names", []string{"test/durability.TestT37PolicyReloads"}, ""},
	{"T38", "many identities", "50 users of one dataset: answers end exactly at its cap", []string{"test/attacks.TestT38ManyIdentities"}, ""},
	{"T39", "the ledger within reach", "no privilege of the data role on it; start refused otherwise", []string{"test/durability.TestT39DataRoleAtTheLedger"}, ""},
	{"T40", "a bad ε", "0, -1, NaN, infinite, tiny, huge: 0 accepted, the ledger unchanged", []string{"test/attacks.TestBadEpsilons", "ledger.TestBadCosts"}, ""},
}

// channels: what leaks beside the numbers.
var channels = []Row{
	{"T1", "errors that only some rows raise", "40 forms × 6 places × 2 engines: 0 errors of the database, 0 differences between neighbours", []string{"test/attacks.TestT1ErrorOracle"}, ""},
	{"T2", "error text that carries cells", "10,000 failing queries: 0 bytes of a canary in frames, logs, metrics", []string{"test/attacks.TestT2NoCellInAnyText", "test/attacks.TestT1CatchesForwarding"}, ""},
	{"T3", "a failing database as a bit", "after each injected fault: an answer, its charge kept, the operator told", []string{"test/timing.TestT3AnswersThroughFaults", "test/attacks.TestRule5AfterTheChargeOnlyAnAnswer", "test/attacks.TestSlotBeforeTheCharge", "test/attacks.TestSlotsOfUserAndDatabase"}, "no dataset closes after faults: that would be a bit about its rows (ADR 36)"},
	{"T4", "which groups exist", "a key of one person, or any of 500: shown in at most δ of 20,000 runs + 3 standard errors; declared keys always there", []string{"mechanisms/keys.TestT4KeysOfOneUnit", "test/attacks.TestKeysAreFoundThroughSQL"}, ""},
	{"T5", "empty sets, NULL, NaN, bounds of zero width", "5 aggregates over nothing: 200 of 200 answers are numbers, at least 2 distinct; a median is NULL", []string{"test/attacks.TestT5OverNothing"}, "a ratio is NULL where the noisy count that it is divided by is not positive: a function of what is released"},
	{"T6", "response time", "AUC within 0.02 of 0.5 over 5,000 an arm (CI: 0.05 over 1,200), in a run that tells a pair apart whose step is below the scan", []string{"test/timing.TestT6ResponseTime", "test/timing.TestP3Calibrated", "test/timing.TestT6ClocksInAnswers", "proxy.TestEveryOutcomeIsHeld", "proxy.TestClocksAreAskedOnTheGrid", "proxy/pipeline.TestChoicesEndOnAStep", "backend/engines.TestResultsAtAPublicMoment", "backend/engines.TestTurnsArePublic", "backend/internal/execute.TestTurnsComeSoon", "backend/postgres.TestReadyHasItsOwnConnections"}, ""},
	{"T7", "the time limit as a bit", "500 runs over the deadline on one side only: 0 differences", []string{"test/timing.TestT7DeadlineOnOneSide"}, ""},
	{"T8", "cancelling as a probe", "1,000 cancels: what is charged is saved; shares answered and charged within 3 standard errors, where a step below the scan sets them 5 apart", []string{"test/timing.TestT8CancelAsAProbe", "proxy.TestWaitsEndOnTheGrid"}, ""},
	{"T9", "catalogs and statistics", "every catalog statement: 0 differences, 0 rows of the database's own catalog", []string{"test/clients.TestReplayTellsNothing"}, ""},
	{"T10", "state that a statement leaves behind", "refused without a statement at the database; another session sees 0 locks, notices, changes", []string{"test/attacks.TestT10NothingIsLeftBehind"}, ""},
	{"T11", "the charge as a channel", "100,000 queries planned, 2,000 asked: charges and refusals equal on neighbours", []string{"test/attacks.TestT11ChargesArePublic", "test/attacks.TestRule23CostsArePublic"}, ""},
	{"T12", "order, limit and filter", "never in the database's SQL; the winner of two near groups as the noise predicts", []string{"test/attacks.TestT12OrderIsOfNoisyNumbers"}, ""},
	{"T13", "what only the operator may see", "20 planted true aggregates: 0 hits in any output; 0 operator pages on the analysts' listener", []string{"test/attacks.TestT13TrueAggregates", "test/durability.TestAdminAddress"}, "the operator's listener is of its own address and has no password: check warns where other machines reach it"},
}

// console: the pages for browsers.
var console = []Row{
	{"T73", "another site's form, a planted session, a stranger at the console", "forms of strangers, of other sites, without a token or too long: 0 accepted, and not read; a planted session number, and one after the log-out: 0 let in; guesses there and on the wire wait for each other", []string{"console.TestForms", "console.TestLogIn", "console.TestWhoMayLogIn", "console.TestOneBrake", "console.TestManyLogIns", "console.TestTLS", "proxy.TestProve"}, ""},
	{"T74", "script in names, pages in frames", "a script in every name and text: 0 pages with it; 0 pages that may be framed or load anything", []string{"console.TestNothingIsRun", "console.TestGetsChangeNothing"}, ""},
	{"T75", "a purchase that nobody confirmed", "a price that rises between preview and purchase: 0 bought; several statements in a box: 0 run; dearer than dp.max_cost by any way: 0 charged", []string{"console.TestPrice", "test/answers.TestMaxCost"}, ""},
	{"T76", "a console that is kept busy", "connections, sessions, pages of a session and log-ins bounded; a session that ends while its statement runs ends that wait and nothing else", []string{"console.TestPagesAtOnce", "console.TestLogOutWhileItRuns", "console.TestSessionsAreBounded", "console.TestConnectionsAreBounded", "console.TestManyLogIns", "proxy.TestLostWithin"}, ""},
	{"T77", "an owner's page before others, or with a policy that harms", "0 of the owners' pages and forms for whoever the policy does not name; a proposed policy of 10 MB, of nonsense, or that unfolds without end: a clear error, 0 put in force", []string{"console.TestOwnersAlone", "console.TestProposedPolicy", "console.TestRevoke", "policy.TestChanges"}, "an owner who has a budget learns by what others buy: policy notes say that the cap bounds her, and not her budget"},
}

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

// protocol: frames, log-in, transport.
var protocol = []Row{
	{"T52", "lengths that lie", "200 connections × 5 bytes: at most 64 MiB more, closed", []string{"test/attacks.TestT52LengthField", "test/attacks.TestT52Edges"}, ""},
	{"T53", "frames out of place", "100,000 random sessions: 0 panics, 0 hangs", []string{"proxy.TestRandomFrames"}, "8 hours of fuzzing a target are left to make fuzz"},
	{"T54", "a second startup", "30 kinds of message in each phase of log-in: closed, 0 log-ins as another", []string{"proxy.TestUnexpectedMessages"}, ""},
	{"T55", "options at startup", "200 texts: answered, 0 forwarded", []string{"proxy.TestOptionsAtStartup", "proxy/login.TestOptionStrings"}, ""},
	{"T56", "plain bytes before TLS", "1,000 splits: 0 bytes read, closed", []string{"proxy.TestPlainBytesBeforeTLS"}, ""},
	{"T57", "TLS taken away", "plain log-ins from elsewhere refused; a database of the wrong authority refused", []string{"proxy.TestPlainFromElsewhere", "backend/postgres.TestLinkToAnImpostor"}, ""},
	{"T58", "SCRAM weakened", "12 cases: 12 right refusals; 1,000 tampered messages refused", []string{"proxy/login.TestTamperedExchange", "proxy.TestChannelBindingFlags", "test/clients.TestCertificateRenewed"}, ""},
	{"T59", "which users exist, guessing", "frames of equal length; timing AUC within 0.05; a removed user refused at once; many guesses at once are as slow as one after another", []string{"proxy.TestUnknownUsersLookLikeOthers", "proxy/login.TestMocksHaveTheUsersShapes", "proxy/login.TestGuessesAtOnce", "proxy/login.TestOtherNamesClearNothing", "proxy.TestPolicyChange"}, ""},
	{"T60", "cancel keys", "100,000 guesses: 0 cancels, equal replies", []string{"proxy.TestCancelGuesses"}, ""},
	{"T61", "slow and half-open clients", "2,000 slow sockets: a new log-in within 1 s", []string{"proxy.TestSlowClients", "proxy.TestReaderThatNeverReads"}, "1.5 s was the longest where 2,000 slow clients and other programs shared two cores: 30 of 694 log-ins needed a second try"},
	{"T62", "a hostile database", "40 scripts: 0 panics, refused or answered by rule 5, the charge kept", []string{"backend/postgres.TestHostileDatabase"}, ""},
	{"T63", "sessions mixed up", "64 users, 100,000 queries with faults: 0 answers to another user, 0 leaks", []string{"test/durability.TestSoak"}, "at full length the statements come in bursts over an hour; what was bought stays in memory"},
}

// surface: SQL.
var surface = []Row{
	{"T41", "text that two parsers read differently", "0 bytes of clients' text but listed names in the database's log", []string{"test/attacks.TestT41ParserDifferential", "test/attacks.TestT41Corpus"}, ""},
	{"T42", "names and operators put in the way", "20 hijacks: 0 calls; a replaced table: refused before the next charge", []string{"backend/postgres.TestNamesOfTheDatabaseAreNotUsed", "backend/engines.TestDriftIsFoundBeforeACharge"}, ""},
	{"T43", "functions that run SQL or read files", "every function of both catalogs: refused, or on the list", []string{"test/attacks.TestEveryFunctionOfTheCatalogs"}, ""},
	{"T44", "rows, and aggregates that are rows", "120 forms: refused, 0 charged", []string{"test/attacks.TestRowsAreRefused"}, ""},
	{"T45", "one person made many", "10,000 queries × 20 neighbours: 0 differences above the declared sensitivity", []string{"test/audits.TestT45Recorded", "rewrite.TestAuditNeighbours", "rewrite.TestBoundsNeighbours"}, "at full length 2,500 statements under each of four policies, × 20 neighbours; choices and found keys are held equal in SQL, charge and flow, and audited by their answers"},
	{"T46", "rows picked by their place", "all refused", []string{"test/attacks.TestRowPickersAreRefused"}, ""},
	{"T47", "statements that write", "80 forms: 0 statements at the database, its tables unchanged", []string{"test/attacks.TestWritingIsRefused"}, "several statements in a message are allowed: the first that is refused ends it"},
	{"T48", "settings of the session", "0 SET at the database; values equal on neighbours", []string{"test/attacks.TestSettingsStayInTheProxy"}, ""},
	{"T49", "deep or huge text", "16 shapes up to 16 MiB: refused, the process lives", []string{"test/attacks.TestT49DeepSQL"}, ""},
	{"T50", "engines that differ", "300 expressions: equal on both engines, or refused", []string{"planner/scalar.TestAgainstServer", "rewrite.TestEnginesAgreeWithTheTwin"}, "clients' expressions are evaluated in Go on the cells; the engines count cells"},
	{"T51", "a database role that may too much", "12 roles: 12 refusals", []string{"backend/engines.TestRolesThatAreTooStrong"}, "TEMPORARY, which PUBLIC has, and pg_read_all_data are warned of"},
}

// Rule is one of the rules that the guarantee rests on, stated in ARCHITECTURE.md's proof and docs/threats.md.
type Rule struct {
	Number int
	Rule   string
	Tests  []string
}

// Rules are all of them.
var Rules = []Rule{
	{1, "nobody's choices leak unpaid", []string{"test/attacks.TestRule1NobodysChoicesLeak", "test/attacks.TestRule1AtTheCap", "ledger.TestRule1CapTellsNothingOfChoices", "ledger.TestRule1GroupsLeaveNoTrace"}},
	{2, "the first use pays", []string{"test/attacks.TestRule2FirstUsePays", "ledger.TestRule2EachUserPaysOnceTheCapOnce"}},
	{3, "a saved answer is used for its own question only", []string{"test/attacks.TestRule3SavedAnswerIsAsExactAsAsked", "test/attacks.TestRule3ChangedMeaningHidesTheRelease", "rewrite.TestRule3OneDigestOneAnswer", "policy.TestRule3OtherMeaningOtherFingerprint"}},
	{4, "charge, draw, save, send", []string{"test/attacks.TestRule4SavedBeforeSent", "test/durability.TestRule4OneDrawsTheOthersWait", "ledger.TestRule4ChargeDrawSaveSend"}},
	{5, "after the charge the only outcome is an answer", []string{"test/attacks.TestRule5AfterTheChargeOnlyAnAnswer", "test/attacks.TestRule5UnreachableBeforeDispatch", "ledger.TestRule5GroupsChangeBeforeTheDraw"}},
	{6, "δ is spent once", []string{"test/attacks.TestRule6DeltaIsSpentOnce", "ledger.TestRule6DeltaIsAnAccountOfItsOwn"}},
	{7, "refreshed budgets name their lifetime", []string{"test/attacks.TestRule7RefreshNeedsLifetime", "ledger.TestRule7WindowsAndTheLedgersTime"}},
	{8, "budgets hang on identities that cannot be reset", []string{"test/attacks.TestRule8IdentityCannotBeReset", "ledger.TestRule8ForbiddenChanges", "ledger.TestRule8PathsStay", "ledger.TestRule8Repricing", "ledger.TestRule8Grants", "ledger.TestRule8GroupsRemember", "ledger.TestGroupsTwin"}},
	{9, "the unit stands at the dataset", []string{"test/attacks.TestRule9UnitStandsAtTheDataset", "test/attacks.TestRule9RowsWithoutAUnitAreExcluded", "test/attacks.TestRule9LeavesStayInTheirDataset", "policy.TestBadPolicies", "backend/engines.TestTablesThatShareRows"}},
	{10, "rows and groups of a unit are bounded by its own rows alone", []string{"rewrite.TestGroupBoundsHoldOnNeighbours", "rewrite.TestGroupBoundsAreTheUnitsOwn"}},
	{11, "what proves a bound", []string{"backend/engines.TestProofReplacesTheBound", "backend/postgres.TestNamesAreLookedUpAfterProofs", "backend/postgres.TestCopiesOfRenamedTables"}},
	{12, "values outside the domain, and NULL", []string{"test/attacks.TestRule12CellsAddUp", "backend/duckdb.TestFilesAreReadWithDeclaredTypes", "backend/duckdb.TestEachLineIsReadByItself", "test/attacks.TestBitOfALine"}},
	{13, "sources", []string{"test/answers.TestViewsThatDoNotHold", "backend/engines.TestInspectRefusesPublicViews", "backend/engines.TestTablesThatShareRows"}},
	{14, "joins across units", []string{"planner.TestRefusalExamples"}},
	{15, "limited or sampled sub-queries of private rows", []string{"test/attacks.TestRule15LimitedRowsAreRefused"}},
	{16, "no choice reads private facts", []string{"test/attacks.TestRule16PlansReadNothingPrivate", "rewrite.TestBoundsNeighbours", "mechanisms.TestEndsAudit", "cmd/dpproxy.TestBounds"}},
	{17, "refining", []string{"test/answers.TestRefining", "mechanisms/ladders.TestAuditCatchesStoredNoise"}},
	{18, "interactive releases", []string{"test/answers.TestOnlineReleaseDiesAtEachPoint", "test/answers.TestOnlineReleaseIsHerOwn", "mechanisms.TestAuditOfSessionsAndRestarts"}},
	{19, "releases that grow", []string{"ledger.TestGrowth", "planner.TestClosedDays", "mechanisms.TestGrowthSensitivity"}},
	{20, "what may be combined", []string{"planner.TestCombinedNeedsOneEpoch"}},
	{21, "cost shown honestly", []string{"test/audits.TestExplainIsKept"}},
	{22, "error shown honestly", []string{"test/audits.TestShownErrors", "test/audits.TestStatedErrorCoversTruth"}},
	{23, "costs are functions of public things", []string{"test/attacks.TestRule23CostsArePublic", "test/clients.TestReplayTellsNothing"}},
	{24, "nothing outside the rows' own cells decides whether a paid query ends well", []string{"backend/postgres.TestEverySettingHasItsPlace", "backend/postgres.TestSettingsOfOthersAreNotFollowed", "backend/postgres.TestWordsForSettings", "backend/postgres.TestOtherEncodingsAreRefused", "backend/duckdb.TestSortsGoToFiles", "test/attacks.TestBitOfAnEncoding", "test/attacks.TestBitOfTemporaryFiles", "test/attacks.TestUnplannedIsFree", "backend/postgres.TestEveryFormIsPlanned", "backend/postgres.TestNoSharedBitmaps"}},
	{25, "an engine's promise is believed only where that engine keeps it", []string{"backend/engines.TestProofsOfOtherEngines", "backend/engines.TestProofReplacesTheBound", "backend/postgres.TestCitusRace", "backend/postgres.TestCitusAppend", "backend/postgres.TestCitusLostWorker",
		"backend/postgres.TestWarningsOfLostWorkers", "backend/postgres.TestOtherStorageProvesNothing", "rewrite.TestMomentsDoNotMatter"}},
	{26, "a plan is bounded before it is made", []string{"planner.TestWorkEnds", "planner.TestLargeDomains", "planner.TestPublicRowsAreWork", "test/attacks.TestPlanningIsCancelled", "proxy/admission.TestStatementEndsAtItsLimits", "proxy/admission.TestNobodyHoldsAllSlots", "proxy/admission.TestNobodyHoldsTheDatabase", "proxy/admission.TestDrawsAreDrawnInTurn", "sandbox/cluster.TestBoundOfASession", "sandbox.TestConformance", "mechanisms/noise.TestHalfWidthsAreBounded"}},
	{27, "what is held answers only what it determines", []string{"planner.TestHistory", "planner.TestHistoryOfPredicates", "planner.TestCombined", "test/truth.TestTruth"}},
	{28, "more ε is never worse", []string{"planner.TestMoreIsNeverWorse", "planner.TestBarsDecide"}},
	{29, "after the charge there is an answer", []string{"test/answers.TestConstantsFailForFree", "rewrite.TestTextsDoNotGrow", "rewrite.TestLongTextsAreRefused", "backend/internal/embedded.TestPlanningIsLeft"}},
	{30, "every source answers the same questions", []string{"backend/engines.TestNeighboursOfStrangeKeys", "backend/engines.TestNeighboursOfMariaDBsKeys", "backend/engines.TestParquetCellsFailNoRead"}},
	{31, "made-up rows never stand where data could be taken for them", []string{"planner.TestMadeUpRowsHaveTheirName"}},
}
