package sandbox_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// chars are values of chars of several lengths, and of none.
var chars = []string{"'abc'::char(5)", "'ab '::char(3)", "''::char(2)", "'Äb'::char(3)", "'a b'::bpchar", "'ab  '::bpchar", "'12'::char(4)"}

// TestDrawnChars holds chars in the place of texts against a server: in every function and operator that its catalog lists of them, and in every cast.
func TestDrawnChars(t *testing.T) {
	kinds := slices.Sorted(maps.Keys(edges))
	edges["bpchar"] = chars
	defer delete(edges, "bpchar")
	d := newDrawing(t, uint64(fromEnv(t, "DPPROXY_SEED", 178)+2), "UTC")
	draws := fromEnv(t, "DPPROXY_DRAWS", 2)
	for _, c := range d.catalog() {
		for i, kind := range c.Args {
			if kind != "text" && kind != "bpchar" {
				continue
			}
			own := callable{Kind: c.Kind, Name: c.Name, Args: slices.Clone(c.Args)}
			own.Args[i] = "bpchar"
			for range draws {
				if query := d.call(own); strings.Contains(query, "char") {
					d.hold(c.Kind+" "+c.Name, query)
				}
			}
		}
	}
	for _, char := range chars {
		for _, kind := range kinds {
			d.hold("cast to "+kind, "SELECT ("+char+")::"+kind)
			d.hold("cast of "+kind, "SELECT ("+d.argument("", 0, kind)+")::"+d.one([]string{"char(3)", "bpchar", "char(12)"}))
		}
	}
	total := tally{}
	for _, what := range d.asked {
		total.equal, total.refused, total.faults, total.states = total.equal+what.equal, total.refused+what.refused, total.faults+what.faults, total.states+what.states
	}
	t.Logf("%d statements: %d equal, %d refused, %d errors of another number, %d differ", d.calls, total.equal, total.refused, total.states, total.faults)
}
