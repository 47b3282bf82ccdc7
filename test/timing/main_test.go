// Package timing measures what the time of an answer, of a deadline and of a cancel tells of the rows. Beside other
// work it would see less: `make test` runs it when everything else has ended. Those of its tests that wait for a
// deadline, a grid or a cancel request wait beside one another (kit.Beside); those whose questions run beside one
// another have the machine to themselves.
package timing

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m, nil)) }
