-- A clinic's indicators: observations by concept, ages and visits, one row a person of many.
CREATE TABLE person (person_id integer PRIMARY KEY, gender text, birthdate date, dead boolean, voided boolean);
INSERT INTO person SELECT i, CASE WHEN i % 2 = 0 THEN 'F' ELSE 'M' END, date '1950-01-01' + i * 60, i % 30 = 0, i % 60 = 0 FROM generate_series(1, 300) s(i);
CREATE TABLE encounter (encounter_id integer PRIMARY KEY, patient_id integer REFERENCES person, encounter_type integer, encounter_datetime timestamp, location_id integer, voided boolean);
INSERT INTO encounter SELECT i, 1 + (i * 7) % 300, 1 + i % 4, timestamp '2024-01-01' + i * interval '9 hours', 1 + i % 5, i % 50 = 0 FROM generate_series(1, 900) s(i);
CREATE TABLE obs (obs_id integer PRIMARY KEY, person_id integer REFERENCES person, encounter_id integer REFERENCES encounter, concept_id integer, value_numeric numeric(6,1), value_coded integer, obs_datetime timestamp, voided boolean);
INSERT INTO obs SELECT i, 1 + ((1 + i % 900) * 7) % 300, 1 + i % 900, (ARRAY[5089, 5090, 1284, 5497])[1 + i % 4], CASE WHEN i % 4 <> 2 THEN (i % 161) * 0.5 END, CASE WHEN i % 4 = 2 THEN 100 + i % 3 END, timestamp '2024-01-01' + (1 + i % 900) * interval '9 hours', i % 70 = 0 FROM generate_series(1, 1500) s(i);
CREATE TABLE concept_name (concept_id integer PRIMARY KEY, name text);
INSERT INTO concept_name VALUES (5089, 'WEIGHT (KG)'), (5090, 'HEIGHT (CM)'), (1284, 'PROBLEM LIST'), (5497, 'CD4 COUNT'), (100, 'MALARIA'), (101, 'ANAEMIA'), (102, 'ASTHMA');
CREATE TABLE location (location_id integer PRIMARY KEY, name text);
INSERT INTO location SELECT i, 'Clinic ' || i FROM generate_series(1, 5) s(i);
-- policy: {name: person, key: person.person_id, type: integer}
      - {name: person, max_rows_per_unit: 1, expected_rows: 300, columns: [{name: person_id, type: integer, keys: join}, {name: gender, type: text, domain: {values: [F, M]}, nulls: exclude, outside: exclude}, {name: birthdate, type: date, domain: {min: 1950-01-01, max: 2000-12-31}}, {name: dead, type: boolean}, {name: voided, type: boolean}]}
      - {name: encounter, unit: encounter.patient_id = person.person_id, max_rows_per_unit: 3, expected_rows: 900, columns: [{name: encounter_id, type: integer, keys: join}, {name: patient_id, type: integer, keys: join}, {name: encounter_type, type: integer, domain: {min: 1, max: 4}}, {name: encounter_datetime, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 hour}}, {name: location_id, type: integer, domain: {min: 1, max: 5}}, {name: voided, type: boolean}]}
      - {name: obs, unit: obs.person_id = person.person_id, max_rows_per_unit: 6, expected_rows: 1500, columns: [{name: person_id, type: integer, keys: join}, {name: encounter_id, type: integer, keys: join}, {name: concept_id, type: integer, domain: {min: 1280, max: 5500}}, {name: value_numeric, type: "numeric(6,1)", domain: {min: 0, max: 80, step: 0.5}, extremes: true}, {name: value_coded, type: integer, domain: {min: 100, max: 102}}, {name: obs_datetime, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 hour}}, {name: voided, type: boolean}]}
      - {name: concept_name, public: true, columns: [{name: concept_id, type: integer}, {name: name, type: text}]}
      - {name: location, public: true, columns: [{name: location_id, type: integer}, {name: name, type: text}]}
-- reports
SELECT p.gender, CASE WHEN extract(year FROM age(date '2024-07-01', p.birthdate)) < 15 THEN '0-14' WHEN extract(year FROM age(date '2024-07-01', p.birthdate)) < 50 THEN '15-49' ELSE '50+' END AS age_group, count(*) FROM person p WHERE p.voided = false GROUP BY 1, 2 HAVING count(*) > 0 ORDER BY 1, 2;
SELECT l.name AS clinic, date_trunc('month', e.encounter_datetime)::date AS month, count(DISTINCT e.patient_id) AS patients FROM encounter e INNER JOIN location l ON l.location_id = e.location_id AND e.voided = false GROUP BY 1, 2 HAVING count(*) > 0 ORDER BY 1, 2;
SELECT cn.name AS diagnosis, count(*) AS cases FROM obs o JOIN concept_name cn ON cn.concept_id = o.value_coded WHERE o.concept_id = 1284 AND o.voided = false GROUP BY cn.name ORDER BY cases DESC, 1;
SELECT avg(CASE WHEN o.concept_id = 5089 THEN o.value_numeric END) AS weight, avg(CASE WHEN o.concept_id = 5497 THEN o.value_numeric END) AS cd4 FROM obs o WHERE o.voided = false;
SELECT count(*) FROM (SELECT o.person_id, max(CASE WHEN o.concept_id = 5089 THEN o.value_numeric END) AS weight, max(CASE WHEN o.concept_id = 5497 THEN o.value_numeric END) AS cd4 FROM obs o GROUP BY o.person_id) t WHERE t.weight > 40 AND t.cd4 < 60;
SELECT p.gender, count(DISTINCT e.patient_id) AS seen FROM encounter e JOIN person p ON p.person_id = e.patient_id WHERE e.encounter_datetime BETWEEN '2024-04-01 00:00:00' AND '2024-06-30 23:00:00' AND p.dead = false GROUP BY p.gender ORDER BY 1;
SELECT visits, count(*) FROM (SELECT patient_id, count(*) AS visits FROM encounter WHERE voided = false GROUP BY patient_id) v GROUP BY visits HAVING count(*) > 0 ORDER BY visits;
SELECT count(DISTINCT e.patient_id) FROM encounter e WHERE e.patient_id NOT IN (SELECT o.person_id FROM obs o WHERE o.concept_id = 5497);
SELECT count(*) FROM encounter e JOIN obs o ON o.encounter_id = e.encounter_id AND o.person_id = e.patient_id WHERE e.encounter_type = 1 AND o.concept_id = 5089;
WITH last_visit AS (SELECT patient_id, max(encounter_datetime) AS at FROM encounter WHERE voided = false GROUP BY patient_id) SELECT count(*) FILTER (WHERE at < timestamp '2024-09-01') AS lost, count(*) FROM last_visit;
SELECT count(DISTINCT o.encounter_id) FROM obs o WHERE o.concept_id = 5089
