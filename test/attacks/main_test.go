// Package attacks tries to make dpproxy tell something about a row, or give more than was paid for: neighbouring
// databases that must look alike from outside, errors, times and cancels as bits, text that two parsers read
// differently, forms that would show rows, frames and statements that should break the process, and attackers who know
// all rows but one. The proxy is the program itself, as a process; where a test must find something, a substitute has
// the defence switched off.
package attacks

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) {
	os.Exit(kit.Main(m, map[string]kit.StandIn{"bare-parser": bareGrammar}))
}
