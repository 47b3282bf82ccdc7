package spark

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/hive"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Inspect: see Backend.
func (b *DB) Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) (findings []backend.Finding, err error) {
	err = b.beside(ctx, 4*readyWithin, func(ctx context.Context, s *hive.Session) error {
		seen, err := b.tables(ctx, s, p)
		if err != nil {
			return err
		}
		b.pins.Note(p, d, seen)
		have := shapeOf(d, seen)
		if b.weak {
			findings = append(findings, backend.Finding{Text: "the connection to Spark may be unencrypted or to an impostor: add ssl-mode=VERIFY_IDENTITY to the url"})
		}
		for _, t := range d.Tables {
			if t.Analysed() {
				continue
			}
			at := seen[keyOf(t)]
			found := append(inspect.CompareTable(t, have, dialect.Spark), tableFindings(t, at)...)
			if !t.Public {
				if !inspect.Fatal(found) {
					found = append(found, momentFinding(t, at))
				}
				found = append(found, boundFinding(t)...)
				keys := inspect.UniqueFindings(t, func(rewrite.Unique) bool { return false })
				found = append(found, keys...)
			}
			if !t.Public && !inspect.Fatal(found) {
				probed, err := b.probe(ctx, s, t)
				if err != nil {
					return err
				}
				found = append(found, probed...)
			}
			findings = append(findings, found...)
		}
		judged, err := inspect.Judge(ctx, answers(seen), p, d, have, dialect.Spark)
		findings = append(findings, judged...)
		return err
	})
	return findings, err
}

// keyOf names a table's relation, without regard to case.
func keyOf(t *policy.Table) string {
	schema, name := rewrite.Relation(t.Source, dialect.Spark)
	return strings.ToLower(schema + "\x00" + name)
}

// tables reads the catalog of all tables of a policy that name a relation.
func (b *DB) tables(ctx context.Context, s *hive.Session, p *policy.Policy) (map[string]relation, error) {
	seen := map[string]relation{}
	for _, t := range inspect.Named(p) {
		key := keyOf(t)
		if _, there := seen[key]; there {
			continue
		}
		table, err := catalogued(ctx, s, rewrite.Named(t, b.words))
		if err != nil {
			return nil, err
		}
		seen[key] = table
	}
	return seen, nil
}

// shapeOf is the shape of a dataset's columns. Names keep the policy's spelling, whose case Spark disregards.
func shapeOf(d *policy.Dataset, seen map[string]relation) inspect.Shape {
	have := inspect.Shape{}
	for _, p := range inspect.ColumnsRead(d.Tables, dialect.Spark) {
		t := seen[strings.ToLower(p.Schema+"\x00"+p.Table)]
		kind := "table"
		if t.kind != "MANAGED" && t.kind != "EXTERNAL" {
			kind = strings.ToLower(strings.ReplaceAll(t.kind, "_", " "))
		}
		for _, c := range t.columns {
			if strings.EqualFold(c.name, p.Column) {
				base, scale := typeOf(c.kind)
				have[p] = inspect.ColumnShape{Kind: kind, KindOf: c.kind, Base: base, Scale: scale}
			}
		}
	}
	return have
}

// typeOf is a type without its length, and the scale of a decimal, −1: it is none. A type with a collation stays what
// it is, which is none that is accepted.
func typeOf(kind string) (base string, scale int) {
	name, rest, ok := strings.Cut(kind, "(")
	if !ok {
		return kind, -1
	}
	switch inner, end := strings.CutSuffix(rest, ")"); {
	case name == "varchar" && end:
		return name, -1
	case name == "decimal" && end:
		_, digits, _ := strings.Cut(inner, ",")
		if scale, err := strconv.Atoi(strings.TrimSpace(digits)); err == nil {
			return name, scale
		}
	}
	return kind, -1
}

// momentFinding says of which moment the rows of a query are, and what is assumed of it.
func momentFinding(t *policy.Table, at relation) backend.Finding {
	text := "that its files never change is assumed, not enforced (static)"
	if at.versioned() {
		text = fmt.Sprintf("each statement reads the version that is current when it is admitted (%s); that versions are kept for longer than a statement may take is assumed", at.provider)
		if at.provider == "iceberg" {
			text += "; a version has the columns that the table had when it was written: after ALTER TABLE commit once, if only INSERT INTO … SELECT * FROM … WHERE false, before anybody asks"
		}
	}
	return backend.Finding{Note: true, Text: fmt.Sprintf("table %s: %s", t.Name, text)}
}

// BoundFinding says how the bound of rows per unit holds.
func boundFinding(t *policy.Table) (list []backend.Finding) {
	for _, f := range inspect.BoundFinding(t, false) {
		if t.MaxRowsPerUnit == 1 && t.MaxGroups == 0 {
			f.Text = fmt.Sprintf("table %s: Spark enforces no constraint, so that none proves one row per %s; each query sorts the rows to keep one", t.Name, t.Dataset.UnitName())
		}
		f.Note, f.Numbered = true, "" // nothing would spare it
		list = append(list, f)
	}
	return list
}

// answers are those of Spark, by its catalog: a table by its relation.
type answers map[string]relation

var _ inspect.Questions = answers(nil)

// Class implements questions.
func (answers) Class(c inspect.ColumnShape) string {
	switch c.Base {
	case "tinyint", "smallint", "int", "bigint":
		return "whole"
	case "decimal":
		return fmt.Sprint("decimal of scale ", c.Scale)
	case "string", "varchar":
		return "text"
	case "date", "timestamp", "timestamp_ntz", "boolean":
		return c.Base
	}
	return ""
}

// Types implements questions.
func (answers) Types() string {
	return "a type of whole numbers, decimal, string, date or timestamp"
}

// Joined implements questions. Exact numbers of two types are compared by their values; of other types Spark converts
// one to the other, as texts to numbers, by which '7' and '07' are equal to one.
func (s answers) Joined(a, b inspect.ColumnShape) inspect.Equality {
	one, other := s.Class(a), s.Class(b)
	switch {
	case one == "" || other == "":
		return inspect.OfTexts // and refused
	case one == other, exactNumber(one) && exactNumber(other), isMoment(one) && isMoment(other):
		return inspect.OfValues
	}
	return inspect.Coarser
}

func exactNumber(class string) bool {
	return class == "whole" || strings.HasPrefix(class, "decimal")
}

func isMoment(class string) bool { return class == "date" || strings.HasPrefix(class, "timestamp") }

// Fails implements questions: views, whose SELECT could, and files that Spark does not write are refused
// (tableFindings).
func (answers) Fails(*policy.Table, inspect.ColumnShape) string { return "" }

// Shows implements questions: a table's rows lie in its directory, and so do those of each table whose directory lies
// in it.
func (s answers) Shows(_ context.Context, tables []*policy.Table) ([]inspect.Extent, error) {
	list := make([]inspect.Extent, len(tables))
	for i, t := range tables {
		own := strings.TrimSuffix(s[keyOf(t)].location, "/")
		if own == "" {
			continue
		}
		for _, other := range tables {
			if in := s[keyOf(other)].location; strings.HasPrefix(in+"/", own+"/") {
				list[i].Add("the directory " + strings.TrimSuffix(in, "/"))
			}
		}
	}
	return list, nil
}

// tableFindings says what is wrong with a table on Spark alone.
func tableFindings(t *policy.Table, at relation) (list []backend.Finding) {
	refuse := func(format string, args ...any) {
		list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf("table %s", t.Name) + fmt.Sprintf(format, args...)})
	}
	if len(at.columns) == 0 || t.Public {
		return nil
	}
	switch {
	case at.kind != "MANAGED" && at.kind != "EXTERNAL":
		refuse(" is a %s on Spark, whose SELECT could fail at a row or read rows that change; name the table itself", strings.ToLower(strings.ReplaceAll(at.kind, "_", " ")))
	case at.versioned():
	case at.provider != "parquet":
		refuse(" is stored as %s; of Spark's tables those of Iceberg and Delta are read, and those of Parquet files (USING PARQUET) that are static", at.provider)
	case !t.Static:
		refuse(" is of Parquet files, of which a query reads no one version; say static: true if they never change, or make it a table of Iceberg or Delta")
	}
	if t.Via != nil {
		refuse(": its %ss are found through %s.%s, whose keys nothing keeps different: Spark enforces no constraint. Give the table a column of its own that names the %[1]s", t.Dataset.UnitName(), t.Via.Table.Name, t.Via.Key)
	}
	if t.RowRank != "" {
		refuse(": nothing proves that no two rows of a %s have the same row_rank: Spark enforces no constraint. Leave row_rank out, and each query numbers the rows", t.Dataset.UnitName())
	}
	return list
}

// probe has Spark plan, without running it, a query that uses the table as measures can.
func (b *DB) probe(ctx context.Context, s *hive.Session, t *policy.Table) ([]backend.Finding, error) {
	q, err := rewrite.Probe(t, b.words)
	if err == nil {
		text, err := b.textOf(ctx, s, q)
		if err == nil {
			err = plans(ctx, s, text)
		}
		switch {
		case err == nil:
			return nil, nil
		case err != backend.ErrUnplanned:
			return nil, err
		}
		return inspect.FatalIf(fmt.Errorf("table %s: Spark does not accept its queries", t.Name)), nil
	}
	return inspect.FatalIf(err), nil
}
