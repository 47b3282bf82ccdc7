package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// What a database will not run is found before the charge: the very query that would run is planned, with its arguments
// and under the settings that it would have, and not executed. Which of a query's texts will run is found in its own
// snapshot, after the charge (proof.go), so each of them is planned:
//
//	EXPLAIN (COSTS false) SELECT … FROM people AS s           -- where a constraint proves one row a unit
//	EXPLAIN (COSTS false) SELECT … row_number() OVER (…) …    -- where none does
//
// EXPLAIN opens no row. What it reads of the rows are the planner's statistics, and the ends of an index where a
// condition lies outside of these; they move a plan and its time, and fail nothing, since every function in dpproxy's
// SQL is total. So whether it is accepted is for the schema, the rights and the engine to say. What was planned is not
// remembered: the same user's same question is not asked again, and another user's is not to show.

// looked is what a look at the database before a charge found.
type looked struct {
	drift     []string      // what is no longer as it was inspected, in an operator's words
	limited   bool          // new sessions would have a limit that rows may exceed
	watches   bool          // the role may ask whether the catalog changed while a query ran
	citus     bool          // the tables may lie on several machines
	away      bool          // one of which does not answer
	unplanned error         // the database does not plan this query
	of        rewrite.Query // of the error
}

// lookAgain holds the database against what was inspected, and plans queries: one round trip for all but trusted
// SELECTs.
func lookAgain(ctx context.Context, tx pgx.Tx, of *cluster, pinned []pinnedShape, queries []rewrite.Query) (found looked, err error) {
	var batch pgx.Batch
	batch.Queue(keptSQL)
	batch.Queue("SELECT " + onCitus + ", " + mayAskSQL)
	for _, s := range pinned {
		batch.Queue(shapeSQL, shapeArguments(inspect.ColumnsRead(s.tables, dialect.PostgreSQL))...)
	}
	if of != nil && len(queries) > 0 {
		batch.Queue(awaySQL)
	}
	for _, q := range queries {
		for _, u := range q.Required() {
			batch.Queue(uniqueSQL, uniqueArguments(u)...)
		}
		for _, f := range of.forms(q) {
			batch.Queue("EXPLAIN (COSTS false) "+f.SQL, f.Args...)
		}
	}
	shapes, err := found.read(tx.SendBatch(ctx, &batch), len(pinned), of, queries)
	for i := range shapes {
		if err == nil {
			err = viewShapes(ctx, tx, pinned[i].tables, shapes[i])
		}
		if err == nil || found.unplanned != nil && !hasTrusted(pinned[i].tables) {
			found.drift = append(found.drift, pinned[i].shape.Drift(shapes[i])...)
		}
	}
	return found, err
}

// read takes the results of a batch in their order. Its error ends the transaction.
func (found *looked) read(results pgx.BatchResults, datasets int, of *cluster, queries []rewrite.Query) (shapes []inspect.Shape, err error) {
	defer func() {
		if failed := results.Close(); err == nil {
			err = failed
		}
	}()
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	kept, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	found.limited = limited(kept)
	if err := results.QueryRow().Scan(&found.citus, &found.watches); err != nil {
		return nil, err
	}
	for range datasets {
		rows, err := results.Query()
		if err != nil {
			return nil, err
		}
		s, err := collectShape(rows)
		if err != nil {
			return nil, err
		}
		shapes = append(shapes, s)
	}
	workers := of != nil && len(queries) > 0
	if workers {
		if err := results.QueryRow().Scan(&found.away); err != nil {
			return shapes, err
		}
	}
	for _, q := range queries {
		for _, u := range q.Required() {
			var unique bool
			if err := results.QueryRow().Scan(&unique); err != nil {
				return shapes, err
			}
			if !unique {
				found.drift = append(found.drift, fmt.Sprintf("no constraint proves %s of table %s unique and NOT NULL", strings.Join(u.Columns, ", "), u.Table.Name))
			}
		}
		for range of.forms(q) {
			whole, err := nextPlan(results, workers)
			if err != nil {
				if refuses(err) && found.unplanned == nil {
					found.unplanned, found.of = err, q
				}
				return shapes, err
			}
			if !whole && found.unplanned == nil {
				found.unplanned, found.of = errNoRemotePlan, q
			}
		}
	}
	return shapes, nil
}

// nextPlan takes the next plan, and reports whether it is whole: on a cluster a worker may not have planned its part.
func nextPlan(results pgx.BatchResults, workers bool) (whole bool, err error) {
	if !workers {
		_, err := results.Exec()
		return true, err
	}
	rows, err := results.Query()
	if err != nil {
		return false, err
	}
	defer rows.Close()
	whole = true
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return false, err
		}
		whole = whole && strings.TrimSpace(line) != noRemotePlan
	}
	return whole, rows.Err()
}

// forms are all the texts of which one runs: the shortest that constraints prove in the query's own snapshot, which is
// a later one than that of the look.
func (c *cluster) forms(q rewrite.Query) (list []execute.Form) {
	if c != nil {
		return []execute.Form{execute.FormOf(q)} // nothing is proven there
	}
	for _, s := range q.Proven() {
		list = append(list, execute.FormOf(s))
	}
	return append(list, execute.FormOf(q))
}

// refuses tells an error that says no to a query from one that says that the database is away.
func refuses(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) || len(server.Code) != 5 {
		return false
	}
	switch execute.Class(server.Code) {
	case "08", "40", "53", "57", "58": // 40: of two that wait for each other, or for a standby's replay, one is ended
		return false
	}
	return true
}
