package twin

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// TestLongerValues: the value "other" of a column of two letters reaches the engine whole, or it would be another's.
func TestLongerValues(t *testing.T) {
	for _, typ := range []policy.Type{policy.Bpchar, policy.Varchar} {
		column := sandbox.Column{Name: "country", Type: typ, Typmod: policy.CharTypmod(2)}
		for value, length := range map[string]string{"ot": "(2)", "ö1": "(2)", "other": ""} {
			c := composer{}
			c.table("leaf", sandbox.Rows{Columns: []sandbox.Column{column},
				Data: [][]policy.Value{{"at"}, {nil}, {value}}})
			if text := c.parts[0]; strings.Contains(text, "(2)") != (length != "") {
				t.Errorf("%s with %s: %s", typ.Name(), value, text)
			}
		}
	}
}
