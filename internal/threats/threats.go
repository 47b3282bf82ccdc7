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

// Night reports whether a test is to run as `make night` has it: longer than each run does, where Full is longer still.
func Night() bool { return os.Getenv("DPPROXY_NIGHT") != "" || Full() }

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
