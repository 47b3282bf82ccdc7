package keys

import (
	"fmt"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// BenchmarkRelease: a million keys.
func BenchmarkRelease(b *testing.B) {
	counts := make([]Count, 1_000_000)
	for i := range counts {
		counts[i] = Count{fmt.Sprintf("key %d", i), int64(i % 100)}
	}
	truth := privacy.Seal(counts)
	for _, r := range []Rule{made(b, Truncated, has(1), pure(1e6, 1e12)), made(b, Gaussian, has(3), concentrated(5e11, 1e12))} {
		b.Run(r.Kind().String(), func(b *testing.B) {
			for b.Loop() {
				if _, err := r.Release(truth, seeded(1)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
