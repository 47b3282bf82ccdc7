package twin_test

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m)) }
