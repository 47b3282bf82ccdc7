package synthetic

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sort"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// MaxSampled is the largest number of rows that are drawn.
const MaxSampled = 1 << 26

// Rows draws rows, as numbers of their cells, in the proportions of a released database. It is post-processing: nothing
// more is paid for, however many rows. The same bytes of random give the same rows; for a fixed seed use a stream
// cipher keyed with it.
func Rows(d privacy.Released[Database], rows int, random io.Reader) (privacy.Released[[]int32], error) {
	var none privacy.Released[[]int32]
	if !d.Valid() {
		return none, errors.New("database was never released")
	}
	if rows < 1 || rows > MaxSampled {
		return none, fmt.Errorf("number of rows is %d, must be from 1 to %d", rows, MaxSampled)
	}
	cells := d.Value().Cells
	sums := make([]float64, len(cells))
	total := 0.0
	for i, c := range cells {
		if !(c >= 0) || math.IsInf(c, 0) {
			return none, fmt.Errorf("cell %d is %g, must be at least 0", i, c)
		}
		total += c
		sums[i] = total
	}
	if !(total > 0) {
		return none, errors.New("database has no rows")
	}
	reader := noise.NewReader(random)
	sampled := make([]int32, rows)
	for i := range sampled {
		at := float64(reader.Below(1<<53)) * 0x1p-53 * total
		sampled[i] = int32(min(sort.Search(len(sums), func(j int) bool { return sums[j] > at }), len(sums)-1))
	}
	if err := reader.Err(); err != nil {
		return none, err
	}
	return privacy.PostProcess(d, func(Database) []int32 { return sampled }), nil
}
