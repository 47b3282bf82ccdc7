package are_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/rewrite/are"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// drawn draws a pattern.
func drawn(rng *rand.Rand, depth int, groups *int) string {
	atom := func() string {
		if depth <= 0 || rng.IntN(3) == 0 {
			return []string{"a", "b", "c", ".", "[ab]", "[^a]", "ab", `\w`, `\d`, "[[:alpha:]]", "ä", `\.`, "[b-z]", ""}[rng.IntN(14)]
		}
		switch rng.IntN(12) {
		case 0, 1, 2, 3, 4:
			*groups++
			return "(" + drawn(rng, depth-1, groups) + ")"
		case 5, 6:
			return "(?:" + drawn(rng, depth-1, groups) + ")"
		case 7:
			return []string{"(?=", "(?!", "(?<=", "(?<!"}[rng.IntN(4)] + drawn(rng, 0, groups) + ")"
		case 8:
			return []string{"^", "$", `\m`, `\M`, `\y`, `\Y`, `\A`, `\Z`, "[[:<:]]", "[[:>:]]"}[rng.IntN(10)]
		case 9:
			if *groups > 0 {
				return `\` + strconv.Itoa(1+rng.IntN(*groups))
			}
		}
		return "(?:a|" + drawn(rng, depth-1, groups) + ")"
	}
	var branches []string
	for range 1 + rng.IntN(2)*rng.IntN(2) {
		branch := ""
		for range 1 + rng.IntN(3) {
			branch += atom() + []string{"", "", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,1}?", "{2,}", "{2}?", "{0}"}[rng.IntN(16)]
		}
		branches = append(branches, branch)
	}
	return strings.Join(branches, "|")
}

// TestDrawnPatternsAgainstPostgreSQL: of drawn patterns and texts, what the groups find is what a server says, or is refused.
func TestDrawnPatternsAgainstPostgreSQL(t *testing.T) {
	server := pgtest.Shared(t)
	server.Exec(t, "postgres", "CREATE DATABASE patterns TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'")
	conn, err := pgx.Connect(context.Background(), server.URLFor("postgres", "patterns"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	seed, count := uint64(179), 4000
	if text := os.Getenv("DPPROXY_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d, %d patterns", seed, count)
	rng := rand.New(rand.NewPCG(seed, 1))
	equal, refused, differ := 0, 0, 0
	for range count {
		groups := 0
		pattern := drawn(rng, 3, &groups)
		text := ""
		for range rng.IntN(9) {
			text += []string{"a", "b", "c", "ab", "ä", " ", "7", "\n", "B"}[rng.IntN(9)]
		}
		flags := []string{"", "", "", "i", "n", "p", "w", "x"}[rng.IntN(8)]
		var want []*string
		err := conn.QueryRow(context.Background(), "SELECT regexp_match($1, $2, $3)", text, pattern, flags).Scan(&want)
		shown := ""
		var fault *pgconn.PgError
		switch {
		case errors.As(err, &fault):
			shown = "error " + fault.Code
		case err != nil:
			t.Fatal(err)
		default:
			shown = list(want)
		}
		got := matched(t, text, pattern, flags)
		switch {
		case got == "refused":
			refused++
		case got != shown:
			if differ++; differ < 20 {
				t.Errorf("regexp_match(%q, '%s', '%s') is %s, want %s", text, pattern, flags, got, shown)
			}
		default:
			equal++
		}
	}
	t.Logf("%d equal, %d refused, %d differ", equal, refused, differ)
	if refused > count/8 {
		t.Errorf("%d of %d patterns are refused", refused, count)
	}
}

func list(parts []*string) string {
	if parts == nil {
		return "NULL"
	}
	var out []string
	for _, p := range parts {
		if p == nil {
			out = append(out, "NULL")
		} else {
			out = append(out, strconv.Quote(*p))
		}
	}
	return strings.Join(out, ",")
}

// matched is regexp_match by this package.
func matched(t *testing.T, text, pattern, flags string) string {
	t.Helper()
	f, err := are.ParseFlags(flags)
	if err != nil {
		t.Fatal(err)
	}
	e, err := are.Compile(pattern, f)
	var found []are.Span
	if err == nil {
		found, err = e.In(text).Find(0)
	}
	switch {
	case errors.Is(err, are.ErrInvalid):
		return "error 2201B"
	case err != nil:
		return "refused"
	}
	runes := []rune(text)
	var parts []*string
	for g := min(1, e.Groups()); g <= e.Groups() && found != nil; g++ {
		if s := found[g]; s.Start >= 0 {
			part := string(runes[s.Start:s.End])
			parts = append(parts, &part)
		} else {
			parts = append(parts, nil)
		}
	}
	return list(parts)
}

// TestMatchingIsBounded: nested repetition over a long text ends soon, with an answer or a refusal.
func TestMatchingIsBounded(t *testing.T) {
	f, _ := are.ParseFlags("")
	for _, pattern := range []string{"(a*)*b", "(a|aa)+$", "(.*)(.*)(.*)(.*)x", `(a*)\\1\\1b`, "((a?){200}){200}", "(?:(?:a{255}){255}){255}"} {
		e, err := are.Compile(pattern, f)
		if err != nil {
			continue
		}
		if _, err := e.In(strings.Repeat("a", 5000)).Find(0); err != nil && !errors.Is(err, are.ErrWork) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}
