package mysql

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// The queries here read MySQL's information_schema alone, which shows what the account may see.

const (
	mysqlColumnsSQL = `SELECT t.TABLE_TYPE, t.ENGINE, c.COLUMN_NAME, lower(c.DATA_TYPE), lower(c.COLUMN_TYPE), c.COLLATION_NAME, c.IS_NULLABLE, c.NUMERIC_PRECISION, c.NUMERIC_SCALE,
  c.CHARACTER_MAXIMUM_LENGTH, c.EXTRA, c.PRIVILEGES, c.COLUMN_KEY
FROM information_schema.TABLES AS t JOIN information_schema.COLUMNS AS c ON c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME
WHERE t.TABLE_SCHEMA = ? AND t.TABLE_NAME = ?`
	mysqlRefersSQL  = `SELECT 1 FROM information_schema.KEY_COLUMN_USAGE AS k WHERE k.TABLE_SCHEMA = ? AND k.TABLE_NAME = ? AND k.REFERENCED_TABLE_NAME IS NOT NULL LIMIT 1`
	mysqlPrimarySQL = `SELECT k.COLUMN_NAME FROM information_schema.STATISTICS AS k WHERE k.TABLE_SCHEMA = ? AND k.TABLE_NAME = ? AND k.INDEX_NAME = 'PRIMARY'`
)

// exactCharacters are the character sets of which each text has one in Unicode, and no two the same.
var exactCharacters = []string{"utf8mb4", "utf8mb3", "utf8", "ascii", "latin1"}

// look reads what the catalog says of a dataset's tables.
func look(ctx context.Context, c *Conn, d *policy.Dataset) (seen, error) {
	have := seen{inspect.Shape{}, map[inspect.ColumnName]bool{}}
	for _, t := range d.Tables {
		if t.View.Text != "" {
			continue
		}
		schema, name := t.Source.Schema, t.Source.Name
		rows, err := c.Texts(ctx, mysqlColumnsSQL, schema, name)
		if err != nil {
			return have, err
		}
		wanted := inspect.KeyColumns(t)
		for _, column := range t.Columns {
			wanted = append(wanted, column.Source)
		}
		for _, row := range rows {
			if len(row) != 13 {
				return have, execute.ErrResult
			}
			for _, as := range wanted { // keeps the policy's spelling, whose case MySQL disregards
				if strings.EqualFold(as, row[2]) {
					have.shape[inspect.ColumnOf(schema, name, as)] = shapeOf(row)
				}
			}
		}
		keys, err := c.Texts(ctx, mysqlPrimarySQL, schema, name)
		if err != nil {
			return have, err
		}
		for _, row := range keys {
			have.keys[inspect.ColumnOf(schema, name, strings.ToLower(row[0]))] = true
		}
	}
	return have, nil
}

// cellsOf is what MySQL's catalog alone says of a column.
func cellsOf(c inspect.ColumnShape) Shape {
	s, _ := c.More.(Shape)
	return s
}

func shapeOf(row []string) inspect.ColumnShape {
	number := func(text string, none int) int {
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
		return none
	}
	s := Shape{Data: row[3], Full: row[4], Collation: row[5], Precision: number(row[7], 0), Scale: -1, Length: number(row[9], 0)}
	if s.Data == "decimal" {
		s.Scale = number(row[8], -1)
	}
	s.Unsigned = strings.Contains(s.Full, "unsigned")
	characters, _, _ := strings.Cut(s.Collation, "_")
	s.Exact = strings.HasSuffix(s.Collation, "_bin") && slices.Contains(exactCharacters, characters)
	s.Pads = s.Collation != "" && !strings.Contains(s.Collation, "nopad") && !strings.Contains(s.Collation, "_0900_")
	extra := strings.ToUpper(row[10])
	s.Computed = strings.Contains(extra, "GENERATED") && !strings.Contains(extra, "STORED") && !strings.Contains(extra, "PERSISTENT") && !strings.Contains(extra, "DEFAULT_GENERATED")
	kind := map[string]string{"BASE TABLE": "table", "SYSTEM VERSIONED": "table", "VIEW": "view"}[row[0]]
	if kind == "" {
		kind = "relation of another kind"
	}
	if kind == "table" && !strings.EqualFold(row[1], "InnoDB") {
		kind = strings.ToLower(row[1]) + " table"
	}
	return inspect.ColumnShape{Kind: kind, KindOf: s.Full, Base: s.Data, Scale: s.Scale, Loose: s.Collation != "" && !s.Exact, NotNull: row[6] == "NO",
		Readable: slices.Contains(strings.Split(row[11], ","), "select"), More: s}
}

// Inspect: see source.
func (s *Source) Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) (findings []backend.Finding, err error) {
	err = s.beside(ctx, func(c *Conn) error {
		have, err := look(ctx, c, d)
		if err != nil {
			return err
		}
		s.pins.Note(p, d, have)
		if findings, err = roleFindingsMySQL(ctx, c, d); err != nil {
			return err
		}
		if s.weak {
			findings = append(findings, backend.Finding{Text: "the connection to the database may be unencrypted or to an impostor: add ssl-mode=VERIFY_IDENTITY to the url"})
		}
		if !c.Maria() {
			findings = append(findings, backend.Finding{Note: true, Text: "the database is MySQL; dpproxy's own tests run against MariaDB, whose types and snapshots are the same as far as dpproxy uses them"})
		}
		for _, t := range d.Tables {
			if t.Public {
				refers, err := c.Texts(ctx, mysqlRefersSQL, t.Source.Schema, t.Source.Name)
				if err != nil {
					return err
				}
				if len(refers) > 0 {
					findings = append(findings, backend.Finding{Text: fmt.Sprintf("public table %s has a foreign key: that no private table can be told from it is assumed, not enforced", t.Name)})
				}
			}
			if t.View.Text == "" {
				findings = append(findings, tableFindingsMySQL(t, have)...)
			}
		}
		judged, err := inspect.Judge(ctx, answers{c}, p, d, have.shape, dialect.MySQL)
		findings = append(findings, judged...)
		return err
	})
	return findings, err
}

// ownRows are the kinds of tables, beside InnoDB's, whose rows are their own: a MERGE table's are its members', and a
// CONNECT table's anybody's.
var ownRows = []string{"myisam table", "aria table", "memory table", "archive table", "csv table", "rocksdb table", "columnstore table"}

// tableFindingsMySQL holds one table against the catalog.
func tableFindingsMySQL(t *policy.Table, have seen) (list []backend.Finding) {
	add := func(fatal bool, format string, args ...any) {
		list = append(list, backend.Finding{Fatal: fatal, Text: fmt.Sprintf(format, args...)})
	}
	at := func(column string) (inspect.ColumnShape, bool) {
		c, ok := have.shape[inspect.ColumnOf(t.Source.Schema, t.Source.Name, column)]
		return c, ok
	}
	kind := ""
	one := func(source, what string) {
		switch c, ok := at(source); {
		case !ok:
			add(true, "table %s: %s does not exist in the database, or dpproxy's account may not see it", t.Name, what)
			return
		case !c.Readable:
			add(true, "table %s: dpproxy's account may not read %s", t.Name, what)
		default:
			kind = c.Kind
		}
	}
	for _, key := range inspect.KeyColumns(t) {
		what := "the join key "
		switch key {
		case t.UnitColumn:
			what = "the unit's column "
		case t.RowRank:
			what = "the row_rank "
		}
		one(key, what+key)
	}
	for _, c := range t.Columns {
		if !c.Made() {
			one(c.Source, fmt.Sprintf("column %s (%s)", c.Name, c.Source))
		}
	}
	switch {
	case kind == "":
	case kind == "view" && !t.Public:
		add(false, "table %s is a view: that no value makes its SELECT fail, that it reads tables of InnoDB alone, and that each of its rows depends on one %s's rows alone is assumed, not enforced",
			t.Name, t.Dataset.UnitName())
	case kind == "view", kind == "relation of another kind":
		add(true, "table %s is a %s; only a table will do", t.Name, kind)
	case kind != "table" && !slices.Contains(ownRows, kind):
		add(true, "table %s is of the engine %s, which may show rows of other tables, or of other servers; name the tables that hold them", t.Name, strings.TrimSuffix(kind, " table"))
	case kind != "table" && !t.Static && !t.Public:
		add(true, "table %s is of the engine %s, which has no snapshot: its rows would be of another moment than the others'. Give it InnoDB, or say static: true if its rows never change", t.Name, strings.TrimSuffix(kind, " table"))
	}
	for _, c := range t.Columns {
		if actual, ok := at(c.Source); ok && !c.Made() {
			list = append(list, columnFindings(c, cellsOf(actual))...)
		}
	}
	if t.Public {
		return list
	}
	proven := func(u rewrite.Unique) bool { return proven(have.shape, have.keys, u) }
	list = append(list, inspect.BoundFinding(t, t.UnitColumn != "" && proven(rewrite.Unique{Table: t, Columns: []string{t.UnitColumn}}))...)
	keys := inspect.UniqueFindings(t, proven)
	list = append(list, keys...)
	for _, f := range inspect.RequiredFinding(t, !slices.ContainsFunc(rewrite.Required(t), func(u rewrite.Unique) bool { return !proven(u) })) {
		f.Text += "; of MySQL a PRIMARY KEY alone is believed, since sessions may switch the check of other unique keys off"
		list = append(list, f)
	}
	return list
}

// columnFindings holds one column's type against the policy's.
func columnFindings(c *policy.Column, at Shape) []backend.Finding {
	where := fmt.Sprintf("table %s, column %s: the policy says %s, the database says %s", c.Table.Name, c.Name, c.Type.Format(c.Typmod), at.Full)
	accepted := slices.Contains(dialect.MySQL.Accepts[c.Type], at.Data)
	if at.Data == "binary" && c.Type == policy.UUID {
		accepted = at.Length == 16
	}
	if !accepted {
		zones := map[policy.Type]map[string]string{
			policy.TimestampT:  {"timestamp": ", whose moments are timestamptz"},
			policy.TimestampTZ: {"datetime": ", which has no time zone: timestamp"},
		}
		return []backend.Finding{{Fatal: true, Text: where + zones[c.Type][at.Data]}}
	}
	if c.Type != policy.NumericType {
		return nil
	}
	kind, err := rewrite.ColumnType(c, dialect.MySQL)
	var width, scale int
	if _, bad := fmt.Sscanf(kind, "DECIMAL(%d,%d)", &width, &scale); err != nil || bad != nil {
		return []backend.Finding{{Fatal: true, Text: fmt.Sprintf("%s: %v", where, err)}}
	}
	declared, _ := policy.NumericTypmod(c.Typmod)
	switch {
	case at.Scale > scale:
		return []backend.Finding{{Fatal: true, Text: where + fmt.Sprintf(", of whose digits after the point %d would be kept: declare numeric(p,s) with as many as it has", scale)}}
	case declared >= 0 && at.Data == "decimal" && at.Precision-at.Scale > width-scale && at.Precision > int(dialect.MySQL.Digits):
		return []backend.Finding{{Text: where + fmt.Sprintf(", of which a number with more than %d digits before the point is read as the nearest that has as many", width-scale)}}
	case declared >= 0 && at.Data == "decimal" && at.Precision-at.Scale > width-scale:
		return []backend.Finding{{Fatal: true, Text: where + ", which has more digits before the point: declare as many"}}
	}
	return nil
}

// CopyFindings: see source.
func (s *Source) CopyFindings(_ context.Context, d *policy.Dataset) ([]backend.Finding, error) {
	seen, _ := s.pins.Of(d)
	return inspect.KeyFindings(inspect.Copies{Questions: answers{}}, d, seen.shape, dialect.MySQL), nil
}

// Adopt is Backend's.
func (s *Source) Adopt(p *policy.Policy) { s.pins.Adopt(p) }

// answers are those of MySQL and MariaDB, of which snapshots alone are read: keys are compared as texts.
type answers struct{ conn *Conn }

var _ inspect.Questions = answers{}

// Class implements questions.
func (answers) Class(c inspect.ColumnShape) string { return KeyClass(cellsOf(c)) }

// Types implements questions.
func (answers) Types() string {
	return fmt.Sprintf("whole numbers, decimal, date, binary, uuid, or a text of at most %d characters in a _bin collation such as utf8mb4_bin; no ENUM with '' among its labels", LongestKey)
}

// Joined implements questions.
func (answers) Joined(inspect.ColumnShape, inspect.ColumnShape) inspect.Equality {
	return inspect.OfTexts
}

// Fails implements questions: cells are read by functions that are total (package mysql).
func (answers) Fails(_ *policy.Table, c inspect.ColumnShape) string {
	if cellsOf(c).Computed {
		return "is computed when it is read, which could fail at a row: make it STORED"
	}
	return ""
}

// mysqlViewSQL asks for the text of a view, which is empty for an account without the right to see it.
const mysqlViewSQL = `SELECT v.VIEW_DEFINITION FROM information_schema.VIEWS AS v WHERE lower(v.TABLE_SCHEMA) = ? AND lower(v.TABLE_NAME) = ?`

// Shows implements questions: views are followed to what they read. Engines whose tables show rows of others are
// refused (tableFindingsMySQL).
func (a answers) Shows(ctx context.Context, tables []*policy.Table) ([]inspect.Extent, error) {
	list := make([]inspect.Extent, len(tables))
	for i, t := range tables {
		next := []string{strings.ToLower(t.Source.Schema + "." + t.Source.Name)}
		for seen := map[string]bool{}; len(next) > 0; {
			name := next[0]
			if next = next[1:]; seen[name] {
				continue
			}
			seen[name] = true
			list[i].Add(name)
			schema, relation, _ := strings.Cut(name, ".")
			texts, err := a.conn.Texts(ctx, mysqlViewSQL, schema, relation)
			if err != nil {
				return nil, err
			}
			for _, text := range texts {
				read, whole := ViewReads(text[0])
				if list[i].View = true; !whole {
					list[i].Opaque = fmt.Sprintf("reads the view %s, which calls a stored function, or whose text dpproxy's account may not see (GRANT SHOW VIEW)", name)
				}
				next = append(next, read...)
			}
		}
	}
	return list, nil
}

// grantForm reads a line of SHOW GRANTS: rights, on what, and to whom.
var grantForm = regexp.MustCompile(`^GRANT (.*?) ON (.*?) TO (\S+)`)

// harmless are the rights that the account may have.
var harmless = []string{"SELECT", "USAGE", "SHOW VIEW", "SHOW DATABASES"}

// listedColumns are the columns that a right is for.
var listedColumns = regexp.MustCompile(`\([^)]*\)`)

// roleFindingsMySQL says where dpproxy's account is stronger than its work needs. What everybody may do, as PUBLIC, is
// no right of the account's (MariaDB's installation lets everybody write to databases called test…): it is warned of
// where the policy's tables are.
func roleFindingsMySQL(ctx context.Context, c *Conn, d *policy.Dataset) (list []backend.Finding, err error) {
	rows, err := c.Texts(ctx, "SHOW GRANTS")
	if err != nil {
		return nil, err
	}
	var own, everybodys []string
	for _, row := range rows {
		match := grantForm.FindStringSubmatch(row[0])
		if match == nil {
			if strings.HasPrefix(row[0], "GRANT ") {
				list = append(list, backend.Finding{Fatal: true, Text: "dpproxy's account has a role, whose rights may change without it: REVOKE it, and GRANT SELECT on the policy's tables to the account itself"})
			}
			continue
		}
		into := &own
		if match[3] == "PUBLIC" {
			reached := func(t *policy.Table) bool { return t.View.Text == "" && grantedOn(match[2], t.Source.Schema) }
			if into = &everybodys; !slices.ContainsFunc(d.Tables, reached) {
				continue
			}
		}
		granted := listedColumns.ReplaceAllString(match[1], "")
		if strings.Contains(row[0], "WITH GRANT OPTION") {
			granted += ", GRANT OPTION"
		}
		for _, right := range strings.Split(granted, ",") {
			right = strings.ToUpper(strings.TrimSpace(right))
			if !slices.Contains(harmless, right) && !slices.Contains(*into, right) {
				*into = append(*into, right)
			}
		}
	}
	if len(own) > 0 {
		list = append(list, backend.Finding{Fatal: true, Text: "dpproxy's account has the rights " +
			strings.Join(own, ", ") + "; it needs SELECT on the policy's tables and nothing else"})
	}
	if len(everybodys) > 0 {
		list = append(list, backend.Finding{Text: "everybody has the rights " + strings.Join(everybodys, ", ") +
			" where the policy's tables are, and so has dpproxy's account, which needs none of them: REVOKE them FROM PUBLIC"})
	}
	return list, nil
}

// grantedOn reports whether what rights are on, such as `test\_%`.* or *.*, takes in tables of a database. A table that
// is named takes in the whole: what may be done to it is looked at once.
func grantedOn(on, database string) bool {
	pattern, _, _ := strings.Cut(on, ".")
	if pattern == "*" {
		return true
	}
	pattern = strings.ReplaceAll(strings.Trim(pattern, "`"), "``", "`")
	var form strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			i++
			form.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		case c == '%':
			form.WriteString(".*")
		case c == '_':
			form.WriteString(".")
		default:
			form.WriteString(regexp.QuoteMeta(string([]byte{c})))
		}
	}
	matches, err := regexp.MatchString("(?is)^"+form.String()+"$", database)
	return matches || err != nil
}
