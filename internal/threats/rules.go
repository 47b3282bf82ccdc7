package threats

// Rule is one of the rules that the guarantee rests on, told in ARCHITECTURE.md's proof and docs/threats.md.
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
