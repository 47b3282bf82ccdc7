package rewrite_test

import (
	"math/big"

	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

const joinPolicy = `
version: 1
backend: {url: "duckdb:warehouse.duckdb"}
ledger: {url: "sqlite:l"}
users: [{name: alice, password: "SCRAM-SHA-256$4096:AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}]
datasets:
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
	// Sums and differences of columns whose cells cannot be looked at together become columns.
	`SELECT ward, count(*) FROM visits WHERE cost > minutes GROUP BY 1`,
	`SELECT ward, count(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits o WHERE o.who = v.who AND 2 * o.cost - o.room >= 3) GROUP BY 1`,
	`SELECT n, count(*) FROM (SELECT who, count(*) FILTER (WHERE cost - minutes < 2.25) AS n FROM visits GROUP BY who) t GROUP BY n`,
	`SELECT sex, count(*) FROM people p LEFT JOIN visits v ON v.who = p.person_id AND v.cost <= v.room - 1 WHERE v.who IS NULL GROUP BY 1`,
	`SELECT CASE WHEN cost - room > 2 THEN 'more' WHEN cost < room THEN 'less' END AS c, count(*) FROM visits GROUP BY 1`,
	`SELECT floor(cost - minutes) AS f, floor(minutes - cost) AS g, count(*) FROM visits GROUP BY 1, 2`,
	`SELECT p.sex, count(*), count(v.cost - p.age) FROM people p JOIN visits v ON p.person_id = v.who WHERE v.cost > p.age + 0.25 GROUP BY 1`,
	`SELECT a.ward, count(*) FROM visits a JOIN visits b ON a.who = b.who WHERE a.cost - b.cost > 1 GROUP BY 1`,
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
	`SELECT sum(n * age) FROM (SELECT who, count(*) AS n FROM visits GROUP BY who) t JOIN people p ON p.person_id = t.who`,
	`SELECT sum(w.beds * v.minutes), avg(w.floor) FROM visits v JOIN wards w ON v.ward = w.code`,
	`SELECT ward, round(100.0 * sum(minutes) / nullif(count(*), 0), 1), sum(minutes) * 2 FROM visits GROUP BY ward HAVING avg(minutes) > -100`,
	`SELECT ward, sum(cost * (1 - minutes)), sum(-2 * cost), avg(cost * minutes), sum(CASE WHEN minutes > 2 THEN cost * (minutes + 3) ELSE 0 END) FROM visits GROUP BY 1`,
	`SELECT sum(a.cost * (2 - b.minutes) * (1 + p.age)) FROM people p JOIN visits a ON a.who = p.person_id JOIN visits b ON b.who = p.person_id`,
	`SELECT ward, bit_and(minutes), bit_or(minutes), bit_or(DISTINCT minutes) FILTER (WHERE room > 1), bit_and(room), bit_or(minutes) FILTER (WHERE minutes < 2), bit_and(minutes) FILTER (WHERE minutes > 1) FROM visits GROUP BY 1`,
	`SELECT ward, sum(DISTINCT minutes), avg(DISTINCT minutes), variance(DISTINCT minutes), stddev_pop(DISTINCT room), count(DISTINCT minutes), sum(DISTINCT minutes) FILTER (WHERE room > 1) FROM visits GROUP BY 1`,
	`SELECT sum(DISTINCT minutes * room), avg(DISTINCT CASE WHEN ward = 'A' THEN minutes END), sum(DISTINCT 3), sum(minutes) FROM visits`,
}
