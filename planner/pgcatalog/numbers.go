package pgcatalog

// Origin names a column of a relation as catalogs show it.
type Origin struct{ Schema, Relation, Column string }

// Number is what pg_attribute knows a column by, its attrelid and attnum. The zero Number is of no column.
type Number struct {
	Table     uint32
	Attribute int16
}

// Numbers are the columns that a catalog shows.
type Numbers map[Origin]Number
