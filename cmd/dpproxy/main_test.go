package main

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) {
	parserChild() // what serves within a test begins with a self-test
	os.Exit(kit.Main(m, map[string]kit.StandIn{"deaf": deafServer, "dies": serveUntil}))
}
