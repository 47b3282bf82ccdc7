-- A clinic in the shape of OMOP's Common Data Model 5.4, in PostgreSQL: made-up people, names and codes, each a function
-- of its number, so that two runs make the same rows. Before it: SET clinic.persons = 30000. Names of tables and columns
-- are the model's; so are some concept ids (8507, 9201); all others are invented, with gaps, as real ones have.
SET jit = off;
CREATE FUNCTION pick(number bigint, salt bigint, below integer) RETURNS integer LANGUAGE sql IMMUTABLE
  RETURN ((hashint8extended(number, salt) & 2147483647) % below)::integer;

-- The vocabulary, which is nobody's.
CREATE TABLE vocabulary (vocabulary_id text PRIMARY KEY, vocabulary_name text, vocabulary_version text, vocabulary_concept_id integer);
CREATE TABLE concept (concept_id integer PRIMARY KEY, concept_name text NOT NULL, domain_id text NOT NULL, vocabulary_id text NOT NULL,
  concept_class_id text NOT NULL, standard_concept text, concept_code text NOT NULL, valid_start_date date NOT NULL, valid_end_date date NOT NULL,
  invalid_reason text);
CREATE TABLE concept_relationship (concept_id_1 integer, concept_id_2 integer, relationship_id text, valid_start_date date, valid_end_date date,
  invalid_reason text, PRIMARY KEY (concept_id_1, concept_id_2, relationship_id));
CREATE TABLE concept_ancestor (ancestor_concept_id integer NOT NULL, descendant_concept_id integer NOT NULL,
  min_levels_of_separation integer NOT NULL, max_levels_of_separation integer NOT NULL);
CREATE TABLE concept_synonym (concept_id integer, concept_synonym_name text, language_concept_id integer);

INSERT INTO vocabulary VALUES ('None', 'No vocabulary', 'v5 2024', 0), ('Basics', 'Sexes, visits, units', 'v5 2024', 44819100),
  ('Findings', 'Findings and sites', '2024-03', 44819097), ('Drugs', 'Ingredients and preparations', '2024-05', 44819104),
  ('Classes', 'Classes of drugs', '2023', 44819117), ('Codes', 'Codes of bills', '10', 44819128), ('Local', 'What this clinic added', '1', 44819135);

INSERT INTO concept SELECT id, name, domain, 'Basics', class, 'S', id::text, '1970-01-01', '2099-12-31', NULL FROM (VALUES
  (0, 'No matching concept', 'Metadata', 'Undefined'),
  (8507, 'Male', 'Gender', 'Gender'), (8532, 'Female', 'Gender', 'Gender'), (8551, 'Sex not known', 'Gender', 'Gender'),
  (8515, 'Asian', 'Race', 'Race'), (8516, 'Black', 'Race', 'Race'), (8527, 'White', 'Race', 'Race'), (8657, 'Native', 'Race', 'Race'),
  (38003563, 'Hispanic', 'Ethnicity', 'Ethnicity'), (38003564, 'Not Hispanic', 'Ethnicity', 'Ethnicity'),
  (9201, 'Stay in hospital', 'Visit', 'Visit'), (9202, 'Outpatient visit', 'Visit', 'Visit'), (9203, 'Emergency visit', 'Visit', 'Visit'),
  (581477, 'Visit in an office', 'Visit', 'Visit'), (42898160, 'Long stay', 'Visit', 'Visit'),
  (32817, 'From the clinic''s own record', 'Type Concept', 'Type'), (32810, 'From a claim', 'Type Concept', 'Type'),
  (32838, 'Prescription written', 'Type Concept', 'Type'), (32825, 'Dispensed by a pharmacy', 'Type Concept', 'Type'),
  (32865, 'Told by the patient', 'Type Concept', 'Type'),
  (38004446, 'General practice', 'Provider', 'Specialty'), (38004451, 'Cardiology', 'Provider', 'Specialty'), (38004456, 'Internal medicine', 'Provider', 'Specialty'),
  (38004472, 'Pulmonology', 'Provider', 'Specialty'), (38004491, 'Rheumatology', 'Provider', 'Specialty'),
  (8717, 'Hospital, wards', 'Place of Service', 'Place'), (8756, 'Hospital, outpatients', 'Place of Service', 'Place'), (8870, 'Hospital, emergencies', 'Place of Service', 'Place'),
  (8940, 'Office', 'Place of Service', 'Place'),
  (8840, 'mg/dL', 'Unit', 'Unit'), (8876, 'mmHg', 'Unit', 'Unit'), (8554, 'percent', 'Unit', 'Unit'), (9529, 'kg', 'Unit', 'Unit'),
  (9189, 'Negative', 'Meas Value', 'Value'), (9191, 'Positive', 'Meas Value', 'Value'),
  (4132161, 'By mouth', 'Route', 'Route'), (4171047, 'Into a vein', 'Route', 'Route'), (4263689, 'On the skin', 'Route', 'Route'),
  (32902, 'Main diagnosis', 'Condition Status', 'Status'), (32908, 'Side diagnosis', 'Condition Status', 'Status')) v(id, name, domain, class);

-- Findings: eight organs, five groups of disorders each, three disorders in a group. Drugs: six classes of six
-- ingredients, two preparations of each, one of them a brand's too.
CREATE TEMPORARY TABLE organ AS SELECT n::integer, name FROM unnest(ARRAY['lung', 'heart', 'joint', 'skin', 'kidney', 'liver', 'nerve', 'stomach']) WITH ORDINALITY o(name, n);
CREATE TEMPORARY TABLE disorder AS
  SELECT n AS organ, NULL::integer AS kind, NULL::integer AS number, 4000000 + n * 1009 AS id, 'Disorder of the ' || name AS name FROM organ
  UNION ALL SELECT n, k, NULL, 4100000 + ((n - 1) * 5 + k) * 137, initcap(name) || ' disorder, group ' || chr(64 + k) FROM organ, generate_series(1, 5) k
  UNION ALL SELECT n, k, i, 4200000 + (((n - 1) * 5 + k - 1) * 3 + i) * 61 + n * k % 7, initcap(name) || ' disorder ' || chr(64 + k) || i
    FROM organ, generate_series(1, 5) k, generate_series(1, 3) i;
CREATE TEMPORARY TABLE ingredient AS
  SELECT c AS class, (c - 1) * 6 + i AS number, 1100000 + ((c - 1) * 6 + i) * 523 AS id,
    (ARRAY['alo', 'bem', 'cor', 'dul', 'eno', 'fir'])[i] || (ARRAY['tazil', 'mivan', 'pexol', 'ridane', 'sulfen', 'xamide'])[c] AS name
  FROM generate_series(1, 6) c, generate_series(1, 6) i;
CREATE TEMPORARY TABLE preparation AS
  SELECT i.number, form, 19000000 + (i.number * 2 + form) * 1013 AS id, i.id AS ingredient, false AS brand,
    i.name || ' ' || (ARRAY[5, 10, 20, 50])[1 + i.number % 4] * form || ' MG ' || (ARRAY['tablet', 'solution'])[form] AS name
  FROM ingredient i, generate_series(1, 2) form
  UNION ALL SELECT i.number, 1, 2000000000 + i.number * 17, i.id, true, i.name || ' tablet [' || initcap(reverse(left(i.name, 5))) || ']' FROM ingredient i WHERE i.number % 2 = 0;

INSERT INTO concept SELECT 4500000, 'Clinical finding', 'Condition', 'Findings', 'Finding', 'S', 'F', '2000-01-01'::date, '2099-12-31'::date, NULL
  UNION ALL SELECT id, name, 'Condition', 'Findings', CASE WHEN number IS NULL THEN 'Finding group' ELSE 'Finding' END, 'S',
    concat('F', organ, kind, number), '2002-01-31', '2099-12-31', NULL FROM disorder
  UNION ALL SELECT 4600000 + n * 31, initcap(name) || ' structure', 'Spec Anatomic Site', 'Findings', 'Body structure', 'S', 'S' || n, '2002-01-31', '2099-12-31', NULL FROM organ
  UNION ALL SELECT 4700000 + n * 41, (ARRAY['Round bacterium', 'Long bacterium', 'Small virus'])[n], 'Observation', 'Findings', 'Organism', 'S', 'O' || n, '2002-01-31', '2099-12-31', NULL
    FROM generate_series(1, 3) n
  UNION ALL SELECT 45500000 + (organ * 15 + kind * 3 + number) * 7, 'Code for ' || lower(name), 'Condition', 'Codes', 'Code', NULL, chr(64 + organ) || kind || '.' || number,
    '2007-01-01', CASE WHEN kind = 5 THEN date '2015-12-31' ELSE '2099-12-31' END, CASE WHEN kind = 5 THEN 'D' END FROM disorder WHERE number = 1
  UNION ALL SELECT 21600000 + c * 907, 'Class ' || chr(64 + c) || ' drugs', 'Drug', 'Classes', 'Class', 'C', chr(64 + c), '1970-01-01', '2099-12-31', NULL FROM generate_series(1, 6) c
  UNION ALL SELECT id, name, 'Drug', 'Drugs', 'Ingredient', 'S', 'I' || number, '1970-01-01', '2099-12-31', NULL FROM ingredient
  UNION ALL SELECT id, name, 'Drug', CASE WHEN brand THEN 'Local' ELSE 'Drugs' END, CASE WHEN brand THEN 'Branded Drug' ELSE 'Clinical Drug' END, 'S',
    'P' || id, '1970-01-01', '2099-12-31', NULL FROM preparation
  UNION ALL SELECT 19082570 + f, (ARRAY['Tablet', 'Solution'])[f], 'Drug', 'Drugs', 'Dose Form', NULL, 'D' || f, '1970-01-01', '2099-12-31', NULL FROM generate_series(1, 2) f
  UNION ALL SELECT 19100000 + number * 19, initcap(reverse(left(name, 5))), 'Drug', 'Drugs', 'Brand Name', NULL, 'B' || number, '1970-01-01', '2099-12-31', NULL FROM ingredient WHERE number % 2 = 0
  UNION ALL SELECT 2100000 + n * 311, 'Procedure ' || n || ' of the ' || (SELECT name FROM organ WHERE organ.n = 1 + p.n % 8), 'Procedure', 'Basics', 'Procedure', 'S', 'X' || n, '1970-01-01', '2099-12-31', NULL
    FROM generate_series(1, 24) p(n)
  UNION ALL SELECT 3000000 + n * 1777, (ARRAY['Glucose', 'Systolic pressure', 'Diastolic pressure', 'Oxygen saturation', 'Weight', 'Cholesterol', 'Creatinine', 'Urea', 'Albumin', 'Bilirubin', 'Rapid test A', 'Rapid test B'])[n],
    'Measurement', 'Basics', 'Lab test', 'S', 'M' || n, '1970-01-01', '2099-12-31', NULL FROM generate_series(1, 12) n
  UNION ALL SELECT 4800000 + n * 53, (ARRAY['Smokes', 'Smoked before', 'Never smoked', 'Lives alone', 'Needs an interpreter', 'Allergy noted'])[n], 'Observation', 'Basics', 'Observation', 'S', 'Q' || n,
    '1970-01-01', '2099-12-31', NULL FROM generate_series(1, 6) n;

INSERT INTO concept_synonym SELECT concept_id, 'Illness' || substr(concept_name, strpos(concept_name, ' ')), 4180186 FROM concept WHERE concept_class_id = 'Finding' AND concept_id > 4500000
  UNION ALL SELECT id, upper(name), 4180186 FROM disorder WHERE number IS NOT NULL;

CREATE TABLE domain AS SELECT DISTINCT domain_id, domain_id AS domain_name, 0 AS domain_concept_id FROM concept;
CREATE TABLE concept_class AS
  SELECT DISTINCT concept_class_id, concept_class_id AS concept_class_name, 0 AS concept_class_concept_id FROM concept;
ALTER TABLE domain ADD PRIMARY KEY (domain_id);
ALTER TABLE concept_class ADD PRIMARY KEY (concept_class_id);

-- Each concept is its own ancestor, at no distance.
INSERT INTO concept_ancestor
  SELECT concept_id, concept_id, 0, 0 FROM concept WHERE standard_concept IS NOT NULL AND domain_id IN ('Condition', 'Drug')
  UNION ALL SELECT 4500000, id, l, l FROM (SELECT id, 1 + (kind IS NOT NULL)::integer + (number IS NOT NULL)::integer AS l FROM disorder) d
  UNION ALL SELECT a.id, d.id, l, l FROM disorder a JOIN disorder d ON d.organ = a.organ AND d.kind IS NOT NULL AND a.kind IS NULL
    CROSS JOIN LATERAL (SELECT 1 + (d.number IS NOT NULL)::integer AS l) levels
  UNION ALL SELECT a.id, d.id, 1, 1 FROM disorder a JOIN disorder d ON d.organ = a.organ AND d.kind = a.kind AND a.number IS NULL AND d.number IS NOT NULL
  UNION ALL SELECT 21600000 + class * 907, id, 1, 1 FROM ingredient
  UNION ALL SELECT ingredient, id, 1, CASE WHEN brand THEN 2 ELSE 1 END FROM preparation
  UNION ALL SELECT 21600000 + class * 907, p.id, 2, CASE WHEN brand THEN 3 ELSE 2 END FROM ingredient i JOIN preparation p ON p.ingredient = i.id;

INSERT INTO concept_relationship SELECT one, other, name, '1970-01-01', '2099-12-31', NULL FROM (
  SELECT d.id AS one, p.id AS other, 'Is a' AS name FROM disorder d JOIN disorder p ON p.organ = d.organ AND (d.number IS NOT NULL AND p.kind = d.kind AND p.number IS NULL
    OR d.number IS NULL AND d.kind IS NOT NULL AND p.kind IS NULL)
  UNION ALL SELECT d.id, 4600000 + d.organ * 31, 'Has finding site' FROM disorder d
  UNION ALL SELECT d.id, 4700000 + d.kind * 41, 'Has causative agent' FROM disorder d WHERE d.kind <= 3 AND d.number = 2
  UNION ALL SELECT 45500000 + (organ * 15 + kind * 3 + number) * 7, id, 'Maps to' FROM disorder WHERE number = 1
  UNION ALL SELECT id, ingredient, 'Has ingredient' FROM preparation
  UNION ALL SELECT id, 19082570 + form, 'Has dose form' FROM preparation
  UNION ALL SELECT id, 19100000 + number * 19, 'Has brand name' FROM preparation WHERE brand
  UNION ALL SELECT i.id, d.id, 'May treat' FROM ingredient i JOIN disorder d ON d.number IS NULL AND d.kind IS NOT NULL AND (d.organ * 5 + d.kind) % 36 + 1 = i.number) r;
INSERT INTO concept_relationship SELECT concept_id_2, concept_id_1, CASE relationship_id WHEN 'Is a' THEN 'Subsumes' WHEN 'Maps to' THEN 'Mapped from'
    WHEN 'Has ingredient' THEN 'Ingredient of' ELSE 'Treated by' END, valid_start_date, valid_end_date, NULL
  FROM concept_relationship WHERE relationship_id IN ('Is a', 'Maps to', 'Has ingredient', 'May treat');

-- Places and staff.
CREATE TABLE location (location_id integer PRIMARY KEY, city text, state text, zip text);
CREATE TABLE care_site (care_site_id integer PRIMARY KEY, care_site_name text, place_of_service_concept_id integer, location_id integer REFERENCES location);
CREATE TABLE provider (provider_id integer PRIMARY KEY, provider_name text, specialty_concept_id integer, care_site_id integer REFERENCES care_site, gender_concept_id integer);
INSERT INTO location SELECT n, 'Town ' || n, (ARRAY['AA', 'BB', 'CC', 'DD', 'EE', 'FF'])[1 + n % 6], lpad((n * 13)::text, 3, '0') FROM generate_series(1, 60) n;
INSERT INTO care_site SELECT n, 'House ' || n, (ARRAY[8717, 8756, 8870, 8940, 8940])[1 + n % 5], 1 + n % 60 FROM generate_series(1, 25) n;
INSERT INTO provider SELECT n, 'Staff ' || n, (ARRAY[38004446, 38004446, 38004451, 38004456, 38004472, 38004491])[1 + n % 6], 1 + n % 25, (ARRAY[8507, 8532])[1 + n % 2]
  FROM generate_series(1, 80) n;

-- People.
CREATE TABLE person (person_id bigint PRIMARY KEY, gender_concept_id integer NOT NULL, year_of_birth integer NOT NULL, month_of_birth integer, day_of_birth integer,
  race_concept_id integer NOT NULL, ethnicity_concept_id integer NOT NULL, location_id integer, provider_id integer, care_site_id integer, gender_source_value text);
INSERT INTO person SELECT i, g, 1930 + pick(i, 2, 45) + pick(i, 3, 45), 1 + pick(i, 4, 12), CASE WHEN pick(i, 5, 20) > 0 THEN 1 + pick(i, 6, 28) END,
    (ARRAY[8527, 8527, 8527, 8516, 8515, 8657, 0])[1 + pick(i, 7, 7)], (ARRAY[38003564, 38003564, 38003563])[1 + pick(i, 8, 3)],
    CASE WHEN pick(i, 9, 30) > 0 THEN 1 + pick(i, 10, 60) * pick(i, 11, 60) / 60 END, CASE WHEN pick(i, 12, 10) > 0 THEN 1 + pick(i, 13, 80) END, 1 + pick(i, 14, 25),
    CASE g WHEN 8507 THEN 'M' WHEN 8532 THEN 'F' ELSE 'U' END
  FROM (SELECT i, CASE WHEN pick(i, 1, 200) = 0 THEN 8551 WHEN pick(i, 1, 200) < 105 THEN 8532 ELSE 8507 END AS g
    FROM generate_series(1, current_setting('clinic.persons')::integer) i) p;

CREATE TABLE observation_period (observation_period_id bigint PRIMARY KEY, person_id bigint NOT NULL REFERENCES person, observation_period_start_date date NOT NULL,
  observation_period_end_date date NOT NULL, period_type_concept_id integer NOT NULL);
INSERT INTO observation_period SELECT person_id * 3 + k, person_id, date '2010-01-01' + begins + k * 900, date '2010-01-01' + begins + k * 900 + 150 + pick(person_id * 3 + k, 22, 740), 32817
  FROM (SELECT person_id, pick(person_id, 20, 900) AS begins, CASE WHEN pick(person_id, 21, 100) < 85 THEN 0 WHEN pick(person_id, 21, 100) < 97 THEN 1 ELSE 2 END AS more FROM person) p,
    generate_series(0, p.more) k;

-- A fifth of the people has no visit; one in a hundred has up to forty.
CREATE TABLE visit_occurrence (visit_occurrence_id bigint PRIMARY KEY, person_id bigint NOT NULL REFERENCES person, visit_concept_id integer NOT NULL, visit_start_date date NOT NULL,
  visit_end_date date NOT NULL, visit_type_concept_id integer NOT NULL, provider_id integer, care_site_id integer, discharged_to_concept_id integer);
INSERT INTO visit_occurrence SELECT person_id * 64 + k, person_id, concept, begins, begins + CASE concept WHEN 9201 THEN 1 + pick(person_id * 64 + k, 34, 15) WHEN 42898160 THEN 30 ELSE 0 END,
    CASE WHEN pick(person_id * 64 + k, 35, 4) = 0 THEN 32810 ELSE 32817 END, CASE WHEN pick(person_id * 64 + k, 36, 15) > 0 THEN 1 + pick(person_id * 64 + k, 37, 80) END,
    1 + pick(person_id * 64 + k, 38, 25), CASE WHEN concept = 9201 THEN (ARRAY[0, 581477, 42898160])[1 + pick(person_id * 64 + k, 39, 3)] ELSE 0 END
  FROM (SELECT p.person_id, k, (ARRAY[9202, 9202, 9202, 9202, 9202, 9203, 9203, 9201, 9201, 581477])[1 + pick(p.person_id * 64 + k, 32, 10)] AS concept,
      o.observation_period_start_date + pick(p.person_id * 64 + k, 33, o.observation_period_end_date - o.observation_period_start_date + 1) AS begins
    FROM (SELECT person_id, CASE WHEN share < 20 THEN 0 WHEN share < 70 THEN 1 + rest % 4 WHEN share < 95 THEN 5 + rest % 8 WHEN share < 99 THEN 13 + rest % 12 ELSE 26 + rest % 15 END AS visits
        FROM (SELECT person_id, pick(person_id, 30, 100) AS share, pick(person_id, 31, 1000) AS rest FROM person) s) p
      CROSS JOIN LATERAL generate_series(1, p.visits) k
      JOIN observation_period o ON o.observation_period_id = p.person_id * 3 OFFSET 0) v;

CREATE TEMPORARY TABLE leaf AS SELECT row_number() OVER (ORDER BY id) - 1 AS n, id FROM disorder WHERE number IS NOT NULL;
ANALYZE leaf;
CREATE TABLE condition_occurrence (condition_occurrence_id bigint PRIMARY KEY, person_id bigint NOT NULL REFERENCES person, condition_concept_id integer NOT NULL,
  condition_start_date date NOT NULL, condition_end_date date, condition_type_concept_id integer NOT NULL, condition_status_concept_id integer, stop_reason text, provider_id integer,
  visit_occurrence_id bigint REFERENCES visit_occurrence);
INSERT INTO condition_occurrence SELECT c.number, person_id, coalesce(l.id, 0), visit_start_date, CASE WHEN pick(c.number, 44, 10) < 7 THEN visit_start_date + pick(c.number, 45, 60) END,
    visit_type_concept_id, (ARRAY[32902, 32908])[1 + pick(c.number, 46, 2)], CASE pick(c.number, 47, 12) WHEN 0 THEN 'resolved' WHEN 1 THEN 'entered in error' END, provider_id, visit_occurrence_id
  FROM (SELECT v.*, v.visit_occurrence_id * 4 + k AS number, CASE WHEN pick(v.visit_occurrence_id * 4 + k, 41, 30) = 0 THEN -1
      WHEN pick(v.visit_occurrence_id * 4 + k, 42, 2) = 0 THEN pick(v.person_id, 43, 120) * pick(v.person_id, 44, 120) / 120
      ELSE pick(v.visit_occurrence_id * 4 + k, 43, 120) * pick(v.visit_occurrence_id * 4 + k, 48, 120) / 120 END AS which
    FROM visit_occurrence v CROSS JOIN LATERAL generate_series(1, (ARRAY[0, 1, 1, 2])[1 + pick(v.visit_occurrence_id, 40, 4)]) k OFFSET 0) c
  LEFT JOIN leaf l ON l.n = c.which;

CREATE TEMPORARY TABLE taken AS SELECT row_number() OVER (ORDER BY pick(id, 50, 1000000), id) - 1 AS n, id, ingredient, form FROM preparation;
ANALYZE taken;
ANALYZE person;
CREATE TABLE drug_exposure (drug_exposure_id bigint PRIMARY KEY, person_id bigint NOT NULL REFERENCES person, drug_concept_id integer NOT NULL, drug_exposure_start_date date NOT NULL,
  drug_exposure_end_date date NOT NULL, drug_type_concept_id integer NOT NULL, stop_reason text, refills integer, quantity numeric(8,1), days_supply integer, route_concept_id integer,
  provider_id integer, visit_occurrence_id bigint REFERENCES visit_occurrence);
INSERT INTO drug_exposure SELECT d.number, person_id, coalesce(t.id, 0), visit_start_date, visit_start_date + coalesce(days, 1) - 1, (ARRAY[32838, 32838, 32825])[1 + pick(d.number, 57, 3)],
    CASE pick(d.number, 58, 15) WHEN 0 THEN 'side effect' WHEN 1 THEN 'no effect' WHEN 2 THEN 'cured' END, CASE WHEN pick(d.number, 59, 4) > 0 THEN pick(d.number, 60, 6) END,
    CASE WHEN pick(d.number, 61, 9) > 0 THEN coalesce(days, 10) * (1 + pick(d.number, 62, 4)) * 0.5 END, days, CASE t.form WHEN 1 THEN 4132161 WHEN 2 THEN 4171047 ELSE 0 END, provider_id, visit_occurrence_id
  FROM (SELECT v.*, v.visit_occurrence_id * 4 + k AS number, (ARRAY[7, 14, 30, 30, 30, 60, 90, NULL])[1 + pick(v.visit_occurrence_id * 4 + k, 51, 8)] AS days,
      CASE WHEN pick(v.visit_occurrence_id * 4 + k, 52, 40) = 0 THEN -1 WHEN pick(v.visit_occurrence_id * 4 + k, 53, 5) < 3 THEN pick(v.person_id, 54, 90) * pick(v.person_id, 55, 90) / 90
      ELSE pick(v.visit_occurrence_id * 4 + k, 54, 90) END AS which
    FROM visit_occurrence v CROSS JOIN LATERAL generate_series(1, (ARRAY[0, 1, 1, 2])[1 + pick(v.visit_occurrence_id, 56, 4)]) k OFFSET 0) d
  LEFT JOIN taken t ON t.n = d.which;

-- An era is what follows within thirty days of the end before it.
CREATE TABLE condition_era (condition_era_id bigint PRIMARY KEY, person_id bigint NOT NULL REFERENCES person, condition_concept_id integer NOT NULL, condition_era_start_date date NOT NULL,
  condition_era_end_date date NOT NULL, condition_occurrence_count integer NOT NULL);
INSERT INTO condition_era SELECT row_number() OVER (ORDER BY person_id, concept, min(begins)), person_id, concept, min(begins), max(ends), count(*)
  FROM (SELECT *, count(*) FILTER (WHERE new) OVER (PARTITION BY person_id, concept ORDER BY begins, id) AS era
    FROM (SELECT id, person_id, concept, begins, ends, coalesce(begins > max(ends) OVER (PARTITION BY person_id, concept ORDER BY begins, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) + 30, true) AS new
      FROM (SELECT condition_occurrence_id AS id, person_id, condition_concept_id AS concept, condition_start_date AS begins, coalesce(condition_end_date, condition_start_date + 1) AS ends
        FROM condition_occurrence WHERE condition_concept_id <> 0) o) n) e GROUP BY person_id, concept, era;
CREATE TABLE drug_era (drug_era_id bigint PRIMARY KEY, person_id bigint NOT NULL REFERENCES person, drug_concept_id integer NOT NULL, drug_era_start_date date NOT NULL, drug_era_end_date date NOT NULL,
  drug_exposure_count integer NOT NULL, gap_days integer NOT NULL);
INSERT INTO drug_era SELECT row_number() OVER (ORDER BY person_id, concept, min(begins)), person_id, concept, min(begins), max(ends), count(*), greatest(0, max(ends) - min(begins) + 1 - sum(ends - begins + 1))
  FROM (SELECT *, count(*) FILTER (WHERE new) OVER (PARTITION BY person_id, concept ORDER BY begins, id) AS era
    FROM (SELECT id, person_id, concept, begins, ends, coalesce(begins > max(ends) OVER (PARTITION BY person_id, concept ORDER BY begins, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) + 30, true) AS new
      FROM (SELECT drug_exposure_id AS id, person_id, t.ingredient AS concept, drug_exposure_start_date AS begins, drug_exposure_end_date AS ends
        FROM drug_exposure d JOIN taken t ON t.id = d.drug_concept_id) o) n) e GROUP BY person_id, concept, era;

CREATE TABLE procedure_occurrence (procedure_occurrence_id bigint PRIMARY KEY, person_id bigint NOT NULL REFERENCES person, procedure_concept_id integer NOT NULL, procedure_date date NOT NULL,
  procedure_type_concept_id integer NOT NULL, quantity integer, provider_id integer, visit_occurrence_id bigint REFERENCES visit_occurrence);
INSERT INTO procedure_occurrence SELECT visit_occurrence_id, person_id, 2100000 + (1 + pick(visit_occurrence_id, 71, 24) * pick(visit_occurrence_id, 72, 24) / 24) * 311,
    visit_start_date + pick(visit_occurrence_id, 73, visit_end_date - visit_start_date + 1), visit_type_concept_id, 1 + pick(visit_occurrence_id, 74, 3), provider_id, visit_occurrence_id
  FROM visit_occurrence WHERE pick(visit_occurrence_id, 70, 2) = 0;
CREATE TABLE measurement (measurement_id bigint PRIMARY KEY, person_id bigint NOT NULL REFERENCES person, measurement_concept_id integer NOT NULL, measurement_date date NOT NULL,
  measurement_type_concept_id integer NOT NULL, value_as_number numeric(7,1), value_as_concept_id integer, unit_concept_id integer, range_low numeric(7,1), range_high numeric(7,1),
  visit_occurrence_id bigint REFERENCES visit_occurrence);
INSERT INTO measurement SELECT number, person_id, 3000000 + which * 1777, visit_start_date, 32817,
    CASE WHEN which <= 10 AND pick(number, 82, 20) > 0 THEN 40 + (pick(number, 83, 600) + pick(number, 84, 600) + pick(person_id, 85, 300)) / 10.0 END,
    CASE WHEN which > 10 THEN (ARRAY[9189, 9189, 9191])[1 + pick(number, 86, 3)] END, CASE WHEN which <= 10 THEN (ARRAY[8840, 8876, 8876, 8554, 9529, 8840, 8840, 8840, 8840, 8840])[which] END,
    CASE WHEN which <= 10 THEN 60 END, CASE WHEN which <= 10 THEN 140 END, visit_occurrence_id
  FROM (SELECT v.*, v.visit_occurrence_id * 4 + k AS number, 1 + pick(v.visit_occurrence_id * 4 + k, 81, 12) AS which
    FROM visit_occurrence v CROSS JOIN LATERAL generate_series(1, (ARRAY[0, 1, 2])[1 + pick(v.visit_occurrence_id, 80, 3)]) k OFFSET 0) m;
CREATE TABLE observation (observation_id bigint PRIMARY KEY, person_id bigint NOT NULL REFERENCES person, observation_concept_id integer NOT NULL, observation_date date NOT NULL,
  observation_type_concept_id integer NOT NULL, visit_occurrence_id bigint REFERENCES visit_occurrence);
INSERT INTO observation SELECT visit_occurrence_id, person_id, 4800000 + (1 + pick(visit_occurrence_id, 91, 6)) * 53, visit_start_date, (ARRAY[32817, 32865])[1 + pick(visit_occurrence_id, 92, 2)], visit_occurrence_id
  FROM visit_occurrence WHERE pick(visit_occurrence_id, 90, 4) = 0;
CREATE TABLE death (person_id bigint PRIMARY KEY REFERENCES person, death_date date NOT NULL, death_type_concept_id integer NOT NULL, cause_concept_id integer);
INSERT INTO death SELECT person_id, ends, 32817, CASE WHEN pick(person_id, 96, 4) > 0 THEN l.id END
  FROM (SELECT person_id, max(observation_period_end_date) AS ends FROM observation_period GROUP BY 1) o LEFT JOIN leaf l ON l.n = pick(person_id, 97, 120) WHERE pick(person_id, 95, 25) = 0;

CREATE INDEX ON observation_period (person_id);
CREATE INDEX ON visit_occurrence (person_id);
CREATE INDEX ON condition_occurrence (person_id);
CREATE INDEX ON drug_exposure (person_id);
CREATE INDEX ON condition_era (person_id);
CREATE INDEX ON drug_era (person_id);
ANALYZE;
