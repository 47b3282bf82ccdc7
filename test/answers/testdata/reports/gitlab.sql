-- Counts of a service ping: rows by ranges of their ids, different authors, features in use.
CREATE TABLE users (id integer PRIMARY KEY, state text, created_at timestamp, user_type smallint, projects_limit integer);
INSERT INTO users SELECT i, CASE WHEN i % 9 = 0 THEN 'blocked' ELSE 'active' END, timestamp '2024-01-01' + i * interval '12 hours', CASE WHEN i % 50 = 0 THEN 1 ELSE 0 END, i % 20 FROM generate_series(1, 300) s(i);
CREATE TABLE issues (id integer PRIMARY KEY, author_id integer REFERENCES users, project_id integer, state_id smallint, confidential boolean, created_at timestamp, closed_at timestamp, weight integer, title text);
INSERT INTO issues SELECT i, 1 + i % 300, 1 + i % 15, 1 + i % 2, i % 10 = 0, timestamp '2024-01-01' + i * interval '5 hours', CASE WHEN i % 2 = 1 THEN timestamp '2024-01-03' + i * interval '5 hours' END, CASE WHEN i % 4 > 0 THEN i % 9 END, 'Issue ' || i FROM generate_series(1, 900) s(i);
CREATE TABLE notes (id integer PRIMARY KEY, author_id integer REFERENCES users, issue_id integer REFERENCES issues, created_at timestamp, system boolean);
INSERT INTO notes SELECT i, 1 + (i * 3) % 300, 1 + i % 900, timestamp '2024-01-02' + i * interval '3 hours', i % 5 = 0 FROM generate_series(1, 1200) s(i);
CREATE TABLE projects (id integer PRIMARY KEY, visibility_level smallint, archived boolean);
INSERT INTO projects SELECT i, 10 * (i % 3), i % 5 = 0 FROM generate_series(1, 15) s(i);
-- policy: {name: user, key: users.id, type: integer}
      - {name: users, max_rows_per_unit: 1, expected_rows: 300, columns: [{name: id, type: integer, keys: join}, {name: state, type: text, domain: {values: [active, blocked]}, nulls: exclude, outside: exclude}, {name: created_at, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 day}, offgrid: snap}, {name: user_type, type: smallint, domain: {min: 0, max: 5}}, {name: projects_limit, type: integer, domain: {min: 0, max: 20}}]}
      - {name: issues, unit: issues.author_id = users.id, max_rows_per_unit: 3, expected_rows: 900, columns: [{name: id, type: integer, keys: join}, {name: author_id, type: integer, keys: join}, {name: project_id, type: integer, domain: {min: 1, max: 15}}, {name: state_id, type: smallint, domain: {min: 1, max: 2}}, {name: confidential, type: boolean},
          {name: created_at, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 hour}}, {name: closed_at, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 hour}}, {name: weight, type: integer, domain: {min: 0, max: 9}}, {name: title, type: text, domain: any}]}
      - {name: notes, unit: notes.author_id = users.id, max_rows_per_unit: 12, expected_rows: 1200, columns: [{name: id, type: integer, keys: join}, {name: author_id, type: integer, keys: join}, {name: created_at, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 hour}}, {name: system, type: boolean}]}
      - {name: projects, public: true, columns: [{name: id, type: integer}, {name: visibility_level, type: smallint}, {name: archived, type: boolean}]}
-- reports
SELECT COUNT("users"."id") FROM "users" WHERE ("users"."state" IN ('active')) AND ("users"."user_type" IS NULL OR "users"."user_type" IN (0, 6, 4, 13));
-- refused: 42501 "id" names rows of one user: it may join, be counted with DISTINCT, and nothing else
SELECT COUNT("issues"."id") FROM "issues" WHERE "issues"."id" BETWEEN 0 AND 99999;
SELECT COUNT(DISTINCT "issues"."author_id") FROM "issues" WHERE "issues"."created_at" BETWEEN '2024-03-01 00:00:00' AND '2024-03-28 23:00:00';
SELECT COUNT(DISTINCT "notes"."author_id") FROM "notes" WHERE "notes"."system" = FALSE;
SELECT COUNT("issues"."id") FROM "issues" WHERE "issues"."confidential" = TRUE AND "issues"."closed_at" IS NULL;
SELECT COUNT(DISTINCT "issues"."author_id") FROM "issues" INNER JOIN "projects" ON "projects"."id" = "issues"."project_id" WHERE "projects"."archived" = FALSE AND "projects"."visibility_level" = 20;
SELECT "projects"."visibility_level", COUNT(*) AS count_all FROM "issues" INNER JOIN "projects" ON "projects"."id" = "issues"."project_id" GROUP BY "projects"."visibility_level" ORDER BY 1;
-- refused: 42501 "id" names rows of one user: it may join, be counted with DISTINCT, and nothing else
SELECT MIN("issues"."id") FROM "issues";
SELECT ROUND(AVG(EXTRACT(EPOCH FROM ("issues"."closed_at" - "issues"."created_at")) / 86400), 0) FROM "issues" WHERE "issues"."closed_at" IS NOT NULL;
SELECT COUNT(*) FROM (SELECT "issues"."author_id" FROM "issues" GROUP BY "issues"."author_id" HAVING COUNT(*) >= 3) subquery;
SELECT date_trunc('week', created_at)::date AS week, COUNT(*) FILTER (WHERE state_id = 1) AS opened, COUNT(*) FILTER (WHERE state_id = 2) AS closed FROM issues GROUP BY 1 HAVING COUNT(*) > 0 ORDER BY 1;
SELECT COUNT(*) FROM users WHERE EXISTS (SELECT 1 FROM issues WHERE issues.author_id = users.id AND issues.weight >= 5) AND NOT EXISTS (SELECT 1 FROM notes WHERE notes.author_id = users.id AND notes.system)
