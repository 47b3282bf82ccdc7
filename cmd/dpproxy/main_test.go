package main

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) {
	os.Exit(kit.Main(m, map[string]kit.StandIn{"deaf": deafServer}))
}
