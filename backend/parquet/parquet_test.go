package parquet

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzBare: whatever is where a file's metadata should be, no more memory is taken than it has bytes, and nothing
// panics.
func FuzzBare(f *testing.F) {
	for _, seed := range [][]byte{nil, {0}, {0x15, 2, 0x19, 0x1c, 0x48, 1, 'x', 0x15, 0, 0, 0}, {0x29, 0xfc, 0xff, 0xff, 3}, {0x2c, 0x1c, 0x1c, 0x1c}} {
		f.Add(seed)
	}
	if data, err := os.ReadFile(filepath.Join("testdata", "decimals.parquet")); err == nil {
		f.Add(data[4 : len(data)-8])
	}
	f.Fuzz(func(t *testing.T, footer []byte) {
		out, kinds, err := withoutKinds(footer)
		if err != nil {
			return
		}
		again, none, err := withoutKinds(out)
		if err != nil || len(none) > 0 || len(again) != len(out) {
			t.Errorf("%v: %x became %x, and that %x: %v %v", kinds, footer, out, again, none, err)
		}
	})
}

// TestBareOfNothing: what is no file of Parquet is refused.
func TestBareOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, text := range []string{"", "PAR1", "PAR1\x00\x00\x00\x00PAR1", "PAR1\xff\xff\xff\xffPAR1", "PAR1\x00\x00\x00\x00PARE"} {
		from, to := filepath.Join(dir, "from"), filepath.Join(dir, string(rune('a'+i)))
		if err := os.WriteFile(from, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Bare(from, to); err == nil {
			t.Errorf("%q is taken for a file of Parquet", text)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%q: a file is left", text)
		}
	}
}
