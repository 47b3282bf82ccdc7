package engines

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

var atWork = flag.Duration("at-work", 6*time.Second, "how long the owner of TestOwnerAtWork is at work")

// atWorkPolicy is over tables whose owner is at work. k is 0 in each row, so that each condition on it that 0 meets is
// another question with the same answer.
const atWorkPolicy = `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: %q, deadline: 15s}
ledger: {url: "sqlite:ledger.db"}
users:
  - {name: alice, password: %q}
datasets:
  - id: shop
    unit: {name: person, key: people.id, type: bigint}
    accountant: pure
    cap: {epsilon: 1000000, delta: 0}
    budgets: {"*": {epsilon: 1000000, delta: 0}}
    defaults: {epsilon: 100, max_epsilon: 100}
    tables:
      - {name: people, max_rows_per_unit: 1, columns: [{name: sex, type: text, domain: {values: [f, m]}}, {name: k, type: integer, domain: {min: 0, max: 40, step: 1}}]}
      - {name: visits, unit: visits.who = people.id, max_rows_per_unit: 3, columns: [{name: k, type: integer, domain: {min: 0, max: 40, step: 1}}]}
      - {name: calls, unit: calls.who = people.id, max_rows_per_unit: 3, row_rank: nth, columns: [{name: k, type: integer, domain: {min: 0, max: 40, step: 1}}]}
      - {name: orders, unit: orders.person = people.id, max_rows_per_unit: 1, columns: [{name: id, type: integer, keys: join}, {name: k, type: integer, domain: {min: 0, max: 40, step: 1}}]}
      - {name: lines, unit: lines.order_id = orders.id, max_rows_per_unit: 2, columns: [{name: k, type: integer, domain: {min: 0, max: 40, step: 1}}]}
      - {name: stays, unit: stays.who = people.id, max_rows_per_unit: 1, columns: [{name: k, type: integer, domain: {min: 0, max: 40, step: 1}}]}
`

// atWorkTables are what there is at first: 300 people, of whom each has two visits, a quarter three calls, a fifth an
// order of two lines, a third a stay.
var atWorkTables = []string{
	`CREATE TABLE people (id bigint NOT NULL CONSTRAINT single PRIMARY KEY, sex text, k int)`,
	`INSERT INTO people SELECT i, CASE i % 2 WHEN 0 THEN 'f' ELSE 'm' END, 0 FROM generate_series(1, 300) AS s(i)`,
	`CREATE TABLE visits (who bigint, half int, k int) PARTITION BY LIST (half)`, `CREATE TABLE visits0 PARTITION OF visits FOR VALUES IN (0)`, `CREATE TABLE visits1 PARTITION OF visits FOR VALUES IN (1)`,
	`INSERT INTO visits SELECT i, n, 0 FROM generate_series(1, 300) AS s(i), generate_series(0, 1) AS n`,
	`CREATE TABLE calls (who bigint NOT NULL, nth bigint CONSTRAINT positive CHECK (nth >= 1), k int, UNIQUE (who, nth))`,
	`INSERT INTO calls SELECT 4 * i, n, 0 FROM generate_series(1, 75) AS s(i), generate_series(1, 3) AS n`,
	`CREATE TABLE orders (id int NOT NULL CONSTRAINT one PRIMARY KEY, person bigint, k int)`, `INSERT INTO orders SELECT 10 * i, i, 0 FROM generate_series(5, 300, 5) AS s(i)`,
	`CREATE TABLE lines (order_id int, k int)`, `INSERT INTO lines SELECT 10 * i, 0 FROM generate_series(5, 300, 5) AS s(i), generate_series(1, 2)`,
	`CREATE TABLE beds AS SELECT i::bigint AS who, 0 AS k FROM generate_series(3, 300, 3) AS s(i)`,
	`CREATE MATERIALIZED VIEW stays AS SELECT * FROM beds`, `CREATE UNIQUE INDEX ON stays (who)`,
}

// atWorkLoops are what the owner does, each by a session of its own, over and over. Where it is done, everything is as
// it was at first.
var atWorkLoops = map[string][]string{
	"a person's rows are several while no constraint forbids it": {`BEGIN; ALTER TABLE people DROP CONSTRAINT single; INSERT INTO people SELECT 7, 'm', 0 FROM generate_series(1, 5); COMMIT`,
		`BEGIN; DELETE FROM people WHERE id = 7; INSERT INTO people VALUES (7, 'm', 0); ALTER TABLE people ADD CONSTRAINT single PRIMARY KEY (id); COMMIT`},
	"partitions come and go": {`ALTER TABLE visits DETACH PARTITION visits1`, `ALTER TABLE visits ATTACH PARTITION visits1 FOR VALUES IN (1)`,
		`ALTER TABLE visits DETACH PARTITION visits1 CONCURRENTLY`, `ALTER TABLE visits ATTACH PARTITION visits1 FOR VALUES IN (1)`, `VACUUM FULL visits0`},
	"calls are loaded anew": {`BEGIN; TRUNCATE calls; INSERT INTO calls SELECT 4 * i, n, 0 FROM generate_series(1, 75) AS s(i), generate_series(1, 3) AS n; COMMIT`,
		`CREATE INDEX CONCURRENTLY extra ON calls (k)`, `REINDEX TABLE CONCURRENTLY calls`, `DROP INDEX CONCURRENTLY extra`, `VACUUM FULL calls`,
		`BEGIN; ALTER TABLE calls DROP CONSTRAINT positive; INSERT INTO calls VALUES (4, -3, 0), (4, -2, 0); COMMIT`, `BEGIN; DELETE FROM calls WHERE nth < 0; ALTER TABLE calls ADD CONSTRAINT positive CHECK (nth >= 1); COMMIT`},
	"orders are loaded by COPY": {`BEGIN; COPY orders FROM PROGRAM 'for i in $(seq 1 5 300); do echo $((i * 10)),$i,0; done' (FORMAT csv); COPY lines FROM PROGRAM 'for i in $(seq 1 5 300); do echo $((i * 10)),0; echo $((i * 10)),0; done' (FORMAT csv); COMMIT`,
		`BEGIN; DELETE FROM lines WHERE order_id % 50 <> 0; DELETE FROM orders WHERE id % 50 <> 0; COMMIT`,
		`BEGIN; ALTER TABLE orders DROP CONSTRAINT one; INSERT INTO orders SELECT 50, n, 0 FROM generate_series(6, 9) AS n; COMMIT`, `BEGIN; DELETE FROM orders WHERE id = 50 AND person > 5; ALTER TABLE orders ADD CONSTRAINT one PRIMARY KEY (id); COMMIT`},
	"stays are refreshed": {`BEGIN; TRUNCATE beds; INSERT INTO beds SELECT i, 0 FROM generate_series(2, 300, 2) AS s(i); COMMIT`, `REFRESH MATERIALIZED VIEW stays`,
		`BEGIN; TRUNCATE beds; INSERT INTO beds SELECT i, 0 FROM generate_series(3, 300, 3) AS s(i); COMMIT`, `REFRESH MATERIALIZED VIEW CONCURRENTLY stays`},
}

// atWorkQuestions and, value by value, what each may be answered: what is so at some moment. Of a question's queries
// one that failed has 0s.
var atWorkQuestions = []struct {
	sql  string // COND: what is so of every row
	want [][]string
}{
	{`SELECT count(*) FROM people WHERE COND`, [][]string{{"300"}}},
	{`SELECT sex, count(*) FROM people WHERE COND GROUP BY sex ORDER BY sex LIMIT 2`, [][]string{{"f"}, {"150"}, {"m"}, {"150"}}},
	{`SELECT count(*) FROM visits WHERE COND`, [][]string{{"600", "300"}}},
	{`SELECT count(*) FROM calls WHERE COND`, [][]string{{"225"}}},
	{`SELECT count(*) FROM lines WHERE COND`, [][]string{{"120", "240"}}},
	{`SELECT count(*) FROM stays WHERE COND`, [][]string{{"100", "150"}}},
	{`SELECT count(*) FROM people p JOIN calls c ON p.id = c.who WHERE p.COND`, [][]string{{"225"}}},
	{`SELECT (SELECT count(*) FROM people WHERE COND), (SELECT count(*) FROM calls WHERE COND), (SELECT count(*) FROM visits WHERE COND)`, [][]string{{"300"}, {"225"}, {"600", "300"}}},
}

var costTold = regexp.MustCompile(`cost ε ([0-9.]+);`)

var causeOfFault = regexp.MustCompile(`a paid query failed.*cause=("[^"]*"|\S+)`)

// TestOwnerAtWork: while the owner alters, empties, loads, detaches and refreshes tables without a pause, each answer
// is that of one moment, with what constraints proved in that moment; or it is noise on nothing, which is reported to
// the operator; or it is refused, and costs nothing.
func TestOwnerAtWork(t *testing.T) {
	server := pgtest.Shared(t)
	role, database := layAtWork(t, server)
	ownerAtWork(t, server, server, role, database)
}

// TestOwnerAtWorkBeforeAStandby: dpproxy asks a hot standby, to which all of this is replayed: it waits for queries, or
// cancels those that it has waited for for a while, after which there is noise. A query and the replay that wait for
// each other end by a deadlock, or at the deadline, where PostgreSQL does not find it to be one: the replay may wait
// for no lock, but for a snapshot.
func TestOwnerAtWorkBeforeAStandby(t *testing.T) {
	for _, delay := range []string{"-1", "50ms"} {
		t.Run(delay, func(t *testing.T) {
			server := pgtest.Start(t)
			role, database := layAtWork(t, server)
			standby := server.Standby(t, "max_standby_streaming_delay="+delay, "max_standby_archive_delay="+delay, "hot_standby_feedback=on")
			ownerAtWork(t, server, standby, role, database)
		})
	}
}

// layAtWork lays the tables into a database of a server's.
func layAtWork(t *testing.T, server *pgtest.Server) (role, database string) {
	t.Helper()
	role, database = server.Role(t, ""), server.Database(t)
	server.Exec(t, database, append(slices.Clone(atWorkTables), "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)...)
	return role, database
}

// causesIn counts the queries that failed by a log, by their causes.
func causesIn(log string) (causes map[string]int, all int) {
	causes = map[string]int{}
	for _, cause := range causeOfFault.FindAllStringSubmatch(log, -1) {
		causes[strings.Trim(cause[1], `"`)]++
		all++
	}
	return causes, all
}

// ownerAtWork has a dpproxy ask one server while the owner is at work on another, or the same. On a standby queries
// fail by the replay, too.
func ownerAtWork(t *testing.T, server, asks *pgtest.Server, role, database string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, atWorkPolicy, asks.URLFor(role, database)+"&pool_max_conns=12", kit.Verifier(t, "alice")), 0o600); err != nil {
		t.Fatal(err)
	}
	p := kit.Serve(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), *atWork)
	defer cancel()
	var owners, analysts sync.WaitGroup
	for name, list := range atWorkLoops {
		conn, err := pgconn.Connect(t.Context(), server.URLFor("postgres", database))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		owners.Go(func() {
			rounds := 0
			for ; ctx.Err() == nil; rounds++ {
				for _, text := range list {
					if _, err := conn.Exec(t.Context(), text).ReadAll(); err != nil {
						t.Errorf("%s: %s: %v", name, text, err)
						return
					}
					time.Sleep(time.Duration(rounds%7) * time.Millisecond)
				}
			}
			t.Logf("%s: %d times", name, rounds)
		})
	}
	asked := &askedAtWork{t: t, refused: map[string]int{}}
	for session := range 4 {
		w := p.Connect("alice", "shop")
		analysts.Go(func() {
			for i := session; ctx.Err() == nil; i += 4 {
				asked.ask(w, i)
			}
		})
	}
	owners.Wait()
	analysts.Wait()
	causes, faults := causesIn(p.LogText())
	for n := 0; n < 50 && faults < asked.paidZeros; n++ { // the log comes by a pipe, and may be behind the answers
		time.Sleep(100 * time.Millisecond)
		causes, faults = causesIn(p.LogText())
	}
	t.Logf("%d answers of %d queries, %d of them noise on nothing, by %v; refused: %v", asked.answers, asked.queries, asked.zeros, causes, asked.refused)
	if faults < asked.paidZeros || faults > asked.zeros { // what was paid is asked again for nothing, noise too
		t.Errorf("%d queries failed by the log, and %d by what was answered, %d of them in part from what was held", faults, asked.zeros, asked.zeros-asked.paidZeros)
	}
	for cause := range maps.Keys(causes) {
		if asks == server && !slices.Contains([]string{"a private table was renamed, altered or emptied while it was asked, twice", "a unique constraint that the units' path needs is gone", "the private database's schema changed while it was asked"}, cause) {
			t.Errorf("a query failed by %s", cause)
		}
	}
	if spent, err := strconv.ParseFloat(p.Connect("alice", "shop").Spent(), 64); err != nil || math.Round(spent*1e6) != math.Round(asked.cost*1e6) {
		t.Errorf("spent %f (%v), by what was told with each answer %f", spent, err, asked.cost)
	}
	w := p.Connect("alice", "shop")
	if asks != server {
		server.Until(t, "SELECT bool_and(replay_lsn = pg_current_wal_lsn()) FROM pg_stat_replication")
	}
	for i := range atWorkQuestions { // as it was at first
		before := asked.zeros
		if asked.ask(w, 1<<20+i); asked.zeros != before {
			t.Errorf("%s: noise when the owner is done", atWorkQuestions[i].sql)
		}
	}
}

// askedAtWork is what was asked, and came of it.
type askedAtWork struct {
	t         *testing.T
	mu        sync.Mutex
	answers   int     // statements
	queries   int     // that were paid
	zeros     int     // of which so many counted nothing
	paidZeros int     // in statements of which each was paid
	cost      float64 // of all, as it was stated
	refused   map[string]int
}

// ask asks the i-th question of all.
func (a *askedAtWork) ask(w *kit.Wire, i int) {
	q := atWorkQuestions[i%len(atWorkQuestions)]
	var without []string
	for bit := range 30 {
		if (i+1)>>bit&1 == 1 {
			without = append(without, fmt.Sprint(bit+1))
		}
	}
	sql := strings.ReplaceAll(q.sql, "COND", "k NOT IN ("+strings.Join(without, ", ")+")")
	got, err := w.TryAsk(sql)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err != nil:
		a.t.Errorf("%s: %v", sql, err)
	case got.Err != nil:
		a.refused[got.Err.Message]++
		if got.Err.Code != "DP004" || !strings.Contains(got.Err.Message, "nothing was charged") || strings.Contains(got.Err.Message, "does not accept the query") {
			a.t.Errorf("%s: %v", sql, got.Err)
		}
	default:
		values := slices.Concat(got.Rows...)
		a.answers++
		nothing := 0
		for k, v := range values {
			if k >= len(q.want) || v != "0" && !slices.Contains(q.want[k], v) {
				a.t.Errorf("%s: %v", sql, got.Rows)
				return
			}
			if v == "0" {
				nothing++
			}
		}
		if strings.Contains(sql, "GROUP BY") {
			nothing /= 2
		}
		a.zeros += nothing
		if told := costTold.FindStringSubmatch(fmt.Sprint(got.Notes)); told != nil { // otherwise it was free
			cost, _ := strconv.ParseFloat(told[1], 64)
			if a.cost += cost; cost > 99 && strings.Count(sql, "count(*)") == 1 { // of several leaves one may be read from what was held, and the others are paid all the more
				a.paidZeros += nothing
			}
		}
		a.queries += max(strings.Count(sql, "count(*)"), 1)
	}
}
