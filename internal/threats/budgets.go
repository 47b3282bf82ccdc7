package threats

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
