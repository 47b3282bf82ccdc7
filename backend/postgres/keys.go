package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// collationSQL asks whether both columns have collations of their own that differ: PostgreSQL prepares a comparison of
// them, and fails when it comes to the first pair of rows.
const collationSQL = `SELECT count(*) = 2 AND min(a.attcollation) <> max(a.attcollation)
FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[])) AS w(s, t, a)
JOIN pg_catalog.pg_namespace n ON n.nspname = w.s
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.t
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = w.a AND NOT a.attisdropped
WHERE a.attcollation <> 0 AND a.attcollation <> 'pg_catalog."default"'::pg_catalog.regcollation`

// KeyFindings has PostgreSQL parse, without running them, comparisons of the keys that measures may compare. In DB keys
// are compared as text, which no type refuses.
func (b *DB) keyFindings(ctx context.Context, d *policy.Dataset) []backend.Finding {
	var list []backend.Finding
	for _, pair := range inspect.ComparedKeys(d) {
		if b.compares(ctx, pair) {
			continue
		}
		list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf("table %s, column %s, and table %s, column %s: PostgreSQL does not compare them, but statements over both tables do; give them one type and collation",
			pair[0].Table.Name, pair[0].Source, pair[1].Table.Name, pair[1].Source)})
	}
	return list
}

func (b *DB) compares(ctx context.Context, pair [2]*policy.Column) bool {
	text, err := rewrite.CompareKeys(pair[0], pair[1], dialect.PostgreSQL)
	if err != nil {
		return false
	}
	var schemas, tables, columns []string
	for _, k := range pair {
		schema, name := rewrite.Relation(k.Table.Source, dialect.PostgreSQL)
		schemas, tables, columns = append(schemas, schema), append(tables, name), append(columns, k.Source)
	}
	conflict := false
	err = b.transactionAside(ctx, execute.DefaultDeadline, func(tx pgx.Tx) error {
		if _, err := tx.Prepare(ctx, "", text); err != nil {
			return err
		}
		return tx.QueryRow(ctx, collationSQL, schemas, tables, columns).Scan(&conflict)
	})
	return err == nil && !conflict
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
