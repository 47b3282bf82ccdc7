package policy

import (
	"bytes"
	"strings"
	"testing"
)

func fingerprint(t *testing.T, text, table string) []byte {
	t.Helper()
	return parsed(t, text).Dataset("census").Table("", table).Fingerprint()
}

// TestRule3SameMeaningSameFingerprint: spelling, order, comments, budgets and releases mean nothing.
func TestRule3SameMeaningSameFingerprint(t *testing.T) {
	want := fingerprint(t, base(t), "people")
	age := "          - {name: age, type: integer, domain: {min: 0, max: 119, step: 1}, outside: clamp}\n"
	sex := "          - {name: sex, type: text, domain: {values: [Female, Male]}, outside: other}\n"
	for _, edit := range [][]string{
		{age + sex, sex + age},
		{"{name: age, type: integer, domain: {min: 0, max: 119, step: 1}, outside: clamp}", `{outside: clamp, type: int4, name: "age", nulls: cell, source: age, domain: {step: 1, max: 119, min: 0}, comment: years}`},
		{"max: 200000, step: 1000}", "max: 200000.00, step: 1000.0}"},
		{"domain: {values: [Female, Male]}, outside: other", "domain: {values: [Female, Male]}"},
		{"source: public.people", "source: people"},
		{"cap: {epsilon: 20", "cap: {epsilon: 30"},
		{"accountant: pure", "accountant: zcdp"},
		{"expected_rows: 500000", "expected_rows: 1"},
		{"{kind: range, columns: [age], epsilon: 0.5}", "{kind: range, columns: [age], epsilon: 0.25, name: ages}"},
		{"- name: people", "- name: public.people"},
		{"step: 1 day", "step: 1 days"},
		{"max_rows_per_unit: 10", "max_rows_per_unit: 20"}, // of another table
	} {
		text := strings.Replace(base(t), edit[0], edit[1], 1)
		if text == base(t) {
			t.Errorf("edit %q changes nothing", edit[0])
		}
		if got := fingerprint(t, text, "people"); !bytes.Equal(got, want) {
			t.Errorf("%q to %q changes the fingerprint:\n%s", edit[0], edit[1], got)
		}
	}
}

// TestRule3OtherMeaningOtherFingerprint: each change gives a fingerprint of its own.
func TestRule3OtherMeaningOtherFingerprint(t *testing.T) {
	seen := map[string]string{string(fingerprint(t, base(t), "people")): "base"}
	for _, edit := range [][]string{
		{"source: public.people", "source: archive.people"},
		{"source: public.people", "source: public.persons"},
		{"people.person_id}", "people.household_id}", "visits.person_id = people.person_id", "visits.person_id = people.household_id"},
		{"neighbors: add-remove", "neighbors: replace-one\n    units: 9"},
		{"max_rows_per_unit: 1\n", "max_rows_per_unit: 2\n"},
		{"max_rows_per_unit: 1\n", "max_groups_per_unit: 1\n        max_rows_per_group: 1\n"},
		{"{name: age,", "{name: age, source: years,"},
		{"{name: age, type: integer", "{name: age, type: bigint"},
		{"min: 0, max: 119", "min: 1, max: 119"},
		{"min: 0, max: 119", "min: 0, max: 120"},
		{"max: 119, step: 1", "max: 119, step: 2"},
		{"outside: clamp", "outside: exclude"},
		{"outside: clamp", "outside: other"},
		{"outside: clamp}", "outside: clamp, nulls: exclude}"},
		{"[Female, Male]", "[Male, Female]"},
		{"[Female, Male]", `["Female Male"]`},
		{"[Female, Male]", "[Female, Male, other]"},
		{"{name: income, type: numeric", `{name: income, type: "numeric(12,2)"`},
		{"{name: active, type: boolean}", "{name: active, type: boolean, nulls: exclude}"},
		{"          - {name: active, type: boolean}\n", ""},
		{"{name: active, type: boolean}", "{name: alive, type: boolean}"},
	} {
		text := strings.NewReplacer(edit...).Replace(base(t))
		got := string(fingerprint(t, text, "people"))
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q have one fingerprint", edit, other)
		}
		seen[got] = edit[0] + " to " + edit[1]
	}
	if bytes.Equal(fingerprint(t, base(t), "people"), fingerprint(t, base(t), "visits")) {
		t.Error("two tables have one fingerprint")
	}
}

// TestRule3FingerprintNamesJoinKeys: derived tables name join keys by the policy's names, so keys that change places do
// not keep a fingerprint.
func TestRule3FingerprintNamesJoinKeys(t *testing.T) {
	keys := func(a, b string) string {
		at := "          - {name: active, type: boolean}\n"
		return strings.Replace(base(t), at, at+"          - {name: first, source: "+a+", type: integer, keys: join}\n          - {name: second, source: "+b+", type: integer, keys: join}\n", 1)
	}
	one, other := fingerprint(t, keys("x", "y"), "people"), fingerprint(t, keys("y", "x"), "people")
	if bytes.Equal(one, other) {
		t.Errorf("one fingerprint:\n%s", one)
	}
}

// TestFingerprintFile: another file behind a name is another source.
func TestFingerprintFile(t *testing.T) {
	row := "version: 1\nbackend: {url: \"duckdb:\", files: {p: FILE}}\ndatasets:\n  - {id: census, unit: row, accountant: pure, cap: {epsilon: 1}, budgets: {\"*\": {epsilon: 1}}, tables: [{name: p, columns: [{name: x, type: boolean}]}]}\n"
	a := fingerprint(t, strings.Replace(row, "FILE", "a.csv", 1), "p")
	b := fingerprint(t, strings.Replace(row, "FILE", "b.csv", 1), "p")
	again := fingerprint(t, strings.Replace(row, "FILE", "./x/../a.csv", 1), "p")
	if bytes.Equal(a, b) || !bytes.Equal(a, again) {
		t.Errorf("a:\n%sb:\n%sa again:\n%s", a, b, again)
	}
}
