package audits

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestStatedErrorCoversTruth reads the NOTICE's half-width and holds 400 fresh counts against the truth of the fixture.
// Discrete noise covers at least the stated 95 %; fewer than 90 % inside has a probability below 10⁻⁴ (binomial tail).
// The exact figures are tested in package mechanisms.
func TestStatedErrorCoversTruth(t *testing.T) {
	kit.Beside(t)
	w := kit.Serve(t, kit.Keyed(t, kit.DuckDB(t, kit.Budgets{User: "1000", Cap: "1000"}, 0))).Connect("alice", "lab")
	width := regexp.MustCompile(`error ±(\d+)`)
	inside, asked := 0, 0
	for age := 20; age < 30; age++ {
		for thousand := 1; thousand <= 40; thousand++ {
			a := w.Ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE age >= %d AND income < %d`, age, 1000*thousand))
			m := width.FindStringSubmatch(strings.Join(a.Notes, "\n"))
			if m == nil {
				t.Fatalf("no error in %q (%v)", a.Notes, a.Err)
			}
			half, _ := strconv.Atoi(m[1])
			truth := 0
			for i := 1; i <= 1000; i++ {
				if 18+i%60 >= age && i%90 < thousand {
					truth++
				}
			}
			if d := kit.Count(t, a) - truth; d <= half && d >= -half {
				inside++
			}
			asked++
		}
	}
	if inside < asked*90/100 {
		t.Errorf("%d of %d answers within the stated error", inside, asked)
	}
	t.Logf("%d of %d answers within the stated error at 95 %%", inside, asked)
}
