package attacks

import (
	"math/rand"
	"os"
	"regexp"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// lexicalAttacks are texts that lexers disagree about: each carries the canary where a proxy that forwards text, or
// reads it otherwise than the database, would let it through.
var lexicalAttacks = []string{
	`SELECT count(*) FROM adult WHERE sex = 'canary\' AND race = ' OR 1=1 --'`, `SELECT count(*) FROM adult WHERE sex = E'canary\' OR 1=1 --'`,
	`SELECT U&"pg\005fsleep"(0) AS canary`, `SELECT count(*) FROM adult WHERE sex = $canary$x$canary$`, `SELECT /* /* canary */ */ count(*) FROM adult`,
	`SELECT count(*) AS "canary""; SELECT 1" FROM adult`, `SELECT count(*) FROM adult WHERE sex = U&'canary\0041'`, `SELECT count(*) -- canary
 FROM adult`, `SELECT count(*) FROM "Adult" canary`, `SELECT count(*) FROM adult canary WHERE canary.sex = 'Male'`,
	`SELECT count(*) FROM adult WHERE age > 0x1F OR sex = 'canary'`, `SELECT count(*) FROM adult WHERE sex = 'canary'; COMMIT; SELECT 1`,
	`SELECT count(*) FROM adult WHERE sex LIKE 'can\_ary%'`, `SELECT count(*) FROM adult WHERE sex IN ('Male', 'canary''; DROP TABLE adult; --')`,
	"SELECT count(*) FROM adult WHERE sex = 'can\u202eary'", "SELECT count(*) FROM \u0430dult -- canary", "SELECT count(*) FROM adult WHERE sex = 'canary\x01'",
	`SELECT count(*) FROM adult WHERE sex = B'1' OR sex = 'canary'`, `SELECT 'canary' AS x, count(*) FROM adult GROUP BY 'canary'::text`,
	`SELECT count(*) FILTER (WHERE sex = 'canary') FROM adult`, `SELECT CASE WHEN sex = 'canary' THEN 'canary' ELSE sex END, count(*) FROM adult GROUP BY 1`,
	`SELECT query_to_xml('select canary', true, true, '')`, `SELECT dblink('canary', 'select 1')`, `SELECT pg_read_file('/canary')`,
	`SET application_name = 'canary'`, `SET search_path = canary`, `PREPARE canary AS SELECT 1`, `COPY adult TO PROGRAM 'canary'`,
	`DO $$ BEGIN RAISE NOTICE 'canary'; END $$`, `SELECT count(*) FROM adult WHERE education_num::text || 'canary' = '9canary'`,
}

// TestT41ParserDifferential: whatever clients send, the private database's own log has nothing of it. The statements
// that are answered show that the log is read.
func TestT41ParserDifferential(t *testing.T) {
	kit.Beside(t)
	header, rows := kit.AdultRows(t, material.Path(t, "data", "adult.csv"))
	server, url := kit.RowsInPostgres(t, "adult", header, rows[:500])
	p := kit.Serve(t, kit.ExamplePolicy(t, "policy-postgres.yaml", "${DPPROXY_PG}", url))
	w := p.Connect("analyst", "census")
	answered := 0
	for _, sql := range lexicalAttacks {
		if a := w.Ask(sql); a.Err == nil {
			answered++
		}
	}
	w.Ask(`RESET search_path`)
	if a := w.Ask(`SELECT count(*) FROM adult WHERE fnlwgt > 123456`); a.Err != nil {
		t.Fatal(a.Err)
	}
	log, err := os.ReadFile(server.Log())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), "canary") {
		for _, line := range strings.Split(string(log), "\n") {
			if strings.Contains(line, "canary") {
				t.Error("the database saw: ", line)
			}
		}
	}
	if !strings.Contains(string(log), "123456") || answered == 0 {
		t.Errorf("the log shows no leaf: the test tested nothing (%d answered)", answered)
	}
}

// TestT41CatchesForwarding: the same look at the log sees a text that did reach the database.
func TestT41CatchesForwarding(t *testing.T) {
	kit.Beside(t)
	header, rows := kit.AdultRows(t, material.Path(t, "data", "adult.csv"))
	server, _ := kit.RowsInPostgres(t, "adult", header, rows[:10])
	server.Exec(t, "postgres", `SELECT 'canary'`)
	log, err := os.ReadFile(server.Log())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "canary") {
		t.Error("a forwarded text does not show in the log")
	}
}

// lexicalTricks change a text where lexers disagree; each keeps the canary, or adds one.
var lexicalTricks = []func(text string, random *rand.Rand) string{
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "'", "E'", 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "'", "U&'", 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "canary'", `canary\'`, 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "'canary'", "$$canary$$", 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "'canary'", "$q$canary'$q$", 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "'canary'", "'can'\n'ary canary'", 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, " ", "/*canary /* nested */ */", 1) },
	func(s string, _ *rand.Rand) string { return s + " -- canary" },
	func(s string, _ *rand.Rand) string { return s + "; SELECT 'canary'" },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "people", `"people"`, 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "people", `U&"p\0065ople"`, 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "people", "PEOPLE AS canary", 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "people", "pe\u043eple", 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "age", strings.Repeat("a", 64), 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "1", "1_000", 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "1", "0x1F", 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "=", "OPERATOR(pg_catalog.=)", 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, "=", "OPERATOR(canary.=)", 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, " ", "\u00a0", 1) },
	func(s string, _ *rand.Rand) string { return strings.Replace(s, " ", "\v\f\r\n", 1) },
	func(s string, r *rand.Rand) string { at := r.Intn(len(s)); return s[:at] + "\u202e" + s[at:] },
	func(s string, r *rand.Rand) string { at := r.Intn(len(s)); return s[:at] + "\\" + s[at:] },
	func(s string, r *rand.Rand) string { at := r.Intn(len(s)); return s[:at] + "'" + s[at:] },
	func(s string, r *rand.Rand) string { at := r.Intn(len(s)); return s[:at] + "\xc0\x27" + s[at:] },
	func(s string, r *rand.Rand) string { at := r.Intn(len(s)); return s[:at] + `"` + s[at:] },
	func(s string, r *rand.Rand) string { return s[:1+r.Intn(len(s)-1)] },
	func(s string, r *rand.Rand) string { at := r.Intn(len(s)); return s[:at] + "$1" + s[at:] },
}

// lexicalSeeds are what the tricks begin with.
func lexicalSeeds() (list []string) {
	people := strings.NewReplacer("adult", "people", "Adult", "People", "sex", "note", "race", "city", "education_num", "age", "fnlwgt", "income")
	for _, text := range lexicalAttacks {
		list = append(list, people.Replace(text))
	}
	return append(list, `SELECT count(*) FROM people WHERE note = 'canary' OR age > 1`, `SELECT city AS canary, count(*) FROM people GROUP BY city`, `SELECT count(*) FROM people WHERE age BETWEEN 21 AND 41 AND note <> 'canary'`,
		`SELECT count(*) FROM people WHERE income = 1000 OR note IN ('n1', 'canary')`)
}

// statementOf finds the statements in a server's log.
var statementOf = regexp.MustCompile(`(?s)LOG:  (?:statement|execute [^:]*): (.*?)(?:\nDETAIL:|\nLOG:|\nERROR:|$)`)

// TestT41Corpus: of 5,000 texts that lexers disagree about nothing reaches the database; what reaches it is generated,
// and PostgreSQL's own parser reads it as it was meant: printed from its tree and read again it is the same.
func TestT41Corpus(t *testing.T) {
	kit.Beside(t)
	const seed = 41
	t.Logf("seed %d", seed)
	random, seeds := rand.New(rand.NewSource(seed)), lexicalSeeds()
	w := watch(t)
	alice, before := w.Connect("alice", "lab"), w.logged()
	lines, answered := threats.Length(1000, 5000), 0
	for range lines {
		text := seeds[random.Intn(len(seeds))]
		for range 1 + random.Intn(3) {
			text = lexicalTricks[random.Intn(len(lexicalTricks))](text+" ", random)
		}
		ask := alice.TryAsk
		if random.Intn(2) == 0 {
			ask = alice.TryExtended
		}
		a, err := ask(text)
		if err != nil {
			alice = w.Connect("alice", "lab")
		} else if a.Err == nil {
			answered++
		}
		alice.Ask(`ROLLBACK`)
	}
	alice.Ask(`RESET ALL`)
	mark := w.logged()
	if a := alice.Ask(`SELECT count(*) FROM people WHERE note = 'n3' AND age < 77 AND hiv AND income < 91000`); a.Err != nil {
		t.Fatal(a.Err)
	}
	if w.logged() == mark {
		t.Error("the log shows no leaf: the test tested nothing")
	}
	log := w.since(before)
	leaked := strings.Count(log, "canary")
	if leaked > 0 {
		t.Errorf("the database saw a client's text %d times: %.500s", leaked, log[strings.Index(log, "canary")-200:])
	}
	fixed, different := 0, map[string]bool{}
	for _, m := range statementOf.FindAllStringSubmatch(log, -1) {
		different[m[1]] = true
	}
	delete(different, "-- ping") // the driver's
	for text := range different {
		tree, err := pg.Parse(text)
		if err != nil {
			t.Errorf("not what PostgreSQL reads: %s: %v", text, err)
			continue
		}
		printed, err := pg.Deparse(tree)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		first, err1 := pg.Fingerprint(text)
		second, err2 := pg.Fingerprint(printed)
		if err1 != nil || err2 != nil || first != second || len(tree.Stmts) != 1 {
			t.Errorf("not the same when printed and read again: %s\n%s", text, printed)
			continue
		}
		fixed++
	}
	if answered == 0 || fixed < 3 {
		t.Errorf("%d answered, %d statements in the log", answered, fixed)
	}
	threats.Reached(t, "T41", "%d texts, %d answered: %d bytes of clients in the database's log; %d of %d statements of ours are the same when printed and read again",
		lines, answered, leaked, fixed, len(different))
}
