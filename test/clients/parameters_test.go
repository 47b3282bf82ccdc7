package clients

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/dpproxy/dpproxy/test/kit"
)

// typedParameters are a text of each type that a client may say a parameter has.
var typedParameters = []struct {
	oid  uint32
	text string
}{
	{16, "t"}, {16, "f"}, {21, "7"}, {23, "-7"}, {20, "70000000000"}, {700, "1.5"}, {701, "2.5"}, {1700, "12.50"}, {25, "a text"}, {1043, "paid"}, {1042, "de"}, {19, "pg_class"},
	{18, "r"}, {1082, "2024-02-29"}, {1114, "2024-02-29 12:00:00"}, {1184, "2024-02-29 12:00:00+00"}, {1083, "12:30:00"}, {1266, "12:30:00+00"}, {1186, "1 day 02:00:00"},
	{2950, "00000000-0000-4000-8000-000000000001"}, {26, "1259"}, {2205, "1259"}, {2206, "23"}, {24, "1242"}, {28, "3"}, {4089, "11"}, {114, `{"a": 1}`}, {3802, `{"a": 1}`}, {17, `\x00ff61`},
	{142, "<a/>"}, {869, "127.0.0.1"}, {650, "10.0.0.0/8"}, {829, "08:00:2b:01:02:03"},
	{1000, "{t,f,NULL}"}, {1005, "{1,2}"}, {1007, "{1,NULL}"}, {1016, "{3}"}, {1021, "{1.5}"}, {1022, "{2.5}"}, {1231, "{1.50,2}"}, {1009, `{a,"b c"}`}, {1015, "{x}"}, {1014, "{de}"}, {1003, "{a}"}, {1028, "{1,2}"},
	{1182, "{2024-02-29}"}, {1115, `{"2024-02-29 12:00:00"}`}, {1185, `{"2024-02-29 12:00:00+00"}`}, {1187, "{01:00:00}"}, {2951, "{00000000-0000-4000-8000-000000000001}"}, {1183, "{12:00:00}"},
	{199, `{"{}"}`}, {3807, `{"{}"}`}, {600, "(1,2)"}, {790, "1"}, {1560, "101"}, {3904, "[1,2)"}, {3614, "a b"}, {0, "7"}, {705, "x"},
}

// readingParameters are what a statement with a parameter reads. The first seven need no private rows.
var readingParameters = []string{
	"SELECT $1",
	"SELECT $1 IS NULL, 1",
	"SELECT relname, $1 FROM pg_catalog.pg_class WHERE relname = 'pg_class'",
	"SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = 'pg_catalog.pg_am'::regclass AND ($1 IS NOT NULL OR attnotnull) AND attnum > 0 ORDER BY attnum",
	"SELECT id, $1 FROM samples WHERE id <= 2 ORDER BY id",
	"SELECT count(*) FROM samples WHERE $1 IS NOT DISTINCT FROM $1",
	"SELECT name, coalesce($1, NULL) FROM products WHERE product_id = 3",
	"SELECT tier, $1::text, count(*) FROM customers GROUP BY tier ORDER BY tier",
	"SELECT n, $1 FROM (SELECT count(*) AS n FROM customers) q",
}

// askedTyped is what a server answers to a statement with one parameter, or the SQLSTATE.
func askedTyped(t *testing.T, conn *pgconn.PgConn, sql string, oid uint32, value []byte, format int16) string {
	t.Helper()
	ctx := context.Background()
	d, err := conn.Prepare(ctx, "", sql, []uint32{oid})
	if err != nil {
		return "Parse: " + stateOfError(err)
	}
	r := conn.ExecPrepared(ctx, "", [][]byte{value}, []int16{format}, nil).Read()
	if r.Err != nil {
		return "Execute: " + stateOfError(r.Err)
	}
	var out strings.Builder
	fmt.Fprint(&out, d.ParamOIDs)
	for _, f := range d.Fields {
		fmt.Fprint(&out, " ", f.DataTypeOID)
	}
	for _, row := range r.Rows {
		out.WriteString("\n")
		for _, v := range row {
			fmt.Fprintf(&out, "%q ", v)
		}
	}
	return out.String()
}

func stateOfError(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code + " " + pgErr.Message
	}
	return err.Error()
}

// TestParametersBesidePostgres: a parameter of each type, over nothing, catalogs, a public table and counts of private
// rows, as text and in binary. What is answered is PostgreSQL's answer, with PostgreSQL's types; what is not is refused
// with DP002, which names the type.
func TestParametersBesidePostgres(t *testing.T) {
	kit.Beside(t)
	if testing.Short() {
		t.Skip("starts a server")
	}
	types := pgtype.NewMap()
	s := openStore(t)
	theirs, ours := pgConnect(t, s.plainURL), pgConnect(t, s.serve(t).URL("analyst", "store"))
	answered, refused := 0, 0
	for _, p := range typedParameters {
		for _, format := range []int16{0, 1} {
			value := []byte(p.text)
			if format == 1 {
				if value = binaryOf(types, p.oid, p.text); value == nil {
					continue
				}
			}
			for _, sql := range readingParameters {
				want := askedTyped(t, theirs, sql, p.oid, value, format)
				got := askedTyped(t, ours, sql, p.oid, value, format)
				switch {
				case got == want:
					answered++
				case strings.HasPrefix(want, "Parse: ") && strings.HasPrefix(got, want[:len("Parse: 42883")]):
				case strings.HasPrefix(want, "Parse: 42P18"): // PostgreSQL wants to know a type that nothing depends on
				case strings.Contains(got, "DP002 a parameter of type"):
					refused++
				default:
					t.Errorf("%s with type %d, %q, format %d\nPostgreSQL: %s\n   dpproxy: %s", sql, p.oid, p.text, format, want, got)
				}
			}
		}
	}
	t.Logf("%d answered as PostgreSQL does, %d refused", answered, refused)
}

// binaryOf is a value in binary; nil if its type has no codec.
func binaryOf(types *pgtype.Map, oid uint32, text string) []byte {
	typ, ok := types.TypeForOID(oid)
	if !ok || !typ.Codec.FormatSupported(pgtype.BinaryFormatCode) {
		return nil
	}
	v, err := typ.Codec.DecodeValue(types, oid, pgtype.TextFormatCode, []byte(text))
	if err != nil {
		return nil
	}
	out, err := types.Encode(oid, pgtype.BinaryFormatCode, v, nil)
	if err != nil {
		return nil
	}
	return out
}
