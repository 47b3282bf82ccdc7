package truth

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/sandbox/embedded"
)

func TestMain(m *testing.M) {
	embedded.ChildMain()
	os.Exit(pgtest.Main(m))
}
