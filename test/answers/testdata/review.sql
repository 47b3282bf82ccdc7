-- Statements of the review.
SELECT value, (SELECT count(*) FROM people WHERE age = value) AS n FROM (SELECT DISTINCT size + 20 AS value FROM towns WHERE size > 0) x ORDER BY 1;
SELECT key_1, (SELECT sum(minutes) FROM visits WHERE minutes = key_1) AS n FROM (SELECT DISTINCT size + 20 AS key_1 FROM towns WHERE size > 0) x ORDER BY 1;
SELECT x.value, (SELECT sum(minutes) FROM visits v WHERE v.minutes = x.value) AS s FROM (VALUES (21), (22)) x(value) ORDER BY 1;
SELECT groups_of_each.ward, (SELECT count(*) FROM visits v WHERE v.ward = groups_of_each.ward) AS n FROM wards groups_of_each ORDER BY 1;
SELECT count(*) FROM visits WHERE ward <> ALL (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 0);
SELECT count(*) FROM visits WHERE (ward = ANY (SELECT ward FROM visits WHERE minutes > 20 GROUP BY ward HAVING count(*) > 0)) IS NULL;
SELECT count(*) FROM people WHERE age > ALL (SELECT avg(age) FROM people WHERE active GROUP BY sex HAVING count(*) > 100000);
SELECT count(*) FROM people WHERE age NOT IN (SELECT age FROM people GROUP BY age HAVING count(*) > 3);
SELECT count(*) FROM people p WHERE (SELECT count(cost) FROM visits v WHERE v.who = p.person_id) > 2;
SELECT w.ward, (SELECT count(cost) FROM visits v WHERE v.ward = w.ward AND minutes > 10) AS n FROM wards w ORDER BY 1;
SELECT w.ward, (SELECT count(*) FILTER (WHERE minutes > 10) FROM visits v WHERE v.ward = w.ward) AS n FROM wards w ORDER BY 1;
SELECT count(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM visits o WHERE o.who = v.who AND o.minutes <> v.minutes);
SELECT count(*) FROM people p WHERE (SELECT count(*) FROM visits v WHERE v.who = p.person_id AND v.ward IS NULL) = 0 AND (SELECT count(*) FROM visits v WHERE v.who = p.person_id) > 0;
SELECT t.country, (SELECT count(*) FROM people p WHERE p.town = t.town) AS n FROM towns t WHERE t.town NOT IN (SELECT town FROM towns WHERE size = 3) ORDER BY 1;
SELECT w.floor, (SELECT count(*) FROM visits v JOIN people p ON p.person_id = v.who WHERE v.ward = w.ward AND p.active) AS n FROM wards w ORDER BY 1
