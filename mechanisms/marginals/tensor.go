package marginals

// number is what tensors are made of.
type number interface{ ~int64 | ~float64 }

// along applies f to every line of a tensor along one axis and returns the tensor whose axis has the given length. f
// gets a line and fills the new one; both are used again.
func along[T number](cells []T, shape []int, axis, length int, f func(line, to []T)) []T {
	inner := 1
	for _, n := range shape[axis+1:] {
		inner *= n
	}
	size := shape[axis]
	outer := len(cells) / (inner * size)
	out := make([]T, outer*length*inner)
	line, to := make([]T, size), make([]T, length)
	for o := range outer {
		for i := range inner {
			at := o*size*inner + i
			for j := range line {
				line[j] = cells[at+j*inner]
			}
			f(line, to)
			at = o*length*inner + i
			for j, v := range to {
				out[at+j*inner] = v
			}
		}
	}
	return out
}

func sum[T number](line []T) T {
	s := T(0)
	for _, v := range line {
		s += v
	}
	return s
}

// reduced sums the marginal on from down to the one on to, a subset.
func reduced[T number](d Domain, cells []T, from, to Set) []T {
	shape := d.shape(from)
	for i, a := range from.Attributes() {
		if to.Has(a) {
			continue
		}
		cells = along(cells, shape, i, 1, func(line, out []T) { out[0] = sum(line) })
		shape[i] = 1
	}
	return cells
}

// An axis of n cells is seen through a frame of rows: integer vectors b of sum 0 with Σ b·bᵀ = scale·P, P being the
// projection onto the vectors of sum 0. Two cells: the one row (1, −1), scale 2. More: the n rows n·e_j − 1, scale n².
func frameRows(n int) int {
	if n == 2 {
		return 1
	}
	return n
}

func frameScale(n float64) float64 {
	if n == 2 {
		return 2
	}
	return n * n
}

// frame fills to with the sum of the line and its rows.
func frame[T number](line, to []T) {
	to[0] = sum(line)
	if len(line) == 2 {
		to[1] = line[0] - line[1]
		return
	}
	for j, v := range line {
		to[1+j] = T(len(line))*v - to[0]
	}
}

// unframe reads the rows of a frame as residual coordinates: the first n−1 entries of Σ b·y / scale.
func unframe(rows, to []float64) {
	if len(rows) == 1 {
		to[0] = rows[0] / 2
		return
	}
	n := float64(len(rows))
	mean := sum(rows) / n
	for j := range to {
		to[j] = (rows[j] - mean) / n
	}
}

// split fills to with the sum of the line and the first n−1 of its differences from the mean.
func split(line, to []float64) {
	to[0] = sum(line)
	for j := range to[1:] {
		to[1+j] = line[j] - to[0]/float64(len(line))
	}
}

// join undoes split.
func join(parts, to []float64) {
	mean, rest := parts[0]/float64(len(parts)), 0.0
	for j, r := range parts[1:] {
		to[j] = mean + r
		rest += r
	}
	to[len(to)-1] = mean - rest
}

// block calls f with the positions, in a tensor of the given shape, of the entries whose index is 0 on the axes outside
// of inside and at least 1 on those in it, in order.
func block(shape []int, inside []bool, f func(at int)) {
	var walk func(axis, at int)
	walk = func(axis, at int) {
		if axis == len(shape) {
			f(at)
			return
		}
		from, to := 0, 1
		if inside[axis] {
			from, to = 1, shape[axis]
		}
		for j := from; j < to; j++ {
			walk(axis+1, at*shape[axis]+j)
		}
	}
	walk(0, 0)
}

// inside tells for each attribute of s whether it is in a.
func inside(s, a Set) []bool {
	list := make([]bool, 0, 8)
	for _, i := range s.Attributes() {
		list = append(list, a.Has(i))
	}
	return list
}

// unframed returns the coordinates of the residual on s whose rows are given.
func (d Domain) unframed(s Set, rows []float64) []float64 {
	shape := d.shape(s)
	rowsShape := make([]int, len(shape))
	for i, n := range shape {
		rowsShape[i] = frameRows(n)
	}
	for axis, n := range shape {
		rows = along(rows, rowsShape, axis, n-1, unframe)
		rowsShape[axis] = n - 1
	}
	return rows
}

// splitAll splits a marginal on s along all of its attributes.
func (d Domain) splitAll(s Set, cells []float64) []float64 {
	shape := d.shape(s)
	for axis, n := range shape {
		cells = along(cells, shape, axis, n, split)
	}
	return cells
}

// residualOf returns the coordinates of residual a of a marginal on s that splitAll has split.
func (d Domain) residualOf(s, a Set, cells []float64) []float64 {
	list := []float64{}
	block(d.shape(s), inside(s, a), func(at int) { list = append(list, cells[at]) })
	return list
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, x := range a {
		s += x * b[i]
	}
	return s
}
