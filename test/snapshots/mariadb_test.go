package snapshots

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/mariadbtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// shopSQL is a shop in MariaDB: people, what they did, and what they ordered, whose lines name their person through an
// order.
var shopSQL = []string{
	`CREATE TABLE people (id bigint unsigned AUTO_INCREMENT PRIMARY KEY, sex enum('f', 'm'), age tinyint unsigned, income decimal(12,2), hired date, city varchar(20), vip tinyint(1), score float, place int) CHARACTER SET utf8mb4`,
	`INSERT INTO people (sex, age, income, hired, city, vip, score, place) SELECT IF(seq % 2, 'f', 'm'), seq * 7 % 100, seq * 37 % 5000 + 0.25, DATE_ADD('2015-01-01', INTERVAL seq * 13 % 3000 DAY), ELT(seq % 3 + 1, 'Bern', 'Basel', 'Zürich'), seq % 5 = 0, seq % 10 + 0.5, seq % 3 + 1 FROM seq_1_to_2000`,
	`UPDATE people SET id = id + 9223372036854775807 WHERE id > 1990`,
	`CREATE TABLE visits (visit int AUTO_INCREMENT PRIMARY KEY, who bigint unsigned, ward char(1), minutes smallint, at timestamp NULL, KEY (who))`,
	`INSERT INTO visits (who, ward, minutes, at) SELECT p.id, ELT(seq % 3 + 1, 'A', 'B', 'C'), (p.id + seq) % 60, TIMESTAMPADD(HOUR, (p.age * 100 + seq) % 8000, '2024-01-01 00:00:00') FROM people AS p JOIN seq_1_to_3 WHERE p.age % 4 < seq`,
	`CREATE TABLE orders (id int PRIMARY KEY, person bigint unsigned, placed datetime(3))`,
	`INSERT INTO orders SELECT p.age * 10000 + row_number() OVER (), p.id, TIMESTAMPADD(DAY, p.age * 5 % 700, '2023-01-01 12:00:00.125') FROM people AS p WHERE p.vip`,
	"CREATE TABLE `lines` (order_id int, line int, quantity int, price decimal(8,2), PRIMARY KEY (order_id, line))",
	"INSERT INTO `lines` SELECT o.id, seq, (o.id + seq) % 9, seq * 1.25 FROM orders AS o JOIN seq_1_to_2",
	`CREATE TABLE cities (no int PRIMARY KEY, name varchar(20), canton char(2), area int) ENGINE = MyISAM CHARACTER SET utf8mb4`,
	`INSERT INTO cities VALUES (1, 'Bern', 'BE', 52), (2, 'Basel', 'BS', 23), (3, 'Zürich', 'ZH', 88)`,
}

const mariaPolicy = `version: 1
server: {listen: "127.0.0.1:0"}
backend: {url: %q, snapshot: {dir: snapshots, every: 1d}}
ledger: {url: "sqlite:ledger.db"}
users:
  - {name: alice, password: %q}
datasets:
  - id: shop
    unit: {name: person, key: people.id, type: bigint}
    accountant: pure
    cap: {epsilon: 1000000}
    budgets: {"*": {epsilon: 1000000}}
    defaults: {epsilon: 10000, max_epsilon: 20000}
    tables:
      - name: people
        max_rows_per_unit: 1
        columns:
          - {name: sex, type: text, domain: {values: [f, m]}}
          - {name: age, type: integer, domain: {min: 0, max: 99, step: 1}}
          - {name: income, type: "numeric(12,2)", domain: {min: 0, max: 5000, step: 0.25}}
          - {name: hired, type: date, domain: {min: 2015-01-01, max: 2024-12-31, step: 1 day}}
          - {name: city, type: text, domain: {values: [Bern, Basel, Zürich]}}
          - {name: vip, type: boolean, domain: {values: [false, true]}}
          - {name: score, type: real, domain: {min: 0, max: 10, step: 0.5}}
          - {name: place, type: integer, domain: {min: 1, max: 3, step: 1}}
      - name: visits
        unit: visits.who = people.id
        max_rows_per_unit: 3
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C]}}
          - {name: minutes, type: integer, domain: {min: 0, max: 59, step: 1}}
          - {name: at, type: timestamptz, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 hour}}
      - name: orders
        unit: orders.person = people.id
        max_rows_per_unit: 1
        columns:
          - {name: id, type: integer, keys: join}
          - {name: placed, type: timestamp, domain: {min: 2023-01-01, below: 2025-01-01, step: 1 hour}}
      - name: lines
        unit: lines.order_id = orders.id
        max_rows_per_unit: 2
        columns:
          - {name: quantity, type: integer, domain: {min: 0, max: 9, step: 1}}
          - {name: price, type: "numeric(8,2)", domain: {min: 0, max: 10, step: 0.25}}
      - name: cities
        public: true
        columns: [{name: no, type: integer}, {name: name, type: text}, {name: canton, type: text}, {name: area, type: integer}]
`

// mariaShop is a database of the shop on a server, and a policy over it.
func mariaShop(t *testing.T, server *mariadbtest.Server, change ...string) (path, database, role string) {
	t.Helper()
	database = server.Database(t)
	role = server.Role(t, database)
	server.ExecIn(t, database, slices.Concat([]string{"SET SESSION time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'"}, shopSQL, change)...)
	path = filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, mariaPolicy, server.URL(role, database), kit.Verifier(t, "alice")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, database, role
}

// mariaReports are statements of MySQL's, each of which both read as it is.
var mariaReports = []string{
	"SELECT COUNT(*) FROM people",
	"SELECT COUNT(*) FROM `people` WHERE age >= 30 AND sex = 'f' AND city <> \"Bern\"",
	"SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) > 0 ORDER BY sex",
	"SELECT sex, place, COUNT(*) AS n, SUM(income) FROM people GROUP BY sex, place HAVING n > 0 ORDER BY sex, place",
	"SELECT IF(age < 40, 'young', 'old') AS g, COUNT(*), AVG(age) FROM people GROUP BY g ORDER BY g",
	"SELECT YEAR(hired) AS y, COUNT(*) FROM people WHERE hired < '2023-01-01' GROUP BY y ORDER BY y",
	"SELECT COUNT(*) FROM people WHERE vip AND score > 5",
	"SELECT SUM(age > 50), SUM(vip) FROM people",
	"SELECT ward, SUM(minutes), AVG(minutes), COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > 0 ORDER BY ward",
	"SELECT COUNT(*) FROM visits WHERE at >= '2024-03-01' AND at < '2024-09-01' AND ward IN ('A', 'C')",
	"SELECT COUNT(DISTINCT who) FROM visits WHERE minutes > 50",
	"SELECT p.sex, COUNT(*), SUM(v.minutes) FROM visits AS v JOIN people AS p ON p.id = v.who GROUP BY p.sex HAVING COUNT(*) > 0 ORDER BY p.sex",
	"SELECT COUNT(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM visits AS v WHERE v.who = p.id AND v.minutes > 50)",
	"SELECT COUNT(*) FROM orders WHERE placed >= '2023-06-01'",
	"SELECT COUNT(*), SUM(quantity), SUM(price) FROM `lines` WHERE quantity > 2",
	"SELECT COUNT(*) FROM `lines` AS l JOIN orders AS o ON o.id = l.order_id WHERE o.placed < '2024-01-01'",
	"SELECT c.area, COUNT(*) FROM people AS p JOIN cities AS c ON c.no = p.place GROUP BY c.area ORDER BY c.area",
}

// TestMariaDBReports: reports written for MySQL, over a snapshot of the MariaDB database that they were written for,
// have the answers that it gives itself, at an ε at which noise vanishes.
func TestMariaDBReports(t *testing.T) {
	kit.Beside(t)
	server := mariadbtest.Shared(t)
	path, database, _ := mariaShop(t, server)
	if c := kit.Run(t, "", "check", "--policy", path); c.Code != 0 || strings.Contains(c.Stdout, "error:") {
		t.Fatalf("check: %d\n%s%s", c.Code, c.Stdout, c.Stderr)
	}
	// The last one reads a public table, which price has no copy of.
	report := filepath.Join(t.TempDir(), "report.sql")
	if err := os.WriteFile(report, []byte(strings.Join(mariaReports[:len(mariaReports)-1], ";\n")+";\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := kit.Run(t, "", "price", "--policy", path, "--user", "alice", "--dialect", "mysql", report); c.Code != 0 {
		t.Errorf("price: %d\n%s%s", c.Code, c.Stdout, c.Stderr)
	}
	w := kit.Serve(t, path).Connect("alice", "shop")
	w.Ask("SET dp.dialect = mysql")
	for _, statement := range mariaReports {
		a := w.Ask(statement)
		if a.Err != nil {
			t.Errorf("%s: %v", statement, a.Err)
			continue
		}
		want := mariaRows(t, server, database, statement)
		if !alike(a.Rows, want) {
			t.Errorf("%s:\ngot  %v\nwant %v", statement, a.Rows, want)
		}
	}
}

// mariaRows are the rows of a statement in the database itself.
func mariaRows(t *testing.T, server *mariadbtest.Server, database, statement string) (list [][]string) {
	t.Helper()
	conn, err := server.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, text := range []string{"USE " + database, "SET SESSION time_zone = '+00:00'"} {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := conn.QueryContext(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		texts, into := make([]*string, len(names)), make([]any, len(names))
		for i := range into {
			into[i] = &texts[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(names))
		for i, text := range texts {
			if text != nil {
				row[i] = *text
			}
		}
		list = append(list, row)
	}
	return list
}

// alike reports whether rows are equal, numbers but for the digits that averages and noise in steps differ by.
func alike(got, want [][]string) bool {
	return slices.EqualFunc(got, want, func(a, b []string) bool {
		return slices.EqualFunc(a, b, func(a, b string) bool {
			x, err1 := strconv.ParseFloat(a, 64)
			y, err2 := strconv.ParseFloat(b, 64)
			if err1 != nil || err2 != nil {
				return a == b
			}
			return math.Abs(x-y) <= 1e-4*math.Max(1, math.Abs(y))
		})
	})
}

// hostileRows are one person's cells, each of which some reader fails at, and more rows than the bounds allow.
var hostileRows = []string{
	`INSERT INTO people VALUES (18446744073709551615, 0, 255, 9999999999.99, '2024-02-31', concat('x', char(0), repeat('ü', 19)), -128, 3.4e38, -2147483648)`,
	`INSERT INTO visits (who, ward, minutes, at) SELECT 18446744073709551615, ELT(seq % 4 + 1, 'a', '', char(0), NULL), IF(seq % 2, -32768, 32767), '0000-00-00 00:00:00' FROM seq_1_to_500`,
	`INSERT INTO orders SELECT 2147483647 - seq, 18446744073709551615, '0000-00-00 00:00:00' FROM seq_1_to_40`,
	"INSERT INTO `lines` SELECT 2147483647 - seq, -2147483648, 2147483647, 999999.99 FROM seq_1_to_40",
}

var having = regexp.MustCompile(` HAVING \S+ > 0`)

var stamps = regexp.MustCompile(`(?m)^[0-9 :]*\t+ *[0-9]+ `)

// TestMariaDBNeighbours: one person more, with rows as hostile as can be stored, changes no cost, no refusal, no notice
// and no statement that the database gets, and no answer by more than her bounds allow.
func TestMariaDBNeighbours(t *testing.T) {
	kit.Beside(t)
	type side struct {
		w    *kit.Wire
		sent []string
	}
	var sides [2]side
	for i, change := range [][]string{nil, hostileRows} {
		log := "general.log"
		server := mariadbtest.Start(t, "general-log=1", "general-log-file="+log)
		path, database, role := mariaShop(t, server, change...)
		if c := kit.Run(t, "", "check", "--policy", path); c.Code != 0 {
			t.Fatalf("check: %d\n%s%s", c.Code, c.Stdout, c.Stderr)
		}
		p := kit.Serve(t, path)
		sides[i].w = p.Connect("alice", "shop")
		text, err := os.ReadFile(filepath.Join(server.Dir, "data", log))
		if err != nil {
			t.Fatal(err)
		}
		var sent []string // but for the ends of statements and connections, which two connections write in either order
		for _, line := range strings.Split(string(text), "\n") {
			if at := stamps.FindStringIndex(line); at != nil && !strings.HasSuffix(strings.TrimSpace(line), "Close stmt") && !strings.HasSuffix(strings.TrimSpace(line), "Quit") {
				sent = append(sent, strings.NewReplacer(database, "DATABASE", role, "ROLE").Replace(line[at[1]:]))
			}
		}
		begun := slices.IndexFunc(sent, func(line string) bool { return strings.HasPrefix(line, "Connect\tROLE@") })
		if begun < 0 {
			t.Fatalf("nothing of dpproxy in %s", text)
		}
		sides[i].sent = sent[begun:]
	}
	if n := len(sides[0].sent); n != len(sides[1].sent) || n < 20 {
		t.Errorf("%d and %d statements", n, len(sides[1].sent))
	}
	for i, line := range sides[0].sent[:min(len(sides[0].sent), len(sides[1].sent))] {
		if line != sides[1].sent[i] {
			t.Fatalf("statement %d differs: %q; %q", i, line, sides[1].sent[i])
		}
	}
	bounds := map[string]float64{"people": 1, "visits": 3, "orders": 1, "`lines`": 2}
	for i := range sides {
		sides[i].w.Ask("SET dp.dialect = mysql")
	}
	for _, statement := range mariaReports {
		statement = having.ReplaceAllString(statement, "") // which rows stay is for the noised counts to say
		a, b := sides[0].w.Ask(statement), sides[1].w.Ask(statement)
		if difference := kit.SameFrames(statement, a, b); difference != "" {
			t.Error(difference)
		}
	}
	for table, most := range bounds {
		statement := "SELECT COUNT(*) FROM " + table
		a, b := sides[0].w.Ask(statement), sides[1].w.Ask(statement)
		if a.Err != nil || b.Err != nil {
			t.Fatal(a.Err, b.Err)
		}
		x, _ := strconv.ParseFloat(a.Rows[0][0], 64)
		y, _ := strconv.ParseFloat(b.Rows[0][0], 64)
		if y-x != most {
			t.Errorf("%s: %g and %g, at most %g apart", table, x, y, most)
		}
	}
	for i := range sides {
		sides[i].w.Ask("RESET dp.dialect")
	}
	if a, b := fmt.Sprint(sides[0].w.Ask("SELECT COUNT(*) FROM dp.charges").Rows, sides[0].w.Spent()), fmt.Sprint(sides[1].w.Ask("SELECT COUNT(*) FROM dp.charges").Rows, sides[1].w.Spent()); a != b {
		t.Errorf("charged %s and %s", a, b)
	}
}

// TestMariaDBIsGone: a database that is killed while it is copied, and does not come back, leaves the copy before it in
// force; a start that finds no copy and no database ends, and says nothing of the database's own.
func TestMariaDBIsGone(t *testing.T) {
	kit.Beside(t)
	server := mariadbtest.Start(t)
	path, database, _ := mariaShop(t, server)
	server.ExecIn(t, database, "INSERT INTO visits (who, ward, minutes) SELECT 5000 + seq, 'A', 5 FROM seq_1_to_400000")
	dir := filepath.Join(filepath.Dir(path), "snapshots")
	p := kit.Serve(t, path)
	w := p.Connect("alice", "shop")
	first := w.Ask("SELECT count(*) FROM visits")
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	before := entries(t, dir)
	// Another bound is the same copy; another column is another, which is made while the database goes.
	kit.Edit(t, path, "- {name: minutes, type: integer, domain: {min: 0, max: 59, step: 1}}", "- {name: minutes, type: integer, domain: {min: 0, max: 29, step: 1}}")
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if strings.Contains(p.LogText(), "copied for another policy") {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal(p.LogText())
		}
	}
	time.Sleep(150 * time.Millisecond)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); !strings.Contains(p.LogText(), "the old policy stays") && !strings.Contains(p.LogText(), "cannot be read") && !strings.Contains(p.LogText(), "does not answer"); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal(p.LogText())
		}
	}
	time.Sleep(200 * time.Millisecond)
	if again := w.Ask("SELECT count(*) FROM visits"); again.Err != nil || fmt.Sprint(again.Rows) != fmt.Sprint(first.Rows) {
		t.Errorf("got %v, %v", again.Rows, again.Err)
	}
	if fresh := w.Ask("SELECT count(*) FROM visits WHERE minutes > 7"); fresh.Err != nil {
		t.Error(fresh.Err)
	}
	if after := entries(t, dir); !slices.Equal(after, before) {
		t.Errorf("left %v, before %v", after, before)
	}
	if strings.Contains(p.LogText(), "reader_") {
		t.Errorf("the server's text is in the log:\n%s", p.LogText())
	}
	p.Stop(syscall.SIGTERM)
	if c := kit.Run(t, "", "check", "--policy", path); c.Code == 0 || !strings.Contains(c.Stderr, "the private database does not answer") {
		t.Errorf("check: %d %s", c.Code, c.Stderr)
	}
}

// TestMySQLNeedsSnapshot: without a copy there is no SQL for it.
func TestMySQLNeedsSnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	text := fmt.Sprintf(mariaPolicy, "mysql://u:secret@127.0.0.1/shop", kit.Verifier(t, "alice"))
	for old, want := range map[string]string{
		"snapshot: {dir: snapshots, every: 1d}": "a mysql:// backend needs snapshot",
		"/shop\"":                               "url must be mysql://user@host:port/database",
	} {
		changed := strings.Replace(strings.Replace(text, ", "+old, "", 1), old, "\"", 1)
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if c := kit.Run(t, "", "check", "--policy", path); c.Code != 3 || !strings.Contains(c.Stderr, want) || strings.Contains(c.Stderr, "secret") {
			t.Errorf("check: %d %s", c.Code, c.Stderr)
		}
	}
}
