package scalar

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/policy"
)

// operands are one NULL of each type and an untyped one.
func operands() []string {
	out := []string{"NULL"}
	for name := range testTypes {
		out = append(out, "NULL::"+name)
	}
	slices.Sort(out)
	return out
}

// resolution is the type that a server or this package gives an expression of NULLs, or the error.
func (s *server) resolution(sql string) string {
	results, err := s.conn.Exec(context.Background(), "SELECT "+sql).ReadAll()
	if pgErr, ok := err.(*pgconn.PgError); ok {
		return pgErr.Code + " " + pgErr.Message
	}
	if err != nil {
		return err.Error()
	}
	return loadCatalog().typeName(policy.Type(results[0].FieldDescriptions[0].DataTypeOID))
}

func (s *server) checkResolution(t *testing.T, sql string) (refused bool) {
	got := ""
	e, err := compile(s.env, sql)
	if err != nil {
		failure := outcomeOf(err)
		if failure.state == stateUnsupported {
			return true
		}
		got = failure.state + " " + failure.message
	} else if got = loadCatalog().typeName(e.Type()); e.Type() == policy.Unknown {
		got = "text"
	}
	if want := s.resolution(sql); got != want {
		t.Errorf("%s\n\tgot %s, want %s", sql, got, want)
	}
	return false
}

// TestOperatorResolution compares the types, and the words of the errors, of every operator over every pair of types.
func TestOperatorResolution(t *testing.T) {
	s := newServer(t)
	refused, all := 0, 0
	count := func(r bool) {
		all++
		if r {
			refused++
		}
	}
	for name := range loadCatalog().operators {
		for _, a := range operands() {
			count(s.checkResolution(t, name+" "+a))
			for _, b := range operands() {
				count(s.checkResolution(t, a+" "+name+" "+b))
			}
		}
	}
	t.Logf("%d resolved, %d refused", all, refused)
}

// TestFunctionResolution does so for functions, with random arguments.
func TestFunctionResolution(t *testing.T) {
	s := newServer(t)
	const seed = 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var names []string
	for name := range loadCatalog().functions {
		// The grammar has words of its own for these.
		if !slices.Contains([]string{"position", "substring", "extract", "interval", "timestamp", "numeric", "varchar"}, name) {
			names = append(names, name)
		}
	}
	names = append(names, "coalesce", "greatest", "least", "nullif", "no_such_function")
	slices.Sort(names)
	all := operands()
	refused := 0
	for range 6000 {
		name := names[rng.IntN(len(names))]
		args := make([]string, rng.IntN(4))
		for i := range args {
			args[i] = all[rng.IntN(len(all))]
		}
		if name == "nullif" && len(args) != 2 || len(args) == 0 && (name == "coalesce" || name == "greatest" || name == "least") {
			continue
		}
		if s.checkResolution(t, name+"("+strings.Join(args, ", ")+")") {
			refused++
		}
	}
	t.Logf("%d refused", refused)
}

// TestUnification compares the common types of CASE and IN, and all casts.
func TestUnification(t *testing.T) {
	s := newServer(t)
	refused := 0
	for _, a := range operands() {
		for name := range testTypes {
			if s.checkResolution(t, "("+a+")::"+name) {
				refused++
			}
		}
		for _, b := range operands() {
			for _, sql := range []string{"CASE WHEN true THEN " + a + " ELSE " + b + " END",
				"CASE " + a + " WHEN " + b + " THEN 1 END", a + " IN (" + b + ", NULL)", a + " IS DISTINCT FROM " + b,
				"NOT " + a, a + " AND true", a + " IS TRUE"} {
				if s.checkResolution(t, sql) {
					refused++
				}
			}
		}
	}
	t.Logf("%d refused", refused)
}
