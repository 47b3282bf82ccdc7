package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// ran is how a command of dpproxy ended.
type ran struct {
	code           int
	stdout, stderr string
}

// dpproxy runs one command line of the program in a process of its own, with input on its standard input.
func dpproxy(t *testing.T, input string, args ...string) ran {
	t.Helper()
	return dpproxyWith(t, nil, input, args...)
}

// dpproxyWith does it with additions to the environment.
func dpproxyWith(t *testing.T, env []string, input string, args ...string) ran {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}
