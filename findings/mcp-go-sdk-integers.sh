#!/usr/bin/env bash
# github.com/modelcontextprotocol/go-sdk v1.8.0 (Go module): whole numbers of a typed tool's arguments.
#
# Expected: a tool whose argument is an int64 is given the number that was sent, and a number within int64 is no error.
# Seen: above 2^53 the handler is given the nearest double, though the raw arguments hold every digit; the largest int64 is
# rounded beyond its type and refused; the structured answer that the client sees is a double besides. Nothing says so.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > main.go <<'EOF'
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type number struct {
	N int64 `json:"n"`
}

func main() {
	ctx := context.Background()
	var given int64
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	same := func(_ context.Context, _ *mcp.CallToolRequest, in number) (*mcp.CallToolResult, number, error) {
		given = in.N
		return nil, in, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "same", Description: "returns its number"}, same)
	near, far := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, near, nil); err != nil {
		panic(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(ctx, far, nil)
	if err != nil {
		panic(err)
	}
	changed := false
	for _, c := range []struct {
		sent, given int64
		refused     bool
	}{
		{7, 7, false},
		{1<<53 + 1, 1 << 53, false},
		{1<<62 + 1, 4611686018427388000, false},
		{1<<63 - 1, 0, true},
	} {
		given = 0
		answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "same", Arguments: map[string]any{"n": c.sent}})
		refused := err != nil || answer.IsError
		fmt.Printf("sent %d: the handler is given %d; refused: %v\n", c.sent, given, refused)
		changed = changed || given != c.given || refused != c.refused
	}
	if changed {
		fmt.Println("changed")
		os.Exit(1)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/modelcontextprotocol/go-sdk@v1.8.0 2>/dev/null
go get ./... 2>/dev/null
go run .
