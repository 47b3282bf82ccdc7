-- What can be asked in the place of questions that are refused (questions.sql), by their numbers.
-- OP10 persons under observation in two months, as columns
SELECT count(DISTINCT person_id) FILTER (WHERE observation_period_start_date < date '2012-02-01' AND observation_period_end_date >= date '2012-01-01') AS january,
  count(DISTINCT person_id) FILTER (WHERE observation_period_start_date < date '2012-03-01' AND observation_period_end_date >= date '2012-02-01') AS february FROM observation_period
-- OP12 length of observations, with its quartiles
SELECT min(days), max(days), round(avg(days), 2) AS mean, percentile_disc(array[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY days) AS quartiles
FROM (SELECT observation_period_end_date - observation_period_start_date AS days FROM observation_period) d
-- OP13 observations by sex and band of age at their start
SELECT c.concept_name AS sex, floor((extract(year FROM o.observation_period_start_date) - p.year_of_birth) / 10) * 10 AS band, count(*) AS observations
FROM person p JOIN observation_period o USING (person_id) JOIN concept c ON c.concept_id = p.gender_concept_id GROUP BY 1, 2 ORDER BY 1, 2
-- OP14 age at the first observation by sex, quartiles
WITH entry AS (
  SELECT p.gender_concept_id, extract(year FROM min(o.observation_period_start_date)) - p.year_of_birth AS age
  FROM person p JOIN observation_period o ON o.person_id = p.person_id GROUP BY p.person_id, p.gender_concept_id, p.year_of_birth)
SELECT gender_concept_id, count(*) AS persons, percentile_disc(0.25) WITHIN GROUP (ORDER BY age) AS p25, percentile_disc(0.5) WITHIN GROUP (ORDER BY age) AS p50,
  percentile_disc(0.75) WITHIN GROUP (ORDER BY age) AS p75 FROM entry GROUP BY gender_concept_id ORDER BY 1
-- CO17 diagnoses a person, with their quartiles
SELECT min(n), max(n), avg(n), percentile_disc(array[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY n) AS quartiles FROM (SELECT count(*) AS n FROM condition_occurrence GROUP BY person_id) c
-- CE4 prevalence by condition, year, sex and decade of age
SELECT condition_concept_id, year, gender_concept_id, floor((year - born) / 10) AS decade, count(*) AS persons FROM (
  SELECT DISTINCT e.person_id, e.condition_concept_id, extract(year FROM e.condition_era_start_date) AS year, p.gender_concept_id, p.year_of_birth AS born
  FROM condition_era e JOIN person p ON p.person_id = e.person_id WHERE e.condition_concept_id IN (4200062, 4200123, 4200184)) d GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
-- CE7 other conditions of persons with a condition
SELECT other.condition_concept_id, c.concept_name, count(DISTINCT other.person_id) AS persons
FROM condition_era one JOIN condition_era other ON other.person_id = one.person_id AND other.condition_concept_id <> 4200062
JOIN concept c ON c.concept_id = other.condition_concept_id WHERE one.condition_concept_id = 4200062 GROUP BY 1, 2 ORDER BY 3 DESC, 1 LIMIT 15
-- CC6 persons with a condition and a high value of a measurement within thirty days
SELECT count(DISTINCT co.person_id) AS persons FROM condition_occurrence co JOIN measurement m ON m.person_id = co.person_id AND m.measurement_date BETWEEN co.condition_start_date AND co.condition_start_date + 30
WHERE co.condition_concept_id = 4200062 AND m.measurement_concept_id = 3001777 AND m.value_as_number > m.range_high
-- DX2 persons who took a drug by year, sex and age
SELECT year, sex, year - born AS age, count(*) AS persons FROM (
  SELECT DISTINCT d.person_id, extract(year FROM d.drug_exposure_start_date) AS year, p.gender_concept_id AS sex, p.year_of_birth AS born
  FROM drug_exposure d JOIN person p ON p.person_id = d.person_id WHERE d.drug_concept_id IN (19003039, 19004052)) y GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
-- DX10 other drugs within a month of an ingredient's preparations
SELECT i.concept_name AS other, count(DISTINCT b.person_id) AS persons
FROM drug_era a JOIN drug_era b ON b.person_id = a.person_id AND b.drug_concept_id <> 1100523 AND b.drug_era_start_date BETWEEN a.drug_era_start_date AND a.drug_era_start_date + 30
JOIN concept i ON i.concept_id = b.drug_concept_id WHERE a.drug_concept_id = 1100523 GROUP BY i.concept_name ORDER BY persons DESC, 1
-- DX16 adherence: share of all persons' days between first and last supply that were covered
SELECT count(*) AS persons, sum(covered) / sum(span) AS adherence FROM (
  SELECT person_id, sum(days_supply) AS covered, max(drug_exposure_end_date) - min(drug_exposure_start_date) + 1 AS span FROM drug_exposure WHERE drug_concept_id = 19003039 GROUP BY person_id HAVING count(*) > 1) s
-- DX26 how the starts of exposures are spread
SELECT min(drug_exposure_start_date), percentile_disc(0.25) WITHIN GROUP (ORDER BY drug_exposure_start_date) AS p25, percentile_disc(0.5) WITHIN GROUP (ORDER BY drug_exposure_start_date) AS p50,
  percentile_disc(0.75) WITHIN GROUP (ORDER BY drug_exposure_start_date) AS p75, max(drug_exposure_start_date) FROM drug_exposure
-- DX34 persons who go on with a drug: a supply at least every sixty days
WITH gaps AS (
  SELECT person_id, drug_exposure_start_date - lag(drug_exposure_end_date) OVER (PARTITION BY person_id ORDER BY drug_exposure_start_date, drug_exposure_id) AS gap FROM drug_exposure
  WHERE drug_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 21600907))
SELECT count(*) AS persons, count(*) FILTER (WHERE long = 0) AS persistent FROM (SELECT person_id, count(*) FILTER (WHERE gap > 60) AS long FROM gaps GROUP BY person_id HAVING count(*) > 1) p
-- DE14 persons with a drug in two months, as columns
SELECT count(DISTINCT person_id) FILTER (WHERE drug_era_start_date < date '2012-02-01' AND drug_era_end_date >= date '2012-01-01') AS january,
  count(DISTINCT person_id) FILTER (WHERE drug_era_start_date < date '2012-03-01' AND drug_era_end_date >= date '2012-02-01') AS february FROM drug_era
-- DE15 persons by ingredient, year, sex and decade of age
SELECT drug_concept_id, year, gender_concept_id, floor((year - born) / 10) AS decade, count(*) AS persons FROM (
  SELECT DISTINCT e.person_id, e.drug_concept_id, extract(year FROM e.drug_era_start_date) AS year, p.gender_concept_id, p.year_of_birth AS born
  FROM drug_era e JOIN person p ON p.person_id = e.person_id WHERE e.drug_concept_id IN (1100523, 1101046)) d GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
