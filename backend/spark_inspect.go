package backend

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/backend/hive"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Inspect is described at Backend.
func (b *Spark) Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) (findings []Finding, err error) {
	err = b.beside(ctx, 4*sparkReady, func(ctx context.Context, s *hive.Session) error {
		seen, err := b.tables(ctx, s, p)
		if err != nil {
			return err
		}
		b.pins.note(p, d, seen)
		have := sparkShape(d, seen)
		if b.weak {
			findings = append(findings, Finding{Text: "the connection to Spark may be unencrypted or to an impostor: add ssl-mode=VERIFY_IDENTITY to the url"})
		}
		for _, t := range d.Tables {
			if t.Analysed() {
				continue
			}
			at := seen[sparkKey(t)]
			found := append(compareTable(t, have, dialect.Spark), tableFindingsSpark(t, at)...)
			if !t.Public {
				if !fatal(found) {
					found = append(found, momentFindingSpark(t, at))
				}
				found = append(found, boundFindingSpark(t)...)
				keys := uniqueFindings(t, func(rewrite.Unique) bool { return false })
				found = append(found, keys...)
			}
			if !t.Public && !fatal(found) {
				probed, err := b.probe(ctx, s, t)
				if err != nil {
					return err
				}
				found = append(found, probed...)
			}
			findings = append(findings, found...)
		}
		judged, err := judge(ctx, sparkAnswers(seen), p, d, have, dialect.Spark)
		findings = append(findings, judged...)
		return err
	})
	return findings, err
}

// sparkKey names a table's relation, without regard to case.
func sparkKey(t *policy.Table) string {
	schema, name := rewrite.Relation(t.Source, dialect.Spark)
	return strings.ToLower(schema + "\x00" + name)
}

// tables reads the catalog of all tables of a policy that name a relation.
func (b *Spark) tables(ctx context.Context, s *hive.Session, p *policy.Policy) (map[string]sparkTable, error) {
	seen := map[string]sparkTable{}
	for _, t := range named(p) {
		key := sparkKey(t)
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

// sparkShape is the shape of a dataset's columns. Names keep the policy's spelling, whose case Spark disregards.
func sparkShape(d *policy.Dataset, seen map[string]sparkTable) shape {
	have := shape{}
	for _, p := range columnsRead(d.Tables, dialect.Spark) {
		t := seen[strings.ToLower(p.schema+"\x00"+p.table)]
		kind := "table"
		if t.kind != "MANAGED" && t.kind != "EXTERNAL" {
			kind = strings.ToLower(strings.ReplaceAll(t.kind, "_", " "))
		}
		for _, c := range t.columns {
			if strings.EqualFold(c.name, p.column) {
				base, scale := sparkType(c.kind)
				have[p] = columnShape{kind: kind, kindOf: c.kind, base: base, scale: scale}
			}
		}
	}
	return have
}

// sparkType is a type without its length, and the scale of a decimal, −1: it is none. A type with a collation stays what it is, which is none that
// is accepted.
func sparkType(kind string) (base string, scale int) {
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

// momentFindingSpark says of which moment the rows of a query are, and what is assumed of it.
func momentFindingSpark(t *policy.Table, at sparkTable) Finding {
	text := "that its files never change is assumed, not enforced (static)"
	if at.versioned() {
		text = fmt.Sprintf("each statement reads the version that is current when it is admitted (%s); that versions are kept for longer than a statement may take is assumed", at.provider)
		if at.provider == "iceberg" {
			text += "; a version has the columns that the table had when it was written: after ALTER TABLE commit once, if only INSERT INTO … SELECT * FROM … WHERE false, before anybody asks"
		}
	}
	return Finding{Note: true, Text: fmt.Sprintf("table %s: %s", t.Name, text)}
}

// boundFindingSpark says how the bound of rows per unit holds.
func boundFindingSpark(t *policy.Table) (list []Finding) {
	for _, f := range boundFinding(t, false) {
		if t.MaxRowsPerUnit == 1 && t.MaxGroups == 0 {
			f.Text = fmt.Sprintf("table %s: Spark enforces no constraint, so that none proves one row per %s; each query sorts the rows to keep one", t.Name, unitOf(t.Dataset))
		}
		f.Note, f.Numbered = true, "" // nothing would spare it
		list = append(list, f)
	}
	return list
}

// sparkAnswers are those of Spark, by its catalog: a table by its relation.
type sparkAnswers map[string]sparkTable

var _ questions = sparkAnswers(nil)

// class implements questions.
func (sparkAnswers) class(c columnShape) string {
	switch c.base {
	case "tinyint", "smallint", "int", "bigint":
		return "whole"
	case "decimal":
		return fmt.Sprint("decimal of scale ", c.scale)
	case "string", "varchar":
		return "text"
	case "date", "timestamp", "timestamp_ntz", "boolean":
		return c.base
	}
	return ""
}

// types implements questions.
func (sparkAnswers) types() string {
	return "a type of whole numbers, decimal, string, date or timestamp"
}

// joined implements questions. Exact numbers of two types are compared by their values; of other types Spark converts one to the other,
// as texts to numbers, by which '7' and '07' are equal to one.
func (s sparkAnswers) joined(a, b columnShape) equality {
	one, other := s.class(a), s.class(b)
	switch {
	case one == "" || other == "":
		return ofTexts // and refused
	case one == other, exactNumber(one) && exactNumber(other), isMoment(one) && isMoment(other):
		return ofValues
	}
	return coarser
}

func exactNumber(class string) bool {
	return class == "whole" || strings.HasPrefix(class, "decimal")
}

func isMoment(class string) bool { return class == "date" || strings.HasPrefix(class, "timestamp") }

// fails implements questions: views, whose SELECT could, and files that Spark does not write are refused (tableFindingsSpark).
func (sparkAnswers) fails(*policy.Table, columnShape) string { return "" }

// shows implements questions: a table's rows lie in its directory, and so do those of each table whose directory lies in it.
func (s sparkAnswers) shows(_ context.Context, tables []*policy.Table) ([]extent, error) {
	list := make([]extent, len(tables))
	for i, t := range tables {
		own := strings.TrimSuffix(s[sparkKey(t)].location, "/")
		if own == "" {
			continue
		}
		for _, other := range tables {
			if in := s[sparkKey(other)].location; strings.HasPrefix(in+"/", own+"/") {
				list[i].add("the directory " + strings.TrimSuffix(in, "/"))
			}
		}
	}
	return list, nil
}

// tableFindingsSpark says what is wrong with a table on Spark alone.
func tableFindingsSpark(t *policy.Table, at sparkTable) (list []Finding) {
	refuse := func(format string, args ...any) {
		list = append(list, Finding{Fatal: true, Text: fmt.Sprintf("table %s", t.Name) + fmt.Sprintf(format, args...)})
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
		refuse(": its %ss are found through %s.%s, whose keys nothing keeps different: Spark enforces no constraint. Give the table a column of its own that names the %[1]s", unitOf(t.Dataset), t.Via.Table.Name, t.Via.Key)
	}
	if t.RowRank != "" {
		refuse(": nothing proves that no two rows of a %s have the same row_rank: Spark enforces no constraint. Leave row_rank out, and each query numbers the rows", unitOf(t.Dataset))
	}
	return list
}

// probe has Spark plan, without running it, a query that uses the table as measures can.
func (b *Spark) probe(ctx context.Context, s *hive.Session, t *policy.Table) ([]Finding, error) {
	q, err := rewrite.Probe(t, b.words)
	if err == nil {
		text, err := b.textOf(ctx, s, q)
		if err == nil {
			err = sparkPlans(ctx, s, text)
		}
		switch {
		case err == nil:
			return nil, nil
		case err != ErrUnplanned:
			return nil, err
		}
		return fatalIf(fmt.Errorf("table %s: Spark does not accept its queries", t.Name)), nil
	}
	return fatalIf(err), nil
}
