package answers

import (
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestWiderAnswersAreThoseOfPlainSQL: sums of coalesce, sub-queries that are values of public tables, sub-queries that
// are counted for each private row, keys that are NULL: what TPC-DS asks, of a database of which PostgreSQL's answers
// are known too.
func TestWiderAnswersAreThoseOfPlainSQL(t *testing.T) {
	kit.Beside(t)
	fresh, direct := plainFixture(t)
	answersOf(t, fresh, direct, "testdata/wider.sql")
}

// TestChannelsAreThoseOfPlainSQL: what is looked up in public tables and added up beside other columns, FULL JOIN, set
// operations of several columns along the unit, and UNION ALL of what is looked up.
func TestChannelsAreThoseOfPlainSQL(t *testing.T) {
	kit.Beside(t)
	fresh, direct := plainFixture(t)
	answersOf(t, fresh, direct, "testdata/channels.sql")
}
