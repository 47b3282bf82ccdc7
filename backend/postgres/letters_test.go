package postgres

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// TestLetterFindings: check says where the database has other letters than C.UTF-8, and only where declared values have
// them.
func TestLetterFindings(t *testing.T) {
	for _, at := range []struct {
		ctype, value string
		told         bool
	}{
		{"C", "Zürich", true}, {"POSIX", "éa", true}, {"C", "Bern", false}, {"C", "100 €", false}, {"C.UTF-8", "Zürich", false}, {"de_DE.UTF-8", "Zürich", false},
		{"tr_TR.UTF-8", "Izmir", true}, {"tr_TR.UTF-8", "Zürch", false}, {"az_AZ", "bir", true},
	} {
		d := &policy.Dataset{Tables: []*policy.Table{{Name: "people", Columns: []*policy.Column{{Name: "age", Type: policy.Int4, Domain: &policy.Domain{}},
			{Name: "city", Type: policy.Text, Domain: &policy.Domain{Values: []string{"a", at.value}}}, {Name: "note", Type: policy.Text}}}}}
		list := letterFindings(at.ctype, d)
		if len(list) > 0 != at.told || at.told && (!list[0].Note || !strings.Contains(list[0].Text, "people.city")) {
			t.Errorf("%s, %s: %+v", at.ctype, at.value, list)
		}
	}
}
