package spark

import (
	"flag"
	"os"
	"os/exec"
	"testing"

	"github.com/dpproxy/dpproxy/backend/sparktest"
)

var suite = flag.Bool("suite", false, "run the tests of all packages that need Spark, against one server: make spark")

// eachBackend are the tests of what every backend must do, in Spark's turn.
const eachBackend = "^Test(CountsAreThoseOfTheRows|FaultsGiveNoGroupsAndAnAlert|ReadyOfCallerWhoLeft|ExecuteRefusesWithoutRunning|PublicTablesAreCopied|QueriesWaitForTheirTurn|" +
	"InspectAcceptsTheSchemaOfThePolicy|InspectNamesWhatDiffers|InspectSeesColumnsWithoutBounds|PaidQueriesRunOnce|AfterTheChargeThereIsAnAnswer|QueriesArePlannedBeforeTheCharge)$/^(Spark|deadline|crash)$/^Spark$"

// TestSuite runs the other packages' tests against the server of this one: a server takes a while to start, and its
// first plans longer than all later ones.
func TestSuite(t *testing.T) {
	if !*suite {
		t.Skip("the tests of other packages: make spark")
	}
	server := sparktest.Shared(t)
	for _, run := range [][]string{{"-run", "Spark", "./backend/hive", "./rewrite"}, {"-run", ".", "./backend/spark"}, {"-run", eachBackend, "./backend/engines"}} {
		cmd := exec.Command("go", append([]string{"test", "-count=1", "-timeout", "30m", "-p", "1", "-v"}, run...)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = "../..", os.Stdout, os.Stderr
		cmd.Env = append(os.Environ(), sparktest.Environment+"="+server.Lend())
		if err := cmd.Run(); err != nil {
			t.Errorf("go test %v: %v", run, err)
		}
	}
}
