package derived

import (
	"encoding/binary"
	"slices"
)

// ClassRun are neighbouring combinations of cells that belong to one class, −1 to none.
type ClassRun struct {
	Length int
	Class  int32
}

// IsIdentity reports whether each is a class of its own, in order.
func IsIdentity(class []int32) bool {
	for i, c := range class {
		if int(c) != i {
			return false
		}
	}
	return true
}

// encodeRuns writes runs as encodeClasses does.
func encodeRuns(b []byte, runs []ClassRun) []byte {
	if !slices.ContainsFunc(runs, func(r ClassRun) bool { return r.Length > 1 }) {
		class := make([]int32, len(runs))
		for i, r := range runs {
			class[i] = r.Class
		}
		if IsIdentity(class) {
			return append(b, 'i')
		}
	}
	b = append(b, 'r')
	for _, r := range runs {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.Length)), uint64(r.Class+1))
	}
	return b
}
