#!/usr/bin/env bash
# github.com/sqlc-dev/marino v0.3.1 (Go module, MySQL's grammar): what Restore prints is another statement.
#
# Expected: what is printed of a tree is parsed to the same tree, or Restore returns an error.
# Seen: MOD(a + b, 2) is printed as a+b%2, and 3 * MOD(a, b) as 3*a%b: % binds as * does, so MOD(10 - 3, 4), which is 3,
# becomes 10-3%4, which is 7. Of WITH around a SELECT in parentheses with a WITH of its own the inner one is lost; with
# a LIMIT behind it is printed twice, which is no SQL. COUNT(*), a DIV (b DIV c) and (NOT a) IS NULL stay what they are.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > main.go <<'EOF'
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/sqlc-dev/marino/format"
	"github.com/sqlc-dev/marino/parser"
)

func print(query string) (string, error) {
	tree, err := parser.New().ParseOneStmt(query, "", "")
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = tree.Restore(format.NewRestoreCtx(format.DefaultRestoreFlags, &text))
	return strings.ReplaceAll(text.String(), "`", ""), err
}

func main() {
	changed := false
	for _, c := range []struct {
		query, seen string
		parsed      bool
	}{
		{"SELECT MOD(a + b, 2)", "SELECT a+b%2", true},
		{"SELECT MOD(a, b + c)", "SELECT a%b+c", true},
		{"SELECT 3 * MOD(a, b)", "SELECT 3*a%b", true},
		{"SELECT MOD(10 - 3, 4)", "SELECT 10-3%4", true},
		{"WITH t AS (SELECT 1 AS x) (WITH t AS (SELECT 2 AS x) SELECT x FROM t)",
			"WITH t AS (SELECT 1 AS x) (SELECT x FROM t)", true},
		{"(WITH t AS (SELECT 2 AS x) SELECT x FROM t) LIMIT 1",
			"(WITH t AS (SELECT 2 AS x) WITH t AS (SELECT 2 AS x) SELECT x FROM t) LIMIT 1", false},
		{"SELECT a DIV (b DIV c)", "SELECT a DIV (b DIV c)", true},
		{"SELECT (NOT a) IS NULL", "SELECT (NOT a) IS NULL", true},
	} {
		text, err := print(c.query)
		if err != nil {
			panic(err)
		}
		_, err = print(text)
		fmt.Printf("%s\n    %s, parsed again: %t\n", c.query, text, err == nil)
		changed = changed || text != c.seen || (err == nil) != c.parsed
	}
	if changed {
		fmt.Println("changed")
		os.Exit(1)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/sqlc-dev/marino@v0.3.1 2>/dev/null
go mod tidy 2>/dev/null
go run .
