package policy

import (
	"strings"
	"testing"
	"time"
)

// TestTimingIsRead: the steps of the grid are those that the policy says.
func TestTimingIsRead(t *testing.T) {
	for text, want := range map[string]Timing{
		"":                                    {},
		"  timing: {grid: 20ms}\n":            {20 * time.Millisecond, 20 * time.Millisecond},
		"  timing: {grid: 20ms, fresh: 2s}\n": {20 * time.Millisecond, 2 * time.Second},
	} {
		p := parsed(t, strings.Replace(base(t), "server:\n", "server:\n"+text, 1))
		if p.Server.Timing != want {
			t.Errorf("%q: %+v, want %+v", text, p.Server.Timing, want)
		}
	}
}

// TestTimingNotes: what the grid costs is said, and what it leaves to see as long as a question can outlast its step.
func TestTimingNotes(t *testing.T) {
	p := &Policy{Backend: Backend{Deadline: 2 * time.Minute}}
	if notes := p.Notes(); len(notes) != 0 {
		t.Errorf("without a grid: %q", notes)
	}
	for _, c := range []struct {
		timing Timing
		says   []string
	}{
		{Timing{20 * time.Millisecond, 20 * time.Millisecond}, []string{"at most 50 answers a second", "the number of steps of 20ms"}},
		{Timing{20 * time.Millisecond, 200 * time.Millisecond}, []string{"at most 50 answers", "a multiple of 200ms, so that a connection has at most 5 answers", "fresh above backend.deadline, 2m0s"}},
		{Timing{20 * time.Millisecond, 3 * time.Minute}, []string{"at most 50 answers", "a multiple of 3m0s", "longer than backend.deadline, 2m0s, is answered by noise around zero"}},
	} {
		p.Server.Timing = c.timing
		notes := p.Notes()
		if len(notes) != len(c.says) {
			t.Fatalf("%v: %q", c.timing, notes)
		}
		for i, part := range c.says {
			if !strings.Contains(notes[i], part) {
				t.Errorf("%v: %q does not say %q", c.timing, notes[i], part)
			}
		}
	}
}

// TestSamplingNotes: what fixed work leaves to see is said, and that a grid is missing where it is.
func TestSamplingNotes(t *testing.T) {
	p := &Policy{Backend: Backend{Deadline: 2 * time.Minute}, Server: Server{FixedWork: true}}
	const missing = "without timing the time of the query itself is seen"
	if notes := p.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "2^-45") || !strings.Contains(notes[0], missing) {
		t.Errorf("without a grid: %q", notes)
	}
	p.Server.Timing = Timing{20 * time.Millisecond, 20 * time.Millisecond}
	if notes := p.Notes(); strings.Contains(strings.Join(notes, "\n"), missing) || !strings.Contains(notes[len(notes)-1], "2^-45") {
		t.Errorf("with a grid: %q", notes)
	}
}

// TestSpansAreAssumed: a policy that has spans sent says whom that trusts, and one that does not says nothing of it.
func TestSpansAreAssumed(t *testing.T) {
	for _, on := range []bool{false, true} {
		p := &Policy{Server: Server{Spans: on}}
		if told := strings.Contains(strings.Join(p.Notes(), "\n"), "server.spans"); told != on {
			t.Errorf("spans %v: told %v", on, told)
		}
	}
}
