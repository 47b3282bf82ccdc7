package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// uniqueSQL asks whether no two rows share the values of some columns: the relation is a plain table without children,
// and has a unique index that is valid, immediate, total, on some of the columns ($3) or of them and the unit's ($4),
// and compares as PARTITION BY would: a B-tree (whose number is 403), and not one of WITHOUT OVERLAPS (PostgreSQL 18),
// by which one person has a row for each of her spans of time. Unless rows with NULL do not matter ($5), all of its
// columns are NOT NULL; one of them ($6) is int2, int4 or int8. It runs with an empty search_path, so that its
// operators are pg_catalog's. It is believed of PostgreSQL itself alone, whose snapshot holds the constraint and the
// rows: where Citus or another engine keeps the rows, each part of the table has a moment of its own (privacy rule 25).
// So it is of PostgreSQL's own storage alone: which rows a snapshot shows, and what an index refuses, is for the code
// of a table's access method to say (USING columnar, and what else extensions bring).
const uniqueSQL = `SELECT EXISTS (
  SELECT FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
  JOIN pg_catalog.pg_index i ON i.indrelid = c.oid
  WHERE s.nspname = $1::pg_catalog.name AND c.relname = $2::pg_catalog.name AND c.relkind = 'r' AND ` + ownStorage + `
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid)
    AND i.indisunique AND NOT i.indisexclusion AND i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate
    AND ` + onlyPostgres + `
    AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts > 0
    AND NOT EXISTS (SELECT FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) k
      WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a
        JOIN pg_catalog.pg_opclass o ON o.oid = i.indclass[k]
        WHERE a.attrelid = c.oid AND a.attnum = i.indkey[k] AND i.indcollation[k] = a.attcollation AND o.opcdefault AND o.opcmethod = 403
          AND (a.attname::pg_catalog.text = ANY ($3::pg_catalog.text[]) OR a.attname::pg_catalog.text = $4::pg_catalog.text)
          AND ($5::pg_catalog.bool OR a.attnotnull AND ` + wholly + `)
          AND (a.attname::pg_catalog.text <> $6::pg_catalog.text OR a.atttypid = ANY ('{20,21,23}'::pg_catalog.oid[])))))`

// wholly reports whether the NOT NULL of column a was held against the rows that were there before it: since PostgreSQL
// 18 such a constraint may be NOT VALID, and attnotnull does not tell. Before, NOT NULL of a table has no row there.
const wholly = `NOT EXISTS (SELECT FROM pg_catalog.pg_constraint v WHERE v.conrelid = a.attrelid AND v.contype = 'n' AND NOT v.convalidated
            AND a.attnum = ANY (v.conkey))`

// ownStorage reports whether the rows of relation c lie as PostgreSQL itself keeps them.
const ownStorage = `c.relam = (SELECT m.oid FROM pg_catalog.pg_am m WHERE m.amname = 'heap' AND m.amtype = 't')`

// onlyPostgres reports whether the rows lie in PostgreSQL's own storage, and not in that of an engine that speaks as it
// does.
const onlyPostgres = `pg_catalog.version() LIKE 'PostgreSQL %' AND pg_catalog.version() NOT LIKE '%-YB-%' AND pg_catalog.version() NOT LIKE '%Greenplum%'
    AND pg_catalog.version() NOT LIKE '%Redshift%' AND NOT ` + onCitus

// onCitus reports whether rows may lie on the workers of Citus, whose snapshots are later ones than that in which the
// constraint was read (docs/adr/0150).
const onCitus = `EXISTS (SELECT FROM pg_catalog.pg_extension x WHERE x.extname = 'citus')`

// uniqueArguments are those of uniqueSQL.
func uniqueArguments(u rewrite.Unique) []any {
	schema, name := rewrite.Relation(u.Table.Source, dialect.PostgreSQL)
	unit := u.Columns[0]
	if u.Nullable && u.Table.UnitColumn != "" { // rows are joined within a unit
		unit = u.Table.UnitColumn
	}
	return []any{schema, name, u.Columns, unit, u.Nullable, u.Whole}
}

// rankSQL asks whether CHECK constraints say of a column of whole numbers ($3) what rewrite.Rank does, beside the
// unit's column ($4), where $5 is 0 or the most that it may be, and whether a partial index has columns $7 of the rows
// beyond $6, 0 means whichever indexes there are; and that the collations of $8 take no two different texts for equal.
// A constraint is known by its text, as the server writes the expression that it checks: with an empty search_path an
// operator without a schema is pg_catalog's, and a constant of another type than integer would have its type beside it.
// One that is not valid was not held against the rows that were there before it.
const rankSQL = `SELECT EXISTS (
  SELECT FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
  JOIN pg_catalog.pg_attribute r ON r.attrelid = c.oid AND r.attname::pg_catalog.text = $3::pg_catalog.text AND r.atttypid = ANY ('{20,21,23}'::pg_catalog.oid[])
  JOIN pg_catalog.pg_attribute u ON u.attrelid = c.oid AND u.attname::pg_catalog.text = $4::pg_catalog.text
  CROSS JOIN LATERAL (SELECT ARRAY(SELECT pg_catalog.pg_get_expr(k.conbin, k.conrelid) FROM pg_catalog.pg_constraint k
    WHERE k.conrelid = c.oid AND k.contype = 'c' AND k.convalidated) AS said) k
  WHERE s.nspname = $1::pg_catalog.name AND c.relname = $2::pg_catalog.name AND c.relkind = 'r' AND ` + ownStorage + `
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid)
    AND ` + onlyPostgres + `
    AND k.said && ARRAY[pg_catalog.format('(%I >= 1)', r.attname), pg_catalog.format('(%I > 0)', r.attname)]
    AND (EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = u.attnum AND a.attnotnull AND ` + wholly + `) OR k.said && ARRAY[pg_catalog.format('((%I IS NULL) OR (%I IS NOT NULL))', r.attname, u.attname)])
    AND ($5::pg_catalog.int8 = 0 OR EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = r.attnum AND a.attnotnull AND ` + wholly + `) AND k.said && ARRAY[pg_catalog.format('(%I <= %s)', r.attname, $5::pg_catalog.int8)])
    AND ($6::pg_catalog.int8 = 0 OR EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indisready AND i.indislive
      AND pg_catalog.pg_get_expr(i.indpred, i.indrelid) = ANY (ARRAY[pg_catalog.format('((%I > %s) OR (%I IS NULL))', r.attname, $6::pg_catalog.int8, r.attname),
        pg_catalog.format('((%I IS NULL) OR (%I > %s))', r.attname, r.attname, $6::pg_catalog.int8)])
      AND NOT EXISTS (SELECT FROM pg_catalog.unnest($7::pg_catalog.text[]) AS n WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = c.oid AND a.attname::pg_catalog.text = n AND a.attnum = ANY (i.indkey)))))
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
      WHERE a.attrelid = c.oid AND a.attname::pg_catalog.text = ANY ($8::pg_catalog.text[]) AND NOT l.collisdeterministic))`

// rankArguments are those of rankSQL.
func rankArguments(r rewrite.Rank) []any {
	schema, name := rewrite.Relation(r.Table.Source, dialect.PostgreSQL)
	var within, beyond int64
	if r.Within {
		within = r.Table.MaxRowsPerUnit
	}
	if r.Beyond {
		beyond = r.Table.MaxRowsPerUnit
	}
	return []any{schema, name, r.Table.RowRank, r.Table.UnitColumn, within, beyond, append([]string{}, r.Columns...), append([]string{}, r.Texts...)}
}

// proof is a question to the catalog, and its answer.
type proof struct {
	sql   string
	args  []any
	name  string // of the arguments: no two have the same
	holds bool
}

// proofs are what constraints are to prove in one snapshot, each asked once, all in one message.
type proofs []*proof

// need adds what is not asked for yet.
func (p *proofs) need(ranks []rewrite.Rank, needs []rewrite.Unique) {
	for _, r := range ranks {
		p.add(rankSQL, rankArguments(r))
	}
	for _, u := range needs {
		p.add(uniqueSQL, uniqueArguments(u))
	}
}

func (p *proofs) add(sql string, args []any) {
	if p.find(sql, args) == nil {
		*p = append(*p, &proof{sql: sql, args: args, name: fmt.Sprintf("%q", args)})
	}
}

func (p proofs) find(sql string, args []any) *proof {
	name := fmt.Sprintf("%q", args)
	for _, one := range p {
		if one.name == name && one.sql == sql {
			return one
		}
	}
	return nil
}

// queue has a message ask for all of them.
func (p proofs) queue(batch *pgx.Batch) {
	for _, one := range p {
		batch.Queue(one.sql, one.args...).QueryRow(func(row pgx.Row) error { return row.Scan(&one.holds) })
	}
}

// hold reports whether all of these were asked for, and hold.
func (p proofs) hold(ranks []rewrite.Rank, needs []rewrite.Unique) bool {
	for _, r := range ranks {
		if said := p.find(rankSQL, rankArguments(r)); said == nil || !said.holds {
			return false
		}
	}
	for _, u := range needs {
		if said := p.find(uniqueSQL, uniqueArguments(u)); said == nil || !said.holds {
			return false
		}
	}
	return true
}

// ask asks for all of them in tx's snapshot, each kind in one query: to plan one takes far longer than to run it, and
// a policy of hundreds of tables needs thousands.
func (p proofs) ask(ctx context.Context, tx pgx.Tx) error {
	var batch pgx.Batch
	for _, sql := range []string{uniqueSQL, rankSQL} {
		var of []*proof
		for _, one := range p {
			if one.sql == sql {
				of = append(of, one)
			}
		}
		if len(of) == 0 {
			continue
		}
		text, args := together(of)
		batch.Queue(text, args...).Query(func(rows pgx.Rows) error {
			holds, err := pgx.CollectRows(rows, pgx.RowTo[bool])
			if err == nil && len(holds) != len(of) {
				err = execute.ErrResult
			}
			for i := range of {
				of[i].holds = err == nil && holds[i]
			}
			return err
		})
	}
	return tx.SendBatch(ctx, &batch).Close()
}

// together is one query for several proofs of one SQL, which differ in their arguments: a row for each, in their order.
// The arguments are columns of texts, which the SQL casts to their types.
//
//	SELECT (SELECT EXISTS (… s.nspname = w.a1::pg_catalog.name …))
//	FROM ROWS FROM (unnest($1), …) AS w(a1, …, i) ORDER BY w.i
func together(of []*proof) (text string, args []any) {
	var columns, names []string
	text = of[0].sql
	for n := len(of[0].args); n > 0; n-- { // $12 before $1
		text = strings.ReplaceAll(text, "$"+strconv.Itoa(n), "w.a"+strconv.Itoa(n))
	}
	for n := range of[0].args {
		columns = append(columns, fmt.Sprintf("pg_catalog.unnest($%d::pg_catalog.text[])", n+1))
		names = append(names, "a"+strconv.Itoa(n+1))
		column := make([]string, len(of))
		for i, one := range of {
			column[i] = asText(one.args[n])
		}
		args = append(args, column)
	}
	return fmt.Sprintf("SELECT (%s) FROM ROWS FROM (%s) WITH ORDINALITY AS w(%s, i) ORDER BY w.i",
		text, strings.Join(columns, ", "), strings.Join(names, ", ")), args
}

// asText is an argument as PostgreSQL reads it from a text.
func asText(arg any) string {
	list, ok := arg.([]string)
	if !ok {
		return fmt.Sprint(arg)
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for i, one := range list {
		if i == 0 {
			list = slices.Clone(list)
		}
		list[i] = `"` + quote.Replace(one) + `"`
	}
	return "{" + strings.Join(list, ",") + "}"
}

// proven reports whether constraints prove, in tx's snapshot, all that is needed.
func proven(ctx context.Context, tx pgx.Tx, needs []rewrite.Unique) (bool, error) {
	var p proofs
	p.need(nil, needs)
	err := p.ask(ctx, tx)
	return err == nil && p.hold(nil, needs), err
}

// exactClass names the types of PostgreSQL whose values are equal where their texts are, one name for all that it
// compares with each other so, but for char(n) and varchar (coarser); empty means of this type it is not known.
func exactClass(c inspect.ColumnShape) string {
	switch c.Base {
	case "smallint", "integer", "bigint":
		return "whole"
	case "text", "character varying", "character", "name":
		if !c.Loose {
			return "text"
		}
	case "numeric":
		if c.Scale >= 0 {
			return fmt.Sprint("numeric of scale ", c.Scale)
		}
	case "enum", "domain of an enum":
		return c.KindOf
	case "uuid", "boolean", "date", "timestamp without time zone", "timestamp with time zone", "time without time zone", "bytea", "oid", "inet", "cidr",
		"macaddr", "macaddr8", "bit", "bit varying":
		return c.Base
	}
	return ""
}

// joinedByValue is how PostgreSQL's = compares two columns. It is coarser in three cases. 'a' and 'a ' are different in
// a varchar, and may be two units there or two values of a unique key, and both are equal to the 'a' of a char(n),
// without the blanks at its end; as 'a' and 'A' of a text are to the 'a' of a column whose collation is not
// deterministic. A bound on pairs counts each row's partners by what is different on their side. (A char(n) beside a
// text is compared as a text, and so is each of a text's values with one of its.) Whole numbers and numerics are
// converted to floating ones beside these, so that 2^53 and 2^53 + 1 are equal to one.
func joinedByValue(a, b inspect.ColumnShape) inspect.Equality {
	bases := []string{a.Base, b.Base}
	floating := func(c inspect.ColumnShape) bool { return c.Base == "real" || c.Base == "double precision" }
	if slices.Contains(bases, "character") && slices.Contains(bases, "character varying") || a.Loose != b.Loose || floating(a) != floating(b) {
		return inspect.Coarser
	}
	return inspect.OfValues
}
