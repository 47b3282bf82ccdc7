// Package synthetic releases a made-up database that answers many counting queries nearly as the true one does. Small
// chooses one of few rows (Blum, Ligett, Roth 2008: the small database mechanism); Weights fits a distribution to noisy
// answers of the queries that it gets most wrong (Hardt, Ligett, McSherry 2012: MWEM). Rows are then drawn from either.
//
// Where the universe fits into memory, releasing one noisy count a cell and adding up is nearly always better; the tests
// print both. What these two give is rows, and one cost however many the queries.
package synthetic

import "fmt"

// The largest problems, and what true cells and answers are cut at: no sum of cells overflows.
const (
	MostCells   = 1 << 20
	MostQueries = 1 << 20
	mostMembers = 1 << 28 // of all queries together
	mostCell    = 1 << 40
	mostAnswer  = 1 << 50
	mostRows    = 1 << 40
)

// Queries are counting queries on cells: each counts the rows in some of them. The zero value is invalid.
type Queries struct {
	cells   int
	members [][]int32  // rising
	ranges  [][2]int32 // [from, to); instead of members
}

// NewQueries makes queries of lists of cells, each rising.
func NewQueries(cells int, members [][]int32) (Queries, error) {
	if err := checkSize(cells, len(members)); err != nil {
		return Queries{}, err
	}
	total := 0
	for i, cellsOf := range members {
		for j, c := range cellsOf {
			if c < 0 || int(c) >= cells || j > 0 && c <= cellsOf[j-1] {
				return Queries{}, fmt.Errorf("query %d has cell %d in place %d, must be rising and below %d", i, c, j, cells)
			}
		}
		if total += len(cellsOf); total > mostMembers {
			return Queries{}, fmt.Errorf("queries have more than %d cells together", mostMembers)
		}
	}
	q := Queries{cells: cells, members: make([][]int32, len(members))}
	for i, cellsOf := range members {
		q.members[i] = append([]int32(nil), cellsOf...)
	}
	return q, nil
}

// NewRanges makes queries of intervals [from, to) of cells.
func NewRanges(cells int, ranges [][2]int32) (Queries, error) {
	if err := checkSize(cells, len(ranges)); err != nil {
		return Queries{}, err
	}
	for i, r := range ranges {
		if r[0] < 0 || r[1] <= r[0] || int(r[1]) > cells {
			return Queries{}, fmt.Errorf("query %d is [%d, %d), must lie in [0, %d) and not be empty", i, r[0], r[1], cells)
		}
	}
	return Queries{cells: cells, ranges: append([][2]int32(nil), ranges...)}, nil
}

func checkSize(cells, queries int) error {
	if cells < 1 || cells > MostCells {
		return fmt.Errorf("number of cells is %d, must be from 1 to %d", cells, MostCells)
	}
	if queries < 1 || queries > MostQueries {
		return fmt.Errorf("number of queries is %d, must be from 1 to %d", queries, MostQueries)
	}
	return nil
}

// Len returns the number of queries.
func (q Queries) Len() int { return max(len(q.members), len(q.ranges)) }

// Cells returns the number of cells.
func (q Queries) Cells() int { return q.cells }

// truth returns every query's answer on true cells: a negative cell counts as 0, cells are cut at mostCell, answers at
// mostAnswer, cells beyond the universe ignored. None of it moves two answers further apart, so a unit with R rows moves
// an answer by at most R.
func (q Queries) truth(cells []int64) []int64 {
	kept := make([]int64, q.cells)
	for i := range min(len(cells), q.cells) {
		kept[i] = min(max(cells[i], 0), mostCell)
	}
	answers := make([]int64, q.Len())
	for i, members := range q.members {
		for _, c := range members {
			answers[i] += kept[c]
		}
	}
	if q.ranges != nil {
		prefix := make([]int64, q.cells+1)
		for i, c := range kept {
			prefix[i+1] = prefix[i] + c
		}
		for i, r := range q.ranges {
			answers[i] = prefix[r[1]] - prefix[r[0]]
		}
	}
	for i, a := range answers {
		answers[i] = min(a, mostAnswer)
	}
	return answers
}

// Answers returns every query's answer on released cells.
func (q Queries) Answers(cells []float64) ([]float64, error) {
	if len(cells) != q.cells || q.Len() == 0 {
		return nil, fmt.Errorf("number of cells is %d, must be %d", len(cells), q.cells)
	}
	return q.answers(cells, make([]float64, q.Len())), nil
}

func (q Queries) answers(cells, into []float64) []float64 {
	if q.ranges != nil {
		prefix := make([]float64, q.cells+1)
		for i, c := range cells {
			prefix[i+1] = prefix[i] + c
		}
		for i, r := range q.ranges {
			into[i] = prefix[r[1]] - prefix[r[0]]
		}
		return into
	}
	for i := range q.members {
		into[i] = q.answer(i, cells)
	}
	return into
}

// answer returns one query's answer on released cells.
func (q Queries) answer(i int, cells []float64) float64 {
	sum := 0.0
	if q.ranges != nil {
		for _, c := range cells[q.ranges[i][0]:q.ranges[i][1]] {
			sum += c
		}
		return sum
	}
	for _, c := range q.members[i] {
		sum += cells[c]
	}
	return sum
}

// scale multiplies the cells of a query by inside, the others by outside.
func (q Queries) scale(i int, cells []float64, inside, outside float64) {
	within := func(c int, factor float64) { cells[c] *= factor }
	if q.ranges != nil {
		for c := range cells {
			if c >= int(q.ranges[i][0]) && c < int(q.ranges[i][1]) {
				within(c, inside)
			} else {
				within(c, outside)
			}
		}
		return
	}
	next := 0
	for c := range cells {
		if next < len(q.members[i]) && int(q.members[i][next]) == c {
			within(c, inside)
			next++
		} else {
			within(c, outside)
		}
	}
}
