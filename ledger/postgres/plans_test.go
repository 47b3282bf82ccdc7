package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// TestPlansAreByIndex: what a charge sends reads no more of chain, claims and accounts than what it asks for, whatever
// the server knows of the tables: with none analysed since it was made; and with long chains analysed, and claims taken
// for none because they come and go. A plan by another index, of which a filter keeps what was asked for, reads the
// ledger from end to end, and nobody sees it but by its time.
func TestPlansAreByIndex(t *testing.T) {
	s := pgtest.Start(t, "fsync=on", "full_page_writes=on")
	ctx := context.Background()
	site, st := created(t, s)
	defer st.Close()
	conn, err := pgx.ConnectConfig(ctx, site.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
	}
	const fault = "a planted fault" // by the index of seq it comes in this order too, and is thought to be next to all there is
	statements := map[string]string{"news": pgNews, "news of some": pgNewsOf, "claim": pgClaim, "claims": pgClaimSure, "claimed": pgClaimed, "given up": pgUnclaim,
		"charge": pgCharge, "charges": pgChargeSure, "written": pgWrote, "body": pgBody, "charges of one": pgChargesOf,
		fault: "SELECT body FROM dpproxy_ledger.chain AS c WHERE c.head = $1 AND c.seq >= $2 ORDER BY c.head, c.seq"}
	arguments := map[string]string{}
	for name, sql := range statements {
		d, err := conn.Prepare(ctx, name, sql)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := len(d.ParamOIDs); n > 0 {
			arguments[name] = "(NULL" + strings.Repeat(", NULL", n-1) + ")"
		}
	}
	for _, state := range []struct{ name, sql string }{
		{"as made", ""},
		{"analysed", `INSERT INTO dpproxy_ledger.heads SELECT h, 70000, '' FROM generate_series(1, 8) AS h;
INSERT INTO dpproxy_ledger.chain SELECT n, 6, n, n % 8 + 1, 'alice', 'x', pg_catalog.sha256(n::text::bytea), pg_catalog.sha256(n::text::bytea), n % 8 + 1
	FROM generate_series(2, 70000) AS n;
INSERT INTO dpproxy_ledger.claim SELECT pg_catalog.sha256(n::text::bytea), 1, n FROM generate_series(1, 20000) AS n;
DELETE FROM dpproxy_ledger.claim;
INSERT INTO dpproxy_ledger.claim VALUES ('\x01', 1, 1);
INSERT INTO dpproxy_ledger.account SELECT n % 8 + 1, 0, n::text, 0, 0, 9, 0, 0, 9, 0, 0, 9, 0, 0 FROM generate_series(1, 3000) AS n;
ANALYZE dpproxy_ledger.heads, dpproxy_ledger.chain, dpproxy_ledger.claim, dpproxy_ledger.account`},
	} {
		exec(state.sql)
		for name := range statements {
			rows, err := conn.Query(ctx, "EXPLAIN (COSTS OFF) EXECUTE "+pgx.Identifier{name}.Sanitize()+arguments[name], pgx.QueryExecModeSimpleProtocol)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			if bad := scansWhole(plan); (bad != "") != (name == fault && state.sql != "") {
				t.Errorf("%s, %s: reads a table from end to end: %q\n%s", state.name, name, bad, strings.Join(plan, "\n"))
			}
		}
	}
}

// scansWhole is the node of a plan that reads chain, claims or accounts by something else than an index's condition
// that leaves nothing to a filter but what was found by the whole key.
func scansWhole(plan []string) string {
	keys := map[string]string{"chain_pkey": "seq =", "links": "head", "charges": "ds, holder, seq", "chain_request_key": "request ", "claim_pkey": "key ", "account_pkey": "holder "}
	for i, line := range plan {
		node := strings.TrimLeft(line, " ->")
		if !strings.Contains(node, "Scan") || !strings.Contains(node, " on chain") && !strings.Contains(node, " on claim") && !strings.Contains(node, " on account") {
			continue
		}
		fields := strings.Fields(node)
		if fields[0] != "Index" || len(fields) < 4 {
			return line
		}
		index := fields[3]
		if fields[2] == "Backward" || fields[1] == "Only" {
			index = fields[4]
		}
		cond := ""
		if i+1 < len(plan) {
			cond = strings.TrimSpace(plan[i+1])
		}
		if !strings.HasPrefix(cond, "Index Cond") || !strings.Contains(cond, keys[index]) {
			return line
		}
	}
	return ""
}
