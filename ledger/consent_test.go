package ledger

import (
	"strings"
	"testing"
)

// TestReadOnlyAdoptTries: a ledger that is opened for reading takes and refuses the policies that it takes and refuses
// when it is opened for writing, and is as it was.
func TestReadOnlyAdoptTries(t *testing.T) {
	url := place(t)
	f := open(t, url, Options{})
	adopt(t, f, census())
	buy(t, f, "alice", item(1, eps(1)), 7) // which binds the relation to the dataset
	look := open(t, url, Options{ReadOnly: true})
	if err := look.Adopt(ctx, terms(census(), survey())); err != nil {
		t.Errorf("one more dataset: %v", err)
	}
	taken := survey()
	taken.Relations = census().Relations
	if err := look.Adopt(ctx, terms(taken)); err == nil || !strings.Contains(err.Error(), "belongs to dataset") {
		t.Errorf("another dataset over the same relations: %v", err)
	}
	if err := f.Adopt(ctx, terms(taken)); err == nil || !strings.Contains(err.Error(), "belongs to dataset") {
		t.Errorf("opened for writing: %v", err)
	}
	if _, known := f.book.find("survey"); known {
		t.Error("what was tried is written")
	}
}
