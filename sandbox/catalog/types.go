package catalog

import (
	"strconv"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Built-in types: their names, their rows of pg_type, and what information_schema.columns says of columns of them.

// TypeNames is a table of our own: the oid and the name of each built-in type, for format_type in the embedded engine.
const TypeNames = "dpproxy.types"

// typeNamesTable is TypeNames without rows.
func typeNamesTable() Table {
	return Table{Name: TypeNames, Rows: sandbox.Rows{Columns: []sandbox.Column{{Name: "oid", Type: 26, Typmod: -1}, {Name: "name", Type: policy.Text, Typmod: -1}}}}
}

// TypeName is a built-in type's name as format_type writes it.
func TypeName(t policy.Type) (string, bool) {
	name, ok := typeNames()[t]
	return name, ok
}

var typeNames = sync.OnceValue(typeNameRows)

// typeNameRows maps the built-in types to their names as format_type writes them.
func typeNameRows() map[policy.Type]string {
	text, err := files.ReadFile("postgres15/names.tsv")
	if err != nil {
		return nil
	}
	names := map[policy.Type]string{}
	for line := range strings.Lines(string(text)) {
		oid, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		n, err := strconv.ParseUint(oid, 10, 32)
		if err == nil {
			names[policy.Type(n)] = name
		}
	}
	return names
}

// dataType is information_schema's name of a type.
func dataType(t policy.Type) string {
	if _, ok := outer.ArrayElement(t); ok && t != 22 && t != 30 {
		return "ARRAY"
	}
	return typeNames()[t]
}

// measures are information_schema's lengths and precisions of a column.
func measures(a attribute) record {
	switch a.oid {
	case policy.Int2:
		return record{"numeric_precision": int64(16), "numeric_precision_radix": int64(2), "numeric_scale": int64(0)}
	case policy.Int4:
		return record{"numeric_precision": int64(32), "numeric_precision_radix": int64(2), "numeric_scale": int64(0)}
	case policy.Int8:
		return record{"numeric_precision": int64(64), "numeric_precision_radix": int64(2), "numeric_scale": int64(0)}
	case policy.Float4:
		return record{"numeric_precision": int64(24), "numeric_precision_radix": int64(2)}
	case policy.Float8:
		return record{"numeric_precision": int64(53), "numeric_precision_radix": int64(2)}
	case policy.NumericType:
		if a.typmod >= 4 {
			return record{"numeric_precision": int64((a.typmod - 4) >> 16), "numeric_precision_radix": int64(10),
				"numeric_scale": int64((a.typmod - 4) & 0xffff)}
		}
		return record{"numeric_precision_radix": int64(10)}
	case policy.Varchar, policy.Bpchar:
		if a.typmod >= 4 {
			return record{"character_maximum_length": int64(a.typmod - 4), "character_octet_length": int64(a.typmod-4) * 4}
		}
		return record{"character_octet_length": int64(1 << 30)}
	case policy.Text:
		return record{"character_octet_length": int64(1 << 30)}
	case policy.DateType:
		return record{"datetime_precision": int64(0)}
	case policy.TimestampT, policy.TimestampTZ:
		if a.typmod >= 0 {
			return record{"datetime_precision": int64(a.typmod)}
		}
		return record{"datetime_precision": int64(6)}
	}
	return nil
}

// typeRow is the row of pg_type of a built-in type.
func typeRow(t policy.Type) record {
	if r, ok := typeRecords()[int64(t)]; ok {
		return r
	}
	return record{"typname": "", "typlen": int64(-1), "typbyval": false, "typalign": "i", "typstorage": "x", "typcollation": int64(0)}
}

var typeRecords = sync.OnceValue(func() map[int64]record {
	rows, err := readRows("pg_type", nil)
	if err != nil {
		panic(err) // the file is part of the program
	}
	rel := pgcatalog.Lookup("pg_catalog", "pg_type")
	all := map[int64]record{}
	for _, row := range rows {
		r := record{}
		for i, c := range rel.Columns {
			r[c.Name] = row[i]
		}
		all[row[0].(int64)] = r
	}
	return all
})
