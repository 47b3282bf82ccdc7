-- 147 questions about a clinic, of the kinds that people who work with OMOP store, as they would write them for
-- PostgreSQL. P: persons, OP: observation periods, CO: diagnoses, CE: eras of a condition, CC: conditions beside other
-- events, DX: drugs, DE: eras of a drug, V: visits and the rest, G: the vocabulary.
-- P1 persons of one sex
SELECT count(person_id) AS persons FROM person WHERE gender_concept_id = 8532
-- P2 persons by sex, with its name
SELECT p.gender_concept_id, c.concept_name AS sex, count(p.person_id) AS persons
FROM person p JOIN concept c ON p.gender_concept_id = c.concept_id
GROUP BY p.gender_concept_id, c.concept_name ORDER BY persons DESC
-- P3 persons by year of birth
SELECT year_of_birth, count(*) AS persons FROM person GROUP BY year_of_birth ORDER BY year_of_birth
-- P4 persons by state of residence
SELECT coalesce(l.state, 'unknown') AS state, count(*) AS persons
FROM person p LEFT JOIN location l ON l.location_id = p.location_id GROUP BY 1 ORDER BY persons DESC, state
-- P5 persons by state and postal area
SELECT l.state, l.zip, count(*) AS persons FROM person p INNER JOIN location l USING (location_id) GROUP BY l.state, l.zip ORDER BY 1, 2
-- P6 persons by sex and year of birth
SELECT sex.concept_name AS sex, p.year_of_birth, count(DISTINCT p.person_id) AS persons
FROM person p, concept sex WHERE p.gender_concept_id = sex.concept_id GROUP BY sex.concept_name, p.year_of_birth ORDER BY 1, 2
-- P7 persons by the month and day of birth
SELECT month_of_birth, day_of_birth, count(*) AS persons FROM person WHERE day_of_birth IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2
-- P8 persons by month of birth
SELECT coalesce(month_of_birth, 1) AS month, count(*) AS persons FROM person GROUP BY coalesce(month_of_birth, 1) ORDER BY 1
-- P9 how years of birth are spread: mean, deviation, quartiles, ends
SELECT min(year_of_birth) AS first, percentile_disc(0.25) WITHIN GROUP (ORDER BY year_of_birth) AS quarter, percentile_disc(0.5) WITHIN GROUP (ORDER BY year_of_birth) AS median,
  percentile_disc(0.75) WITHIN GROUP (ORDER BY year_of_birth) AS three_quarters, max(year_of_birth) AS last, round(avg(year_of_birth), 1) AS mean, round(stddev(year_of_birth), 1) AS deviation
FROM person
-- P10 shares of race and ethnicity among all persons
SELECT r.concept_name AS race, e.concept_name AS ethnicity, count(*) AS persons, round(100.0 * count(*) / sum(count(*)) OVER (), 2) AS percent
FROM person p JOIN concept r ON r.concept_id = p.race_concept_id JOIN concept e ON e.concept_id = p.ethnicity_concept_id
GROUP BY r.concept_name, e.concept_name ORDER BY persons DESC
-- OP1 persons with an observation of more than a year
SELECT count(DISTINCT person_id) AS persons FROM observation_period WHERE observation_period_end_date - observation_period_start_date > 365
-- OP2 length of the first observation in months: mean and quartiles
WITH first AS (
  SELECT person_id, observation_period_start_date AS begins, observation_period_end_date AS ends,
    row_number() OVER (PARTITION BY person_id ORDER BY observation_period_start_date) AS n
  FROM observation_period)
SELECT avg((ends - begins) / 30) AS mean_months, percentile_disc(array[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY (ends - begins) / 30) AS quartiles FROM first WHERE n = 1
-- OP3 persons observed throughout a year
SELECT count(DISTINCT person_id) AS persons FROM observation_period
WHERE observation_period_start_date <= date '2011-01-01' AND observation_period_end_date >= date '2011-12-31'
-- OP4 persons whose observation has a gap
SELECT count(*) AS persons FROM (SELECT person_id FROM observation_period GROUP BY person_id HAVING count(*) > 1) gaps
-- OP5 mean length of an observation in months
SELECT avg(extract(epoch FROM observation_period_end_date::timestamp - observation_period_start_date::timestamp) / (60 * 60 * 24 * 30.44)) AS months FROM observation_period
-- OP6 mean length of an observation in days
SELECT round(avg(observation_period_end_date - observation_period_start_date + 1), 2) AS days FROM observation_period
-- OP7 age at the start of an observation: mean, deviation, quartiles, ends
SELECT min(age), max(age), round(avg(age), 2) AS mean, round(stddev(age), 2) AS deviation, percentile_cont(0.25) WITHIN GROUP (ORDER BY age) AS p25,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY age) AS p50, percentile_cont(0.75) WITHIN GROUP (ORDER BY age) AS p75
FROM (SELECT extract(year FROM o.observation_period_start_date) - p.year_of_birth AS age FROM observation_period o JOIN person p ON p.person_id = o.person_id) a
-- OP8 observations a person: mean, deviation, quartiles, ends
WITH counts AS (SELECT person_id, count(*) AS n FROM observation_period GROUP BY person_id)
SELECT min(n), max(n), avg(n), stddev(n), percentile_disc(0.25) WITHIN GROUP (ORDER BY n), percentile_disc(0.5) WITHIN GROUP (ORDER BY n), percentile_disc(0.75) WITHIN GROUP (ORDER BY n) FROM counts
-- OP9 persons by their number of observations
SELECT n AS observations, count(*) AS persons FROM (SELECT person_id, count(observation_period_id) AS n FROM observation_period GROUP BY person_id) c GROUP BY n ORDER BY n
-- OP10 persons under observation in each month
SELECT m.month::date AS month, count(DISTINCT o.person_id) AS persons
FROM generate_series(timestamp '2010-01-01', timestamp '2012-12-01', interval '1 month') AS m(month)
JOIN observation_period o ON o.observation_period_start_date < m.month + interval '1 month' AND o.observation_period_end_date >= m.month
GROUP BY m.month ORDER BY m.month
-- OP11 how the ends of observations are spread
SELECT min(observation_period_end_date) AS first, percentile_disc(0.25) WITHIN GROUP (ORDER BY observation_period_end_date) AS p25,
  percentile_disc(0.5) WITHIN GROUP (ORDER BY observation_period_end_date) AS p50, percentile_disc(0.75) WITHIN GROUP (ORDER BY observation_period_end_date) AS p75,
  max(observation_period_end_date) AS last FROM observation_period
-- OP12 length of observations, with its quartiles taken by rank
WITH lengths AS (SELECT observation_period_end_date - observation_period_start_date AS days FROM observation_period),
ranked AS (SELECT days, row_number() OVER (ORDER BY days) AS n, count(*) OVER () AS total FROM lengths)
SELECT min(days) AS least, max(days) AS most, round(avg(days), 2) AS mean, min(days) FILTER (WHERE n >= 0.25 * total) AS p25,
  min(days) FILTER (WHERE n >= 0.5 * total) AS median, min(days) FILTER (WHERE n >= 0.75 * total) AS p75 FROM ranked
-- OP13 observations by sex and band of age at their start
SELECT c.concept_name AS sex, floor((extract(year FROM o.observation_period_start_date) - p.year_of_birth) / 10) * 10 AS band, count(DISTINCT p.person_id) AS persons
FROM person p JOIN observation_period o USING (person_id) JOIN concept c ON c.concept_id = p.gender_concept_id GROUP BY 1, 2 ORDER BY 1, 2
-- OP14 age at the first observation by sex, quartiles
WITH entry AS (
  SELECT p.gender_concept_id, min(extract(year FROM o.observation_period_start_date)) - p.year_of_birth AS age
  FROM person p JOIN observation_period o ON o.person_id = p.person_id GROUP BY p.person_id, p.gender_concept_id, p.year_of_birth)
SELECT gender_concept_id, count(*) AS persons, round(avg(age), 1) AS mean, percentile_disc(0.25) WITHIN GROUP (ORDER BY age) AS p25, percentile_disc(0.5) WITHIN GROUP (ORDER BY age) AS p50,
  percentile_disc(0.75) WITHIN GROUP (ORDER BY age) AS p75 FROM entry GROUP BY gender_concept_id ORDER BY 1
-- OP15 persons by age in the year of their first observation, and sex
SELECT s.age, c.concept_name AS sex, count(*) AS persons
FROM (SELECT p.person_id, p.gender_concept_id, extract(year FROM min(o.observation_period_start_date)) - p.year_of_birth AS age
  FROM person p JOIN observation_period o ON o.person_id = p.person_id GROUP BY p.person_id, p.gender_concept_id, p.year_of_birth) s
JOIN concept c ON c.concept_id = s.gender_concept_id WHERE s.age >= 18 GROUP BY s.age, c.concept_name ORDER BY 1, 2
-- OP16 observations by month of their end
SELECT extract(month FROM observation_period_end_date) AS month, count(*) AS observations FROM observation_period GROUP BY 1 ORDER BY 1
-- OP17 length of observations by sex, quartiles
SELECT c.concept_name AS sex, count(*) AS n, round(avg(days)) AS mean, percentile_cont(array[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY days) AS quartiles
FROM (SELECT p.gender_concept_id, o.observation_period_end_date - o.observation_period_start_date AS days FROM person p JOIN observation_period o ON o.person_id = p.person_id) d
JOIN concept c ON c.concept_id = d.gender_concept_id GROUP BY c.concept_name ORDER BY 1
-- CO1 how long a condition lasts
SELECT count(*) AS n, min(condition_end_date - condition_start_date), max(condition_end_date - condition_start_date), avg(condition_end_date - condition_start_date)
FROM condition_occurrence WHERE condition_concept_id = 4200062 AND condition_end_date IS NOT NULL
-- CO2 age at onset of a condition
SELECT age, count(*) AS persons FROM (
  SELECT c.person_id, extract(year FROM min(c.condition_start_date)) - p.year_of_birth AS age
  FROM condition_occurrence c JOIN person p ON p.person_id = c.person_id WHERE c.condition_concept_id = 4200062 GROUP BY c.person_id, p.year_of_birth) onset
GROUP BY age ORDER BY age
-- CO3 specialties that diagnose a group of conditions
SELECT s.concept_name AS specialty, count(*) AS diagnoses
FROM condition_occurrence co JOIN concept_ancestor a ON a.descendant_concept_id = co.condition_concept_id AND a.ancestor_concept_id = 4001009
JOIN provider d ON d.provider_id = co.provider_id JOIN concept s ON s.concept_id = d.specialty_concept_id GROUP BY s.concept_name ORDER BY diagnoses DESC
-- CO4 places of service where a condition is diagnosed
SELECT pl.concept_id, pl.concept_name AS place, count(*) AS diagnoses
FROM condition_occurrence co JOIN visit_occurrence v ON v.visit_occurrence_id = co.visit_occurrence_id JOIN care_site cs ON cs.care_site_id = v.care_site_id
JOIN concept pl ON pl.concept_id = cs.place_of_service_concept_id WHERE co.condition_concept_id = 4200062 GROUP BY 1, 2 ORDER BY 3 DESC, 1
-- CO5 persons with a condition by sex and band of age at its onset
WITH onset AS (SELECT person_id, min(condition_start_date) AS day FROM condition_occurrence WHERE condition_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 4100137) GROUP BY person_id)
SELECT g.concept_name AS sex, CASE WHEN extract(year FROM day) - p.year_of_birth < 18 THEN 'child' WHEN extract(year FROM day) - p.year_of_birth < 65 THEN 'adult' ELSE 'elder' END AS age, count(*) AS persons
FROM onset o JOIN person p ON p.person_id = o.person_id JOIN concept g ON g.concept_id = p.gender_concept_id GROUP BY 1, 2 ORDER BY 1, 2
-- CO6 what else one person has
SELECT DISTINCT c.concept_name FROM condition_era e JOIN concept c ON c.concept_id = e.condition_concept_id WHERE e.person_id = 136 AND e.condition_era_end_date >= date '2012-01-01'
-- CO7 how often persons with a condition are in hospital for it
SELECT persons_with, persons_in, stays, round(stays::numeric / nullif(persons_with, 0), 3) AS stays_a_person FROM (
  SELECT count(DISTINCT co.person_id) AS persons_with, count(DISTINCT co.person_id) FILTER (WHERE v.visit_concept_id = 9201) AS persons_in,
    count(DISTINCT v.visit_occurrence_id) FILTER (WHERE v.visit_concept_id = 9201) AS stays
  FROM condition_occurrence co LEFT JOIN visit_occurrence v ON v.visit_occurrence_id = co.visit_occurrence_id WHERE co.condition_concept_id = 4200062) x
-- CO8 days in hospital with a condition: mean and quartiles
SELECT count(*) AS stays, avg(v.visit_end_date - v.visit_start_date + 1) AS mean, percentile_cont(0.25) WITHIN GROUP (ORDER BY v.visit_end_date - v.visit_start_date + 1) AS p25,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY v.visit_end_date - v.visit_start_date + 1) AS p50, percentile_cont(0.75) WITHIN GROUP (ORDER BY v.visit_end_date - v.visit_start_date + 1) AS p75
FROM visit_occurrence v WHERE v.visit_concept_id = 9201 AND EXISTS (SELECT 1 FROM condition_occurrence co WHERE co.visit_occurrence_id = v.visit_occurrence_id AND co.condition_concept_id = 4200062)
-- CO9 whether a condition has a season
SELECT season, count(*) AS diagnoses FROM (
  SELECT CASE WHEN extract(month FROM condition_start_date) IN (12, 1, 2) THEN 'winter' WHEN extract(month FROM condition_start_date) BETWEEN 3 AND 5 THEN 'spring'
    WHEN extract(month FROM condition_start_date) BETWEEN 6 AND 8 THEN 'summer' ELSE 'autumn' END AS season
  FROM condition_occurrence WHERE condition_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 4001009)) s
GROUP BY season ORDER BY season
-- CO10 diagnoses by condition
SELECT c.concept_name AS condition, co.condition_concept_id, count(*) AS diagnoses FROM condition_occurrence co JOIN concept c ON c.concept_id = co.condition_concept_id
GROUP BY c.concept_name, co.condition_concept_id ORDER BY diagnoses DESC, 2
-- CO11 persons by condition
SELECT co.condition_concept_id, count(DISTINCT co.person_id) AS persons FROM condition_occurrence co WHERE co.condition_concept_id <> 0 GROUP BY co.condition_concept_id ORDER BY 2 DESC, 1
-- CO12 how the ends of diagnoses are spread, and how many have none
SELECT min(condition_end_date) AS first, max(condition_end_date) AS last, percentile_disc(0.5) WITHIN GROUP (ORDER BY condition_end_date) AS median,
  count(*) FILTER (WHERE condition_end_date IS NULL) AS open, count(condition_end_date) AS ended FROM condition_occurrence
-- CO13 diagnoses by year and month
SELECT to_char(condition_start_date, 'YYYY-MM') AS month, count(*) AS diagnoses FROM condition_occurrence GROUP BY 1 ORDER BY 1
-- CO14 diagnoses by the kind of record
SELECT t.concept_name AS kind, count(*) AS diagnoses, count(DISTINCT co.person_id) AS persons FROM condition_occurrence co JOIN concept t ON t.concept_id = co.condition_type_concept_id GROUP BY t.concept_name ORDER BY 2 DESC
-- CO15 different conditions a person: mean, deviation, quartiles
SELECT round(avg(n), 2) AS mean, round(stddev(n), 2) AS deviation, min(n), percentile_disc(0.25) WITHIN GROUP (ORDER BY n) AS p25, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) AS p50,
  percentile_disc(0.75) WITHIN GROUP (ORDER BY n) AS p75, max(n) FROM (SELECT person_id, count(DISTINCT condition_concept_id) AS n FROM condition_occurrence GROUP BY person_id) c
-- CO16 persons by their number of different conditions
SELECT n AS conditions, count(*) AS persons FROM (SELECT person_id, count(DISTINCT condition_concept_id) AS n FROM condition_occurrence WHERE condition_concept_id <> 0 GROUP BY person_id) c GROUP BY n ORDER BY n
-- CO17 diagnoses a person, with quartiles taken by rank
SELECT min(n), max(n), avg(n), min(CASE WHEN place >= 0.25 * total THEN n END) AS p25, min(CASE WHEN place >= 0.5 * total THEN n END) AS p50, min(CASE WHEN place >= 0.75 * total THEN n END) AS p75
FROM (SELECT n, row_number() OVER (ORDER BY n) AS place, count(*) OVER () AS total FROM (SELECT count(*) AS n FROM condition_occurrence GROUP BY person_id) c) r
-- CO18 persons who had one condition twice or more
SELECT condition_concept_id, count(*) AS persons FROM (SELECT person_id, condition_concept_id FROM condition_occurrence GROUP BY person_id, condition_concept_id HAVING count(*) >= 2) r
GROUP BY condition_concept_id ORDER BY 2 DESC, 1 LIMIT 10
-- CO19 diagnoses that lie within an observation, by month
SELECT date_trunc('month', co.condition_start_date)::date AS month, count(*) AS diagnoses, count(DISTINCT co.person_id) AS persons
FROM condition_occurrence co JOIN observation_period o ON o.person_id = co.person_id AND co.condition_start_date BETWEEN o.observation_period_start_date AND o.observation_period_end_date
GROUP BY 1 ORDER BY 1
-- CO20 reasons why conditions stopped
SELECT stop_reason, count(*) AS diagnoses FROM condition_occurrence WHERE stop_reason IS NOT NULL GROUP BY stop_reason ORDER BY 2 DESC
-- CO21 age by condition: mean and quartiles, of the conditions of one group
SELECT c.concept_name AS condition, count(*) AS n, round(avg(age), 1) AS mean, percentile_cont(0.25) WITHIN GROUP (ORDER BY age) AS p25, percentile_cont(0.5) WITHIN GROUP (ORDER BY age) AS p50, percentile_cont(0.75) WITHIN GROUP (ORDER BY age) AS p75
FROM (SELECT co.condition_concept_id, extract(year FROM co.condition_start_date)::integer - p.year_of_birth AS age FROM condition_occurrence co JOIN person p ON p.person_id = co.person_id) a
JOIN concept c ON c.concept_id = a.condition_concept_id JOIN concept_ancestor ca ON ca.descendant_concept_id = c.concept_id WHERE ca.ancestor_concept_id = 4100137 GROUP BY c.concept_name ORDER BY 1
-- CO22 sexes of persons by condition
SELECT co.condition_concept_id, g.concept_name AS sex, count(DISTINCT co.person_id) AS persons
FROM condition_occurrence co INNER JOIN person p ON p.person_id = co.person_id INNER JOIN concept g ON g.concept_id = p.gender_concept_id
WHERE co.condition_concept_id IN (4200062, 4200123, 4200978) GROUP BY co.condition_concept_id, g.concept_name ORDER BY 1, 2
-- CE1 length of a condition's eras: least, most, mean
SELECT c.concept_name, min(e.condition_era_end_date - e.condition_era_start_date) AS least, max(e.condition_era_end_date - e.condition_era_start_date) AS most, avg(e.condition_era_end_date - e.condition_era_start_date) AS mean
FROM condition_era e JOIN concept c ON c.concept_id = e.condition_concept_id WHERE e.condition_concept_id IN (4200062, 4200123) GROUP BY c.concept_name ORDER BY 1
-- CE2 age and sex of persons at the first era of a condition
WITH first_era AS (SELECT person_id, min(condition_era_start_date) AS day FROM condition_era WHERE condition_concept_id = 4200062 GROUP BY person_id)
SELECT extract(year FROM f.day) - p.year_of_birth AS age, p.gender_concept_id, count(*) AS persons FROM first_era f JOIN person p ON p.person_id = f.person_id GROUP BY 1, 2 ORDER BY 1, 2
-- CE3 length of eras by sex and band of age
SELECT g.concept_name AS sex, (extract(year FROM e.condition_era_start_date)::integer - p.year_of_birth) / 20 * 20 AS band, count(*) AS eras, round(avg(e.condition_era_end_date - e.condition_era_start_date), 2) AS mean
FROM condition_era e JOIN person p ON p.person_id = e.person_id JOIN concept g ON g.concept_id = p.gender_concept_id
WHERE e.condition_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 4001009) GROUP BY 1, 2 ORDER BY 1, 2
-- CE4 prevalence by condition, year, sex and decade of age
SELECT e.condition_concept_id, extract(year FROM e.condition_era_start_date) AS year, p.gender_concept_id, floor((extract(year FROM e.condition_era_start_date) - p.year_of_birth) / 10) AS decade, count(DISTINCT p.person_id) AS persons
FROM condition_era e JOIN person p ON p.person_id = e.person_id WHERE e.condition_concept_id IN (4200062, 4200123, 4200184) GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
-- CE5 shares of a year's eras by quarter, for each group of conditions
SELECT a.concept_name AS finding, extract(quarter FROM e.condition_era_start_date) AS quarter, count(*) AS eras,
  round(count(*)::numeric / sum(count(*)) OVER (PARTITION BY a.concept_name), 4) AS share
FROM condition_era e JOIN concept_ancestor ca ON ca.descendant_concept_id = e.condition_concept_id AND ca.min_levels_of_separation = 2 JOIN concept a ON a.concept_id = ca.ancestor_concept_id
WHERE a.concept_name LIKE 'Disorder of the %' GROUP BY 1, 2 ORDER BY 1, 2
-- CE6 conditions after which persons die most often
SELECT c.concept_name AS condition, count(DISTINCT e.person_id) AS persons, count(DISTINCT d.person_id) AS dead, round(count(DISTINCT d.person_id)::numeric / count(DISTINCT e.person_id), 4) AS share
FROM condition_era e JOIN concept c ON c.concept_id = e.condition_concept_id LEFT JOIN death d ON d.person_id = e.person_id
GROUP BY c.concept_name HAVING count(DISTINCT e.person_id) > 30 ORDER BY share DESC, 1 LIMIT 20
-- CE7 other conditions of persons with a condition
SELECT other.condition_concept_id, c.concept_name, count(DISTINCT other.person_id) AS persons
FROM condition_era one JOIN condition_era other ON other.person_id = one.person_id AND other.condition_concept_id <> one.condition_concept_id
JOIN concept c ON c.concept_id = other.condition_concept_id WHERE one.condition_concept_id = 4200062 GROUP BY 1, 2 ORDER BY 3 DESC, 1 LIMIT 15
-- CE8 number of other conditions of persons with a condition: mean and quartiles
WITH having_it AS (SELECT DISTINCT person_id FROM condition_era WHERE condition_concept_id = 4200062),
others AS (SELECT e.person_id, count(DISTINCT e.condition_concept_id) AS n FROM condition_era e JOIN having_it h ON h.person_id = e.person_id WHERE e.condition_concept_id <> 4200062 GROUP BY e.person_id)
SELECT count(*) AS persons, avg(n) AS mean, percentile_disc(0.25) WITHIN GROUP (ORDER BY n) AS p25, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) AS p50, percentile_disc(0.75) WITHIN GROUP (ORDER BY n) AS p75 FROM others
-- CE9 eras by condition
SELECT c.concept_name, count(*) AS eras FROM condition_era e JOIN concept c ON c.concept_id = e.condition_concept_id WHERE c.domain_id = 'Condition' AND c.concept_name ILIKE '%lung%' GROUP BY c.concept_name ORDER BY eras DESC, 1
-- CE10 persons by condition, those that ten persons have
SELECT condition_concept_id, count(DISTINCT person_id) AS persons FROM condition_era GROUP BY condition_concept_id HAVING count(DISTINCT person_id) >= 10 ORDER BY persons DESC, 1
-- CE11 how the starts of eras are spread, by condition
SELECT condition_concept_id, min(condition_era_start_date), max(condition_era_start_date), percentile_disc(0.25) WITHIN GROUP (ORDER BY condition_era_start_date) AS p25, percentile_disc(0.5) WITHIN GROUP (ORDER BY condition_era_start_date) AS p50,
  percentile_disc(0.75) WITHIN GROUP (ORDER BY condition_era_start_date) AS p75 FROM condition_era WHERE condition_concept_id IN (4200062, 4200123, 4200184) GROUP BY condition_concept_id ORDER BY 1
-- CE12 diagnoses in an era: mean, deviation, quartiles
SELECT round(avg(condition_occurrence_count), 3) AS mean, round(stddev(condition_occurrence_count), 3) AS deviation, min(condition_occurrence_count), max(condition_occurrence_count),
  percentile_cont(0.25) WITHIN GROUP (ORDER BY condition_occurrence_count) AS p25, percentile_cont(0.5) WITHIN GROUP (ORDER BY condition_occurrence_count) AS p50, percentile_cont(0.75) WITHIN GROUP (ORDER BY condition_occurrence_count) AS p75 FROM condition_era
-- CC1 first drugs within thirty days of a condition's onset, observed half a year before and after
WITH onset AS (
  SELECT e.person_id, e.condition_era_start_date AS day FROM condition_era e JOIN observation_period o ON o.person_id = e.person_id
    AND e.condition_era_start_date >= o.observation_period_start_date + 180 AND e.condition_era_start_date <= o.observation_period_end_date - 180
  WHERE e.condition_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 4001009))
SELECT i.concept_name AS ingredient, count(*) AS starts FROM onset JOIN drug_era r ON r.person_id = onset.person_id AND r.drug_era_start_date BETWEEN onset.day AND onset.day + 30
JOIN concept i ON i.concept_id = r.drug_concept_id GROUP BY i.concept_name ORDER BY starts DESC, 1
-- CC2 length of the therapy that follows a condition, by drug
SELECT c.concept_name AS ingredient, count(*) AS courses, min(days), max(days), round(avg(days), 1) AS mean FROM (
  SELECT r.drug_concept_id, r.drug_era_end_date - r.drug_era_start_date AS days FROM drug_era r
  JOIN (SELECT person_id, min(condition_era_start_date) AS day FROM condition_era WHERE condition_concept_id = 4200062 GROUP BY person_id) f ON f.person_id = r.person_id AND r.drug_era_start_date >= f.day) t
JOIN concept c ON c.concept_id = t.drug_concept_id GROUP BY c.concept_name ORDER BY courses DESC, 1
-- CC3 mortality within a year of the first diagnosis
WITH first_diagnosis AS (SELECT person_id, min(condition_era_start_date) AS day FROM condition_era WHERE condition_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 4001009) GROUP BY person_id)
SELECT count(*) AS persons, count(d.person_id) AS dead, count(*) FILTER (WHERE d.death_date <= f.day + 365) AS within_a_year, round(100.0 * count(d.person_id) / count(*), 2) AS percent
FROM first_diagnosis f LEFT JOIN death d ON d.person_id = f.person_id
-- CC4 days from the first diagnosis to death: mean and quartiles
SELECT count(*) AS dead, avg(days) AS mean, percentile_cont(array[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY days) AS quartiles FROM (
  SELECT d.death_date - min(e.condition_era_start_date) AS days FROM condition_era e JOIN death d ON d.person_id = e.person_id WHERE e.condition_concept_id = 4200062 GROUP BY d.person_id, d.death_date) x
-- CC5 persons with a condition and a procedure within ninety days of it
SELECT count(DISTINCT e.person_id) AS persons FROM condition_era e JOIN procedure_occurrence pr ON pr.person_id = e.person_id AND pr.procedure_date BETWEEN e.condition_era_start_date - 90 AND e.condition_era_start_date + 90
WHERE e.condition_concept_id = 4200062 AND pr.procedure_concept_id IN (2100311, 2100622, 2100933)
-- CC6 persons with a condition and a high value of a measurement within thirty days
SELECT count(DISTINCT co.person_id) AS persons FROM condition_occurrence co
WHERE co.condition_concept_id = 4200062 AND EXISTS (SELECT 1 FROM measurement m WHERE m.person_id = co.person_id AND m.measurement_concept_id = 3001777 AND m.value_as_number > m.range_high
  AND m.measurement_date BETWEEN co.condition_start_date AND co.condition_start_date + 30)
-- CC7 persons with a condition by state, and their share of the state's persons
SELECT l.state, count(DISTINCT p.person_id) AS persons, count(DISTINCT e.person_id) AS ill, round(100.0 * count(DISTINCT e.person_id) / count(DISTINCT p.person_id), 2) AS percent
FROM person p JOIN location l ON l.location_id = p.location_id LEFT JOIN condition_era e ON e.person_id = p.person_id AND e.condition_concept_id = 4200062 GROUP BY l.state ORDER BY 1
-- CC8 length of eras with and without a drug
SELECT CASE WHEN treated.person_id IS NULL THEN 'without' ELSE 'with' END AS treatment, count(*) AS eras, avg(e.condition_era_end_date - e.condition_era_start_date) AS mean_days
FROM condition_era e LEFT JOIN (SELECT DISTINCT person_id FROM drug_era WHERE drug_concept_id = 1100523) treated ON treated.person_id = e.person_id
WHERE e.condition_concept_id = 4200062 GROUP BY 1 ORDER BY 1
-- CC9 what persons with a condition received: drugs and procedures together
SELECT kind, concept_name, count(*) AS persons FROM (
  SELECT DISTINCT 'drug' AS kind, r.person_id, r.drug_concept_id AS concept_id FROM drug_era r JOIN condition_era e ON e.person_id = r.person_id WHERE e.condition_concept_id = 4200062 AND r.drug_era_start_date >= e.condition_era_start_date
  UNION ALL SELECT DISTINCT 'procedure', pr.person_id, pr.procedure_concept_id FROM procedure_occurrence pr JOIN condition_era e ON e.person_id = pr.person_id WHERE e.condition_concept_id = 4200062 AND pr.procedure_date >= e.condition_era_start_date) t
JOIN concept USING (concept_id) GROUP BY kind, concept_name ORDER BY persons DESC, 2 LIMIT 20
-- DX1 persons who took any preparation of an ingredient
SELECT count(DISTINCT d.person_id) AS persons FROM drug_exposure d JOIN concept_ancestor ca ON ca.descendant_concept_id = d.drug_concept_id WHERE ca.ancestor_concept_id = 1100523
-- DX2 persons who took a drug by year, sex and age
SELECT extract(year FROM d.drug_exposure_start_date) AS year, g.concept_name AS sex, extract(year FROM d.drug_exposure_start_date) - p.year_of_birth AS age, count(DISTINCT d.person_id) AS persons
FROM drug_exposure d JOIN person p ON p.person_id = d.person_id JOIN concept g ON g.concept_id = p.gender_concept_id WHERE d.drug_concept_id IN (19003039, 19004052) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
-- DX3 age at the first exposure, by drug: quartiles
SELECT drug_concept_id, count(*) AS persons, min(age), percentile_disc(0.25) WITHIN GROUP (ORDER BY age) AS p25, percentile_disc(0.5) WITHIN GROUP (ORDER BY age) AS p50, percentile_disc(0.75) WITHIN GROUP (ORDER BY age) AS p75, max(age), avg(age) AS mean FROM (
  SELECT d.person_id, d.drug_concept_id, extract(year FROM min(d.drug_exposure_start_date)) - p.year_of_birth AS age FROM drug_exposure d JOIN person p ON p.person_id = d.person_id
  WHERE d.drug_concept_id IN (19003039, 19004052, 2000000034) GROUP BY d.person_id, d.drug_concept_id, p.year_of_birth) f GROUP BY drug_concept_id ORDER BY 1
-- DX4 sexes of persons who took a drug, with shares
SELECT g.concept_name AS sex, count(DISTINCT p.person_id) AS persons, round(count(DISTINCT p.person_id) * 100.0 / (SELECT count(DISTINCT person_id) FROM drug_exposure WHERE drug_concept_id = 19003039), 1) AS percent
FROM person p JOIN concept g ON g.concept_id = p.gender_concept_id WHERE p.person_id IN (SELECT person_id FROM drug_exposure WHERE drug_concept_id = 19003039) GROUP BY g.concept_name ORDER BY 1
-- DX5 exposures to one drug
SELECT c.concept_name AS drug, count(*) AS exposures FROM concept c JOIN drug_exposure d ON c.concept_id = d.drug_concept_id WHERE lower(c.domain_id) = 'drug' AND c.vocabulary_id = 'Drugs' AND c.standard_concept = 'S' AND c.concept_id = 19003039 GROUP BY c.concept_name
-- DX6 how many different drugs there are
SELECT count(DISTINCT drug_concept_id) AS drugs FROM drug_exposure
-- DX7 most exposures of a person within a year
SELECT max(n) AS most FROM (SELECT person_id, count(*) AS n FROM drug_exposure WHERE drug_exposure_start_date >= date '2012-01-01' AND drug_exposure_start_date < date '2013-01-01' GROUP BY person_id) c
-- DX8 most different drugs of a person within a year
SELECT max(n) AS most FROM (SELECT person_id, count(DISTINCT drug_concept_id) AS n FROM drug_exposure WHERE extract(year FROM drug_exposure_start_date) = 2012 GROUP BY person_id) c
-- DX9 persons by number of different drugs within a year
SELECT n AS drugs, count(*) AS persons FROM (SELECT person_id, count(DISTINCT drug_concept_id) AS n FROM drug_exposure WHERE drug_exposure_start_date BETWEEN date '2012-01-01' AND date '2012-12-31' GROUP BY person_id) c GROUP BY n ORDER BY n
-- DX10 other drugs within a month of an ingredient's preparations
SELECT i.concept_name AS other, count(DISTINCT b.person_id) AS persons
FROM drug_era a JOIN drug_era b ON b.person_id = a.person_id AND b.drug_concept_id <> a.drug_concept_id AND b.drug_era_start_date BETWEEN a.drug_era_start_date AND a.drug_era_start_date + 30
JOIN concept i ON i.concept_id = b.drug_concept_id WHERE a.drug_concept_id = 1100523 GROUP BY i.concept_name ORDER BY persons DESC, 1
-- DX11 brands of an ingredient that were taken
SELECT bn.concept_name AS brand, count(*) AS exposures, count(DISTINCT d.person_id) AS persons FROM drug_exposure d
JOIN concept_relationship r ON r.concept_id_1 = d.drug_concept_id AND r.relationship_id = 'Has brand name' JOIN concept bn ON bn.concept_id = r.concept_id_2
JOIN concept_ancestor ca ON ca.descendant_concept_id = d.drug_concept_id AND ca.ancestor_concept_id = 21600907 GROUP BY bn.concept_name ORDER BY exposures DESC, 1
-- DX12 forms in which an ingredient was taken
SELECT f.concept_name AS form, count(*) AS exposures FROM drug_exposure d, concept_ancestor ca, concept_relationship r, concept f
WHERE ca.ancestor_concept_id = 1101046 AND ca.descendant_concept_id = d.drug_concept_id AND r.concept_id_1 = d.drug_concept_id AND r.relationship_id = 'Has dose form' AND r.concept_id_2 = f.concept_id GROUP BY f.concept_name ORDER BY 1
-- DX13 specialties that prescribe a drug
SELECT s.concept_name AS specialty, count(*) AS prescriptions FROM drug_exposure d LEFT JOIN provider pr ON pr.provider_id = d.provider_id LEFT JOIN concept s ON s.concept_id = pr.specialty_concept_id
WHERE d.drug_concept_id = 19003039 GROUP BY s.concept_name ORDER BY prescriptions DESC, 1
-- DX14 persons who take one drug, and another at the same time
WITH a AS (SELECT person_id, drug_exposure_start_date AS begins, drug_exposure_end_date AS ends FROM drug_exposure WHERE drug_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 1100523)),
b AS (SELECT person_id, drug_exposure_start_date AS begins, drug_exposure_end_date AS ends FROM drug_exposure WHERE drug_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 1101046))
SELECT count(DISTINCT a.person_id) AS persons FROM a JOIN b ON b.person_id = a.person_id AND a.begins <= b.ends AND b.begins <= a.ends
-- DX15 persons who begin a drug, observed half a year before and a year after
SELECT count(*) AS persons FROM (SELECT person_id, min(drug_exposure_start_date) AS day FROM drug_exposure WHERE drug_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 1100523) GROUP BY person_id) f
JOIN observation_period o ON o.person_id = f.person_id WHERE f.day - 180 >= o.observation_period_start_date AND f.day + 365 <= o.observation_period_end_date
-- DX16 adherence: share of the days between first and last supply that were covered
SELECT count(*) AS persons, avg(covered::numeric / span) AS adherence FROM (
  SELECT person_id, sum(days_supply) AS covered, max(drug_exposure_end_date) - min(drug_exposure_start_date) + 1 AS span FROM drug_exposure WHERE drug_concept_id = 19003039 GROUP BY person_id HAVING count(*) > 1) s
-- DX17 why a drug was stopped
SELECT stop_reason, count(*) AS exposures FROM drug_exposure WHERE stop_reason IS NOT NULL AND drug_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 1100523) GROUP BY stop_reason ORDER BY 2 DESC, 1
-- DX18 kinds of record of a drug's exposures, with shares
SELECT t.concept_name AS kind, count(*) AS exposures, round(100.0 * count(*) / sum(count(*)) OVER (), 2) AS percent FROM drug_exposure d JOIN concept t ON t.concept_id = d.drug_type_concept_id WHERE d.drug_concept_id = 19003039 GROUP BY t.concept_name ORDER BY 2 DESC
-- DX19 persons who take a drug that may treat a condition
SELECT count(DISTINCT e.person_id) AS persons FROM drug_era e WHERE e.drug_concept_id IN (SELECT concept_id_1 FROM concept_relationship WHERE relationship_id = 'May treat' AND concept_id_2 = 4100137)
-- DX20 persons who had the condition before the drug for it
WITH start AS (SELECT person_id, min(drug_era_start_date) AS day FROM drug_era WHERE drug_concept_id = 1103661 GROUP BY person_id),
diagnosis AS (SELECT co.person_id, min(co.condition_start_date) AS day FROM condition_occurrence co JOIN concept_ancestor ca ON ca.descendant_concept_id = co.condition_concept_id AND ca.ancestor_concept_id = 4100137 GROUP BY co.person_id)
SELECT count(*) AS persons FROM start s JOIN diagnosis d ON d.person_id = s.person_id AND d.day <= s.day
-- DX21 persons with a condition for which their drug is wrong
SELECT count(DISTINCT d.person_id) AS persons FROM drug_exposure d JOIN condition_occurrence co ON co.person_id = d.person_id AND co.condition_start_date <= d.drug_exposure_start_date
WHERE d.drug_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 1100523) AND co.condition_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 4002018)
-- DX22 persons who take a drug of a class, by class
SELECT k.concept_name AS class, count(DISTINCT d.person_id) AS persons FROM drug_exposure d JOIN concept_ancestor ca ON ca.descendant_concept_id = d.drug_concept_id JOIN concept k ON k.concept_id = ca.ancestor_concept_id
WHERE k.concept_class_id = 'Class' GROUP BY k.concept_name ORDER BY 1
-- DX23 days of supply by drug: mean and quartiles
SELECT d.drug_concept_id, count(d.days_supply) AS n, round(avg(d.days_supply), 2) AS mean, round(stddev(d.days_supply), 2) AS deviation, min(d.days_supply), percentile_cont(0.25) WITHIN GROUP (ORDER BY d.days_supply) AS p25,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY d.days_supply) AS p50, percentile_cont(0.75) WITHIN GROUP (ORDER BY d.days_supply) AS p75, max(d.days_supply) FROM drug_exposure d WHERE d.drug_concept_id IN (19003039, 19004052, 2000000034) GROUP BY d.drug_concept_id ORDER BY 1
-- DX24 exposures by days of supply
SELECT days_supply, count(*) AS exposures FROM drug_exposure WHERE days_supply IS NOT NULL GROUP BY days_supply ORDER BY days_supply
-- DX25 exposures by drug, the twenty most frequent
SELECT c.concept_name AS drug, count(*) AS exposures FROM drug_exposure d JOIN concept c ON c.concept_id = d.drug_concept_id WHERE d.drug_concept_id > 0 GROUP BY c.concept_name ORDER BY exposures DESC, 1 LIMIT 20
-- DX26 how the starts of exposures are spread, with quartiles taken by rank
WITH days AS (SELECT drug_exposure_start_date - date '2010-01-01' AS n FROM drug_exposure)
SELECT date '2010-01-01' + min(n) AS first, date '2010-01-01' + min(n) FILTER (WHERE place * 4 >= total) AS p25, date '2010-01-01' + min(n) FILTER (WHERE place * 2 >= total) AS p50,
  date '2010-01-01' + min(n) FILTER (WHERE place * 4 >= 3 * total) AS p75, date '2010-01-01' + max(n) AS last FROM (SELECT n, row_number() OVER (ORDER BY n) AS place, count(*) OVER () AS total FROM days) r
-- DX27 exposures by the kind of record, of drugs that are in an era
SELECT drug_type_concept_id, count(*) AS exposures FROM drug_exposure WHERE drug_concept_id IN (SELECT DISTINCT ca.descendant_concept_id FROM concept_ancestor ca JOIN concept c ON c.concept_id = ca.ancestor_concept_id WHERE c.concept_class_id = 'Ingredient')
  AND drug_type_concept_id IN (32838, 32825) GROUP BY drug_type_concept_id ORDER BY 1
-- DX28 different drugs a person: mean, deviation, quartiles
SELECT avg(n), stddev(n), min(n), percentile_disc(0.25) WITHIN GROUP (ORDER BY n), percentile_disc(0.5) WITHIN GROUP (ORDER BY n), percentile_disc(0.75) WITHIN GROUP (ORDER BY n), max(n) FROM (SELECT count(DISTINCT drug_concept_id) AS n FROM drug_exposure GROUP BY person_id) c
-- DX29 persons by their number of exposures
SELECT n AS exposures, count(*) AS persons, sum(count(*)) OVER (ORDER BY n) AS so_far FROM (SELECT person_id, count(*) AS n FROM drug_exposure GROUP BY person_id) c GROUP BY n ORDER BY n
-- DX30 exposures by month, within an observation
SELECT extract(year FROM d.drug_exposure_start_date) * 100 + extract(month FROM d.drug_exposure_start_date) AS month, count(*) AS exposures
FROM drug_exposure d JOIN observation_period o ON o.person_id = d.person_id WHERE d.drug_exposure_start_date >= o.observation_period_start_date AND d.drug_exposure_start_date <= o.observation_period_end_date GROUP BY 1 ORDER BY 1
-- DX31 quantities of a drug: mean and quartiles
SELECT count(quantity) AS n, avg(quantity) AS mean, percentile_cont(0.25) WITHIN GROUP (ORDER BY quantity) AS p25, percentile_cont(0.5) WITHIN GROUP (ORDER BY quantity) AS p50, percentile_cont(0.75) WITHIN GROUP (ORDER BY quantity) AS p75, max(quantity)
FROM drug_exposure WHERE drug_concept_id = 19003039
-- DX32 exposures by refills, and refills by drug
SELECT c.concept_name AS drug, d.refills, count(*) AS exposures FROM drug_exposure d JOIN concept c ON c.concept_id = d.drug_concept_id WHERE c.concept_class_id = 'Branded Drug' AND d.refills IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2
-- DX33 persons by drug and by condition that the drug may treat
SELECT i.concept_name AS ingredient, t.concept_name AS finding, count(DISTINCT e.person_id) AS persons FROM drug_era e JOIN concept_relationship r ON r.concept_id_1 = e.drug_concept_id AND r.relationship_id = 'May treat'
JOIN concept i ON i.concept_id = e.drug_concept_id JOIN concept t ON t.concept_id = r.concept_id_2
WHERE EXISTS (SELECT 1 FROM condition_era ce JOIN concept_ancestor ca ON ca.descendant_concept_id = ce.condition_concept_id WHERE ce.person_id = e.person_id AND ca.ancestor_concept_id = 4001009) GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
-- DX34 persons who go on with a drug for a year: a supply at least every sixty days
WITH gaps AS (
  SELECT person_id, drug_exposure_start_date - lag(drug_exposure_end_date) OVER (PARTITION BY person_id ORDER BY drug_exposure_start_date, drug_exposure_id) AS gap FROM drug_exposure
  WHERE drug_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 21600907))
SELECT count(*) AS persons, count(*) FILTER (WHERE longest <= 60) AS persistent FROM (SELECT person_id, max(gap) AS longest FROM gaps GROUP BY person_id HAVING count(*) > 1) p
-- DE1 which exposures belong to an era
SELECT e.drug_era_id, d.drug_exposure_id FROM drug_era e JOIN drug_exposure d ON d.person_id = e.person_id AND d.drug_exposure_start_date BETWEEN e.drug_era_start_date AND e.drug_era_end_date WHERE e.person_id = 136
-- DE2 different ingredients a person
SELECT avg(n) AS mean, max(n) AS most FROM (SELECT person_id, count(DISTINCT drug_concept_id) AS n FROM drug_era GROUP BY person_id) c
-- DE3 share of the time under observation with a drug
SELECT round(100.0 * exposed / observed, 3) AS percent FROM (SELECT sum(drug_era_end_date - drug_era_start_date) AS exposed FROM drug_era WHERE drug_concept_id = 1100523) e,
  (SELECT sum(observation_period_end_date - observation_period_start_date) AS observed FROM observation_period) o
-- DE4 share of one person's observation with a drug
SELECT e.days * 100.0 / nullif(o.days, 0) AS percent FROM (SELECT person_id, sum(drug_era_end_date - drug_era_start_date) AS days FROM drug_era WHERE person_id = 136 AND drug_concept_id = 1100523 GROUP BY person_id) e
JOIN (SELECT person_id, sum(observation_period_end_date - observation_period_start_date) AS days FROM observation_period GROUP BY person_id) o ON o.person_id = e.person_id
-- DE5 share of patients with a condition by the drug that they take
WITH ill AS (SELECT DISTINCT person_id FROM condition_era WHERE condition_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 4100137))
SELECT c.concept_name AS ingredient, count(DISTINCT e.person_id) AS persons, round(100.0 * count(DISTINCT e.person_id) / (SELECT count(*) FROM ill), 2) AS percent
FROM drug_era e JOIN ill ON ill.person_id = e.person_id JOIN concept c ON c.concept_id = e.drug_concept_id GROUP BY c.concept_name ORDER BY persons DESC, 1
-- DE6 share of persons by treatment within a class
SELECT i.concept_name AS ingredient, count(DISTINCT e.person_id) AS persons, round(100.0 * count(DISTINCT e.person_id) / sum(count(DISTINCT e.person_id)) OVER (), 2) AS percent
FROM drug_era e JOIN concept_ancestor ca ON ca.descendant_concept_id = e.drug_concept_id JOIN concept i ON i.concept_id = e.drug_concept_id WHERE ca.ancestor_concept_id = 21600907 GROUP BY i.concept_name ORDER BY 2 DESC, 1
-- DE7 mean days between a person's eras of an ingredient
SELECT count(*) AS gaps, avg(gap) AS mean FROM (SELECT drug_era_start_date - lag(drug_era_end_date) OVER (PARTITION BY person_id ORDER BY drug_era_start_date) AS gap FROM drug_era WHERE drug_concept_id = 1100523) g WHERE gap IS NOT NULL
-- DE8 eras by ingredient
SELECT e.drug_concept_id, c.concept_name, count(*) AS eras FROM drug_era e JOIN concept c ON c.concept_id = e.drug_concept_id GROUP BY e.drug_concept_id, c.concept_name ORDER BY eras DESC, 1
-- DE9 persons by ingredient
SELECT c.concept_name AS ingredient, count(DISTINCT e.person_id) AS persons FROM drug_era e, concept c WHERE e.drug_concept_id = c.concept_id AND c.standard_concept = 'S' AND c.concept_class_id = 'Ingredient' GROUP BY c.concept_name ORDER BY persons DESC, 1
-- DE10 how the ends of eras are spread, by ingredient
SELECT drug_concept_id, percentile_disc(0.25) WITHIN GROUP (ORDER BY drug_era_end_date) AS p25, percentile_disc(0.5) WITHIN GROUP (ORDER BY drug_era_end_date) AS p50, percentile_disc(0.75) WITHIN GROUP (ORDER BY drug_era_end_date) AS p75
FROM drug_era WHERE drug_concept_id IN (1100523, 1101046) GROUP BY drug_concept_id ORDER BY 1
-- DE11 eras by the days that are not covered
SELECT CASE WHEN gap_days = 0 THEN 'none' WHEN gap_days <= 30 THEN 'a month' ELSE 'more' END AS gap, count(*) AS eras, avg(drug_exposure_count) AS exposures FROM drug_era GROUP BY 1 ORDER BY 1
-- DE12 persons by number of different ingredients
SELECT n AS ingredients, count(*) AS persons FROM (SELECT person_id, count(DISTINCT drug_concept_id) AS n FROM drug_era WHERE drug_concept_id IN (SELECT concept_id FROM concept WHERE concept_class_id = 'Ingredient') GROUP BY person_id) c GROUP BY n ORDER BY n
-- DE13 eras a person: quartiles
SELECT percentile_cont(array[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY n) AS quartiles, avg(n) AS mean, stddev(n) AS deviation FROM (SELECT person_id, count(*) AS n FROM drug_era GROUP BY person_id) c
-- DE14 eras by month of observation: persons with a drug in each month of a year
SELECT m.n AS month, count(DISTINCT e.person_id) AS persons FROM generate_series(1, 12) AS m(n) JOIN drug_era e
  ON e.drug_era_start_date < make_date(2012, m.n, 1) + interval '1 month' AND e.drug_era_end_date >= make_date(2012, m.n, 1) GROUP BY m.n ORDER BY m.n
-- DE15 persons by ingredient, year, sex and decade of age
SELECT e.drug_concept_id, extract(year FROM e.drug_era_start_date) AS year, p.gender_concept_id, floor((extract(year FROM e.drug_era_start_date) - p.year_of_birth) / 10) AS decade, count(DISTINCT e.person_id) AS persons
FROM drug_era e JOIN person p ON p.person_id = e.person_id WHERE e.drug_concept_id IN (1100523, 1101046) GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
-- DE16 persons whose first era of an ingredient lasts at least ninety days
SELECT c.concept_name AS ingredient, count(*) AS persons, count(*) FILTER (WHERE f.days >= 90) AS persistent, round(avg(f.days), 1) AS mean_days FROM (
  SELECT person_id, drug_concept_id, drug_era_end_date - drug_era_start_date AS days, row_number() OVER (PARTITION BY person_id, drug_concept_id ORDER BY drug_era_start_date) AS n FROM drug_era) f
JOIN concept c ON c.concept_id = f.drug_concept_id WHERE f.n = 1 GROUP BY c.concept_name ORDER BY 1
-- V1 care sites by place of service
SELECT p.concept_name AS place, count(*) AS sites FROM care_site s JOIN concept p ON p.concept_id = s.place_of_service_concept_id GROUP BY p.concept_name ORDER BY 1
-- V2 persons by place of service of their visits
SELECT pl.concept_name AS place, count(DISTINCT v.person_id) AS persons FROM visit_occurrence v JOIN care_site s ON s.care_site_id = v.care_site_id JOIN concept pl ON pl.concept_id = s.place_of_service_concept_id GROUP BY pl.concept_name ORDER BY 1
-- V3 visits by kind and year
SELECT c.concept_name AS visit, extract(year FROM v.visit_start_date) AS year, count(*) AS visits, count(DISTINCT v.person_id) AS persons FROM visit_occurrence v JOIN concept c ON c.concept_id = v.visit_concept_id GROUP BY 1, 2 ORDER BY 1, 2
-- V4 stays after which a person came back within thirty days
SELECT count(*) AS stays, count(*) FILTER (WHERE next - visit_end_date <= 30) AS back, avg(CASE WHEN next - visit_end_date <= 30 THEN 1.0 ELSE 0 END) AS share FROM (
  SELECT visit_end_date, lead(visit_start_date) OVER (PARTITION BY person_id ORDER BY visit_start_date, visit_occurrence_id) AS next FROM visit_occurrence WHERE visit_concept_id = 9201) s
-- V5 persons with many emergencies in a year
SELECT extract(year FROM visit_start_date) AS year, count(*) AS persons FROM (SELECT person_id, date_trunc('year', visit_start_date) AS visit_start_date FROM visit_occurrence WHERE visit_concept_id = 9203 GROUP BY 1, 2 HAVING count(*) >= 3) f GROUP BY 1 ORDER BY 1
-- V6 procedures by kind, with shares
SELECT c.concept_name AS procedure, count(*) AS n, count(DISTINCT po.person_id) AS persons, round(count(*) * 100.0 / sum(count(*)) OVER (), 2) AS percent FROM procedure_occurrence po JOIN concept c ON c.concept_id = po.procedure_concept_id GROUP BY 1 ORDER BY 2 DESC, 1
-- V7 values of a measurement by sex and decade of age
SELECT g.concept_name AS sex, floor((extract(year FROM m.measurement_date) - p.year_of_birth) / 10) * 10 AS band, count(*) AS n, round(avg(m.value_as_number), 2) AS mean, percentile_cont(0.5) WITHIN GROUP (ORDER BY m.value_as_number) AS median
FROM measurement m JOIN person p ON p.person_id = m.person_id JOIN concept g ON g.concept_id = p.gender_concept_id WHERE m.measurement_concept_id = 3003554 AND m.value_as_number IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2
-- V8 measurements outside their range, by kind and unit
SELECT c.concept_name AS measurement, u.concept_name AS unit, count(*) AS n, count(*) FILTER (WHERE m.value_as_number < m.range_low) AS low, count(*) FILTER (WHERE m.value_as_number > m.range_high) AS high
FROM measurement m JOIN concept c ON c.concept_id = m.measurement_concept_id LEFT JOIN concept u ON u.concept_id = m.unit_concept_id GROUP BY c.concept_name, u.concept_name ORDER BY 1, 2
-- V9 the latest answer about smoking of each person
SELECT c.concept_name AS answer, count(*) AS persons FROM (SELECT DISTINCT ON (person_id) person_id, observation_concept_id FROM observation WHERE observation_concept_id IN (4800053, 4800106, 4800159) ORDER BY person_id, observation_date DESC, observation_id) o
JOIN concept c ON c.concept_id = o.observation_concept_id GROUP BY c.concept_name ORDER BY 1
-- V10 deaths by year and cause
SELECT extract(year FROM d.death_date) AS year, coalesce(a.concept_name, 'not said') AS cause, count(*) AS deaths FROM death d LEFT JOIN concept_ancestor ca ON ca.descendant_concept_id = d.cause_concept_id AND ca.min_levels_of_separation = 2
  LEFT JOIN concept a ON a.concept_id = ca.ancestor_concept_id GROUP BY 1, 2 ORDER BY 1, 2
-- G1 a concept by its id
SELECT concept_id, concept_name, concept_code, concept_class_id, vocabulary_id, standard_concept FROM concept WHERE concept_id = 4200062
-- G2 conditions by a word, in names and synonyms
SELECT DISTINCT c.concept_id, c.concept_name, coalesce(s.concept_synonym_name, c.concept_name) AS found FROM concept c LEFT JOIN concept_synonym s USING (concept_id)
WHERE c.domain_id = 'Condition' AND c.standard_concept = 'S' AND (strpos(lower(c.concept_name), 'lung') > 0 OR lower(s.concept_synonym_name) LIKE '%lung%') ORDER BY 1, 3
-- G3 standard conditions of a source code
SELECT s.concept_code AS code, t.concept_id, t.concept_name FROM concept s JOIN concept_relationship r ON r.concept_id_1 = s.concept_id AND r.relationship_id = 'Maps to' JOIN concept t ON t.concept_id = r.concept_id_2
WHERE s.vocabulary_id = 'Codes' AND s.concept_code = 'A1.1' AND r.invalid_reason IS NULL
-- G4 source codes of a condition and all below it
SELECT DISTINCT s.concept_code, s.concept_name FROM concept_ancestor a JOIN concept_relationship r ON r.concept_id_2 = a.descendant_concept_id AND r.relationship_id = 'Maps to' JOIN concept s ON s.concept_id = r.concept_id_1
WHERE a.ancestor_concept_id = 4001009 AND s.valid_end_date >= date '2020-01-01' ORDER BY 1
-- G5 conditions at an anatomical site
SELECT c.concept_id, c.concept_name FROM concept_relationship r JOIN concept c ON c.concept_id = r.concept_id_1 JOIN concept site ON site.concept_id = r.concept_id_2
WHERE r.relationship_id = 'Has finding site' AND lower(site.concept_name) = 'heart structure' ORDER BY 1
-- G6 conditions that an organism may cause
SELECT o.concept_name AS organism, count(*) AS conditions, string_agg(c.concept_name, ', ' ORDER BY c.concept_name) AS names FROM concept_relationship r JOIN concept c ON c.concept_id = r.concept_id_1 JOIN concept o ON o.concept_id = r.concept_id_2
WHERE r.relationship_id = 'Has causative agent' GROUP BY o.concept_name ORDER BY 1
-- G7 ingredients of a preparation
SELECT i.concept_id, i.concept_name FROM concept_ancestor a JOIN concept i ON i.concept_id = a.ancestor_concept_id WHERE a.descendant_concept_id = 2000000034 AND i.concept_class_id = 'Ingredient'
-- G8 preparations of an ingredient, by class
SELECT d.concept_class_id, count(*) AS preparations FROM concept_ancestor a JOIN concept d ON d.concept_id = a.descendant_concept_id WHERE a.ancestor_concept_id = 1101046 AND d.concept_class_id <> 'Ingredient' GROUP BY 1 ORDER BY 1
-- G9 classes of an ingredient, and how far away they are
SELECT k.concept_id, k.concept_name, a.min_levels_of_separation FROM concept_ancestor a JOIN concept k ON k.concept_id = a.ancestor_concept_id WHERE a.descendant_concept_id = 19003039 AND k.concept_class_id = 'Class' ORDER BY 3
-- G10 drugs that may treat a condition or one above it
SELECT DISTINCT i.concept_name FROM concept_ancestor a JOIN concept_relationship r ON r.concept_id_2 = a.ancestor_concept_id AND r.relationship_id = 'May treat' JOIN concept i ON i.concept_id = r.concept_id_1 WHERE a.descendant_concept_id = 4200062 ORDER BY 1
-- G11 all ancestors of a concept
SELECT c.concept_id, c.concept_name, a.min_levels_of_separation, a.max_levels_of_separation FROM concept_ancestor a JOIN concept c ON c.concept_id = a.ancestor_concept_id WHERE a.descendant_concept_id = 4200062 AND c.concept_id <> 4200062 ORDER BY 3
-- G12 children of a concept
SELECT c.concept_id, c.concept_name FROM concept_relationship r JOIN concept c ON c.concept_id = r.concept_id_2 WHERE r.concept_id_1 = 4001009 AND r.relationship_id = 'Subsumes' ORDER BY 1
-- G13 relationships of a concept
SELECT r.relationship_id, c.concept_id, c.concept_name FROM concept_relationship r JOIN concept c ON c.concept_id = r.concept_id_2 WHERE r.concept_id_1 = 1101046 ORDER BY 1, 2
-- G14 vocabularies and the versions of the codes in force
SELECT v.vocabulary_id, v.vocabulary_version, (SELECT count(*) FROM concept c WHERE c.vocabulary_id = v.vocabulary_id AND c.invalid_reason IS NULL) AS valid FROM vocabulary v ORDER BY 1
-- G15 how many relationships of each kind lead from one vocabulary to another
SELECT a.vocabulary_id AS "from", b.vocabulary_id AS "to", r.relationship_id, count(*) AS n FROM concept_relationship r, concept a, concept b WHERE a.concept_id = r.concept_id_1 AND b.concept_id = r.concept_id_2 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
-- G16 concepts by vocabulary, class and whether they are standard
SELECT vocabulary_id, concept_class_id, coalesce(standard_concept, 'none') AS standard, count(*) AS concepts FROM concept GROUP BY ROLLUP (vocabulary_id, concept_class_id), 3 ORDER BY 1, 2, 3
-- G17 diagnoses that have no concept, and what share that is
SELECT count(*) AS diagnoses, count(*) FILTER (WHERE condition_concept_id = 0) AS unmapped, round(100.0 * count(*) FILTER (WHERE condition_concept_id = 0) / count(*), 2) AS percent FROM condition_occurrence
