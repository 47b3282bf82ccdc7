package online

import "math/bits"

// candidates are the small databases that agree with the hard answers: how many rows each has in each cell.
type candidates struct {
	cells, size int
	rows        []uint8 // by candidate, by cell
	alive       []int32
}

// enumerate lists all multisets of size cells.
func enumerate(cells, size int) *candidates {
	c := &candidates{cells: cells, size: size}
	current := make([]uint8, cells)
	var fill func(cell, left int)
	fill = func(cell, left int) {
		if cell == cells-1 {
			current[cell] = uint8(left)
			c.alive = append(c.alive, int32(len(c.alive)))
			c.rows = append(c.rows, current...)
			return
		}
		for n := 0; n <= left; n++ {
			current[cell] = uint8(n)
			fill(cell+1, left-n)
		}
	}
	fill(0, size)
	return c
}

// count returns a candidate's rows within q.
func (c *candidates) count(q Query, candidate int32) int {
	rows, n := c.rows[int(candidate)*c.cells:], 0
	for w, word := range q.bits {
		for ; word != 0; word &= word - 1 {
			n += int(rows[w*64+bits.TrailingZeros64(word)])
		}
	}
	return n
}

// histogram returns how many living candidates have 0, …, size rows within q.
func (c *candidates) histogram(q Query) []int64 {
	held := make([]int64, c.size+1)
	for _, a := range c.alive {
		held[c.count(q, a)]++
	}
	return held
}

// keep drops the candidates whose count within q does not agree.
func (c *candidates) keep(q Query, agrees func(rows int) bool) {
	fits := make([]bool, c.size+1)
	for rows := range fits {
		fits[rows] = agrees(rows)
	}
	alive := c.alive[:0]
	for _, a := range c.alive {
		if fits[c.count(q, a)] {
			alive = append(alive, a)
		}
	}
	c.alive = alive
}

func (c *candidates) left() int { return len(c.alive) }
