package threats

// Rule is one of the rules that the guarantee rests on, told in ARCHITECTURE.md's proof and SECURITY.md.
type Rule struct {
	Number int
	Rule   string
	Tests  []string
}

// Rules are all of them.
var Rules = []Rule{
	{1, "nobody's choices leak unpaid", []string{"cmd/dpproxy.TestRule1NobodysChoicesLeak", "cmd/dpproxy.TestRule1AtTheCap", "ledger.TestRule1CapTellsNothingOfChoices"}},
	{2, "the first use pays", []string{"cmd/dpproxy.TestRule2FirstUsePays", "ledger.TestRule2EachUserPaysOnceTheCapOnce"}},
	{3, "a saved answer is used for its own question only", []string{"cmd/dpproxy.TestRule3SavedAnswerIsAsExactAsAsked", "cmd/dpproxy.TestRule3ChangedMeaningHidesTheRelease", "rewrite.TestRule3OneDigestOneAnswer", "policy.TestRule3OtherMeaningOtherFingerprint"}},
	{4, "charge, draw, save, send", []string{"cmd/dpproxy.TestRule4SavedBeforeSent", "test/durability.TestRule4OneDrawsTheOthersWait", "ledger.TestRule4ChargeDrawSaveSend"}},
	{5, "after the charge the only outcome is an answer", []string{"cmd/dpproxy.TestRule5AfterTheChargeOnlyAnAnswer", "cmd/dpproxy.TestRule5UnreachableBeforeDispatch"}},
	{6, "δ is spent once", []string{"cmd/dpproxy.TestRule6DeltaIsSpentOnce", "ledger.TestRule6DeltaIsAnAccountOfItsOwn"}},
	{7, "refreshed budgets name their lifetime", []string{"cmd/dpproxy.TestRule7RefreshNeedsLifetime", "ledger.TestRule7WindowsAndTheLedgersTime"}},
	{8, "budgets hang on identities that cannot be reset", []string{"cmd/dpproxy.TestRule8IdentityCannotBeReset", "ledger.TestRule8ForbiddenChanges", "ledger.TestRule8Repricing", "ledger.TestRule8Grants"}},
	{9, "the unit stands at the dataset", []string{"cmd/dpproxy.TestRule9UnitStandsAtTheDataset", "cmd/dpproxy.TestRule9RowsWithoutAUnitAreExcluded", "cmd/dpproxy.TestRule9LeavesStayInTheirDataset", "policy.TestBadPolicies", "backend.TestTablesThatShareRows"}},
	{10, "rows and groups of a unit are bounded by its own rows alone", []string{"rewrite.TestGroupBoundsHoldOnNeighbours", "rewrite.TestGroupBoundsAreTheUnitsOwn"}},
	{11, "what proves a bound", []string{"backend.TestProofReplacesTheBound"}},
	{12, "values outside the domain, and NULL", []string{"cmd/dpproxy.TestRule12CellsAddUp", "backend.TestFilesAreReadWithDeclaredTypes", "backend.TestEachLineIsReadByItself", "cmd/dpproxy.TestBitOfALine"}},
	{13, "sources", []string{"cmd/dpproxy.TestViewsThatDoNotHold", "backend.TestInspectRefusesPublicViews", "backend.TestTablesThatShareRows"}},
	{14, "joins across units", []string{"planner.TestRefusalExamples"}},
	{15, "limited or sampled sub-queries of private rows", []string{"cmd/dpproxy.TestRule15LimitedRowsAreRefused"}},
	{16, "no choice reads private facts", []string{"cmd/dpproxy.TestRule16PlansReadNothingPrivate"}},
	{17, "refining", []string{"cmd/dpproxy.TestRefining", "mechanisms/ladders.TestAuditCatchesStoredNoise"}},
	{18, "interactive releases", []string{"cmd/dpproxy.TestOnlineReleaseDiesAtEachPoint", "cmd/dpproxy.TestOnlineReleaseIsHerOwn", "mechanisms.TestAuditOfSessionsAndRestarts"}},
	{19, "releases that grow", []string{"ledger.TestGrowth", "planner.TestClosedDays", "mechanisms.TestGrowthSensitivity"}},
	{20, "what may be combined", []string{"planner.TestCombinedNeedsOneEpoch"}},
	{21, "cost shown honestly", []string{"cmd/dpproxy.TestExplainIsKept"}},
	{22, "error shown honestly", []string{"cmd/dpproxy.TestShownErrors", "cmd/dpproxy.TestStatedErrorCoversTruth"}},
	{23, "costs are functions of public things", []string{"cmd/dpproxy.TestRule23CostsArePublic", "cmd/dpproxy.TestReplayTellsNothing"}},
	{24, "nothing outside the rows' own cells decides whether a paid query ends well", []string{"backend.TestEverySettingHasItsPlace", "backend.TestSettingsOfOthersAreNotFollowed", "backend.TestWordsForSettings", "backend.TestOtherEncodingsAreRefused", "backend.TestSortsGoToFiles", "cmd/dpproxy.TestBitOfAnEncoding", "cmd/dpproxy.TestBitOfTemporaryFiles", "cmd/dpproxy.TestUnplannedIsFree", "backend.TestEveryFormIsPlanned", "backend.TestNoSharedBitmaps"}},
	{25, "an engine's promise is believed only where that engine keeps it", []string{"backend.TestProofsOfOtherEngines", "backend.TestProofReplacesTheBound"}},
	{26, "a plan is bounded before it is made", []string{"planner.TestWorkEnds", "planner.TestLargeDomains", "planner.TestPublicRowsAreWork", "cmd/dpproxy.TestPlanningIsCancelled", "proxy.TestStatementEndsAtItsLimits", "proxy.TestNobodyHoldsAllPlaces", "proxy.TestNobodyHoldsTheDatabase", "proxy.TestDrawsAreDrawnInTurn", "sandbox.TestMemoryOfAQuery", "sandbox.TestProcessorTimeOfAQuery", "mechanisms/noise.TestHalfWidthsAreBounded"}},
}
