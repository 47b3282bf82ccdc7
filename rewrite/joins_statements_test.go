package rewrite_test

import (
	"math/big"

	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

var joinPolicy = policytest.Over("duckdb:warehouse.duckdb") + `
  - id: shop
    unit: {name: person, key: people.person_id}
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: people
        source: clinic.people
        max_rows_per_unit: 1
        columns:
          - {name: age, type: integer, domain: {min: 0, max: 9, step: 1}}
          - {name: sex, type: text, domain: {values: [f, m]}}
      - name: visits
        source: clinic.visits
        unit: visits.who = people.person_id
        max_rows_per_unit: 4
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C]}}
          - {name: minutes, type: integer, domain: {min: -5, max: 9, step: 1}}
          - {name: cost, type: "numeric(6,2)", domain: {min: 0, max: 10, step: 0.5}}
          - {name: day, type: date, domain: {min: 2025-01-01, max: 2025-03-31, step: 1 day}}
          - {name: room, type: integer, domain: {min: 0, max: 9, step: 1}}
          - {name: visit, type: integer, keys: join}
      - name: doses
        source: clinic.doses
        unit: doses.visit = visits.visit
        max_rows_per_unit: 9
        columns:
          - {name: drug, type: text, domain: {values: [x, y]}}
      - name: buys
        source: clinic.buys
        unit: buys.who = people.person_id
        max_rows_per_unit: 4
        columns:
          - {name: part, type: integer, domain: {min: 0, max: 2000, step: 1}}
          - {name: maker, type: integer, domain: {min: 0, max: 1000, step: 1}}
          - {name: amount, type: integer, domain: {min: -2, max: 9, step: 1}}
          - {name: price, type: "numeric(6,2)", domain: {min: 0, max: 10, step: 0.5}}
      - name: grown
        source: SELECT person_id, age, age / 2 AS half, sex FROM people WHERE age > 2
        columns: [{name: age, type: integer}, {name: half, type: integer}, {name: sex, type: text}]
      - name: stays
        source: |
          WITH long AS (SELECT who, visit, ward, minutes FROM visits WHERE minutes >= 0)
          SELECT g.sex, l.ward, l.minutes, l.visit, l.who FROM grown AS g JOIN long AS l ON l.who = g.person_id
        columns: [{name: sex, type: text}, {name: ward, type: text}, {name: minutes, type: integer}, {name: visit, type: integer, keys: join}]
      - name: frequent
        source: SELECT who AS person, count(*) AS n, max(minutes) AS longest FROM visits GROUP BY who HAVING count(*) > 1
        columns: [{name: n, type: bigint}, {name: longest, type: integer}]
      - name: rooms
        trusted: true
        source: |
          SELECT v.who AS person, v.ward || '' AS ward, min(v.room) AS room -- of each ward
          FROM private.clinic.visits v GROUP BY v.who, v.ward -- no more
        unit: rooms.person = people.person_id
        max_rows_per_unit: 3
        columns:
          - {name: ward, type: text, domain: {values: [A, B, C]}}
          - {name: room, type: integer, domain: {min: 0, max: 9, step: 1}}
      - name: wards
        source: clinic.wards
        public: true
        columns: [{name: code, type: text}, {name: label, type: text}, {name: floor, type: integer}, {name: beds, type: "numeric(6,1)"}]
      - name: offers
        source: clinic.offers
        public: true
        columns: [{name: part, type: integer}, {name: maker, type: bigint}, {name: fee, type: "numeric(6,2)"}, {name: least, type: integer}, {name: grade, type: text}]
      - name: tags
        source: clinic.tags
        public: true
        columns: [{name: code, type: text}, {name: tag, type: text}, {name: least, type: integer}, {name: most, type: integer}]
`

// joinStatements are compared with what the same SQL says on the database itself, where no bound is exceeded.
var joinStatements = []string{
	`SELECT p.sex, count(*) FROM people p JOIN visits v ON p.person_id = v.who GROUP BY 1`,
	`SELECT p.sex, v.ward, count(*) FROM visits v JOIN people p ON v.who = p.person_id WHERE p.age > 3 AND v.minutes < 5 GROUP BY 1, 2`,
	`SELECT p.sex, count(*) FROM people p, visits v WHERE p.person_id = v.who AND v.ward = 'A' GROUP BY p.sex`,
	`SELECT v.ward, count(*), count(v.who) FROM people p LEFT JOIN visits v ON p.person_id = v.who GROUP BY 1`,
	`SELECT v.ward, count(*) FROM people p LEFT JOIN visits v ON p.person_id = v.who AND v.minutes > 2 GROUP BY 1`,
	`SELECT p.sex, count(*) FROM people p LEFT JOIN visits v ON p.person_id = v.who AND p.age > 4 WHERE v.who IS NULL GROUP BY 1`,
	`SELECT p.age, count(*) FROM visits v RIGHT JOIN people p ON p.person_id = v.who GROUP BY 1`,
	`SELECT a.ward, b.ward, count(*) FROM visits a JOIN visits b ON a.who = b.who WHERE a.minutes < b.minutes GROUP BY 1, 2`,
	`SELECT v.ward, d.drug, count(*) FROM visits v JOIN doses d ON d.visit = v.visit GROUP BY 1, 2`,
	`SELECT p.sex, v.ward, d.drug, count(*) FROM people p JOIN visits v ON p.person_id = v.who JOIN doses d USING (visit) GROUP BY 1, 2, 3`,
	`SELECT drug, count(*) FROM doses GROUP BY 1`,
	`SELECT sex, count(*) FROM people WHERE person_id IN (SELECT who FROM visits WHERE ward = 'B') GROUP BY 1`,
	`SELECT sex, count(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.who = p.person_id AND v.minutes > 3) GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM doses d WHERE d.visit = v.visit AND d.drug = 'x') GROUP BY 1`,
	`SELECT ward, count(*) FROM visits WHERE visit NOT IN (SELECT visit FROM doses) AND who IN (SELECT person_id FROM people WHERE age < 5) GROUP BY 1`,
	`SELECT sex, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM visits v WHERE v.who = p.person_id)) FROM people p GROUP BY 1`,
	`SELECT count(*) FROM (SELECT who, sum(minutes) s FROM visits GROUP BY 1) t WHERE s > 3`,
	`SELECT n, count(*) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t GROUP BY n`,
	`SELECT n, count(*) FROM (SELECT who, count(*) FILTER (WHERE ward = 'A') AS n FROM visits GROUP BY who HAVING max(minutes) > 2) t GROUP BY n`,
	`SELECT w, n, count(*) FROM (SELECT who, count(DISTINCT ward) AS w, min(minutes) AS n FROM visits WHERE cost > 2 GROUP BY who) t GROUP BY w, n`,
	`SELECT n, m, count(*) FROM (SELECT who, count(DISTINCT visit) AS n, count(DISTINCT CASE WHEN minutes > 3 THEN visit END) AS m FROM visits GROUP BY who) t GROUP BY n, m`,
	`SELECT n, count(*) FROM (SELECT v.who, count(DISTINCT d.visit) AS n FROM visits v LEFT JOIN doses d ON d.visit = v.visit AND d.drug = 'x' GROUP BY 1) t GROUP BY n`,
	`SELECT count(*) FROM (SELECT who, sum(cost) AS c FROM visits GROUP BY who) t WHERE c >= 7.25`,
	`SELECT m, n, count(*) FROM (SELECT who, extract(month FROM day)::int AS m, count(*) AS n FROM visits GROUP BY 1, 2) t GROUP BY 1, 2`,
	`SELECT ward, count(*) FROM (SELECT DISTINCT who, ward FROM visits) t GROUP BY 1`,
	`SELECT sex, n, count(*) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t JOIN people p ON p.person_id = t.who GROUP BY 1, 2`,
	`SELECT sex, coalesce(n, 0) AS n, count(*) FROM people p LEFT JOIN (SELECT who, count(*) AS n FROM visits GROUP BY who) t ON p.person_id = t.who GROUP BY 1, 2`,
	`WITH big AS (SELECT who FROM visits WHERE minutes > 5) SELECT sex, count(*) FROM people WHERE person_id IN (SELECT who FROM big) GROUP BY 1`,
	`SELECT drugs, count(*) FROM (SELECT visit, count(*) AS drugs FROM doses GROUP BY visit) d GROUP BY 1`,
	`SELECT count(DISTINCT who), count(*), count(DISTINCT ward) FROM visits`,
	`SELECT ward, count(DISTINCT who), count(*) FROM visits WHERE minutes > 0 GROUP BY 1`,
	`SELECT extract(month FROM day)::int AS m, count(DISTINCT who) FILTER (WHERE ward = 'A'), count(DISTINCT CASE WHEN minutes > 3 THEN who END), count(DISTINCT who) FROM visits GROUP BY 1`,
	`SELECT p.sex, v.ward, count(DISTINCT p.person_id), count(*) FROM people p JOIN visits v ON p.person_id = v.who GROUP BY 1, 2`,
	`SELECT p.sex, count(DISTINCT v.who), count(*) FROM people p LEFT JOIN visits v ON p.person_id = v.who GROUP BY 1`,
	`SELECT p.sex, count(DISTINCT v.visit), count(*) FROM people p JOIN visits v ON p.person_id = v.who JOIN doses d ON d.visit = v.visit GROUP BY 1`,
	`SELECT count(DISTINCT person_id) FROM people WHERE sex = 'f'`,
	`SELECT ward, count(DISTINCT day), count(DISTINCT extract(month FROM day)), count(DISTINCT minutes) FILTER (WHERE cost > 4) FROM visits GROUP BY 1`,
	`SELECT count(DISTINCT (ward, extract(month FROM day)::int)), count(DISTINCT ward) FILTER (WHERE minutes = 9), count(*) FILTER (WHERE minutes > 3), count(*) FILTER (WHERE minutes <= 3) FROM visits`,
	`SELECT sex, count(DISTINCT age), count(DISTINCT age) FILTER (WHERE person_id IN (SELECT who FROM visits WHERE ward = 'B')) FROM people GROUP BY 1`,
	`SELECT ward, extract(month FROM day)::int AS m, grouping(ward, extract(month FROM day)::int) AS g, count(*), count(DISTINCT who), count(DISTINCT minutes) FROM visits GROUP BY ROLLUP (ward, extract(month FROM day)::int)`,
	`SELECT sex, ward, grouping(sex, ward) AS g, count(*), count(*) FILTER (WHERE minutes > 4) FROM people p JOIN visits v ON p.person_id = v.who GROUP BY CUBE (sex, ward)`,
	`SELECT sex, age, grouping(age) AS g, count(*) FROM people GROUP BY GROUPING SETS ((sex, age), sex)`,
	`SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits o WHERE o.who = v.who AND o.minutes < o.room) GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT who, count(*) FILTER (WHERE minutes >= room OR day IS NULL) AS n FROM visits GROUP BY who) t GROUP BY n`,
	`SELECT sex, count(*) FROM people p LEFT JOIN visits v ON v.who = p.person_id AND NOT v.room > v.minutes WHERE v.who IS NULL GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT p.person_id, count(v.who) AS n FROM people p LEFT JOIN visits v ON v.who = p.person_id AND v.ward = 'A' GROUP BY 1) t GROUP BY n`,
	`SELECT ward, count(visit), count(*) FROM visits GROUP BY 1`,
	`SELECT ward, count(*) FROM visits WHERE visit IS NULL OR minutes > 3 GROUP BY 1`,
	// Groups by what is one value in all of a unit's rows are one row a unit.
	`SELECT sex, n, count(*) FROM (SELECT p.person_id, p.sex, p.age / 4 AS a, count(*) AS n FROM people p JOIN visits v ON v.who = p.person_id GROUP BY 1, 2, 3) t GROUP BY 1, 2`,
	`SELECT sex, n > 2, count(*) FROM (SELECT p.person_id, p.sex, sum(v.minutes) AS n FROM people p LEFT JOIN visits v ON v.who = p.person_id AND v.ward = 'A' GROUP BY 1, 2) t GROUP BY 1, 2`,
	`SELECT n, count(*) FROM (SELECT v.who, p.sex, count(*) AS n FROM visits v LEFT JOIN people p ON p.person_id = v.who AND v.ward = 'A' GROUP BY 1, 2) t GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT p.person_id, p.sex, v.ward, count(*) AS n FROM people p JOIN visits v ON v.who = p.person_id GROUP BY 1, 2, 3) t GROUP BY 1`,
	// Sums and differences of columns whose cells cannot be looked at together become columns.
	`SELECT ward, count(*) FROM visits WHERE cost > minutes GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits o WHERE o.who = v.who AND 2 * o.cost - o.room >= 3) GROUP BY 1`,
	`SELECT (SELECT count(*) FROM visits v WHERE v.who = p.person_id AND v.ward = 'B') AS n, count(*) FROM people p GROUP BY 1`,
	`SELECT sex, count(*) FROM people p WHERE (SELECT sum(minutes) FROM visits v WHERE v.who = p.person_id) > 3 GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE (SELECT count(*) FROM doses d WHERE d.visit = v.visit) > 1 GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits o WHERE o.who = v.who AND o.minutes < v.minutes) GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM visits o WHERE o.who = v.who AND o.minutes <> v.minutes AND o.ward = 'B') GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT who, count(*) FILTER (WHERE cost - minutes < 2.25) AS n FROM visits GROUP BY who) t GROUP BY n`,
	`SELECT sex, count(*) FROM people p LEFT JOIN visits v ON v.who = p.person_id AND v.cost <= v.room - 1 WHERE v.who IS NULL GROUP BY 1`,
	`SELECT CASE WHEN cost - room > 2 THEN 'more' WHEN cost < room THEN 'less' END AS c, count(*) FROM visits GROUP BY 1`,
	`SELECT floor(cost - minutes) AS f, floor(minutes - cost) AS g, count(*) FROM visits GROUP BY 1, 2`,
	`SELECT p.sex, count(*), count(v.cost - p.age) FROM people p JOIN visits v ON p.person_id = v.who WHERE v.cost > p.age + 0.25 GROUP BY 1`,
	`SELECT a.ward, count(*) FROM visits a JOIN visits b ON a.who = b.who WHERE a.cost - b.cost > 1 GROUP BY 1`,
	// keys of a unit's rows that are functions of the numbers of cells
	"SELECT k, count(*) FROM (SELECT DISTINCT who, minutes + 6 AS k FROM visits) v GROUP BY 1",
	"SELECT k, count(*) FROM (SELECT DISTINCT who, minutes - minutes % 3 AS k FROM visits) v GROUP BY 1",
	"SELECT k, count(*) FROM (SELECT DISTINCT who, minutes - (minutes + 5) % 4 AS k FROM visits) v GROUP BY 1",
	"SELECT k, count(*) FROM (SELECT DISTINCT who, minutes - (minutes + 7) % 4 AS k FROM visits) v GROUP BY 1",
	"SELECT k, count(*) FROM (SELECT DISTINCT who, (minutes + 5) % 4 AS k FROM visits) v GROUP BY 1",
	"SELECT k, count(*) FROM (SELECT DISTINCT who, part - part % 300 AS k FROM buys) v GROUP BY 1",
	"SELECT k, count(*) FROM (SELECT DISTINCT who, part % 9 AS k FROM buys) v GROUP BY 1",
	"SELECT k, count(*) FROM (SELECT DISTINCT who, extract(week FROM day)::int AS k FROM visits) v GROUP BY 1",
	"SELECT k, count(*) FROM (SELECT DISTINCT who, extract(month FROM day)::int AS k FROM visits) v GROUP BY 1",
	"SELECT k, count(*) FROM (SELECT DISTINCT who, extract(dow FROM day)::int AS k FROM visits) v GROUP BY 1",
	"SELECT k, count(*) FROM (SELECT DISTINCT who, part - (part + 8) % 3 AS k FROM buys) v GROUP BY 1",
	"SELECT k, count(*) FROM (SELECT DISTINCT who, part - maker - (part - maker + 12) % 5 AS k FROM buys) v GROUP BY 1",
	"SELECT part - maker - (part - maker) % 9 AS k, count(*) FROM buys GROUP BY 1",
	"SELECT part - maker - (part - maker + 4) % 7 AS k, count(*) FROM buys WHERE maker - part < 600 GROUP BY 1",
	// comparisons of columns that the database makes
	"SELECT count(*) FROM people p LEFT JOIN buys b ON b.who = p.person_id AND b.part > b.maker + 300",
	"SELECT count(*) FROM people p LEFT JOIN buys b ON b.who = p.person_id AND (b.part - b.maker) * 2 <= 7 - b.amount",
	"SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.who = p.person_id AND v.minutes < v.room - 1)",
	"SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.who = p.person_id AND v.cost >= v.room + 0.25)",
	// conditions that read the row around too
	`SELECT sex, count(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.who = p.person_id AND
		v.minutes BETWEEN p.age - 2 AND p.age) GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits o WHERE o.who = v.who AND o.day >
		v.day AND o.day <= v.day + 30) GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM visits o WHERE o.who = v.who AND o.ward =
		v.ward AND o.day < v.day AND (v.minutes IS NULL OR o.minutes < v.minutes)) GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits o WHERE o.who = v.who AND o.cost =
		v.cost + 0.5 AND o.room < v.room) GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits o WHERE o.who = v.who AND o.ward =
		v.ward AND o.room > v.room) GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM doses d JOIN visits o USING (visit) WHERE
		d.visit = v.visit AND o.minutes = v.minutes AND v.room < 5 AND o.room >= v.room) GROUP BY 1`,
	`SELECT sex, count(*), count(v.who), count(v.minutes) FROM people p LEFT JOIN visits v ON v.who = p.person_id
		AND v.minutes < p.age AND v.ward = 'A' GROUP BY 1`,
	`SELECT v.ward, o.m, count(*) FROM visits v LEFT JOIN (SELECT who, ward, max(minutes) AS m FROM visits WHERE
		room > 3 GROUP BY 1, 2) o ON o.who = v.who AND o.ward = v.ward GROUP BY 1, 2`,
	`SELECT v.ward, count(o.who), count(*) FROM visits v LEFT JOIN visits o ON o.who = v.who AND o.minutes =
		v.minutes AND o.ward = v.ward GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE day = (SELECT max(day) FROM visits o WHERE o.who = v.who AND o.ward
		= v.ward) GROUP BY 1`,
	`SELECT (SELECT count(*) FROM visits o WHERE o.who = v.who AND o.minutes = v.room AND o.ward <> 'C') AS n,
		count(*) FROM visits v GROUP BY 1`,
	// sets of units
	`SELECT sex, count(*) FROM people WHERE person_id IN (SELECT who FROM visits WHERE ward = 'A' EXCEPT SELECT
		who FROM visits WHERE ward = 'B') GROUP BY 1`,
	`SELECT sex, count(*) FROM people WHERE person_id NOT IN ((SELECT who FROM visits WHERE ward = 'A' UNION
		SELECT who FROM buys) INTERSECT SELECT who FROM visits WHERE minutes > 3) GROUP BY 1`,
	`SELECT ward, count(*) FROM visits WHERE visit IN (SELECT visit FROM doses WHERE drug = 'x' EXCEPT SELECT
		visit FROM doses WHERE drug = 'y') GROUP BY 1`,
	// what the inner side of an outer join computes
	`SELECT coalesce(f.a, 0) AS a, f.t, count(*) FROM people p LEFT JOIN (SELECT DISTINCT who, 1 AS a, 'x' AS t
		FROM visits WHERE ward = 'A') f ON f.who = p.person_id GROUP BY 1, 2`,
	`SELECT f.m, f.n, count(*) FROM people p LEFT JOIN (SELECT who, coalesce(max(minutes), -1) AS m, max(room) % 3
		AS n FROM visits GROUP BY who) f ON f.who = p.person_id GROUP BY 1, 2`,
	`SELECT g.m, count(*) FROM people p LEFT JOIN (SELECT q.person_id, coalesce(f.m, 0) AS m FROM people q LEFT
		JOIN (SELECT DISTINCT who, 5 AS m FROM visits WHERE ward = 'B') f ON f.who = q.person_id WHERE q.sex = 'f') g
		USING (person_id) GROUP BY 1`,
}

// viewStatements read tables whose sources are SELECTs.
var viewStatements = []string{
	`SELECT sex, count(*) FROM grown GROUP BY 1`,
	`SELECT half, count(*) FROM grown WHERE sex = 'f' AND half > 1 GROUP BY 1`,
	`SELECT s.ward, count(*), count(DISTINCT s.who) FROM stays s GROUP BY 1`,
	`SELECT d.drug, s.sex, count(*) FROM stays AS s JOIN doses d USING (visit) WHERE s.minutes < 7 GROUP BY 1, 2`,
	`SELECT n, longest > 3, count(*) FROM frequent GROUP BY 1, 2`,
	`SELECT g.sex, coalesce(f.n, 0), count(*) FROM grown g LEFT JOIN frequent f ON f.person = g.person_id GROUP BY 1, 2`,
	`SELECT ward, count(*), count(DISTINCT person) FROM rooms WHERE room > 2 GROUP BY 1`,
	`SELECT p.sex, r.ward, count(*) FROM grown p JOIN rooms r ON r.person = p.person_id GROUP BY 1, 2`,
	`SELECT sex, count(*) FROM people WHERE person_id NOT IN (SELECT person FROM rooms WHERE ward = 'B') GROUP BY 1`,
	`SELECT w.label, count(*) FROM rooms r JOIN wards w ON w.code = r.ward GROUP BY 1`,
}

// lookupStatements join public tables.
var lookupStatements = []string{
	`SELECT w.label, count(*) FROM visits v JOIN wards w ON v.ward = w.code GROUP BY 1`,
	`SELECT label, floor, count(*) FROM wards, visits WHERE ward = code AND floor < 3 AND minutes > 0 GROUP BY 1, 2`,
	`SELECT w.label, count(*), count(w.code) FROM visits v LEFT JOIN wards w ON w.code = v.ward AND w.floor > 1 GROUP BY 1`,
	`SELECT w.floor, p.sex, count(*) FROM people p JOIN visits v ON v.who = p.person_id JOIN wards w ON w.code = v.ward GROUP BY 1, 2`,
	`SELECT upper(w.label), count(*) FROM wards w JOIN visits v ON w.code = upper(v.ward) WHERE w.label LIKE '%r%' GROUP BY 1`,
	`SELECT w.label, count(*) FROM visits v JOIN wards w ON v.minutes + 1 = w.floor GROUP BY 1`,
	`SELECT x.label, w.floor, count(*) FROM wards x JOIN wards w ON w.floor = x.floor + 1 JOIN visits v ON v.ward
		= w.code GROUP BY 1, 2`,
	`SELECT t.tag, w.label, count(*) FROM visits v JOIN (tags t JOIN wards w ON w.code = t.code AND t.least <
		w.floor) ON v.ward = w.code AND v.minutes >= t.least GROUP BY 1, 2`,
	`SELECT w.label, count(*) FROM visits v, wards w WHERE (w.code = v.ward AND w.floor = 1 AND v.minutes < 3) OR (v.minutes >= 5 AND w.code = v.ward AND w.floor > 1) GROUP BY 1`,
}

// matchStatements join public tables of which a row may match several rows, or none, and whose own rows may stay.
var matchStatements = []string{
	`SELECT t.tag, count(*) FROM visits v JOIN tags t ON t.code = v.ward GROUP BY 1`,
	`SELECT count(*) FROM visits v JOIN tags t ON t.code = v.ward`,
	`SELECT t.tag, v.ward, count(*), count(DISTINCT v.who) FROM visits v JOIN tags t ON t.code = v.ward AND v.minutes BETWEEN t.least AND t.most GROUP BY 1, 2`,
	`SELECT t.least, count(*) FROM visits v, tags t WHERE v.minutes >= t.least AND v.room < 7 AND t.tag <> 'none' GROUP BY 1`,
	`SELECT t.tag, p.sex, count(*) FROM people p JOIN visits v ON v.who = p.person_id JOIN tags t ON t.code = v.ward WHERE t.most > v.minutes GROUP BY 1, 2`,
	`SELECT t.tag, count(*), count(t.code) FROM visits v LEFT JOIN tags t ON t.code = v.ward AND t.least > 0 AND v.minutes < 6 GROUP BY 1`,
	`SELECT t.tag, count(*) FROM tags t CROSS JOIN people p WHERE p.age > 4 GROUP BY 1`,
	`SELECT t.tag, count(v.who), count(v.minutes), count(DISTINCT v.room) FROM tags t LEFT JOIN visits v ON v.ward = t.code GROUP BY 1`,
	`SELECT w.label, count(v.visit) FROM visits v RIGHT JOIN wards w ON v.ward = w.code AND v.minutes > 3 WHERE w.floor > 1 GROUP BY 1`,
	`SELECT w.label, count(v.who) FROM visits v FULL JOIN wards w ON v.ward = w.code GROUP BY 1`,
	`SELECT t.tag, count(*) FILTER (WHERE v.minutes > 2), count(*) FILTER (WHERE v.minutes <= 2) FROM tags t LEFT JOIN visits v ON v.ward = t.code GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT v.who, count(*) AS n FROM visits v JOIN tags t ON t.code = v.ward AND t.tag = 'red' GROUP BY 1) x GROUP BY 1`,
	`SELECT t.tag, count(*) FROM people p JOIN tags t ON p.age BETWEEN t.least AND t.most WHERE EXISTS (SELECT 1 FROM visits v WHERE v.who = p.person_id) GROUP BY 1`,
	`SELECT sum(v.minutes * t.most) FROM visits v JOIN tags t ON t.code = v.ward`,
	`SELECT t.tag, w.label, count(*) FROM visits v JOIN tags t ON t.code = v.ward JOIN wards w ON w.code = t.code GROUP BY 1, 2`,
}

// usingStatements equate columns by name.
var usingStatements = []string{
	`SELECT code, label, count(*) FROM (SELECT ward AS code, minutes FROM visits) v JOIN wards USING (code) GROUP BY 1, 2`,
	`SELECT code, tag, count(*) FROM (SELECT ward AS code, minutes FROM visits) v JOIN tags USING (code) GROUP BY 1, 2`,
	`SELECT code, count(v.minutes) FROM (SELECT ward AS code, minutes FROM visits) v RIGHT JOIN wards USING (code) GROUP BY 1`,
	`SELECT code, count(*), count(label) FROM (SELECT ward AS code, minutes FROM visits) v NATURAL LEFT JOIN wards GROUP BY 1`,
	`SELECT ward, drug, count(*) FROM visits NATURAL JOIN doses GROUP BY 1, 2`,
	`SELECT ward, room, count(*) FROM visits a JOIN visits b USING (who, ward, room) GROUP BY 1, 2`,
	`SELECT ward, count(*) FROM visits a NATURAL JOIN (SELECT who, ward FROM visits WHERE minutes > 2) b GROUP BY 1`,
	`SELECT x.ward, x.room, count(*) FROM (SELECT * FROM visits a JOIN (SELECT who, ward, minutes AS m FROM visits) b USING (who, ward)) x WHERE m > 0 GROUP BY 1, 2`,
	`SELECT ward, count(*) FROM (SELECT * FROM (SELECT ward, who FROM visits) a JOIN (SELECT who, ward, minutes AS m FROM visits) b USING (ward, who)) t GROUP BY 1`,
}

// publicRows are the rows of the public tables.
type publicRows struct{ reuse.NoCache }

func (publicRows) Rows(t *policy.Table) ([][]policy.Value, bool) {
	tenths := func(n int64) policy.Value { return policy.Numeric{Coefficient: big.NewInt(n), Scale: 1} }
	if t.Name == "tags" {
		return [][]policy.Value{{"B", "red", int64(-5), int64(9)}, {"A", "red", int64(0), int64(3)}, {"A", "blue", int64(2), int64(5)}, {"B", "green", int64(4), int64(4)},
			{"E", "violet", int64(1), int64(1)}, {nil, "none", int64(0), int64(9)}, {"A", "blue", int64(2), int64(5)}}, true
	}
	if t.Name == "offers" {
		cents := func(n int64) policy.Value { return policy.Numeric{Coefficient: big.NewInt(n), Scale: 2} }
		return [][]policy.Value{{int64(0), int64(0), cents(125), int64(1), "x"}, {int64(0), int64(1), cents(-30), int64(4), "y"}, {int64(1), int64(0), nil, int64(2), "x"}, {int64(2), int64(3), cents(999), nil, nil},
			{int64(3), int64(1), cents(0), int64(-7), "z"}, {int64(1), int64(2), cents(250), int64(4), "y"}, {int64(5000), int64(1), cents(5000), int64(9), "far"}, {nil, int64(1), cents(1), int64(1), "none"}}, true
	}
	return [][]policy.Value{{"A", "heart", int64(1), tenths(105)}, {"B", "bird", int64(2), tenths(5)}, {"D", "door", int64(3), nil}}, true
}

// sumStatements are compared value by value, in the groups that have rows.
var sumStatements = []string{
	`SELECT sex, sum(age), count(*), avg(age) FROM people GROUP BY 1`,
	`SELECT sum(minutes) FROM visits`,
	`SELECT ward, sum(minutes), avg(minutes), count(minutes), stddev(minutes), var_pop(minutes) FROM visits GROUP BY 1`,
	`SELECT ward, sum(cost), avg(cost), variance(cost), stddev_pop(cost) FROM visits WHERE minutes > -3 GROUP BY 1`,
	`SELECT ward, sum(cost) FILTER (WHERE minutes > 2), sum(CASE WHEN minutes > 2 THEN cost ELSE 0 END) FROM visits GROUP BY 1`,
	`SELECT sum(CASE WHEN ward = 'A' THEN 10 WHEN ward = 'B' THEN -3 ELSE 2 END), avg(minutes * minutes), sum(minutes * 2 + 1) FROM visits`,
	`SELECT corr(minutes, cost), covar_samp(minutes, cost), regr_slope(minutes, cost), regr_intercept(minutes, cost), regr_r2(cost, minutes), regr_count(minutes, cost) FROM visits`,
	`SELECT covar_pop(minutes, cost), regr_avgx(minutes, cost), regr_avgy(minutes, cost), regr_sxx(minutes, cost), regr_sxy(minutes, cost), regr_syy(minutes, cost) FROM visits`,
	`SELECT ward, stddev_samp(minutes), var_samp(cost) FROM visits GROUP BY 1`,
	`SELECT p.sex, sum(v.minutes), avg(v.cost), sum(p.age) FROM people p JOIN visits v ON p.person_id = v.who GROUP BY 1`,
	`SELECT ward, grouping(ward) AS g, sum(minutes), count(*), avg(minutes), count(DISTINCT who), count(DISTINCT ward) FROM visits GROUP BY ROLLUP (ward)`,
	`SELECT sum(minutes) FILTER (WHERE ward = 'A'), sum(minutes) FILTER (WHERE ward = 'B'), count(*) FILTER (WHERE ward = 'A'), count(*), sum(minutes) FROM visits`,
	`SELECT avg(s), sum(s) FROM (SELECT who, sum(minutes) AS s FROM visits GROUP BY who) t`,
	`SELECT avg(a), sum(a), sum(b), count(a) FROM (SELECT who, avg(minutes) AS a, avg(cost) AS b FROM visits GROUP BY who) t`,
	`SELECT sum(n * age) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t JOIN people p ON p.person_id = t.who`,
	`SELECT sum(w.beds * v.minutes), avg(w.floor) FROM visits v JOIN wards w ON v.ward = w.code`,
	`SELECT ward, round(100.0 * sum(minutes) / nullif(count(*), 0), 1), sum(minutes) * 2 FROM visits GROUP BY ward HAVING avg(minutes) > -100`,
	`SELECT ward, sum(cost * (1 - minutes)), sum(-2 * cost), avg(cost * minutes), sum(CASE WHEN minutes > 2 THEN cost * (minutes + 3) ELSE 0 END) FROM visits GROUP BY 1`,
	`SELECT sum(a.cost * (2 - b.minutes) * (1 + p.age)) FROM people p JOIN visits a ON a.who = p.person_id JOIN visits b ON b.who = p.person_id`,
	`SELECT ward, bit_and(minutes), bit_or(minutes), bit_or(DISTINCT minutes) FILTER (WHERE room > 1), bit_and(room), bit_or(minutes) FILTER (WHERE minutes < 2), bit_and(minutes) FILTER (WHERE minutes > 1) FROM visits GROUP BY 1`,
	`SELECT ward, sum(DISTINCT minutes), avg(DISTINCT minutes), variance(DISTINCT minutes), stddev_pop(DISTINCT room), count(DISTINCT minutes), sum(DISTINCT minutes) FILTER (WHERE room > 1) FROM visits GROUP BY 1`,
	`SELECT sum(DISTINCT minutes * room), avg(DISTINCT CASE WHEN ward = 'A' THEN minutes END), sum(DISTINCT 3), sum(minutes) FROM visits`,
	`SELECT ward, sum(coalesce(minutes, 0)), sum(coalesce(minutes, 4)), sum(cost - coalesce(minutes, 2)), avg(coalesce(minutes, -3)) FROM visits GROUP BY 1`,
	`SELECT sum(coalesce(cost, 12.5) * (1 - coalesce(minutes, 3))), sum(coalesce(minutes * cost, 0)), avg(cast(cost AS numeric(9,3))), stddev(coalesce(minutes, 1) - room) FROM visits`,
	`SELECT p.sex, sum(p.age - coalesce(v.minutes, 0)), sum(CASE WHEN p.age > 3 THEN p.age - coalesce(v.minutes, -1) ELSE 0 END) FROM people p LEFT JOIN visits v ON v.who = p.person_id AND v.ward = 'B' GROUP BY 1`,
	`SELECT CASE WHEN cost < 2.25 THEN 'low' WHEN cost <= 6.6 THEN 'middle' ELSE 'high' END AS k, count(*), sum(minutes), avg(CASE WHEN cost > 3.3 THEN 1 ELSE 4 END) FROM visits GROUP BY 1`,
	`SELECT cost > 3.3 OR NULL, cost IN (2.2, NULL), count(*) FROM visits GROUP BY 1, 2`,
	`SELECT p.sex, v.cost > 4.75 AS k, count(*), sum(p.age) FROM people p LEFT JOIN visits v ON p.person_id = v.who GROUP BY 1, 2`,
	`SELECT ward, rank(2) WITHIN GROUP (ORDER BY minutes), percent_rank(2) WITHIN GROUP (ORDER BY minutes DESC),
		cume_dist(2.5) WITHIN GROUP (ORDER BY cost), rank(3) WITHIN GROUP (ORDER BY minutes NULLS FIRST)
		FILTER (WHERE room < 4), cume_dist(1) WITHIN GROUP (ORDER BY minutes DESC NULLS LAST) FROM visits GROUP BY 1`,
}

// unitStatements aggregate a unit's rows by expressions.
var unitStatements = []string{
	`SELECT b, count(*) FROM (SELECT who, bool_or(minutes > 3) AS b FROM visits GROUP BY who) t GROUP BY 1`,
	`SELECT a, b, count(*) FROM (SELECT who, bool_and(ward = 'A' OR minutes < 2) AS a,
		bool_or(cost > 3.3 AND room < 5) AS b FROM visits GROUP BY who) t GROUP BY 1, 2`,
	`SELECT a, b, count(*) FROM (SELECT who, bool_and(minutes > 0) FILTER (WHERE ward = 'A') AS a,
		bool_or(NULLIF(ward, 'B') = 'A') AS b FROM visits GROUP BY who) t GROUP BY 1, 2`,
	`SELECT m, n, count(*) FROM (SELECT who, max(CASE WHEN ward = 'B' AND minutes > 2 THEN 1 ELSE 0 END) AS m,
		min(CASE WHEN cost < 2.25 THEN 3 WHEN minutes IS NULL THEN 7 END) AS n
		FROM visits GROUP BY who) t GROUP BY 1, 2`,
	`SELECT m, n, count(*) FROM (SELECT who, min(ward) AS m, max(ward) FILTER (WHERE minutes > 0) AS n
		FROM visits GROUP BY who) t GROUP BY 1, 2`,
	`SELECT m, n, count(*) FROM (SELECT who,
		min(CASE ward WHEN 'A' THEN 'second' WHEN 'B' THEN 'first' END) AS m, max(upper(coalesce(ward,
		'd'))) AS n FROM visits WHERE room > 1 GROUP BY who) t GROUP BY 1, 2`,
	`SELECT extract(day FROM d)::int AS n, m::int AS k, y::int AS y, count(*) FROM (SELECT who,
		min(date_trunc('month', day)) AS d, max(extract(month FROM day)) AS m, min(extract(year FROM day)) AS y
		FROM visits GROUP BY who) t GROUP BY 1, 2, 3`,
	`SELECT a, b, c, count(*) FROM (SELECT who, min(5 - room) AS a, max(-minutes) AS b, max(room % 3) AS c
		FROM visits GROUP BY who) t GROUP BY 1, 2, 3`,
	`SELECT s, r, count(*) FROM (SELECT who, sum(minutes * room) AS s, sum(room + 1) AS r
		FROM visits GROUP BY who) t GROUP BY 1, 2`,
	`SELECT s, c, count(*) FROM (SELECT who, sum(CASE WHEN ward = 'A' THEN minutes ELSE 0 END) AS s,
		count(DISTINCT room % 3) AS c FROM visits GROUP BY who) t GROUP BY 1, 2`,
	`SELECT a > 2.5, a < 0, floor(a)::int AS f, count(*) FROM (SELECT who, avg(minutes) AS a
		FROM visits GROUP BY who) t GROUP BY 1, 2, 3`,
	`SELECT a = 3, a >= 4.25, count(*) FROM (SELECT who, ward, avg(cost) AS a FROM visits GROUP BY who,
		ward) t GROUP BY 1, 2`,
	`SELECT a > 1.5, s > 0.5, count(*) FROM (SELECT who, avg(minutes * 2 - room) AS a,
		avg(CASE WHEN ward = 'A' THEN 1 ELSE 0 END) AS s
		FROM visits GROUP BY who HAVING avg(minutes) > -1) t GROUP BY 1, 2`,
	`SELECT a > 2, b > 0.75, count(*) FROM (SELECT who, avg(CASE WHEN ward = 'A' THEN minutes END) AS a,
		avg(CASE WHEN room < 3 THEN 0.5 ELSE 1 END) AS b FROM visits GROUP BY who) t GROUP BY 1, 2`,
	`SELECT count(*) FROM people p WHERE (SELECT avg(v.minutes) FROM visits v WHERE v.who = p.person_id) > 2`,
	`SELECT (SELECT bool_or(v.minutes > 3) FROM visits v WHERE v.who = p.person_id) AS b, (SELECT min(v.ward)
		FROM visits v WHERE v.who = p.person_id) AS w, count(*) FROM people p GROUP BY 1, 2`,
	`SELECT b, a > 1, count(*) FROM (SELECT bool_or(minutes > 3) OVER (PARTITION BY who ORDER BY visit) AS b,
		avg(minutes) OVER (PARTITION BY who ORDER BY visit ROWS 1 PRECEDING) AS a FROM visits) t GROUP BY 1, 2`,
	`SELECT m, count(*)
		FROM (SELECT max(CASE WHEN ward = 'A' THEN 2 WHEN room > 6 THEN 1 END) OVER (PARTITION BY who) AS m
		FROM visits) t GROUP BY 1`,
	`SELECT p.sex, t.m, count(*) FROM people p LEFT JOIN (SELECT who,
		max(CASE WHEN minutes > 5 THEN 1 ELSE 0 END) AS m
		FROM visits GROUP BY who) t ON t.who = p.person_id GROUP BY 1, 2`,
}

// listedStatements look public rows up by columns of which there are too many combinations of cells, or add up what is
// looked up beside other columns.
var listedStatements = []string{
	`SELECT p.sex, sum(b.price * (1 - b.amount) - o.fee * b.amount), avg(b.price - o.fee), count(*) FROM buys b JOIN offers o ON o.part = b.part AND o.maker = b.maker JOIN people p ON p.person_id = b.who GROUP BY 1`,
	`SELECT p.sex, sum(b.price * (1 - b.amount) - o.fee * b.amount), sum(o.fee) FROM people p, offers o, buys b WHERE o.part = b.part AND p.person_id = b.who AND b.maker = o.maker AND o.least < 4 GROUP BY 1`,
	`SELECT sum(b.price - coalesce(o.fee, 1.5) * b.amount), sum(o.fee * b.amount - b.price), count(o.grade), count(*), stddev(b.price - o.fee) FROM buys b LEFT JOIN offers o ON o.part = b.part AND o.maker = b.maker`,
	`SELECT o.grade, o.least, count(*), sum(b.price) FROM buys b JOIN offers o USING (part, maker) WHERE b.amount > 0 GROUP BY 1, 2`,
	`SELECT o.part, b.maker, sum(b.price * coalesce(o.least, 0)), count(*) FROM buys b JOIN offers o ON o.maker = b.maker AND o.part = b.part GROUP BY 1, 2`,
	`SELECT sum(b.price * r.fee * b.amount + b.maker), sum(CASE WHEN b.amount > 2 THEN b.price * r.fee * (b.maker - 1) ELSE 0 END), avg(b.maker * b.price - r.fee) FROM buys b JOIN (VALUES (0, 1.5), (1, -2.25), (3, NULL), (2, 0)) r(part, fee) ON r.part = b.part`,
	`SELECT sum(b.price * b.maker * CASE WHEN b.part < 2 THEN 1.5 WHEN b.part < 4 THEN -1 END), sum(b.part % 3 * b.maker * b.price) FILTER (WHERE b.amount > 1) FROM buys b`,
	`SELECT count(*) FILTER (WHERE b.price > o.fee), count(*) FILTER (WHERE o.fee IS NULL), sum(b.amount) FROM buys b JOIN offers o ON o.part = b.part AND o.maker = b.maker`,
	`SELECT n, count(*), sum(s) FROM (SELECT b.who, count(*) AS n, sum(b.amount) AS s FROM buys b JOIN offers o ON o.part = b.part AND o.maker = b.maker WHERE o.grade <> 'y' GROUP BY 1) t GROUP BY 1`,
	`SELECT count(*), sum(b.amount) FROM buys b LEFT JOIN offers o ON o.part = b.part AND o.maker = b.maker WHERE o.part = b.part`,
	`SELECT v.ward, sum(v.minutes * o.fee + b.price * b.maker) FROM visits v JOIN buys b ON b.who = v.who JOIN offers o ON o.part = b.part AND o.maker = b.maker GROUP BY 1`,
	`SELECT count(*) FROM buys b JOIN offers o ON o.part = b.part AND o.maker = b.maker`,
}

// fullStatements keep the rows of both sides of a join along the unit.
var fullStatements = []string{
	`SELECT p.sex, count(*), count(p.person_id), count(v.who) FROM people p FULL JOIN visits v ON v.who = p.person_id AND v.ward = 'A' AND p.age > 3 GROUP BY 1`,
	`SELECT count(*) FILTER (WHERE a.who IS NOT NULL AND b.who IS NULL), count(*) FILTER (WHERE a.who IS NULL AND b.who IS NOT NULL), count(*) FILTER (WHERE a.who IS NOT NULL AND b.who IS NOT NULL) FROM (SELECT who, visit FROM visits WHERE minutes > 2 GROUP BY 1, 2) a FULL OUTER JOIN (SELECT v.who, v.visit FROM visits v JOIN doses d USING (visit) WHERE d.drug = 'x' GROUP BY 1, 2) b ON a.who = b.who AND a.visit = b.visit`,
	`SELECT coalesce(n, 0), s > 3, count(*) FROM (SELECT who, count(*) AS n FROM visits WHERE ward <> 'B' GROUP BY who) a FULL JOIN (SELECT who, sum(amount) AS s FROM buys WHERE part > 0 GROUP BY who) b USING (who) GROUP BY 1, 2`,
	`SELECT a.ward, b.part, count(*) FROM (SELECT who, ward, minutes FROM visits WHERE minutes > 0) a FULL JOIN (SELECT who, part, amount FROM buys) b ON a.who = b.who AND b.amount > 4 AND a.minutes < 8 WHERE a.minutes < 7 OR b.part < 3 GROUP BY 1, 2`,
	`SELECT p.sex, count(*), count(b.n) FROM people p LEFT JOIN (SELECT who, n, m FROM (SELECT who, max(minutes) AS n FROM visits GROUP BY who) x FULL JOIN (SELECT who, min(amount) AS m FROM buys GROUP BY who) y USING (who)) b ON b.who = p.person_id GROUP BY 1`,
	`SELECT p.sex, v.ward, count(*) FROM (SELECT person_id, sex FROM people WHERE age > 3) p FULL JOIN (SELECT who, ward FROM (SELECT who, ward, row_number() OVER (PARTITION BY who ORDER BY visit) AS n FROM visits) t WHERE n = 1) v ON v.who = p.person_id GROUP BY 1, 2`,
	`SELECT n, m, count(*), count(DISTINCT a.who) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) a FULL JOIN (SELECT who, count(*) AS m FROM buys GROUP BY who) b ON b.who = a.who AND b.m > 1 AND a.n < 3 GROUP BY 1, 2`,
}

// windowStatements say by window functions what a row is among its unit's. Where ties would be another order's in plain
// SQL, what is asked does not depend on it.
var windowStatements = []string{
	`SELECT n, count(*) FROM (SELECT row_number() OVER (PARTITION BY who ORDER BY day) AS n FROM visits) t GROUP BY 1`,
	`SELECT ward, count(*) FROM (SELECT ward, row_number() OVER (PARTITION BY who ORDER BY visit) AS n FROM visits) t WHERE n = 1 GROUP BY 1`,
	`SELECT ward, count(*) FROM (SELECT ward, row_number() OVER (PARTITION BY who ORDER BY visit DESC) AS n FROM visits WHERE minutes > 0) t WHERE n BETWEEN 2 AND 3 GROUP BY 1`,
	`SELECT r, d, count(*) FROM (SELECT rank() OVER (PARTITION BY v.who ORDER BY v.minutes) AS r, dense_rank() OVER (PARTITION BY v.who ORDER BY v.minutes) AS d FROM visits v) t GROUP BY 1, 2`,
	`SELECT r, count(*) FROM (SELECT rank() OVER w AS r FROM visits WINDOW w AS (PARTITION BY who ORDER BY cost DESC NULLS LAST, day)) t GROUP BY 1`,
	`SELECT ward, before, count(*) FROM (SELECT ward, lag(ward) OVER (PARTITION BY who ORDER BY visit) AS before FROM visits) t GROUP BY 1, 2`,
	`SELECT day - before AS gap, count(*) FROM (SELECT day, lag(day) OVER (PARTITION BY who ORDER BY day, visit) AS before FROM visits WHERE day IS NOT NULL) t GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT minutes - lead(minutes, 2, 0) OVER (PARTITION BY who ORDER BY visit) AS n FROM visits) t GROUP BY 1`,
	`SELECT m, count(*) FROM (SELECT extract(month FROM day)::int - lag(extract(month FROM day)::int) OVER (PARTITION BY who ORDER BY visit) AS m FROM visits) t GROUP BY 1`,
	`SELECT m, count(*) FROM (SELECT lag(coalesce(minutes, -7)) OVER (PARTITION BY who ORDER BY visit) AS m FROM visits) t GROUP BY 1`,
	`SELECT f, l, count(*) FROM (SELECT first_value(ward) OVER (PARTITION BY who ORDER BY visit) AS f, last_value(ward) OVER (PARTITION BY who ORDER BY visit ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM visits) t GROUP BY 1, 2`,
	`SELECT s, count(*) FROM (SELECT sum(minutes) OVER (PARTITION BY who ORDER BY day) AS s FROM visits) t GROUP BY 1`,
	`SELECT s, count(*) FROM (SELECT sum(minutes) OVER (PARTITION BY who ORDER BY visit ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS s FROM visits) t GROUP BY 1`,
	`SELECT n, m, count(*) FROM (SELECT count(*) OVER (PARTITION BY who) AS n, count(minutes) FILTER (WHERE ward = 'A') OVER (PARTITION BY who ORDER BY visit ROWS 1 PRECEDING) AS m FROM visits) t GROUP BY 1, 2`,
	`SELECT a, b, count(*) FROM (SELECT min(room) OVER (PARTITION BY who ORDER BY day DESC) AS a, max(room) OVER (PARTITION BY who, ward) AS b FROM visits) t GROUP BY 1, 2`,
	`SELECT q, count(*) FROM (SELECT ntile(3) OVER (PARTITION BY who ORDER BY visit) AS q FROM visits) t GROUP BY 1`,
	`SELECT ward, n, count(*) FROM (SELECT ward, row_number() OVER (PARTITION BY who, ward ORDER BY visit) AS n FROM visits) t GROUP BY 1, 2`,
	`SELECT m, n, count(*) FROM (SELECT extract(month FROM day)::int AS m, row_number() OVER (PARTITION BY who, extract(month FROM day) ORDER BY day) AS n FROM visits) t GROUP BY 1, 2`,
	`SELECT n, count(*) FROM (SELECT row_number() OVER (PARTITION BY visit) AS n FROM doses) t GROUP BY 1`,
	`SELECT sex, ward, count(*) FROM people p JOIN (SELECT who, ward, row_number() OVER (PARTITION BY who ORDER BY visit) AS n FROM visits) t ON t.who = p.person_id WHERE n = 1 GROUP BY 1, 2`,
	`SELECT sex, n, count(*) FROM (SELECT p.sex, row_number() OVER (PARTITION BY p.person_id ORDER BY v.visit) AS n FROM people p JOIN visits v ON v.who = p.person_id WHERE p.age > 2) t GROUP BY 1, 2`,
	`SELECT sex, ward, count(*) FROM people p LEFT JOIN (SELECT DISTINCT ON (who) who, ward FROM visits ORDER BY who, visit) t ON t.who = p.person_id GROUP BY 1, 2`,
	`SELECT count(*) FROM (SELECT DISTINCT ON (1) who, ward FROM visits ORDER BY who, visit DESC) t WHERE ward = 'A'`,
	`SELECT ward, m, count(*) FROM (SELECT DISTINCT ON (who, ward) ward, minutes AS m FROM visits ORDER BY ward, who, visit) t GROUP BY 1, 2`,
	`SELECT x, count(*) FROM (SELECT who, max(n) AS x FROM (SELECT who, row_number() OVER (PARTITION BY who ORDER BY visit) AS n FROM visits WHERE ward = 'B') t GROUP BY who) u GROUP BY 1`,
	`SELECT r, count(*) FROM (SELECT rank() OVER (PARTITION BY who ORDER BY n DESC) AS r FROM (SELECT who, ward, count(*) AS n FROM visits GROUP BY 1, 2) g) t GROUP BY 1`,
	`SELECT count(*) FROM (SELECT cost - lag(cost) OVER (PARTITION BY who ORDER BY visit) AS more FROM visits) t WHERE more > 1.25`,
	`WITH steps AS (SELECT who, ward, lead(ward) OVER (PARTITION BY who ORDER BY visit) AS next FROM visits) SELECT ward, next, count(*), count(DISTINCT who) FROM steps WHERE next IS NOT NULL GROUP BY 1, 2`,
	`SELECT m, count(*) FROM (SELECT lag(minutes, 1, room) OVER (PARTITION BY who ORDER BY visit) AS m FROM visits) t GROUP BY 1`,
	`SELECT m, count(*) FROM (SELECT lead(room + 1, 2, CASE WHEN ward = 'A' THEN -1 END) OVER (PARTITION BY who ORDER BY visit) AS m FROM visits) t GROUP BY 1`,
	`SELECT n, s, count(*) FROM (SELECT count(*) OVER w AS n, sum(room) OVER w AS s FROM visits
		WINDOW w AS (PARTITION BY who ORDER BY minutes RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING)) t GROUP BY 1, 2`,
	`SELECT n, m, count(*) FROM (SELECT count(*) OVER (PARTITION BY who ORDER BY day
		RANGE interval '7 days' PRECEDING) AS n, max(room) OVER (PARTITION BY who ORDER BY day
		RANGE BETWEEN interval '36 hours' FOLLOWING AND interval '20 days' FOLLOWING) AS m FROM visits) t
		GROUP BY 1, 2`,
	`SELECT n, m, count(*) FROM (SELECT count(minutes) OVER (PARTITION BY who ORDER BY day DESC
		RANGE BETWEEN interval '9000 days' PRECEDING AND interval '12 hours' PRECEDING) AS n,
		min(room) OVER (PARTITION BY who ORDER BY minutes DESC NULLS LAST
			RANGE BETWEEN 1 FOLLOWING AND 9000000000 FOLLOWING) AS m
		FROM visits) t GROUP BY 1, 2`,
	`SELECT r, ward, count(*) FROM (SELECT row_number() OVER (PARTITION BY who ORDER BY ward DESC, visit) AS r, ward
		FROM visits) t GROUP BY 1, 2`,
	`SELECT r, d, count(*) FROM (SELECT rank() OVER (PARTITION BY who ORDER BY minutes % 3, ward NULLS FIRST) AS r,
		dense_rank() OVER (PARTITION BY who ORDER BY extract(month FROM day) DESC) AS d FROM visits) t GROUP BY 1, 2`,
	`SELECT l, n, count(*) FROM (SELECT lag(ward) OVER (PARTITION BY who ORDER BY minutes > 3, visit) AS l,
		row_number() OVER (PARTITION BY who ORDER BY abs(room - 5), visit) AS n FROM visits) t GROUP BY 1, 2`,
}

// tiedStatements number rows that tie in the window's order, which plain SQL may number in any order.
var tiedStatements = []string{
	`SELECT ward, count(*) FROM (SELECT ward, row_number() OVER (PARTITION BY who) AS n FROM visits) t WHERE n = 1 GROUP BY 1`,
	`SELECT ward, before, count(*) FROM (SELECT ward, lag(ward) OVER (PARTITION BY who ORDER BY minutes) AS before FROM visits) t GROUP BY 1, 2`,
	`SELECT ward, s, count(*) FROM (SELECT ward, sum(minutes) OVER (PARTITION BY who ORDER BY cost ROWS 1 PRECEDING) AS s FROM (SELECT who, ward, minutes, cost, day FROM visits) c) t GROUP BY 1, 2`,
	`SELECT kind, ward, count(*) FROM (SELECT DISTINCT ON (c.who) c.kind, v.ward FROM calls c JOIN visits v ON v.who = c.who ORDER BY c.who, v.minutes) t GROUP BY 1, 2`,
}

// unionStatements put rows of several tables, or of one, below one another.
var unionStatements = []string{
	`SELECT s, count(*) FROM (SELECT 'visit' AS s, who FROM visits UNION ALL SELECT 'person', person_id FROM people) t GROUP BY 1`,
	`SELECT s, count(*) FROM (SELECT ward AS s FROM visits UNION ALL SELECT sex FROM people UNION ALL SELECT drug FROM doses) t GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT person_id AS who, age AS n FROM people UNION ALL SELECT who, minutes FROM visits WHERE ward = 'A') t GROUP BY 1`,
	`SELECT n, count(*), count(DISTINCT who) FROM (SELECT person_id AS who, age AS n, NULL::text AS w FROM people WHERE age > 2 UNION ALL SELECT who, room, ward FROM visits) t WHERE w IS DISTINCT FROM 'B' GROUP BY 1`,
	`SELECT s, n >= 2, count(*) FROM (SELECT 1 AS s, who, cost AS n FROM visits UNION ALL SELECT 2, person_id, age FROM people UNION ALL SELECT 3, who, 2.5 FROM visits WHERE minutes < 0) t WHERE n BETWEEN 1 AND 3.5 GROUP BY 1, 2`,
	`SELECT extract(month FROM v)::int AS m, w, count(*) FROM (SELECT day AS v, ward AS w, visit FROM visits UNION ALL SELECT NULL, drug, visit FROM doses) t WHERE v < '2025-02-01' OR v IS NULL GROUP BY 1, 2`,
	`SELECT p.sex, t.s, count(*) FROM people p JOIN (SELECT who, 'v' AS s FROM visits UNION ALL SELECT v.who, d.drug FROM visits v JOIN doses d ON d.visit = v.visit) t ON t.who = p.person_id GROUP BY 1, 2`,
	`SELECT n, count(*) FROM (SELECT who, count(*) AS n FROM (SELECT who FROM visits UNION ALL SELECT person_id FROM people WHERE sex = 'f') t GROUP BY who) u GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who UNION ALL SELECT person_id, age FROM people) t GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT who, minutes AS n FROM visits UNION SELECT person_id, age FROM people) t GROUP BY 1`,
	`SELECT count(*) FROM (SELECT who FROM visits WHERE ward = 'A' UNION SELECT person_id FROM people WHERE age > 4) t`,
	`SELECT count(*) FROM (SELECT who FROM visits WHERE ward = 'A' INTERSECT SELECT person_id FROM people WHERE age > 4) t`,
	`SELECT count(*) FROM (SELECT who FROM visits WHERE ward IN ('A', 'B') EXCEPT SELECT person_id FROM people WHERE age > 4) t`,
	`SELECT count(*) FROM (SELECT person_id FROM people EXCEPT SELECT who FROM visits WHERE ward = 'A' EXCEPT SELECT who FROM visits WHERE minutes > 3) t`,
	`SELECT sex, count(*) FROM people p JOIN (SELECT who FROM visits WHERE ward = 'A' INTERSECT SELECT who FROM visits WHERE ward = 'B') t ON t.who = p.person_id GROUP BY 1`,
	`SELECT s, r, count(*) FROM (SELECT s, row_number() OVER (PARTITION BY who ORDER BY s DESC, n, k) AS r FROM (SELECT who, 1 AS s, minutes AS n, room AS k FROM visits UNION ALL SELECT person_id, 0, age, 0 FROM people) e) t GROUP BY 1, 2`,
	`WITH events AS (SELECT who, day AS d, ward AS w FROM visits UNION ALL SELECT person_id, date '2025-02-03', sex FROM people) SELECT w, d > '2025-01-15', count(*) FROM events GROUP BY 1, 2`,
	`SELECT s, l, f, d > '2025-02-01', count(*) FROM (SELECT 'visit' AS s, w.label AS l, w.floor AS f, v.day + 1 AS d, v.minutes > 3 AS b FROM visits v JOIN wards w ON w.code = v.ward UNION ALL SELECT 'buy', o.grade, o.least, NULL, b.amount IS NULL FROM buys b JOIN offers o ON o.part = b.part AND o.maker = b.maker) t WHERE b IS NOT TRUE OR f > 0 GROUP BY 1, 2, 3, 4`,
	`SELECT w, count(*) FROM (SELECT who, ward AS w, extract(month FROM day)::int FROM visits WHERE minutes > 0 INTERSECT SELECT who, ward, extract(month FROM day)::int FROM visits WHERE room < 6) t GROUP BY 1`,
	`SELECT w, m, count(*) FROM (SELECT who, ward AS w, minutes AS m FROM visits EXCEPT SELECT v.who, v.ward, b.amount FROM visits v JOIN buys b ON b.who = v.who) t GROUP BY 1, 2`,
	`SELECT n, count(*) FROM (SELECT person_id, age AS n FROM people INTERSECT SELECT who, minutes FROM visits INTERSECT SELECT who, room FROM visits) t GROUP BY 1`,
	`SELECT n, count(DISTINCT person_id) FROM (SELECT person_id, age % 4 AS n FROM people EXCEPT SELECT who, part FROM buys EXCEPT SELECT who, NULL::int FROM visits) t GROUP BY 1`,
	`SELECT l, count(*) FROM (SELECT v.who, w.label AS l FROM visits v JOIN wards w ON w.code = v.ward EXCEPT SELECT b.who, o.grade FROM buys b JOIN offers o USING (part, maker)) t GROUP BY 1`,
	`SELECT m, n, count(*), count(DISTINCT who) FROM (SELECT who, extract(month FROM day)::int AS m, minutes % 3 AS n FROM visits UNION ALL SELECT who, part, amount FROM buys) t GROUP BY 1, 2`,
}

// listStatements join lists that they write themselves: calendars, VALUES, projections of public tables.
var listStatements = []string{
	`SELECT extract(day FROM d)::int AS n, count(v.who) FROM generate_series(date '2025-01-01', date '2025-01-20', interval '1 day') d(d) LEFT JOIN visits v ON v.day = d::date GROUP BY 1`,
	`WITH days AS (SELECT d::date AS day FROM generate_series('2025-01-01'::date, '2025-01-31'::date, interval '1 day') s(d)) SELECT extract(month FROM days.day)::int AS m, count(v.who), count(DISTINCT v.who) FROM days LEFT JOIN visits v ON v.day = days.day AND v.ward = 'A' GROUP BY 1`,
	`SELECT extract(week FROM w)::int AS n, count(*) FROM generate_series(timestamp '2024-12-30', timestamp '2025-02-01', interval '7 days') w(w) JOIN visits v ON v.day >= w AND v.day < w + interval '7 days' GROUP BY 1`,
	`SELECT r.name, count(v.who) FROM (VALUES ('A', 'ann'), ('B', 'bob'), ('C', 'ann'), ('D', 'bob')) r(code, name) LEFT JOIN visits v ON v.ward = r.code GROUP BY 1`,
	`SELECT r.name, count(*) FROM (VALUES ('A', 'ann'), ('B', 'bob'), ('C', 'ann'), ('A', 'bob')) r(code, name) JOIN visits v ON v.ward = r.code GROUP BY 1`,
	`SELECT b.name, count(p.person_id) FROM (VALUES ('young', 0, 4), ('old', 3, 9)) b(name, low, high) LEFT JOIN people p ON p.age BETWEEN b.low AND b.high GROUP BY 1`,
	`SELECT r.l, count(v.who) FROM (SELECT code, upper(label) AS l FROM wards WHERE code <> 'B') r LEFT JOIN visits v ON r.code = v.ward GROUP BY 1`,
	`SELECT count(*) FROM people, (VALUES (3), (6)) v(n) WHERE age > v.n`,
	`SELECT s, count(*) FROM (SELECT v.n * p.age AS s FROM people p, (VALUES (1), (2)) v(n)) t GROUP BY 1`,
	`SELECT v.ward, r.name, count(*) FROM visits v LEFT JOIN (VALUES ('A', 'ann'), ('B', 'bob')) r(code, name) ON v.ward = r.code GROUP BY 1, 2`,
}

// rowStatements look for rows of a key and columns, where no unit is NULL.
var rowStatements = []string{
	`SELECT sex, count(*) FROM people WHERE (person_id, age) IN (SELECT who, minutes FROM visits WHERE ward <>
		'A') GROUP BY 1`,
	`SELECT sex, count(*) FROM people WHERE (age, person_id) NOT IN (SELECT minutes, who FROM visits WHERE room >
		2) GROUP BY 1`,
	`SELECT ward, count(*) FROM visits WHERE (who, room, ward) IN (SELECT who, minutes, ward FROM visits UNION
		SELECT person_id, age, 'B' FROM people) GROUP BY 1`,
}
