package planner

import "github.com/dpproxy/dpproxy/planner/refuse"

// What cannot be asked of private rows that meet a public list.
var (
	candidateRows      = refuse.New("candidate-rows", "DP002", "private rows that meet a public list cannot be %s", "Join one list in the SELECT that groups by its columns: SELECT c.name, count(*) FROM t, LATERAL (VALUES ('a', x), ('b', y)) c(name, yes) WHERE yes GROUP BY c.name.", `SELECT count(*) FROM (SELECT v.n FROM people, (VALUES (1), (2)) v(n)) t`)
	candidateKeys      = refuse.New("candidate-keys", "DP002", `GROUP BY does not tell the rows of "%[1]s" apart: a private row would count several times in one group`, `Group by columns of "%[1]s" that differ between all its rows, or take its rows DISTINCT in a sub-query. Where its key is unique, equate it with an expression over the private rows.`, `SELECT count(*) FROM people, (VALUES (10), (20)) v(n) WHERE age > v.n`)
	candidateAggregate = refuse.New("candidate-aggregate", "DP002", "this aggregate of private rows that meet a public list is not answered", "count(*), count(x), and sums and averages of private columns are.", `SELECT v.n, percentile_disc(0.5) WITHIN GROUP (ORDER BY income) FROM people, (VALUES (10), (20)) v(n) WHERE age > v.n GROUP BY v.n`)
	manyCandidates     = refuse.New("candidate-number", "54000", "the public list has %d rows, it must have from 1 to %d", "Narrow the list with WHERE in a sub-query, or take coarser steps.", `SELECT v.n, count(*) FROM people, generate_series(1, 5000) v(n) WHERE age > v.n GROUP BY v.n`)
	timesSeries        = refuse.New("candidate-times", "DP002", "private rows do not meet generate_series of %s", "GROUP BY a column of dates, or its date_trunc, has every day of its domain, with 0 where nobody is: SELECT date_trunc('month', d), count(*) FROM t GROUP BY 1. Or list few dates: (VALUES (date '2024-01-01'), (date '2024-02-01')) v(d).", `SELECT d, count(*) FROM generate_series(date '2024-01-01', date '2024-03-01', interval '1 month') d JOIN people p ON p.hired <= d::date GROUP BY 1`)
	seriesLong         = refuse.New("series-rows", "54000", "generate_series would make about %s rows, it may make %d", "Take coarser steps, or a shorter range: all rows are made before any is used, so LIMIT does not help.", `SELECT count(*) FROM generate_series(1, 1000000000000)`)
	mixedValues        = refuse.New("values-types", "42804", "VALUES types %s and %s cannot be matched", "Give all rows of a column the same type: '…'::type.", `SELECT v.n, count(*) FROM people, (VALUES (1), (current_date)) v(n) GROUP BY v.n`)
)
