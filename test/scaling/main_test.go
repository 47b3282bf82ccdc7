// Package scaling holds the model of docs/scaling.md against a running dpproxy: what sessions, charges, releases and
// datasets take by how many there are.
package scaling

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m, nil)) }
