-- What is looked up beside other columns, FULL JOIN, set operations of several columns, and unions of what is looked up, each asked at an epsilon that leaves no noise and of PostgreSQL: the answers are the same.
SELECT round(sum(p.grams * w.floor - v.minutes), -3), count(*) FROM people p JOIN visits v ON v.who = p.person_id JOIN wards w ON w.ward = v.ward;
SELECT round(sum(grams * CASE WHEN age < 30 THEN 2 WHEN age < 60 THEN -1 END), -2), round(sum(grams * (age % 3)), -2) FROM people;
SELECT sex, round(sum(grams * extract(month FROM joined)), -3) FROM people WHERE sex IN ('f', 'm') GROUP BY sex;
SELECT round(avg(grams - 10 * t.rate), 0), round(sum(CASE WHEN active THEN grams * t.rate ELSE 0 END), -3) FROM people p JOIN (VALUES ('Rome', 1.25), ('Oslo', -2.5)) t(town, rate) ON t.town = p.town;
SELECT round(sum(grams - coalesce(t.size, 7) * age), -2), count(t.size) FROM people p LEFT JOIN (VALUES ('Rome', 2), ('Bern', 5)) t(town, size) ON t.town = p.town;
SELECT round(1.0 * sum(p.grams * w.floor) / sum(p.grams), 1) FROM people p JOIN visits v ON v.who = p.person_id JOIN wards w ON w.ward = v.ward WHERE v.minutes > 10;
SELECT count(*), count(p.person_id), count(v.who) FROM people p FULL JOIN visits v ON v.who = p.person_id;
SELECT count(*) FILTER (WHERE v.who IS NULL), count(*) FILTER (WHERE p.person_id IS NULL), sum(v.minutes), sum(p.age) FROM people p FULL OUTER JOIN visits v ON v.who = p.person_id AND v.ward = 'A' AND p.active;
SELECT count(*) FILTER (WHERE a.who IS NOT NULL AND b.who IS NULL), count(*) FILTER (WHERE a.who IS NULL AND b.who IS NOT NULL), count(*) FILTER (WHERE a.who IS NOT NULL AND b.who IS NOT NULL)
  FROM (SELECT who FROM visits WHERE ward = 'A' GROUP BY who) a FULL JOIN (SELECT who FROM visits WHERE ward = 'B' GROUP BY who) b ON a.who = b.who;
WITH a AS (SELECT who, count(*) AS n FROM visits WHERE minutes > 20 GROUP BY who), b AS (SELECT who, max(minutes) AS m FROM visits WHERE cost > 50 GROUP BY who) SELECT coalesce(n, 0), m > 30, count(*), count(DISTINCT who) FROM a FULL JOIN b USING (who) GROUP BY 1, 2 HAVING count(*) > 0;
SELECT count(*) FROM (SELECT who, ward FROM visits WHERE minutes > 10 INTERSECT SELECT who, ward FROM visits WHERE cost < 60) t;
SELECT ward, count(*), count(DISTINCT who) FROM (SELECT who, ward, extract(month FROM at)::int AS m FROM visits EXCEPT SELECT who, ward, extract(month FROM at)::int FROM visits WHERE minutes < 20) t WHERE ward IN ('A', 'B', 'C') GROUP BY ward;
SELECT count(*) FROM (SELECT who, ward FROM visits WHERE minutes > 10 INTERSECT SELECT who, ward FROM visits WHERE cost < 60 INTERSECT SELECT who, ward FROM visits WHERE cost > 20) t;
SELECT count(*) FROM (SELECT person_id, age FROM people EXCEPT SELECT who, minutes FROM visits) t;
SELECT f, count(*) FROM (SELECT v.who, w.floor AS f FROM visits v JOIN wards w ON w.ward = v.ward UNION ALL SELECT person_id, age % 3 FROM people) t WHERE f IS NOT NULL GROUP BY f HAVING count(*) > 0;
SELECT what, l, count(*), sum(n) FROM (SELECT 'visit' AS what, w.head AS l, v.minutes AS n FROM visits v JOIN wards w ON w.ward = v.ward UNION ALL SELECT 'person', CASE WHEN active THEN 'x' ELSE 'z' END, age FROM people) t GROUP BY what, l HAVING count(*) > 0;
SELECT d > '2020-03-01', count(*) FROM (SELECT person_id, joined + 1 AS d FROM people UNION ALL SELECT who, at::date FROM visits) t WHERE d IS NOT NULL GROUP BY 1;
