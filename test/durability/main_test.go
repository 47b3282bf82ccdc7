// Package durability tests what dpproxy holds to when something ends or fails: processes that are killed, power cuts,
// full disks, flushes that fail, databases and sandboxes that go away, ledgers that several proxies share, policies
// that change while it runs. The proxy is the program itself, as a process.
package durability

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) {
	os.Exit(kit.OnDisk(m, map[string]kit.StandIn{"late-charge": lateCharging}))
}
