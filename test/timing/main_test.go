// Package timing measures what the time of an answer, of a deadline and of a cancel tells of the rows. Beside other work it
// would see less: `make test` runs it when everything else has ended.
package timing

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m, nil)) }
