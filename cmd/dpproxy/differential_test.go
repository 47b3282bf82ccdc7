package main

import (
	"os"
	"strings"
	"testing"
)

// lexicalAttacks are texts that lexers disagree about: each carries the canary where a proxy that forwards text, or reads it
// otherwise than the database, would let it through.
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

// TestT41ParserDifferential: whatever clients send, the private database's own log has nothing of it. The statements that
// are answered show that the log is read.
func TestT41ParserDifferential(t *testing.T) {
	header, rows := adultRows(t, adultFile(t))
	server, url := adultInPostgres(t, header, rows[:500])
	p := serveProcess(t, examplePolicy(t, "policy-postgres.yaml", "${DPPROXY_PG}", url))
	w := p.connect("analyst", "census")
	answered := 0
	for _, sql := range lexicalAttacks {
		if a := w.ask(sql); a.err == nil {
			answered++
		}
	}
	w.ask(`RESET search_path`)
	if a := w.ask(`SELECT count(*) FROM adult WHERE fnlwgt > 123456`); a.err != nil {
		t.Fatal(a.err)
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
	header, rows := adultRows(t, adultFile(t))
	server, _ := adultInPostgres(t, header, rows[:10])
	server.Exec(t, "postgres", `SELECT 'canary'`)
	log, err := os.ReadFile(server.Log())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "canary") {
		t.Error("a forwarded text does not show in the log")
	}
}
