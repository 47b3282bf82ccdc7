package truth

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
