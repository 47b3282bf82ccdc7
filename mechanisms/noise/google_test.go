package noise

import (
	"testing"

	google "github.com/google/differential-privacy/go/v3/noise"
)

// BenchmarkGoogle: the same work by another library.
func BenchmarkGoogle(b *testing.B) {
	g := google.Laplace()
	for b.Loop() {
		if _, err := g.AddNoiseInt64(0, 1, 1, 1, 0); err != nil {
			b.Fatal(err)
		}
	}
}
