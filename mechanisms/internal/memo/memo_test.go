package memo

import (
	"errors"
	"testing"
)

// TestMapIsBounded: an analyst who asks at one cost after another does not fill the memory.
func TestMapIsBounded(t *testing.T) {
	m := Map[int, int]{Most: 10}
	for n := range 100 {
		if v := m.Of(n, 1+n%2, func() int { return 2 * n }); v != 2*n {
			t.Fatalf("%d of %d", v, n)
		}
		if v, ok := m.Load(n); !ok || v != 2*n {
			t.Fatal("what was just found is not remembered")
		}
		if v, err := m.Try(n, 1, func() (int, error) { return 0, errors.New("asked again") }); err != nil || v != 2*n {
			t.Fatal(v, err)
		}
		size := 0
		for k := range m.known {
			size += 1 + k%2
		}
		if size > m.Most || size != m.size {
			t.Fatalf("a size of %d is remembered, counted as %d, must be at most %d", size, m.size, m.Most)
		}
	}
	if _, err := m.Try(-1, 1, func() (int, error) { return 0, errors.New("none") }); err == nil {
		t.Error("no error")
	}
	if _, ok := m.Load(-1); ok {
		t.Error("an error is remembered")
	}
}
