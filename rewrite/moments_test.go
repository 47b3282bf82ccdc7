package rewrite_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// moments has every second place of a statement that names a private table read it as it is in another moment: in
// schema later.
func moments(sql string) string {
	n := 0
	return regexp.MustCompile(`"clinic"\."[a-z]+"`).ReplaceAllStringFunc(sql, func(name string) string {
		if n++; n%2 == 0 {
			return strings.Replace(name, "clinic", "later", 1)
		}
		return name
	})
}

// TestMomentsDoNotMatter: what the SQL for Citus counts moves by at most what the plan claims where each place that
// names a table reads it in a moment of its own (docs/adr/0150). On one PostgreSQL two schemas are two moments,
// in which everybody has other rows; neighbours lack one person in both.
func TestMomentsDoNotMatter(t *testing.T) {
	t.Parallel()
	const seed = 150
	t.Logf("seed %d", seed)
	tables := slices.Clone(neighbourTables)
	for _, text := range neighbourTables {
		tables = append(tables, strings.Replace(text, "clinic", "later", 1))
	}
	conn := postgresConn(t, tables)
	run := postgresQueries(conn)
	load := func(script string) {
		if _, err := conn.PgConn().Exec(t.Context(), script).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	unbounded := fault{name: "a FULL JOIN counts on one moment", claimed: 1, sql: func(s string) string {
		return moments(regexp.MustCompile(`v\d+\.r <= \d+`).ReplaceAllString(s, "true"))
	}}
	soundly := fault{name: "none", claimed: 1, sql: moments}
	p := variants(t, dialect.Citus)["add-remove"]
	of := func(statements []string) []measured { // tables whose units are found through another's key are refused there
		return slices.DeleteFunc(alone(measures(t, p, dialect.Citus, statements, privacy.MicroEpsilon(100_000))), func(m measured) bool { return len(m.query.Required()) > 0 })
	}
	found, planted, full := worst{}, worst{}, of(fullStatements)
	every := of(slices.Concat(joinStatements, viewStatements, lookupStatements, matchStatements, usingStatements, sumStatements, moreStatements, unitStatements, windowStatements, tiedStatements, unionStatements, listStatements, listedStatements, jointStatements, fullStatements))
	r := rand.New(rand.NewPCG(seed, 1))
	rounds := stattest.Length(24, 600)
	for round := range rounds {
		list := full
		if round%24 == 0 {
			list = every
		}
		var with, without [2]tuples // of each moment
		for at := range with {
			with[at], without[at] = nobody(r, 6), tuples{}
			for id := range 4 {
				with[at].add(person(r, id, 6, true))
			}
			without[at].add(with[at])
			own := person(r, 4, 14, false)
			if round%4 > 0 { // much in one table, and nothing in another
				own = crowd(r, 4, 14)
				for _, table := range []string{"people", "visits", "calls", "buys"} {
					if r.IntN(3) == 0 {
						delete(own, table)
					}
				}
			}
			with[at].add(own)
		}
		var observed [2][2][][]int64 // by fault and side
		for side, rows := range [2][2]tuples{with, without} {
			load(rows[0].script(r) + ";\n" + strings.ReplaceAll(rows[1].script(r), "clinic.", "later."))
			for _, m := range list {
				for i, f := range []fault{soundly, unbounded} {
					observed[i][side] = append(observed[i][side], m.observed(t, m.groups(t, run, f, false)))
				}
			}
		}
		for k, m := range list {
			for i, into := range []worst{found, planted} {
				l1, l2 := m.shares(observed[i][0][k], observed[i][1][k], soundly)
				into[m.statement] = max(into[m.statement], l1, l2)
			}
		}
	}
	caught := 0
	for s, share := range planted {
		if share > 1 {
			caught++
		}
		if found[s] > 1 {
			t.Errorf("%s\nmoves by %.3f times its claim", s, found[s])
		}
	}
	if t.Logf("%d statements, %d pairs of histories in two moments; without the bound of FULL JOINs %d move by more than they claim", len(found), rounds, caught); caught == 0 {
		t.Error("no statement counts on one moment: the test shows nothing")
	}
}
