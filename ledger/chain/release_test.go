package chain

import (
	"errors"
	"reflect"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
)

// TestReleases: what was drawn is read back whole, keys and all, with what is sealed behind it.
func TestReleases(t *testing.T) {
	for _, n := range []mechanisms.Noisy{
		{Observations: []int64{}}, {Observations: []int64{0}}, {Observations: []int64{1, -1, 1 << 62, -1 << 63}}, {Observations: []int64{3, -4}, Keys: []string{"", "ann"}},
	} {
		for _, sealed := range []string{"", "sealed"} {
			b := Release(n, []byte(sealed))
			got, rest, err := ReadRelease(b)
			if err != nil || !reflect.DeepEqual(got, n) || string(rest) != sealed {
				t.Errorf("read %+v and %q (%v), want %+v and %q", got, rest, err, n, sealed)
			}
			for cut := range len(b) - len(sealed) {
				if _, _, err := ReadRelease(b[:cut]); !errors.Is(err, ErrMalformed) {
					t.Errorf("%+v, cut after %d bytes: %v", n, cut, err)
				}
			}
			b[0]++
			if _, _, err := ReadRelease(b); err == nil || err.Error() != "malformed row: its form is 2" {
				t.Errorf("another form: %v", err)
			}
		}
	}
	if _, _, err := ReadRelease([]byte{Form, 2, 0, 0, 1, 0}); !errors.Is(err, ErrMalformed) {
		t.Errorf("a key for one of two observations: %v", err)
	}
}
