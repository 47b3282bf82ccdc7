package backendtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/policy"
)

// FilesIn lists what lies in a directory of snapshots.
func FilesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// People counts the people of the snapshot that is in force.
func People(t *testing.T, h *House) string {
	t.Helper()
	return strings.Join(Counts(t, h, Render(t, Measure(t, h.Policy, "people"), h)), ",")
}

// Renewed makes a new snapshot, in force after so long.
func Renewed(t *testing.T, h *House, after time.Duration) error {
	t.Helper()
	return RenewedBy(t, h.Backend, after, func() *policy.Policy { return h.Policy })
}

// renewing is what makes the next copy, in force at a moment.
type renewing interface {
	Renew(ctx context.Context, force time.Time, current func() *policy.Policy) error
}

// RenewedBy gives a copy that this machine did not make in time more time, and then more: no test of what a copy says
// fails for that.
func RenewedBy(t *testing.T, b backend.Backend, after time.Duration, current func() *policy.Policy) error {
	for ; ; after *= 3 {
		if err := b.(renewing).Renew(t.Context(), time.Now().Add(after), current); !errors.Is(err, context.DeadlineExceeded) || after > 3*time.Minute {
			return err
		}
	}
}

// RefusesWith has the database inspected, which must be refused by such words; empty means not at all.
func RefusesWith(t *testing.T, h *House, words string) {
	t.Helper()
	findings, err := h.Inspect(context.Background(), h.Policy, h.Policy.Datasets[0])
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, f := range findings {
		if f.Fatal {
			text += f.Text + "\n"
		}
	}
	if words == "" && text != "" || !strings.Contains(text, words) {
		t.Errorf("findings: %q, must say %q", text, words)
	}
}

// TestPolicyLike is a policy like a house's, of its own tables.
func TestPolicyLike(t *testing.T, h *House) *policy.Policy {
	p := TestPolicy(t, h.Policy.Backend.URL)
	p.Backend.Snapshot = h.Policy.Backend.Snapshot
	return p
}

// MariaPolicy opens what a policy over these tables of a MariaDB database names.
func MariaPolicy(t testing.TB, url, unit, tables string) *House {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	text := fmt.Sprintf(`version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: %q, snapshot: {dir: snapshots, every: 1d}}
ledger: {url: "sqlite:ledger.db"}
users: []
datasets:
  - id: clinic
    unit: %s
    accountant: pure
    cap: {epsilon: 1000}
    budgets: {"*": {epsilon: 100}}
    tables:
%s`, url, unit, tables)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := policy.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return Open(t, p)
}
