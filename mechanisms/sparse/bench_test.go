package sparse

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// BenchmarkAsk: one question far below the threshold.
func BenchmarkAsk(b *testing.B) {
	i := opened(b, made(b, Spec{Positives: 10, Sensitivity: 1, Cost: epsilon(100_000)}), seeded(1))
	query := privacy.Seal[int64](-1 << 40)
	for b.Loop() {
		if _, err := i.Ask(query, 0); err != nil {
			b.Fatal(err)
		}
	}
}
