package kit

import (
	"fmt"
	"net"
	"testing"
	"time"
)

// Findings is what a procedure of the kit found wrong with a proxy. Of the real program each must find nothing, and of
// the stand-in with its defence switched off something.
type Findings []string

// Add notes one.
func (f *Findings) Add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// None fails the test for each finding.
func (f Findings) None(t *testing.T) {
	t.Helper()
	for i, text := range f {
		if i == 20 {
			t.Errorf("and %d more", len(f)-i)
			return
		}
		t.Error(text)
	}
}

// Some fails the test where a planted fault was not found.
func (f Findings) Some(t *testing.T, fault string) {
	t.Helper()
	if len(f) == 0 {
		t.Errorf("not found: %s", fault)
		return
	}
	t.Logf("%s: %d findings, the first: %.300s", fault, len(f), f[0])
}

// FreeAddress is one that nobody listens on.
func FreeAddress(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	return free.Addr().String()
}

// Eventually asks until ok or ten seconds are over.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 200 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("not within ten seconds: %s", what)
}
