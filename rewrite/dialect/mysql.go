package dialect

import "github.com/dpproxy/dpproxy/policy"

// What MySQL holds is read cell by cell into DuckDB, as values of the declared types (package backend, mysql_cells.go),
// and the SQL of a snapshot runs there. So its words are DuckDB's, but for the types that MySQL's catalog names.
var mysql = func() Words {
	w := duckdb
	w.Name = "MySQL"
	whole := []string{"tinyint", "smallint", "mediumint", "int", "bigint", "year"}
	texts := []string{"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
	w.Accepts = map[policy.Type][]string{
		policy.Bool: {"tinyint", "bit"}, policy.Int2: whole, policy.Int4: whole, policy.Int8: whole,
		policy.Float4: {"float"}, policy.Float8: {"double", "float"},
		policy.NumericType: append([]string{"decimal"}, whole[:5]...), policy.Text: texts, policy.Varchar: texts,
		policy.DateType: {"date"}, policy.TimestampT: {"datetime"}, policy.TimestampTZ: {"timestamp"},
		policy.UUID: {"uuid", "char", "varchar", "binary"},
	}
	return w
}()
