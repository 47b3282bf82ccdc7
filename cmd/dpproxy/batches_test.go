package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestBatchesDocument: what docs/batches.md shows is what `dpproxy price` prints of a report and of a dashboard over
// the demo's tables; -update writes it anew. It charges nothing, opens no database, and says the same each time.
func TestBatchesDocument(t *testing.T) {
	kit.Beside(t)
	const document = "../../docs/batches.md"
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.yaml")
	text := demoPolicy("127.0.0.1:0", "127.0.0.1:0", 1_000_000, kit.Verifier(t, "analyst"), kit.Verifier(t, "dba"))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	zcdp := strings.NewReplacer("accountant: pure ", "accountant: zcdp ", "delta: 0}", "delta: 1e-6}").Replace(text)
	if err := os.WriteFile(filepath.Join(dir, "zcdp.yaml"), []byte(zcdp), 0o600); err != nil {
		t.Fatal(err)
	}
	got := string(data)
	for _, c := range []struct{ name, policy, file string }{{"report", "policy.yaml", "report.sql"}, {"dashboard", "policy.yaml", "dashboard.sql"}, {"zcdp", "zcdp.yaml", "dashboard.sql"}} {
		in, err := os.ReadFile(filepath.Join("testdata/batches", c.file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, c.file), in, 0o600); err != nil {
			t.Fatal(err)
		}
		out := kit.Run(t, "", "price", "--policy", filepath.Join(dir, c.policy), "--fresh", "--user", "analyst", "--epsilon", "1", filepath.Join(dir, c.file))
		_, batch, ok := strings.Cut(out.Stdout, "As a batch:\n")
		if !ok {
			t.Fatalf("%s: exit %d\n%s%s", c.name, out.Code, out.Stdout, out.Stderr)
		}
		batch = strings.ReplaceAll("As a batch:\n"+batch, dir+"/", "")
		begin := "<!-- " + c.name + " -->\n```\n"
		before, rest, ok := strings.Cut(got, begin)
		_, after, ok2 := strings.Cut(rest, "```\n")
		if !ok || !ok2 {
			t.Fatalf("%s has no place for %s", document, c.name)
		}
		got = before + begin + batch + "```\n" + after
	}
	if *kit.Update {
		if err := os.WriteFile(document, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(data) {
		t.Errorf("%s is not what is printed: run with -update and read the difference", document)
	}
}
