// Package kit is what the tests of the whole program share: dpproxy itself, built once and run as a process;
// connections to it of which every frame is seen; the fixture, a thousand people with a policy over them, and its
// neighbour without number 7; the lab, a pair of proxies over both; stand-ins, which have one defence switched off and
// in which a test must find what is wrong. Only tests import it.
package kit

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/service"
)

// asStandIn makes the test binary behave as a stand-in, so that tests start, kill and restart a real process.
const asStandIn = "DPPROXY_TEST_AS"

// StandIn serves something in dpproxy's place until ctx ends: the name it was started by, the path of a policy, or "".
type StandIn func(ctx context.Context, name, path string, listening func(net.Addr)) error

// Main runs the tests of a package, or what this process was started as. A stand-in is found by its name up to a colon.
func Main(m *testing.M, standIns map[string]StandIn) int {
	service.ChildMain() // what serves within a test begins with a self-test
	if name := os.Getenv(asStandIn); name != "" {
		return stand(name, standIns)
	}
	// Tests that run at the same time wait for their processes more than they compute; the flag -parallel says
	// otherwise.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	code := pgtest.Main(m)
	if built.remove != "" {
		_ = os.RemoveAll(built.remove) // the system's own directory for what may be lost
	}
	return code
}

func stand(name string, standIns map[string]StandIn) int {
	kind, _, _ := strings.Cut(name, ":")
	serve, path := standIns[kind], ""
	if serve == nil {
		fmt.Fprintf(os.Stderr, "no stand-in is called %q\n", name)
		return 1
	}
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	err := serve(context.Background(), name, path, func(a net.Addr) { fmt.Fprintf(os.Stderr, "msg=listening address=%s\n", a) })
	fmt.Fprintln(os.Stderr, err)
	return 1
}
