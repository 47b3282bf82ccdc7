// Package engines holds one suite of questions against every engine that private rows may lie in (`go test
// ./test/engines`, `-run 'TestConformance/Spark'` for one): the whole program, over the same rows, asked the same
// questions of each shape of leaf, must answer what plain PostgreSQL does; one more person with hostile rows must
// change nothing but what is noised. What each engine supports, proves and refuses is the matrix of docs/engines.md,
// which `-update` writes.
package engines

import (
	"os"
	"testing"

	"github.com/dpproxy/dpproxy/backend/mariadbtest"
	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) { os.Exit(sparktest.Main(mariadbtest.Main(kit.Main(m, nil)))) }
