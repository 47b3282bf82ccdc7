package kit

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Ran is how a command of dpproxy ended.
type Ran struct {
	Code           int
	Stdout, Stderr string
}

// Run runs one command line of the program in a process of its own, with input on its standard input.
func Run(t *testing.T, input string, args ...string) Ran {
	t.Helper()
	return RunWith(t, nil, input, args...)
}

// RunWith does it with additions to the environment.
func RunWith(t *testing.T, env []string, input string, args ...string) Ran {
	t.Helper()
	executable, err := Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), executable, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return Ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}
