package plans

// SQL tells neighbouring pieces of a column apart by comparisons with their first values, by halves, and by a division
// where many of them have one length: of (closed - opened) / 86400, which is rounded toward zero, those below 0 and
// those above, and the one around it, which is twice as long, by itself.

const (
	maxCompared = 64 // so many pieces are found by comparisons, which read no cell
	leastEven   = 16 // of more, so many of one length are found by a division
)

// EvenRun is one piece, or neighbouring ones of one length, of which the last may be shorter.
type EvenRun struct {
	From   int // number of the first piece
	Length int // 0: one piece
}

// EvenRuns parts pieces, of which the first cells are given, into runs. The last piece ends below cells.
func EvenRuns(starts []int, cells int) (runs []EvenRun) {
	for from := 0; from < len(starts); {
		length, to := evenRun(starts, cells, from)
		if len(starts) <= maxCompared || to-from < leastEven {
			length, to = 0, from+1
		}
		runs, from = append(runs, EvenRun{from, length}), to
	}
	return runs
}

// evenRun is the length of the pieces from one on to below another.
func evenRun(starts []int, cells, from int) (length, to int) {
	own := func(piece int) int {
		if piece+1 == len(starts) {
			return cells - starts[piece]
		}
		return starts[piece+1] - starts[piece]
	}
	length, to = own(from), from+1
	for to < len(starts) && own(to) == length {
		to++
	}
	if to < len(starts) && own(to) < length {
		to++
	}
	return length, to
}

// Divisor is the greatest number that divides both.
func Divisor[T int | int64](a, b T) T {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
