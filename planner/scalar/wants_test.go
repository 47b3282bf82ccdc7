package scalar

import (
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

func TestWants(t *testing.T) {
	for _, c := range []struct {
		name     string
		in, want []policy.Type
	}{
		{"width_bucket", []policy.Type{policy.NumericType, policy.Unknown, policy.Unknown, policy.Unknown}, []policy.Type{policy.NumericType, policy.NumericType, policy.NumericType, policy.Int4}},
		{"left", []policy.Type{policy.Text, policy.Unknown}, []policy.Type{policy.Text, policy.Int4}},
		{"*", []policy.Type{policy.Unknown, policy.NumericType}, []policy.Type{policy.NumericType, policy.NumericType}},
		{"-", []policy.Type{policy.DateType, policy.Unknown}, []policy.Type{policy.DateType, policy.DateType}},
		{"||", []policy.Type{1007, policy.Unknown}, []policy.Type{1007, 1007}},
		{"||", []policy.Type{policy.Unknown, policy.Int4}, []policy.Type{policy.Text, policy.Int4}},
		{"=", []policy.Type{policy.Varchar, policy.Unknown}, []policy.Type{policy.Text, policy.Text}},
		{"lag", []policy.Type{policy.Int2, policy.Unknown, policy.Unknown}, []policy.Type{policy.Int2, policy.Int4, policy.Int2}},
		{"array_append", []policy.Type{1182, policy.Unknown}, []policy.Type{1182, policy.DateType}},
		{"array_append", []policy.Type{1007, policy.Text}, nil},
		{"make_interval", []policy.Type{policy.Unknown, policy.Unknown}, []policy.Type{policy.Int4, policy.Int4}},
		{"percentile_disc", []policy.Type{policy.Unknown, policy.Int4}, []policy.Type{policy.Float8, policy.Int4}},
		{"concat", []policy.Type{policy.Unknown, policy.Int4}, []policy.Type{policy.Unknown, policy.Unknown}},
		{"nofunction", []policy.Type{policy.Unknown}, nil},
	} {
		if got := (Env{}).Wants(c.name, c.in...); !slices.Equal(got, c.want) {
			t.Errorf("%s%v: %v, want %v", c.name, c.in, got, c.want)
		}
	}
}

// TestWordsThatAreNoDate: a word that no date begins with is no date, as in PostgreSQL, and no form of one that is not
// supported.
func TestWordsThatAreNoDate(t *testing.T) {
	for _, text := range []string{"soon", "x", "never"} {
		_, err := Env{}.ParseText(policy.DateType, text)
		if fault, ok := err.(*Error); !ok || fault.SQLState != "22007" {
			t.Errorf("%s: %v", text, err)
		}
	}
}
