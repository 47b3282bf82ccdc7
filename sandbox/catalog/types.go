package catalog

import (
	"embed"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// What is the same in every database of PostgreSQL 15, read off a server: names.tsv is format_type of each built-in
// type, pg_get_keywords.tsv the grammar's words.
//
//go:embed postgres15
var files embed.FS

// TypeName is a built-in type's name as format_type writes it.
func TypeName(t policy.Type) (string, bool) {
	name, ok := typeNames()[t]
	return name, ok
}

var typeNames = sync.OnceValue(func() map[policy.Type]string {
	names := map[policy.Type]string{}
	text, _ := files.ReadFile("postgres15/names.tsv")
	for line := range strings.Lines(string(text)) {
		oid, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if n, err := strconv.ParseUint(oid, 10, 32); err == nil {
			names[policy.Type(n)] = name
		}
	}
	return names
})

// elements maps array types to the types of their elements; int2vector and oidvector are among them.
var elements = map[policy.Type]policy.Type{
	1000: policy.Bool, 1002: 18, 1003: 19, 1005: policy.Int2, 1007: policy.Int4, 1009: policy.Text, 1015: policy.Varchar, 1016: policy.Int8,
	1021: policy.Float4, 1022: policy.Float8, 1028: 26, 1034: 1033, 1115: policy.TimestampT, 1182: policy.DateType, 1185: policy.TimestampTZ,
	1187: policy.IntervalT, 1183: policy.TimeT, 1231: policy.NumericType, 2951: policy.UUID, 2211: 2206, 2210: 2205, 1008: 24, 22: policy.Int2,
	30: 26, 1263: 2275, 1014: policy.Bpchar, 4090: 4089,
}

// Element returns the element type of an array or vector type.
func Element(t policy.Type) (policy.Type, bool) {
	e, ok := elements[t]
	return e, ok
}

// oidLike reports whether values of a type are object identifiers: oid, xid, cid, regclass and their like.
func oidLike(t policy.Type) bool {
	return slices.Contains([]policy.Type{26, 28, 29, 24, 2202, 2203, 2204, 2205, 2206, 3734, 3769, 4089, 4096}, t)
}

// keywords are the words that quote_ident quotes though they are letters alone, read once: each name that a catalog
// shows is looked up among them.
var keywords = sync.OnceValue(func() (words []string) {
	text, _ := files.ReadFile("postgres15/pg_get_keywords.tsv")
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, "\t"); f[1] != "U" {
			words = append(words, f[0])
		}
	}
	return words
})

// QuoteIdentifier quotes a name as PostgreSQL shows it: where it needs quotes.
func QuoteIdentifier(name string) string {
	if plainName.MatchString(name) && !slices.Contains(keywords(), name) {
		return name
	}
	return dialect.QuoteName(name)
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
