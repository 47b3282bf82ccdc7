package execute

import (
	"github.com/dpproxy/dpproxy/rewrite"
)

// Form is one text that a query may run as.
type Form struct {
	SQL  string
	Args []any
}

// FormOf is the text of a query, or a shorter one of it.
func FormOf(q interface {
	SQL() string
	Args() []any
}) Form {
	return Form{q.SQL(), q.Args()}
}

// Shortest is the text of a query and its arguments, the shortest of those whose needs are proven.
func Shortest(query rewrite.Query, proven func(rewrite.Shorter) bool) Form {
	for _, s := range query.Proven() {
		if proven(s) {
			return FormOf(s)
		}
	}
	return FormOf(query)
}
