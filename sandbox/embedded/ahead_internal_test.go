package embedded

import (
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// TestFurnishedAhead: children have the public tables of a dataset before anybody asks, the last copy of them, and a copy of one dataset's
// tables leaves another's as they are.
func TestFurnishedAhead(t *testing.T) {
	ctx := t.Context()
	started, err := Start(ctx, sandbox.Options{Children: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer started.Close()
	e := started.(*engine)
	if err := e.Catalog(ctx, &policy.Policy{Datasets: []*policy.Dataset{{ID: "shop"}, {ID: "clinic"}}}); err != nil {
		t.Fatal(err)
	}
	table := func(name string) sandbox.Table {
		return sandbox.Table{Schema: "public", Name: name, Rows: privacy.Published(sandbox.Rows{
			Columns: []sandbox.Column{{Name: "id", Type: policy.Int4, Typmod: -1}}, Data: [][]policy.Value{{int64(1)}, {int64(2)}}})}
	}
	furnished := func(dataset string) (children int) {
		e.mu.Lock()
		version := max(e.versions[dataset], e.catalog)
		e.mu.Unlock()
		var taken []*child
		for range e.options.Children {
			c := <-e.idle
			if have, holds := c.holds[dataset]; holds && have == version {
				children++
			}
			taken = append(taken, c)
		}
		for _, c := range taken {
			e.idle <- c
		}
		return children
	}
	for _, given := range []struct {
		dataset string
		tables  []sandbox.Table
	}{{"shop", []sandbox.Table{table("parts"), table("suppliers")}}, {"clinic", []sandbox.Table{table("wards")}}, {"shop", []sandbox.Table{table("parts")}}} {
		if err := e.Load(ctx, given.dataset, given.tables...); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); furnished(given.dataset) < 2; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d of 2 children hold its tables", given.dataset, furnished(given.dataset))
			}
		}
	}
	if n := furnished("clinic"); n != 2 {
		t.Errorf("a copy of the shop's tables took the clinic's from %d of 2 children", 2-n)
	}
}
