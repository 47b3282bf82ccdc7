package proxy

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

// TestRowsAreOfTheColumnsThatWereTold: a client that was sent a statement's columns once, and reads the rows of all its
// portals by them (asyncpg, pgjdbc), gets none of other columns: with dp.error_columns on it would take n_low for the
// sum. It gets the error by which it prepares again, and nothing is asked for it.
func TestRowsAreOfTheColumnsThatWereTold(t *testing.T) {
	b := start(t)
	b.pipeline.fixtures["select n, a from people"] = fixture{bounds: true, columns: []sandbox.Column{column("n", policy.Int8), column("a", policy.Int8)},
		answer: func(_ context.Context, s *pipeline.Session, _ []policy.Value) ([][]policy.Value, error) {
			if s.Settings.ErrorColumns {
				return [][]policy.Value{{int64(1), int64(0), int64(7), int64(6)}}, nil
			}
			return [][]policy.Value{{int64(1), int64(7)}}, nil
		}}
	r := b.raw(t)
	bindFormats := func(formats ...int16) pgproto3.FrontendMessage {
		return &pgproto3.Bind{PreparedStatement: "s", ResultFormatCodes: formats}
	}
	r.play("statement told", []step{
		many("1 t[] T2 Z(I)", parseMessage("s", "select n, a from people"), describing('S', "s"), syncs),
		many("2 D C(SELECT 1) Z(I)", bind("", "s"), execute("", 0), syncs),
		one(query("set dp.error_columns = on"), "C(SET) Z(I)"),
		many("2 E(0A000) Z(I)", bind("", "s"), execute("", 0), syncs),
		many("E(0A000) Z(I)", bindFormats(1, 1), execute("", 0), syncs),
		many("E(08P01) Z(I)", bindFormats(1, 1, 1), execute("", 0), syncs),
		many("2 T4 D C(SELECT 1) Z(I)", bind("", "s"), describing('P', ""), execute("", 0), syncs),
		many("2 D C(SELECT 1) Z(I)", bind("", "s"), execute("", 0), syncs), // as the portal before it was described
		one(query("set dp.error_columns = off"), "C(SET) Z(I)"),
		many("2 E(0A000) Z(I)", bind("", "s"), execute("", 0), syncs),
		many("t[] T2 2 D C(SELECT 1) Z(I)", describing('S', "s"), bind("", "s"), execute("", 0), syncs),
	})
	asked := b.pipeline.answers.Load()
	r.play("portal told", []step{
		one(query("begin"), "C(BEGIN) Z(T)"),
		many("2 T2 Z(T)", bind("p", "s"), describing('P', "p"), syncs),
		one(query("set dp.error_columns = on"), "C(SET) Z(T)"),
		many("E(0A000) Z(E)", execute("p", 0), syncs),
		one(query("rollback"), "C(ROLLBACK) Z(I)"),
	})
	if got := b.pipeline.answers.Load(); got != asked {
		t.Error("a portal whose columns were no longer those that were told was asked, and paid, before it was refused")
	}
}

// TestStatementsOfOneText: statements that are prepared of one text have types of parameters of their own, within
// DECLARE and EXPLAIN too.
func TestStatementsOfOneText(t *testing.T) {
	for within, c := range map[string]struct{ text, told string }{
		"SELECT":  {"select $1 as x", "2 D C(SELECT 1) Z(I)"},
		"DECLARE": {"declare c cursor with hold for select $1 as x", "2 C(DECLARE CURSOR) Z(I)"},
		"EXPLAIN": {"explain select $1 as x", "2 D C(SELECT 1) Z(I)"},
	} {
		t.Run(within, func(t *testing.T) {
			b := start(t)
			f := fixture{params: []policy.Type{policy.Text}, columns: []sandbox.Column{column("x", policy.Text)}, rows: [][]policy.Value{{"3"}}}
			b.pipeline.fixtures["select $1 as x"], b.pipeline.fixtures["explain select $1 as x"] = f, f
			b.raw(t).play(within, []step{
				many("1 1 Z(I)", parseMessage("int", c.text, uint32(policy.Int4)), parseMessage("text", c.text, uint32(policy.Text)), syncs),
				many(c.told, bind("", "int", "3"), execute("", 0), syncs),
			})
			b.pipeline.mu.Lock()
			defer b.pipeline.mu.Unlock()
			if want := []policy.Type{policy.Int4}; !slices.Equal(b.pipeline.types, want) {
				t.Errorf("asked with types %v, prepared with %v", b.pipeline.types, want)
			}
		})
	}
}
