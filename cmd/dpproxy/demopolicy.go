package main

import "fmt"

// demoPolicy is the policy file that the demo writes: small, and commented as a DBA would like to read it.
func demoPolicy(listen, console string, rows int, analyst, dba string) string {
	return fmt.Sprintf(`# The demo's policy: what analysts may learn of the people in warehouse.duckdb.
version: 1
server:
  listen: %s
  console: %s                      # pages for a browser: log in as analyst, or as dba for the owner's pages
backend:
  url: duckdb:warehouse.duckdb
ledger:
  url: sqlite:dpproxy.ledger
users:
  - {name: analyst, password: "%s"}
  - {name: dba, password: "%s", admin: true}     # sees every budget, no more of the data
owners: [dba]                                     # sees in the console who spent what, and may revoke releases
datasets:
  - id: demo
    unit: {name: person, key: people.person_id, type: bigint}   # whom the budget protects
    neighbors: add-remove
    accountant: pure                              # ε adds up
    cap: {epsilon: 100, delta: 0}                 # everybody together, for life
    budgets:
      "*": {epsilon: 10, delta: 0}                # each user, for life
    defaults: {epsilon: 0.1, max_epsilon: 1, confidence: 0.95}
    tables:
      - name: people
        source: main.people
        expected_rows: %d
        max_rows_per_unit: 1
        columns:
          - {name: age,       type: integer, domain: {min: 0, max: 109, step: 1}, outside: clamp, extremes: declared, comment: "years"}
          - {name: sex,       type: text,    domain: {values: [Female, Male]}, nulls: exclude, other: hide}   # charts have no bars for nobody
          - {name: education, type: text,    domain: {values: [none, school, college, bachelor, master]}, nulls: exclude, other: hide}
          - {name: income,    type: integer, domain: {min: 0, max: 250000, step: 1000}, outside: clamp, extremes: true, comment: "a year"}
          - {name: hired,     type: date,    domain: {min: 2000-01-01, max: 2026-12-31, step: 1 day}, extremes: declared}   # NULL: never hired
          - {name: region,    type: text,    domain: {values: [north, south, east, west, islands]}, nulls: exclude, other: hide}
        releases:                                 # each user pays for one once; then it is free
          - {kind: range,     columns: [age],            epsilon: 0.5}
          - {kind: range,     columns: [income],         epsilon: 0.5}
          - {kind: histogram, columns: [sex, education, region], epsilon: 0.5}
          # made-up rows, in a table of their own: SELECT count(*) FROM dp.people_made_up pays, then SELECT * FROM dp.people_made_up shows them
          - {kind: synthetic, name: people_made_up, columns: [{column: age, step: 10}, sex, education, region], epsilon: 1, rows: 2000}
          # counts over any combination, one after the other: 20 answers come from the rows, the others from a public guess. A count by
          # itself is more exact, so that it is opened by SET dp.release = on alone
          - {kind: online, name: people_online, columns: [{column: age, step: 5}, {column: income, step: 10000}, sex, education, region], epsilon: 1, updates: 20}
      - name: visits                              # several rows a person
        source: main.visits
        unit: visits.person_id = people.person_id
        expected_rows: %d
        max_rows_per_unit: 8                      # enforced: the rest of a person's rows are left out
        columns:
          - {name: visited_at, type: timestamptz, domain: {min: 2024-01-01, below: 2026-07-01, step: 1 hour}, nulls: exclude, other: hide, extremes: declared}
          - {name: kind,       type: text,        domain: {values: [checkup, lab, vaccination, emergency]}, nulls: exclude, other: hide}
          - {name: minutes,    type: integer,     domain: {min: 0, max: 240, step: 1}, outside: clamp, extremes: declared}
      - name: bids                                # what people would pay for a year's ferry ticket
        source: main.bids
        unit: bids.person_id = people.person_id
        expected_rows: %d
        max_rows_per_unit: 1
        columns:
          - {name: bid, type: integer, domain: {min: 0, max: 500, step: 5}, outside: clamp}
      - name: likes                               # fruit that people like: none, or several
        source: main.likes
        unit: likes.person_id = people.person_id
        expected_rows: %d
        max_rows_per_unit: 1
        columns:
          - {name: apple,  type: boolean, nulls: exclude}
          - {name: banana, type: boolean, nulls: exclude}
          - {name: cherry, type: boolean, nulls: exclude}
          - {name: fig,    type: boolean, nulls: exclude}
        releases:                                 # insist: a plain histogram of so few cells would do better, as EXPLAIN says
          - {kind: online, name: fruit, columns: [apple, banana, cherry, fig], epsilon: 1, updates: 20, insist: true}
      - name: prices                              # no privacy: exact and free
        source: main.prices
        public: true
        max_rows: 1000
        columns:
          - {name: price, type: integer}
      - name: regions
        source: main.regions
        public: true
        max_rows: 100
        columns:
          - {name: code,     type: text}
          - {name: name,     type: text}
          - {name: area_km2, type: integer}
`, listen, console, analyst, dba, rows, 2*rows, rows, rows)
}
