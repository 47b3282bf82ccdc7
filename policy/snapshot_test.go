package policy

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const snapshotPolicy = `version: 1
backend: {url: "postgres://dpproxy@127.0.0.1/shop", snapshot: SNAPSHOT}
datasets:
  - {id: shop, unit: {name: person, key: people.id}, accountant: pure, cap: {epsilon: 1}, budgets: {"*": {epsilon: 1}}, tables: [{name: people, max_rows_per_unit: 1, columns: [{name: x, type: boolean}]}]}
`

// TestSnapshotTimes: what a policy may say of copies, and when they are made.
func TestSnapshotTimes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{dir: snapshots, every: 6h, at: "02:00"}`, ""},
		{`{dir: snapshots, every: 1d, within: 2h, key: k}`, ""},
		{`{dir: snapshots, every: 2w}`, ""},
		{`{every: 6h}`, "dir"},
		{`{dir: snapshots}`, "every"},
		{`{dir: snapshots, every: 5h}`, "a part of a day"},
		{`{dir: snapshots, every: 36h}`, "a part of a day"},
		{`{dir: snapshots, every: 30s}`, "a part of a day"},
		{`{dir: snapshots, every: 6h, at: "25:00"}`, "hour and minute"},
		{`{dir: snapshots, every: 6h, within: 7h}`, "at most every"},
		{`{dir: snapshots, every: 6h, often: 2}`, "often"},
		{`{dir: snapshots, every: 6h, connections: 8}`, ""},
		{`{dir: snapshots, every: 6h, connections: 0}`, "connections"},
		{`{dir: snapshots, every: 6h, connections: 17}`, "connections"},
	} {
		_, err := Parse([]byte(strings.Replace(snapshotPolicy, "SNAPSHOT", c.text, 1)), filepath.Join(t.TempDir(), "policy.yaml"))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	if _, err := Parse([]byte(strings.Replace(strings.Replace(snapshotPolicy, "SNAPSHOT", "{dir: s, every: 6h}", 1), "postgres://dpproxy@127.0.0.1/shop", "duckdb:a.duckdb", 1)), "policy.yaml"); err != nil {
		t.Errorf("of DuckDB: %v", err)
	}
	p, err := Parse([]byte(strings.Replace(snapshotPolicy, "SNAPSHOT", `{dir: snapshots, every: 6h, at: "02:00"}`, 1)), "/srv/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := p.Backend.Snapshot
	if s.Dir != "/srv/snapshots" || s.Within != time.Hour {
		t.Errorf("%+v", s)
	}
	for now, want := range map[string]string{
		"2026-11-23T01:59:59Z": "2026-11-23T02:00:00Z", "2026-11-23T02:00:00Z": "2026-11-23T08:00:00Z", "2026-11-23T23:00:00+01:00": "2026-11-24T02:00:00Z",
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Next(at).Format(time.RFC3339); got != want {
			t.Errorf("after %s comes %s, want %s", now, got, want)
		}
	}
	if notes := strings.Join(p.Notes(), "\n"); !strings.Contains(notes, "every 6h0m0s from 02:00 UTC on; a copy is in force 1h0m0s after its time") {
		t.Errorf("notes: %s", notes)
	}
}
