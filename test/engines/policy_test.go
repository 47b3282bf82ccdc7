package engines

// policyText is the policy over all engines: its backend, alice's verifier, and more tables.
const policyText = `version: 1
server: {listen: "127.0.0.1:0"}
backend: %s
ledger: {url: "sqlite:ledger.db"}
users:
  - {name: alice, password: %q}
datasets:
  - id: shop
    unit: {name: person, key: people.id, type: bigint}
    accountant: pure
    cap: {epsilon: 1000000, delta: 0.1}
    budgets: {"*": {epsilon: 1000000, delta: 0.1}}
    defaults: {epsilon: 10000, max_epsilon: 40000}
    tables:
      - name: people
        static: true
        max_rows_per_unit: 1
        columns:
          - {name: sex, type: text, domain: {values: [f, m]}}
          - {name: age, type: integer, domain: {min: 0, max: 99, step: 1}}
          - {name: income, type: "numeric(12,2)", domain: {min: 0, max: 5, step: 0.25}}
          - {name: hired, type: date, domain: {min: 2015-01-01, max: 2024-12-31, step: 1 day}}
          - {name: city, type: text, domain: {values: [Bern, Basel, Zürich, "O'Hara"]}}
          - {name: vip, type: boolean, domain: {values: [false, true]}}
          - {name: score, type: real, domain: {min: 0, max: 10, step: 0.5}}
          - {name: place, type: integer, domain: {min: 1, max: 3, step: 1}}
%s      - name: visits
        static: true
        unit: visits.who = people.id
        max_rows_per_unit: 3
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C]}}
          - {name: minutes, type: integer, domain: {min: 0, max: 59, step: 1}}
          - {name: seen, type: timestamptz, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 hour}}
      - name: cities
        public: true
        columns: [{name: no, type: integer}, {name: name, type: text}, {name: area, type: integer}]
`

// part is what a policy may have beside that, where the engine takes it: an engine that does not is asked no question
// of it.
type part struct {
	name    string
	columns string // of people
	tables  string
	bounds  map[string]int
}

var parts = []part{
	{name: "texts that nobody declared (`domain: any`)", columns: "          - {name: note, type: text, domain: any}\n"},
	{name: "keys that are found (`keys: discover`)", columns: "          - {name: zip, type: text, keys: discover}\n"},
	{name: "units through another table's key", tables: `      - name: orders
        static: true
        unit: orders.person = people.id
        max_rows_per_unit: 1
        columns:
          - {name: id, type: integer, keys: join}
          - {name: placed, type: timestamp, domain: {min: 2023-01-01, below: 2025-01-01, step: 1 hour}}
      - name: lines
        static: true
        unit: lines.order_id = orders.id
        max_rows_per_unit: 2
        columns:
          - {name: quantity, type: integer, domain: {min: 0, max: 9, step: 1}}
          - {name: price, type: "numeric(8,2)", domain: {min: 0, max: 2, step: 0.25}}
`, bounds: map[string]int{"orders": 1, "lines": 2}},
	{name: "bounds by groups (`max_groups_per_unit`)", tables: `      - name: stays
        static: true
        unit: stays.who = people.id
        max_groups_per_unit: 2
        max_rows_per_group: 1
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C]}}
          - {name: nights, type: integer, domain: {min: 0, max: 9, step: 1}}
`},
	{name: "a stored rank (`row_rank`)", tables: `      - name: calls
        static: true
        unit: calls.who = people.id
        max_rows_per_unit: 3
        row_rank: nth
        columns:
          - {name: secs, type: integer, domain: {min: 0, max: 29, step: 1}}
`, bounds: map[string]int{"calls": 3}},
}

// A shape is a group of leaves that are alike; of is the part of the policy that they need.
type shape struct {
	name, of   string
	statements []string
}

// shapes are asked of every engine. HAVING leaves out groups of the domain in which nobody is, which plain SQL does not
// show.
var shapes = []shape{
	{name: "counts and conditions", statements: []string{
		`SELECT count(*) FROM people`,
		`SELECT count(*) FROM visits`,
		`SELECT count(*) FROM people WHERE age >= 30 AND sex = 'f' AND city <> 'O''Hara'`,
		`SELECT count(*) FROM people WHERE (age BETWEEN 20 AND 39 OR NOT vip) AND city IN ('Bern', 'Basel')`,
		`SELECT count(*) FROM people WHERE income < 2.75 AND city LIKE 'B%'`,
		`SELECT count(*) FROM people WHERE CASE WHEN sex = 'f' THEN age < 30 ELSE age < 50 END`,
		`SELECT count(*), count(minutes) FROM visits WHERE minutes IS NULL OR minutes > 20`,
	}},
	{name: "groups", statements: []string{
		`SELECT sex, city, count(*) FROM people GROUP BY sex, city HAVING count(*) > 0 ORDER BY sex, city`,
		`SELECT age / 10 * 10 AS decade, count(*) FROM people GROUP BY 1 HAVING count(*) > 0 ORDER BY 1`,
		`SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS who, vip, count(*) FROM people GROUP BY 1, 2 HAVING count(*) > 0 ORDER BY 1, 2`,
		`SELECT ward, minutes / 20 AS third, count(*) FROM visits GROUP BY 1, 2 HAVING count(*) > 0 ORDER BY 1, 2`,
	}},
	{name: "sums and averages", statements: []string{
		`SELECT sex, sum(age), avg(age), sum(income), count(*) FROM people GROUP BY sex HAVING count(*) > 0 ORDER BY sex`,
		`SELECT ward, sum(minutes), avg(minutes) FROM visits GROUP BY ward HAVING count(*) > 0 ORDER BY ward`,
		`SELECT sum(income) FILTER (WHERE vip), sum(CASE WHEN sex = 'f' THEN income END) FROM people`,
		`SELECT sum(age * place), sum(2 * age + 3 * place) FROM people`,
	}},
	{name: "variances", statements: []string{
		`SELECT round(variance(age)), round(stddev(income), 1) FROM people`,
		`SELECT sex, round(stddev(age)) FROM people GROUP BY sex HAVING count(*) > 0 ORDER BY sex`,
	}},
	{name: "floating numbers", statements: []string{
		`SELECT count(*) FROM people WHERE score > 5`,
		`SELECT round(sum(score)), round(avg(score)) FROM people WHERE score <> 4.5`,
		`SELECT score, count(*) FROM people GROUP BY score HAVING count(*) > 0 ORDER BY score`,
	}},
	{name: "dates and moments", statements: []string{
		`SELECT extract(year FROM hired) AS y, count(*) FROM people WHERE hired < '2023-01-01' GROUP BY y HAVING count(*) > 0 ORDER BY y`,
		`SELECT date_trunc('month', seen) AS month, count(*) FROM visits WHERE ward IN ('A', 'C') GROUP BY 1 HAVING count(*) > 0 ORDER BY 1`,
		`SELECT count(*) FROM visits WHERE seen >= '2024-03-01' AND seen < '2024-09-01'`,
		`SELECT extract(hour FROM seen) AS h, count(*) FROM visits GROUP BY h HAVING count(*) > 0 ORDER BY h`,
	}},
	{name: "quantiles", statements: []string{`SELECT percentile_disc(0.505) WITHIN GROUP (ORDER BY age) FROM people`}},
	{name: "different values", statements: []string{
		`SELECT count(DISTINCT who) FROM visits WHERE minutes > 50`,
		`SELECT ward, count(DISTINCT who) FROM visits GROUP BY ward HAVING count(DISTINCT who) > 0 ORDER BY ward`,
		`SELECT count(DISTINCT city) FROM people WHERE age > 20`,
	}},
	{name: "joins along the unit", statements: []string{
		`SELECT p.sex, count(*), sum(v.minutes) FROM visits AS v JOIN people AS p ON p.id = v.who GROUP BY p.sex HAVING count(*) > 0 ORDER BY p.sex`,
		`SELECT p.city, count(*), count(v.who) FROM people AS p LEFT JOIN visits AS v ON v.who = p.id AND v.ward = 'A' GROUP BY p.city HAVING count(*) > 0 ORDER BY p.city`,
		`SELECT a.ward, count(*) FROM visits AS a JOIN visits AS b ON a.who = b.who AND b.ward = 'B' WHERE a.minutes < b.minutes GROUP BY a.ward HAVING count(*) > 0 ORDER BY a.ward`,
	}},
	{name: "EXISTS, IN, set operations", statements: []string{
		`SELECT count(*) FROM people AS p WHERE EXISTS (SELECT 1 FROM visits AS v WHERE v.who = p.id AND v.minutes > 50)`,
		`SELECT count(*) FROM people WHERE id IN (SELECT who FROM visits GROUP BY who HAVING count(*) > 2)`,
		`SELECT count(*) FROM (SELECT id FROM people WHERE vip INTERSECT SELECT who FROM visits) AS t`,
		`SELECT count(*) FROM (SELECT age FROM people WHERE vip UNION ALL SELECT minutes FROM visits WHERE ward = 'A') AS t(n) WHERE n > 30`,
	}},
	{name: "sub-queries of each unit", statements: []string{
		`SELECT n, count(*) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) AS t GROUP BY n HAVING count(*) > 0 ORDER BY n`,
		`SELECT count(*) FROM (SELECT who, sum(minutes) AS s FROM visits GROUP BY who) AS t WHERE s > 60`,
		`SELECT w, count(*) FROM (SELECT who, count(DISTINCT ward) AS w FROM visits GROUP BY who) AS t GROUP BY w HAVING count(*) > 0 ORDER BY w`,
	}},
	{name: "window functions within a unit", statements: []string{
		`SELECT count(*) FROM (SELECT who, minutes - lag(minutes) OVER (PARTITION BY who ORDER BY seen) AS gap FROM visits) AS t WHERE gap > 0`,
	}},
	{name: "several questions of one scan", statements: []string{
		`SELECT (SELECT count(*) FROM visits WHERE minutes > 20), (SELECT sum(minutes) FROM visits WHERE ward = 'A'), (SELECT count(*) FROM people WHERE age > 40), (SELECT count(*) FROM people WHERE vip)`,
	}},
	{name: "public tables", statements: []string{
		`SELECT c.area, count(*) FROM people AS p JOIN cities AS c ON c.no = p.place GROUP BY c.area HAVING count(*) > 0 ORDER BY c.area`,
		`SELECT sum(c.area) FROM people AS p JOIN cities AS c ON c.no = p.place WHERE p.sex = 'm'`,
	}},
	{of: parts[0].name, statements: []string{
		`SELECT count(*) FROM people WHERE note LIKE '%a' AND age < 50`,
		`SELECT count(*) FROM people WHERE note = 'x''y' OR note IS NULL`,
		`SELECT left(note, 1) AS l, sum(age), count(*) FROM people WHERE left(note, 1) IN ('a', 'b', 'Ä') GROUP BY 1 HAVING count(*) > 0 ORDER BY 1`,
		`SELECT count(*) FROM people WHERE length(note) > 4 AND strpos(note, 'r') > 0`,
		`SELECT count(*) FROM people WHERE upper(note) = 'BETA' AND note NOT LIKE '%50\%'`,
		`SELECT p.note LIKE '_eta', count(*) FROM visits AS v JOIN people AS p ON p.id = v.who WHERE p.note IS NOT NULL GROUP BY 1 HAVING count(*) > 0 ORDER BY 1`,
	}},
	{of: parts[1].name, statements: []string{`SELECT zip, count(*) FROM people GROUP BY zip ORDER BY zip`}},
	{of: parts[2].name, statements: []string{
		`SELECT count(*), sum(quantity), sum(price) FROM lines WHERE quantity > 2`,
		`SELECT count(*) FROM lines AS l JOIN orders AS o ON o.id = l.order_id WHERE o.placed < '2024-01-01'`,
	}},
	{of: parts[3].name, statements: []string{
		`SELECT ward, count(*), sum(nights) FROM stays GROUP BY ward HAVING count(*) > 0 ORDER BY ward`,
	}},
	{of: parts[4].name, statements: []string{
		`SELECT count(*) FROM calls`,
		`SELECT count(*), sum(secs) FROM calls WHERE secs > 10`,
		`SELECT secs / 10 AS tens, count(*) FROM calls GROUP BY 1 HAVING count(*) > 0 ORDER BY 1`,
	}},
}
