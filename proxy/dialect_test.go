package proxy

import (
	"context"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
)

// speaks has a policy in force under which alice writes a dialect.
func (b *bench) speaks(t *testing.T, dialect string) {
	p := testPolicy(t)
	p.Users[0].Settings = map[string]string{"dialect": dialect}
	b.policy.Store(p)
}

// TestDialectOfThePolicyInForce: a statement is read in the dialect of the policy that it is planned under: also the
// first one after a change, and the rest of a message in the middle of which the policy changes.
func TestDialectOfThePolicyInForce(t *testing.T) {
	b := start(t)
	columns := standardFixtures()["select 1"].columns
	rows := func(context.Context, *pipeline.Session, []policy.Value) ([][]policy.Value, error) {
		return numbers(1), nil
	}
	b.pipeline.fixtures["select 'a' as x"] = fixture{columns: columns, answer: rows}
	b.pipeline.fixtures["select 'change'"] = fixture{columns: columns,
		answer: func(context.Context, *pipeline.Session, []policy.Value) ([][]policy.Value, error) {
			b.speaks(t, "mysql")
			return numbers(1), nil
		}}
	const backticks = "select 'a' as `x`" // no PostgreSQL
	r := b.raw(t)
	r.play("before", []step{one(query(backticks), "E(42601) Z(I)")})
	b.speaks(t, "mysql")
	r.play("the first statement after a change", []step{one(query(backticks), "T1 D C(SELECT 1) Z(I)")})
	b.speaks(t, "postgres")
	r.play("a Parse after a change", []step{many("E(42601) Z(I)", parseMessage("s", backticks), syncs)})
	r.play("the policy changes in the middle of a message", []step{one(query(`select 'change'; select "a" as x`), "T1 D C(SELECT 1) T1 D C(SELECT 1) Z(I)")})
	r.play("prepared", []step{many("1 2 T1 D C(SELECT 1) Z(I)", parseMessage("s", backticks), bind("", "s"), describing('P', ""), execute("", 0), syncs)})
	b.speaks(t, "postgres")
	r.play("it stays in the dialect that it was prepared in", []step{many("2 T1 D C(SELECT 1) Z(I)", bind("", "s"), describing('P', ""), execute("", 0), syncs)})
}
