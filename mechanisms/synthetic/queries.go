// Package synthetic releases a made-up database that answers many counting queries nearly as the true one does. Small
// chooses one of few rows (Blum, Ligett, Roth 2008: the small database mechanism); Weights fits a distribution to noisy
// answers of the queries that it gets most wrong (Hardt, Ligett, McSherry 2012: MWEM). Rows are then drawn from either.
//
// Where the universe fits into memory, releasing one noisy count a cell and adding up is nearly always better; the
// tests print both. What these two give is rows, and one cost however many the queries.
package synthetic

import "fmt"

// The largest problems, and what true cells and answers are cut at: no sum of cells overflows.
const (
	MaxCells   = 1 << 20
	MaxQueries = 1 << 20
	maxMembers = 1 << 28 // of all queries together
	maxCell    = 1 << 40
	maxAnswer  = 1 << 50
	maxRows    = 1 << 40
)

// Queries are counting queries on cells: each counts the rows in some of them. The zero value is invalid.
type Queries struct {
	cells   int
	members [][]int32 // rising
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
		if total += len(cellsOf); total > maxMembers {
			return Queries{}, fmt.Errorf("queries have more than %d cells together", maxMembers)
		}
	}
	q := Queries{cells: cells, members: make([][]int32, len(members))}
	for i, cellsOf := range members {
		q.members[i] = append([]int32(nil), cellsOf...)
	}
	return q, nil
}

func checkSize(cells, queries int) error {
	if cells < 1 || cells > MaxCells {
		return fmt.Errorf("number of cells is %d, must be from 1 to %d", cells, MaxCells)
	}
	if queries < 1 || queries > MaxQueries {
		return fmt.Errorf("number of queries is %d, must be from 1 to %d", queries, MaxQueries)
	}
	return nil
}

// Len returns the number of queries.
func (q Queries) Len() int { return len(q.members) }

// Cells returns the number of cells.
func (q Queries) Cells() int { return q.cells }

// truth returns every query's answer on true cells: a negative cell counts as 0, cells are cut at maxCell, answers at
// maxAnswer, cells beyond the universe ignored. None of it moves two answers further apart, so a unit with R rows moves
// an answer by at most R.
func (q Queries) truth(cells []int64) []int64 {
	kept := q.kept(cells)
	answers := make([]int64, q.Len())
	for i, members := range q.members {
		for _, c := range members {
			answers[i] += kept[c]
		}
	}
	for i, a := range answers {
		answers[i] = min(a, maxAnswer)
	}
	return answers
}

func (q Queries) kept(cells []int64) []int64 {
	kept := make([]int64, q.cells)
	for i := range min(len(cells), q.cells) {
		kept[i] = min(max(cells[i], 0), maxCell)
	}
	return kept
}

func (q Queries) answers(cells, into []float64) []float64 {
	for i := range q.members {
		into[i] = q.answer(i, cells)
	}
	return into
}

// answer returns one query's answer on released cells.
func (q Queries) answer(i int, cells []float64) float64 {
	sum := 0.0
	for _, c := range q.members[i] {
		sum += cells[c]
	}
	return sum
}

// scale multiplies the cells of a query by inside, the others by outside, each to least or more.
func (q Queries) scale(i int, cells []float64, inside, outside, least float64) {
	next := 0
	for c := range cells {
		if next < len(q.members[i]) && int(q.members[i][next]) == c {
			cells[c] = max(cells[c]*inside, least)
			next++
		} else {
			cells[c] = max(cells[c]*outside, least)
		}
	}
}
