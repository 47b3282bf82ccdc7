-- A school's courses: moments are seconds since 1970, grades of activities, what is in a log.
CREATE TABLE mdl_user (id integer PRIMARY KEY, country text, firstaccess bigint, lastaccess bigint, suspended smallint, deleted smallint);
INSERT INTO mdl_user SELECT i, (ARRAY['AT', 'DE', 'IT'])[1 + i % 3], 1704067200 + i * 86400, 1704067200 + i * 86400 + (i % 90) * 86400, i % 2 * (i % 5) / 3, 0 FROM generate_series(1, 300) s(i);
CREATE TABLE mdl_user_enrolments (id integer PRIMARY KEY, userid integer REFERENCES mdl_user, courseid integer, timecreated bigint, status smallint);
INSERT INTO mdl_user_enrolments SELECT i, 1 + i % 300, 1 + i % 8, 1704067200 + (i % 365) * 86400, i % 10 / 9 FROM generate_series(1, 700) s(i);
CREATE TABLE mdl_grade_grades (id integer PRIMARY KEY, userid integer REFERENCES mdl_user, itemid integer, finalgrade numeric(6,1), timemodified bigint);
INSERT INTO mdl_grade_grades SELECT i, 1 + (i * 7) % 300, 1 + i % 12, CASE WHEN i % 9 > 0 THEN (i % 41) * 0.5 END, 1704067200 + (i % 360) * 86400 FROM generate_series(1, 1100) s(i);
CREATE TABLE mdl_logstore (id integer PRIMARY KEY, userid integer REFERENCES mdl_user, courseid integer, action text, timecreated bigint);
INSERT INTO mdl_logstore SELECT i, 1 + (i * 3) % 300, 1 + i % 8, (ARRAY['viewed', 'created', 'submitted'])[1 + i % 3], 1704067200 + (i % 366) * 86400 + i % 24 * 3600 FROM generate_series(1, 1500) s(i);
CREATE TABLE mdl_course (id integer PRIMARY KEY, shortname text, category integer, visible smallint);
INSERT INTO mdl_course SELECT i, 'C' || i, 1 + i % 3, i % 4 / 1 FROM generate_series(1, 8) s(i);
CREATE TABLE mdl_grade_items (id integer PRIMARY KEY, courseid integer, itemmodule text, grademax numeric(6,1));
INSERT INTO mdl_grade_items SELECT i, 1 + i % 8, CASE WHEN i % 2 = 0 THEN 'quiz' ELSE 'assign' END, 20 FROM generate_series(1, 12) s(i);
-- policy: {name: user, key: mdl_user.id, type: integer}
      - {name: mdl_user, max_rows_per_unit: 1, expected_rows: 300, columns: [{name: id, type: integer, keys: join}, {name: country, type: text, domain: {values: [AT, DE, IT]}, nulls: exclude, outside: exclude}, {name: firstaccess, type: bigint, domain: {min: 1704067200, max: 1767225600, step: 1}}, {name: lastaccess, type: bigint, domain: {min: 1704067200, max: 1767225600, step: 1}}, {name: suspended, type: smallint, domain: {min: 0, max: 1}}, {name: deleted, type: smallint, domain: {min: 0, max: 1}}]}
      - {name: mdl_user_enrolments, unit: mdl_user_enrolments.userid = mdl_user.id, max_rows_per_unit: 3, expected_rows: 700, columns: [{name: userid, type: integer, keys: join}, {name: courseid, type: integer, domain: {min: 1, max: 8}}, {name: timecreated, type: bigint, domain: {min: 1704067200, max: 1767225600, step: 1}}, {name: status, type: smallint, domain: {min: 0, max: 1}}]}
      - {name: mdl_grade_grades, unit: mdl_grade_grades.userid = mdl_user.id, max_rows_per_unit: 4, expected_rows: 1100, columns: [{name: userid, type: integer, keys: join}, {name: itemid, type: integer, domain: {min: 1, max: 12}}, {name: finalgrade, type: "numeric(6,1)", domain: {min: 0, max: 20, step: 0.5}}, {name: timemodified, type: bigint, domain: {min: 1704067200, max: 1767225600, step: 1}}]}
      - {name: mdl_logstore, unit: mdl_logstore.userid = mdl_user.id, max_rows_per_unit: 15, expected_rows: 1500, columns: [{name: userid, type: integer, keys: join}, {name: courseid, type: integer, domain: {min: 1, max: 8}}, {name: action, type: text, domain: {values: [viewed, created, submitted]}, nulls: exclude, outside: exclude}, {name: timecreated, type: bigint, domain: {min: 1704067200, max: 1767225600, step: 1}}]}
      - {name: mdl_course, public: true, columns: [{name: id, type: integer}, {name: shortname, type: text}, {name: category, type: integer}, {name: visible, type: smallint}]}
      - {name: mdl_grade_items, public: true, columns: [{name: id, type: integer}, {name: courseid, type: integer}, {name: itemmodule, type: text}, {name: grademax, type: "numeric(6,1)"}]}
-- reports
SELECT c.shortname, count(ue.userid) AS enrolled FROM mdl_course c JOIN mdl_user_enrolments ue ON ue.courseid = c.id JOIN mdl_user u ON u.id = ue.userid WHERE u.deleted = 0 AND u.suspended = 0 GROUP BY c.id, c.shortname ORDER BY enrolled DESC, c.shortname;
SELECT to_char(to_timestamp(timecreated), 'YYYY-MM') AS month, count(*) AS events, count(DISTINCT userid) AS users FROM mdl_logstore GROUP BY 1 HAVING count(*) > 0 ORDER BY 1;
-- refused: DP002 this expression is not constant within the steps of column "finalgrade"
SELECT c.shortname, round(avg(gg.finalgrade), 2) AS mean, round(avg(gg.finalgrade / gi.grademax * 100), 1) AS percent FROM mdl_grade_grades gg JOIN mdl_grade_items gi ON gi.id = gg.itemid JOIN mdl_course c ON c.id = gi.courseid WHERE gg.finalgrade IS NOT NULL GROUP BY c.shortname ORDER BY 1;
SELECT gi.itemmodule, count(*) FILTER (WHERE gg.finalgrade >= gi.grademax * 0.5) AS passed, count(gg.finalgrade) AS graded FROM mdl_grade_grades gg JOIN mdl_grade_items gi ON gi.id = gg.itemid GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM mdl_user WHERE lastaccess < 1704067200 + 86400 * 120 AND suspended = 0;
SELECT count(*) FROM mdl_user u WHERE to_timestamp(u.lastaccess) >= timestamptz '2024-06-01 00:00Z';
SELECT extract(hour FROM to_timestamp(timecreated))::int AS hour, count(*) FROM mdl_logstore WHERE action = 'viewed' GROUP BY 1 HAVING count(*) > 0 ORDER BY 1;
SELECT (lastaccess - firstaccess) / 86400 AS days, count(*) FROM mdl_user GROUP BY 1 HAVING count(*) > 0 ORDER BY 1;
-- refused: DP002 an outer join that keeps rows of a public table is not answered below another join or a sub-query by unit, here of mdl_logstore with mdl_course
SELECT c.shortname, count(DISTINCT l.userid) AS active, count(DISTINCT ue.userid) AS enrolled FROM mdl_course c LEFT JOIN mdl_logstore l ON l.courseid = c.id LEFT JOIN mdl_user_enrolments ue ON ue.courseid = c.id GROUP BY c.shortname;
SELECT courses, count(*) FROM (SELECT userid, count(DISTINCT courseid) AS courses FROM mdl_user_enrolments GROUP BY userid) x GROUP BY courses HAVING count(*) > 0 ORDER BY 1;
SELECT c.category, sum(CASE WHEN l.action = 'submitted' THEN 1 ELSE 0 END) AS submissions FROM mdl_logstore l INNER JOIN mdl_course c ON c.id = l.courseid GROUP BY c.category ORDER BY 1
