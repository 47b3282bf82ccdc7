package sandbox

import (
	"context"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

// Missing is an engine that could not be had: it refuses every query and says why. What needs no engine is answered.
func Missing(why error) Engine {
	return missing{&scalar.Error{SQLState: "0A000", Message: "this statement needs the sandbox, which is missing: " + why.Error()}}
}

type missing struct{ refusal *scalar.Error }

func (m missing) Catalog(context.Context, *policy.Policy) error { return nil }

func (m missing) Load(context.Context, string, ...Table) error { return nil }

func (m missing) Query(context.Context, Session, outer.Query, []Table) (privacy.Released[Rows], error) {
	return privacy.Released[Rows]{}, m.refusal
}

func (m missing) Describe(context.Context, Session, outer.Query, []Table) (Description, error) {
	return Description{}, m.refusal
}

func (m missing) Numbers(string) pgcatalog.Numbers { return nil }

func (m missing) Slots() int { return 1 }

func (m missing) Close() error { return nil }
