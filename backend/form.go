package backend

import (
	"github.com/dpproxy/dpproxy/rewrite"
)

// form is one text that a query may run as.
type form struct {
	sql  string
	args []any
}

// shortest is the text of a query and its arguments, the shortest of those whose needs are proven.
func shortest(query rewrite.Query, proven func(rewrite.Shorter) bool) form {
	for _, s := range query.Proven() {
		if proven(s) {
			return form{s.SQL(), s.Args()}
		}
	}
	return form{query.SQL(), query.Args()}
}
