-- A forum's data explorer: periods in a CTE, topics and posts by category, readers who came back.
CREATE TABLE members (id integer PRIMARY KEY, trust_level smallint, staff boolean, created_at timestamp, last_seen_at timestamp);
INSERT INTO members SELECT i, i % 5, i % 40 = 0, timestamp '2024-01-01' + i * interval '20 hours', timestamp '2024-06-01' + i * interval '14 hours' FROM generate_series(1, 300) s(i);
CREATE TABLE topics (id integer PRIMARY KEY, user_id integer REFERENCES members, category_id integer, created_at timestamp, views integer, archetype text, deleted_at timestamp);
INSERT INTO topics SELECT i, 1 + (i * 13) % 300, 1 + i % 6, timestamp '2024-01-01' + i * interval '14 hours', (i * 7) % 101, CASE WHEN i % 6 = 0 THEN 'private_message' ELSE 'regular' END, CASE WHEN i % 20 = 0 THEN timestamp '2024-12-01' END FROM generate_series(1, 600) s(i);
CREATE TABLE posts (id integer PRIMARY KEY, user_id integer REFERENCES members, topic_id integer REFERENCES topics, created_at timestamp, like_count integer, post_number integer);
INSERT INTO posts SELECT i, 1 + (i * 7) % 300, 1 + i % 600, timestamp '2024-01-02' + i * interval '6 hours', i % 12, 1 + i % 9 FROM generate_series(1, 1400) s(i);
CREATE TABLE categories (id integer PRIMARY KEY, name text, read_restricted boolean);
INSERT INTO categories SELECT i, 'Category ' || i, i = 6 FROM generate_series(1, 6) s(i);
-- policy: {name: member, key: members.id, type: integer}
      - {name: members, max_rows_per_unit: 1, expected_rows: 300, columns: [{name: id, type: integer, keys: join}, {name: trust_level, type: smallint, domain: {min: 0, max: 4}}, {name: staff, type: boolean}, {name: created_at, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 day}}, {name: last_seen_at, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 day}}]}
      - {name: topics, unit: topics.user_id = members.id, max_rows_per_unit: 2, expected_rows: 600, columns: [{name: id, type: integer, keys: join}, {name: user_id, type: integer, keys: join}, {name: category_id, type: integer, domain: {min: 1, max: 6}}, {name: created_at, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 hour}}, {name: views, type: integer, domain: {min: 0, max: 100}}, {name: archetype, type: text, domain: {values: [regular, private_message]}, nulls: exclude, outside: exclude}, {name: deleted_at, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 day}}]}
      - {name: posts, unit: posts.user_id = members.id, max_rows_per_unit: 5, expected_rows: 1400, columns: [{name: id, type: integer, keys: join}, {name: user_id, type: integer, keys: join}, {name: created_at, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 hour}}, {name: like_count, type: integer, domain: {min: 0, max: 11}}, {name: post_number, type: integer, domain: {min: 1, max: 9}}, {name: topic_id, type: integer, keys: join}]}
      - {name: categories, public: true, columns: [{name: id, type: integer}, {name: name, type: text}, {name: read_restricted, type: boolean}]}
-- reports
WITH query_period AS (SELECT date '2024-03-01' AS period_start, date '2024-04-01' AS period_end) SELECT c.name, count(*) AS topics FROM topics t JOIN categories c ON c.id = t.category_id, query_period qp WHERE t.created_at >= qp.period_start AND t.created_at < qp.period_end AND t.deleted_at IS NULL AND t.archetype = 'regular' GROUP BY c.name ORDER BY topics DESC, c.name;
WITH t AS (SELECT CURRENT_TIMESTAMP - ((0 * 100000) * (INTERVAL '1 days')) AS start) SELECT count(*) FROM members WHERE created_at < (SELECT start FROM t);
SELECT to_char(created_at, 'YYYY-MM') AS month, count(*) AS posts, count(DISTINCT user_id) AS posters, round(count(*)::numeric / nullif(count(DISTINCT user_id), 0), 2) AS per_poster FROM posts GROUP BY 1 HAVING count(*) > 0 ORDER BY 1;
SELECT m.trust_level, count(*) AS topics, round(avg(t.views), 1) AS views FROM topics t INNER JOIN members m ON m.id = t.user_id WHERE NOT m.staff GROUP BY m.trust_level ORDER BY 1;
SELECT count(*) FROM members m LEFT JOIN posts p ON p.user_id = m.id WHERE p.id IS NULL;
WITH monthly AS (SELECT user_id, date_trunc('month', created_at) AS month FROM posts GROUP BY 1, 2) SELECT month::date, count(*) AS active FROM monthly GROUP BY 1 HAVING count(*) > 0 ORDER BY 1;
-- refused: 42501 "user_id" names rows of one member: it may join, be counted with DISTINCT, and nothing else
SELECT user_id, count(*) AS posts FROM posts GROUP BY user_id ORDER BY posts DESC LIMIT 10;
-- refused: 42501 "topic_id" names rows of one member: it may join, be counted with DISTINCT, and nothing else
SELECT p.topic_id, sum(p.like_count) AS likes FROM posts p GROUP BY 1 ORDER BY likes DESC LIMIT 5;
SELECT CASE WHEN n = 0 THEN 'none' WHEN n < 3 THEN '1-2' ELSE '3+' END AS bucket, count(*) FROM (SELECT m.id, count(p.id) AS n FROM members m LEFT JOIN posts p ON p.user_id = m.id AND p.post_number > 1 GROUP BY m.id) x GROUP BY 1 HAVING count(*) > 0 ORDER BY 1;
SELECT c.name, sum(t.views) AS views FROM members m JOIN topics t ON t.user_id = m.id JOIN categories c ON c.id = t.category_id GROUP BY 1 ORDER BY 1;
SELECT round(avg(views), 1) FROM topics WHERE archetype = 'regular'
