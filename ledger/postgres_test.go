package ledger

import (
	"flag"
	"strconv"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// conformance are the tests that hold of every ledger. By themselves they run on SQLite.
var conformance = []struct {
	name string
	test func(*testing.T)
}{
	{"BuyLoadAndReopen", TestBuyLoadAndReopen}, {"ExactlyTheCap", TestExactlyTheCap}, {"AllOrNone", TestAllOrNone}, {"BadCosts", TestBadCosts},
	{"ReceiptIsSpentOnce", TestReceiptIsSpentOnce}, {"RevokedReleaseIsGone", TestRevokedReleaseIsGone}, {"ClosedLedger", TestClosedLedger},
	{"OthersLeaveNoTrace", TestRule1OthersLeaveNoTrace}, {"EachUserPaysOnceTheCapOnce", TestRule2EachUserPaysOnceTheCapOnce},
	{"FirstUseTwiceAtOnce", TestRule2FirstUseTwiceAtOnce}, {"SameQuestionOnly", TestRule3SameQuestionOnly},
	{"ChargeDrawSaveSend", TestRule4ChargeDrawSaveSend}, {"OneDrawsTheOtherWaits", TestRule4OneDrawsTheOtherWaits},
	{"DeltaIsAnAccountOfItsOwn", TestRule6DeltaIsAnAccountOfItsOwn}, {"WindowsAndTheLedgersTime", TestRule7WindowsAndTheLedgersTime},
	{"RequestOfAnotherPolicy", TestRule8RequestOfAnotherPolicy}, {"PolicyChangesUnderWay", TestRule8PolicyChangesUnderWay},
	{"ForbiddenChanges", TestRule8ForbiddenChanges}, {"PathsStay", TestRule8PathsStay}, {"Repricing", TestRule8Repricing}, {"DeltaHasNoPrice", TestRule8DeltaHasNoPriceUnderReplaceOne},
	{"Identities", TestRule8Identities}, {"DatasetComesBack", TestRule8DatasetComesBack}, {"Grants", TestRule8Grants},
	{"Growth", TestGrowth}, {"GrowthOfOneAtATime", TestGrowthOfOneAtATime}, {"GrowthGivenUp", TestGrowthGivenUp}, {"GrowthIsChecked", TestGrowthIsChecked},
	{"Ladder", TestLadder}, {"LadderRefused", TestLadderRefused}, {"LadderCrash", TestLadderCrash}, {"LadderOneAtATime", TestLadderOneAtATime},
	{"LadderUnderZCDP", TestLadderUnderZCDP}, {"Levels", TestLevels}, {"LevelsOfAnotherList", TestLevelsOfAnotherList}, {"FinerLevel", TestFinerLevel},
	{"LevelsAndTheCap", TestLevelsAndTheCap}, {"LevelsAtOnce", TestLevelsAtOnce}, {"LevelsAreChecked", TestLevelsAreChecked},
	{"StepsOfAnOnlineRelease", TestStepsOfAnOnlineRelease}, {"RevokedOnlineReleaseTakesNoStep", TestRevokedOnlineReleaseTakesNoStep},
	{"RunsOfAlarms", TestRunsOfAlarms}, {"Twin", TestTwin}, {"UpdateIsTheFilter", TestUpdateIsTheFilter}, {"ClockGames", TestT36ClockGames},
	{"GroupIsOneAccount", TestGroupIsOneAccount}, {"GroupsRemember", TestRule8GroupsRemember}, {"GroupsTwin", TestGroupsTwin},
	{"MembersAtOnce", TestMembersAtOnce}, {"GroupsLeaveNoTrace", TestRule1GroupsLeaveNoTrace},
	{"GroupsChangeBeforeTheDraw", TestRule5GroupsChangeBeforeTheDraw},
	{"Either", TestEither}, {"EitherChanges", TestEitherChanges}, {"EitherGroups", TestEitherGroups}, {"EitherTwin", TestEitherTwin},
}

func TestOnPostgres(t *testing.T) {
	if !threats.Full() { // each step of a history is a commit or more
		checks := flag.Lookup("rapid.checks").Value.String()
		flag.Set("rapid.checks", strconv.Itoa(threats.ByNight(4, 10)))
		defer flag.Set("rapid.checks", checks)
	}
	for _, c := range conformance {
		t.Run(c.name, c.test)
	}
}
