package policy

import (
	"fmt"
	"slices"
	"testing"
)

// TestByKind: lines that differ in names of the policy and in numbers are of one kind; others are not.
func TestByKind(t *testing.T) {
	d := &Dataset{ID: "data"}
	for _, name := range []string{"a", "b", "c"} {
		table := &Table{Dataset: d, Name: name, Source: Source{Schema: "public", Name: name + "_2"}, UnitColumn: "who"}
		table.Columns = []*Column{{Table: table, Name: "Größe", Source: "size"}}
		table.Keys = []*Column{{Table: table, Name: "id", Source: "id"}}
		d.Tables = append(d.Tables, table)
	}
	p := &Policy{Datasets: []*Dataset{d}}
	got := p.byKind([]string{"table a: keeps the first 10", "table b: keeps the last", "table b_2: keeps the first 30",
		"table c: (id) is unique", "table a: (id, size) is unique", "column b.Größe: any text",
		"column c.size: any text", "table x: keeps the first 1"})
	want := [][]string{
		{"table a: keeps the first 10", "table b_2: keeps the first 30"}, {"table b: keeps the last"},
		{"table c: (id) is unique", "table a: (id, size) is unique"},
		{"column b.Größe: any text", "column c.size: any text"}, {"table x: keeps the first 1"},
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got\n%s", fmt.Sprintf("%q", got))
	}
	few := []string{"table a: x", "table b: y", "table b: x", "table c: x"}
	if got := p.Summary(few); !slices.Equal(got, []string{"table a: x", "table b: x", "table c: x", "table b: y"}) {
		t.Errorf("got %q", got)
	}
	many := append(few, "table a_2: x")
	if got := p.Summary(many); !slices.Equal(got, []string{"table a: x (and 3 more of this kind)", "table b: y"}) {
		t.Errorf("got %q", got)
	}
}
