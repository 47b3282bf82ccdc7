package linear

import (
	"encoding/binary"
	"strconv"

	"github.com/dpproxy/dpproxy/mechanisms"
)

// Marginals is how an ask of several grouping sets is measured: not its cells, but the sets' own tables, or what they
// have in common and where they differ, all at once. Then every set is read from all that is measured, and they add up.
type Marginals struct {
	Strategy mechanisms.Strategy
	Sets     [][]int             // by wanted set: the factors that its keys are decided by
	Rows     [][]mechanisms.Span // of all sets: the cells of each row
	Of       []int               // by row: its set
	Gain     float64             // how many times the error by sets alone is
}

// encode writes which sets the marginals are for; how they are observed is the spec's.
func (m *Marginals) encode(b []byte) []byte {
	b = binary.AppendUvarint(append(b, 'm'), uint64(len(m.Sets)))
	for _, own := range m.Sets {
		b = binary.AppendUvarint(b, uint64(len(own)))
		for _, i := range own {
			b = binary.AppendUvarint(b, uint64(i))
		}
	}
	return b
}

// Why says what is gained.
func (m *Marginals) Why() string {
	return "the grouping sets are measured at once: the mean squared error is that of asking set by set at this price, divided by " + strconv.FormatFloat(m.Gain, 'f', 2, 64)
}
