package service

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/dpproxy/dpproxy/planner/parse"
)

// parserArgument makes this program parse the deepest text that the limits admit and exit.
const parserArgument = "__parser-self-test"

// ChildMain is the child's side of the self-test. It returns at once in any other process.
func ChildMain() {
	if len(os.Args) != 2 || os.Args[1] != parserArgument {
		return
	}
	if _, refusal := parse.Parse(parse.DeepestAdmitted()); refusal != nil {
		fmt.Fprintln(os.Stderr, refusal.Message)
		os.Exit(1)
	}
	os.Exit(0)
}

// parserSelfTest parses the deepest admitted text in a child: the grammar's C code dies, unrecoverably, on long chains,
// so a machine whose thread stacks are too small for our limits must be found before the first client is.
func parserSelfTest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self, parserArgument)
	child.Env = []string{}
	if out, err := child.CombinedOutput(); err != nil {
		return fmt.Errorf("self-test of the SQL parser: %w: %.200s", err, out)
	}
	return nil
}
