package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	_ "github.com/duckdb/duckdb-go/v2" // the driver of the demo's warehouse file
)

// demoStep is one statement of the demo's data generator. The data are a function of the number of rows alone: a hash
// of the row number stands for chance.
type demoStep struct{ name, sql string }

func demoSteps(rows int) []demoStep {
	return []demoStep{
		{"", `CREATE MACRO u(i, k) AS (hash(i * 1009 + k) % 1000000007) / 1000000007.0`},
		{"regions", `CREATE TABLE regions AS SELECT * FROM (VALUES ('north', 'Northern plain', 61000), ('south', 'Southern coast', 48000),
			('east', 'Eastern hills', 39500), ('west', 'Western lakes', 33200), ('islands', 'The islands', 9100)) AS r(code, name, area_km2)`},
		{"people", fmt.Sprintf(peopleSQL, rows)},
		{"", `ALTER TABLE people ADD PRIMARY KEY (person_id)`}, // proves one row a person, which saves the row bounding
		{"visits", visitsSQL},
		{"bids", bidsSQL},
		{"", `ALTER TABLE bids ADD PRIMARY KEY (person_id)`},
		{"prices", `CREATE TABLE prices AS SELECT 5 * i AS price FROM generate_series(1, 100) AS s(i)`},
		{"likes", likesSQL},
		{"", `ALTER TABLE likes ADD PRIMARY KEY (person_id)`},
		{"", `DROP MACRO u`},
	}
}

// peopleSQL: ages of a population that is neither young nor old, four levels of education that depend on age, incomes
// that depend on both, hiring dates that lean to the recent, some NULLs, a few values outside the declared domains.
const peopleSQL = `CREATE TABLE people AS
WITH base AS (
  SELECT i AS person_id,
    CASE WHEN u(i, 1) < 0.22 THEN floor(18 * u(i, 2))
         WHEN u(i, 1) < 0.80 THEN 18 + floor(47 * pow(u(i, 2), 1.05))
         ELSE 65 + floor(40 * pow(u(i, 2), 2.2)) END::INTEGER AS age,
    CASE WHEN u(i, 3) < 0.507 THEN 'Female' WHEN u(i, 3) < 0.997 THEN 'Male' WHEN u(i, 3) < 0.999 THEN 'X' END AS sex,
    u(i, 4) AS schooling, u(i, 5) AS luck, (u(i, 6) + u(i, 7) + u(i, 8) + u(i, 9) - 2) * 1.7 AS spread, u(i, 10) AS place
  FROM generate_series(1, %d) AS s(i)),
taught AS (
  SELECT *, CASE WHEN age < 16 OR schooling < 0.12 THEN 'none' WHEN schooling < 0.55 THEN 'school'
                 WHEN schooling < 0.80 THEN 'college' WHEN schooling < 0.94 OR age < 24 THEN 'bachelor' ELSE 'master' END AS education
  FROM base)
SELECT person_id, age, sex, education,
  CASE WHEN age < 16 OR luck < 0.05 THEN NULL WHEN luck < 0.18 THEN 0
       ELSE floor(exp(10.1 + 0.5 * spread + 0.012 * (least(age, 55) - 35)
            + CASE education WHEN 'master' THEN 0.7 WHEN 'bachelor' THEN 0.45 WHEN 'college' THEN 0.15 ELSE 0 END)) END::INTEGER AS income,
  CASE WHEN age >= 18 AND luck >= 0.2
       THEN DATE '2026-06-30' - floor(least((age - 17) * 365, 9600) * pow(u(person_id, 11), 1.8))::INTEGER END AS hired,
  CASE WHEN place < 0.31 THEN 'north' WHEN place < 0.55 THEN 'south' WHEN place < 0.75 THEN 'east'
       WHEN place < 0.92 THEN 'west' ELSE 'islands' END AS region
FROM taught`

// visitsSQL: none to a dozen visits a person, more with age.
const visitsSQL = `CREATE TABLE visits AS
SELECT p.person_id,
  (TIMESTAMP '2024-01-01 00:00:00' + to_seconds(floor(u(p.person_id * 16 + v, 21) * 912 * 86400)::BIGINT))::TIMESTAMPTZ AS visited_at,
  CASE WHEN u(p.person_id * 16 + v, 22) < 0.50 THEN 'checkup' WHEN u(p.person_id * 16 + v, 22) < 0.75 THEN 'lab'
       WHEN u(p.person_id * 16 + v, 22) < 0.90 THEN 'vaccination' ELSE 'emergency' END AS kind,
  5 + floor(-20 * ln(1 - u(p.person_id * 16 + v, 23)))::INTEGER AS minutes
FROM people p, generate_series(1, 12) AS s(v)
WHERE u(p.person_id, 20) * u(p.person_id, 24) * (4 + p.age / 10.0) > v - 0.6`

// bidsSQL: what each person would pay for a year's ferry ticket, more where income is more, and most by islanders.
const bidsSQL = `CREATE TABLE bids AS
SELECT person_id, floor(exp(4 + 0.6 * (u(person_id, 31) + u(person_id, 32) + u(person_id, 33) - 1.5))
  * CASE WHEN region = 'islands' THEN 2.2 WHEN income > 40000 THEN 1.4 ELSE 1 END)::INTEGER AS bid
FROM people`

// likesSQL: fruit that a person likes: none, or several.
const likesSQL = `CREATE TABLE likes AS
SELECT person_id, u(person_id, 41) < 0.46 AS apple, u(person_id, 42) < 0.47 AS banana, u(person_id, 43) < 0.31 + 0.002 * age AS cherry,
  u(person_id, 44) < 0.12 AS fig
FROM people`

// generate writes the demo's warehouse file, showing progress.
func generate(ctx context.Context, path string, rows int, out io.Writer) error {
	partial := path + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	db, err := sql.Open("duckdb", partial)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, step := range demoSteps(rows) {
		if step.name != "" {
			fmt.Fprintf(out, "generating %-8s ", step.name)
		}
		start := time.Now()
		if _, err := db.ExecContext(ctx, "SET TimeZone = 'UTC'"); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, step.sql)
		if err != nil && ctx.Err() != nil {
			fmt.Fprintln(out)
			return errors.New("interrupted; the next start generates anew")
		}
		if err != nil {
			return fmt.Errorf("generate %s: %w", step.name, err)
		}
		if step.name == "" {
			continue
		}
		var n int
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM "+step.name).Scan(&n); err != nil {
			return err
		}
		fmt.Fprintf(out, "%9d rows  %.1f s\n", n, time.Since(start).Seconds())
	}
	if err := db.Close(); err != nil {
		return err
	}
	return os.Rename(partial, path)
}
