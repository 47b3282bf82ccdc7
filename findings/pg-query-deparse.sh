#!/usr/bin/env bash
# github.com/pganalyze/pg_query_go/v6 v6.2.5 (Go module; libpg_query): the printer of parse trees leaves out parentheses.
#
# Expected: what is printed is parsed to the same tree.
# Seen: an operand that binds weaker than the construct it stands in loses its parentheses where that construct is BETWEEN,
# AT TIME ZONE or LIKE: the text is another expression, or none; all other operators keep theirs.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > main.go <<'EOF'
package main

import (
	"fmt"
	"os"

	pg "github.com/pganalyze/pg_query_go/v6"
)

func main() {
	changed := false
	for _, c := range []struct{ query, seen string }{
		{"SELECT a BETWEEN b AND (c OR d)", "SELECT a BETWEEN b AND c OR d"},
		{"SELECT a AT TIME ZONE (b || c)", "SELECT a AT TIME ZONE b || c"},
		{"SELECT (a LIKE b) LIKE c", "SELECT a LIKE b LIKE c"},
		{"SELECT a - (b - c)", "SELECT a - (b - c)"},
	} {
		tree, err := pg.Parse(c.query)
		if err != nil {
			panic(err)
		}
		text, err := pg.Deparse(tree)
		if err != nil {
			panic(err)
		}
		_, err = pg.Parse(text)
		fmt.Printf("%s\n  printed: %s, parsed again: %v\n", c.query, text, err)
		changed = changed || text != c.seen
	}
	if changed {
		fmt.Println("changed")
		os.Exit(1)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/pganalyze/pg_query_go/v6@v6.2.5 2>/dev/null
go run .
