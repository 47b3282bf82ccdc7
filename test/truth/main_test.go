package truth

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.ChildMain()
	os.Exit(pgtest.Main(m))
}
