package policy

import (
	"fmt"
	"strings"
	"testing"
)

// TestUniqueKeys: names and lists of names, of join keys, columns with a domain and the columns that lead to units; the
// unit's own column is left out.
func TestUniqueKeys(t *testing.T) {
	const at = "        max_rows_per_unit: 10\n"
	with := func(unique string) string {
		text := strings.Replace(base(t), at, at+"        unique: "+unique+"\n", 1)
		return text
	}
	for unique, want := range map[string]string{
		"[at]":                  "[[at]]",
		"[[at, person_id], at]": "[[at] [at]]",
	} {
		if got := fmt.Sprint(parsed(t, with(unique)).Dataset("census").Table("", "visits").Unique); got != want {
			t.Errorf("%s: %s, must be %s", unique, got, want)
		}
	}
	for unique, want := range map[string]string{
		"[nosuch]":    `no column "nosuch" with keys: join or a domain`,
		"[[at, at]]":  `"at" is given twice`,
		"[person_id]": "must name a column beside the unit's",
		"[[]]":        "must name a column beside the unit's",
		"at":          "must be a list",
	} {
		if _, err := Parse([]byte(with(unique)), "policy.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, must say %s", unique, err, want)
		}
	}
}

// TestRule3OrderOfRows: what decides which of a unit's rows are counted is part of a table's meaning, where units have
// rows.
func TestRule3OrderOfRows(t *testing.T) {
	one := fingerprint(t, base(t), "visits")
	if !strings.Contains(string(one), `"order" "`+RowOrder+`" "false"`) {
		t.Errorf("no order in\n%s", one)
	}
	other := fingerprint(t, strings.Replace(base(t), "key: people.person_id}", "key: people.person_id, type: bigint}", 1), "visits")
	if string(one) == string(other) {
		t.Error("units that are whole numbers are ordered as others are")
	}
}
