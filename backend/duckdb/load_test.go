package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/csv"
	"github.com/dpproxy/dpproxy/backend/files"
	"github.com/dpproxy/dpproxy/backend/internal/embedded"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// filePolicy is the people table alone, over a file of the given text.
func filePolicy(t *testing.T, name, text string) *policy.Policy {
	t.Helper()
	p := backendtest.TestPolicy(t, "duckdb:")
	d := p.Datasets[0]
	d.Tables = d.Tables[:1]
	d.Tables[0].File = filepath.Join(t.TempDir(), name)
	d.Tables[0].Source = policy.Source{Schema: "main", Name: "people"}
	if err := os.WriteFile(d.Tables[0].File, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFilesAreReadWithDeclaredTypes (rule 12): one cell types no column, whatever it holds.
func TestFilesAreReadWithDeclaredTypes(t *testing.T) {
	header := "\ufeffAGE,sex,income,person_id,note\r\n"
	rows := "34,Female,1000.5,p1,x\r\n35,\"Male\",2000,p2,\"a,\"\"b\"\"\r\nc\"\r\n"
	for name, c := range map[string]struct {
		text string
		want []string // people by sex, and by age where it is 34 or NULL
	}{
		"plain":                          {rows, []string{"[0]: [1]", "[1]: [1]"}},
		"one cell is no number":          {rows + "abc,Male,3,p3,\r\n", []string{"[0]: [1]", "[1]: [2]"}},
		"cells with other digits":        {rows + "1_0,Male,3,p3,\r\n0x10,Male,3,p4,\r\n1.5,Male,3,p5,\r\n", []string{"[0]: [1]", "[1]: [4]"}},
		"one cell is a date":             {rows + "2020-01-01,Male,3,p3,\r\n", []string{"[0]: [1]", "[1]: [2]"}},
		"semicolons in a cell":           {rows + "1,a;b;c;d;e;f;g,3,p3,\r\n", []string{"[0]: [1]", "[1]: [1]", "[2]: [1]"}},
		"empty and quoted empty":         {rows + ",,,p3,\r\n1,\"\",3,p4,\r\n", []string{"[0]: [1]", "[1]: [1]", "[2]: [1]", "[3]: [1]"}},
		"too many fields, too few, none": {"1,Male,2,p0,x,y\n\n\r\n2\n" + rows, []string{"[0]: [1]", "[1]: [1]"}},
		"another line's end":             {rows + "1,Male,3,p3,\n2,Male\r,3,p4,\r\n3,Male,3,p5,", []string{"[0]: [1]", "[1]: [3]", "[2]: [1]"}},
		"a NUL, and no UTF-8":            {rows + "1,Ma\x00le,3,p3,\r\n1,Ma\xffle,3,p\xff,\r\n1,Female,3,p\xfe,\r\n\xff,Male,3,p6,\r\n", []string{"[0]: [2]", "[1]: [2]", "[2]: [2]"}},
		"a very long cell":               {rows + "1," + strings.Repeat("x", 3*csv.MaxField) + ",3,p3,\r\n2,Male,3,p4,\r\n", []string{"[0]: [1]", "[1]: [2]", "[2]: [1]"}},
		"quotes in a cell":               {rows + "1,Ma\"le,3,p3,\r\n2,Male,3,\"p\"\"4\",\"\r\n\"\r\n", []string{"[0]: [1]", "[1]: [2]", "[2]: [1]"}},
		"a unit twice and none":          {rows + "1,Male,3,p2,\r\n1,Male,3,,\r\n", []string{"[0]: [1]", "[1]: [1]"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := backendtest.Open(t, filePolicy(t, "people.csv", header+c.text))
			if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "sex"), h)); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if got := backendtest.Inspect(t, h); strings.Contains(got, "fatal=true") {
				t.Errorf("got\n%s", got)
			}
		})
	}
	h := backendtest.Open(t, filePolicy(t, "people.csv", header+rows+"abc,Male,3,p3,\r\n1_0,Male,3,p4,\r\n0x10,Male,3,p5,\r\n35.4,Male,3,p6,\r\n"))
	if got, want := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "people", "age"), h)), []string{"[120]: [4]", "[34]: [1]", "[35]: [1]"}; !slices.Equal(got, want) {
		t.Errorf("ages: got %v, want %v", got, want)
	}
}

// TestTextsThatAreNumbers: of a file's texts those are numbers that PostgreSQL 15 reads as such, and no others.
func TestTextsThatAreNumbers(t *testing.T) {
	texts := []string{"0", "7", "+7", "-7", " 12 ", "\t12\n", "\v\f12\r", "007", "1_0", "1_000", "0x10", "0X1F", "0b11", "0o17", "-0x1", "1.5", "1.0", "2.", ".5", ".", "", " ", "+", "-", "--1", "+-1", "1-", "1 0", "1e3", "1E3", "1e+2", "1e-2", "1e", "e1", "1_0.5",
		"1.5_5", "1e1_0", "1,5", "12abc", "abc", "true", "NaN", "nan", "Infinity", "-inf", "inf", "infinit", "99999", "9999999999", "99999999999999999999", "123456.789", "\u00a07", "7\u00a0", "\u0661", "1e400", "1d", "1f", "$1", "(1)"}
	server := pgtest.Shared(t)
	conn, err := pgx.Connect(t.Context(), server.URLFor("postgres", server.Database(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	newer := regexp.MustCompile(`_|0[xXbBoO]`)
	for kind, own := range map[string]string{"SMALLINT": "int2", "INTEGER": "int4", "BIGINT": "int8", "DECIMAL(12,2)": "numeric(12,2)", "DOUBLE": "float8", "FLOAT": "float4"} {
		for _, text := range texts {
			var want, got *string
			if conn.QueryRow(t.Context(), "SELECT $1::text::"+own+"::float8::text", text).Scan(&want) != nil {
				want = nil
			}
			if err := db.QueryRowContext(t.Context(), "SELECT CAST(CAST("+files.FileColumn{Name: "x", Kind: kind}.Read(true)+" AS DOUBLE) AS VARCHAR) FROM (SELECT CAST(? AS VARCHAR) AS x) AS s", text).Scan(&got); err != nil {
				t.Fatal(err)
			}
			if own == "numeric(12,2)" && want != nil && *want == "NaN" || newer.MatchString(text) {
				want = nil // no DECIMAL is NaN; a number in hexadecimal, which floats may be, is none here, nor what PostgreSQL reads since 16
			}
			number := func(text *string) string {
				if text == nil {
					return "none"
				}
				f, err := strconv.ParseFloat(*text, 64)
				return fmt.Sprint(f, err)
			}
			if number(got) != number(want) {
				t.Errorf("%q as %s is %s, to PostgreSQL %s", text, kind, number(got), number(want))
			}
		}
	}
}

// TestTextsThatAreMoments: what is read of a drawn text as a date, a moment or a truth is what PostgreSQL 15 reads of
// it, and what has the form of ISO 8601 is read.
func TestTextsThatAreMoments(t *testing.T) {
	server := pgtest.Shared(t)
	conn, err := pgx.Connect(t.Context(), server.URLFor("postgres", server.Database(t))+"&timezone=UTC")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "SET TimeZone = 'UTC'"); err != nil {
		t.Fatal(err)
	}
	orNothing := func(text *string) string {
		if text == nil {
			return "nothing"
		}
		return *text
	}
	d := rand.New(rand.NewPCG(45, 9))
	one := func(of ...string) string { return of[d.IntN(len(of))] }
	moments := []string{"2025-03-02xyz", "2025-03-01 BC", "2025-03-01 10:00:00 BC", "25-03-02", "0000-01-01", "-2025-03-01", "2025-03-02 24:00:00", "2025-03-02 10:00:00 Europe/Berlin"}
	for range 600 {
		text := one("", "", "", " ") + one("2025", "2025", "2025", "2025", "2024", "2024", "0001", "25", "0000", "12025", "-2025") + "-" + one("03", "03", "3", "12", "02", "13", "Mar", "003") + "-" + one("02", "02", "2", "28", "29", "31", "00", "32")
		if d.IntN(5) == 0 {
			text = strings.ReplaceAll(text, "-", one("/", ".", ""))
		}
		if d.IntN(2) == 0 {
			text += one(" ", " ", " ", "T", "T", "", "  ", "x") + one("10:00:00", "10:00:01", "23:59:59.999999", "10:00", "09:30", "1:2:3", "10", "25:00:00", "10:00:00.5", "24:00:00", "10:60") + one("", "", "", "Z", "+05", "-05:30", " UTC", "+99", "xyz")
		}
		moments = append(moments, text+one("", "", "", "", "", " ", "\n", " BC", "xyz", " x", "BC"))
	}
	truths := []string{"t", "T", "tr", "tru", "true", "TRUE", "truex", "y", "ye", "yes", "yess", "on", "o", "of", "off", "1", "0", "01", "2", "-1", " t ", "\tno\n", "n", "no", "f", "fals", "false", "", " ", "null"}
	iso := regexp.MustCompile(`^ ?\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?(Z|[+-]\d\d)?)?)?( BC)?$`)
	for kind, own := range map[string]string{"DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMPTZ": "timestamptz", "BOOLEAN": "boolean"} {
		texts, number := moments, "extract(epoch FROM %s)::float8::text"
		if kind == "BOOLEAN" {
			texts, number = truths, "%s::int::text"
		}
		read := 0
		for _, text := range texts {
			var want, got *string
			if conn.QueryRow(t.Context(), "SELECT "+fmt.Sprintf(number, "$1::text::"+own), text).Scan(&want) != nil {
				want = nil
			}
			value := fmt.Sprintf(strings.NewReplacer("float8", "DOUBLE", "text", "VARCHAR").Replace(number), files.FileColumn{Name: "x", Kind: kind}.Read(true))
			if err := db.QueryRowContext(t.Context(), "SELECT "+value+" FROM (SELECT CAST(? AS VARCHAR) AS x) AS s", text).Scan(&got); err != nil {
				t.Fatal(err)
			}
			same := func() bool {
				a, err := strconv.ParseFloat(*got, 64)
				b, also := strconv.ParseFloat(*want, 64)
				return err == nil && also == nil && a == b
			}
			switch {
			case got != nil && (want == nil || !same()):
				t.Errorf("%q as %s is %s, to PostgreSQL %s", text, kind, *got, orNothing(want))
			case got == nil && want != nil && (kind == "BOOLEAN" || iso.MatchString(text)):
				t.Errorf("%q as %s is nothing, to PostgreSQL %s", text, kind, *want)
			case got != nil:
				read++
			}
		}
		t.Logf("%s: of %d texts %d are read", kind, len(texts), read)
		if read < len(texts)/12 {
			t.Errorf("%s: only %d texts are read", kind, read)
		}
	}
}

func TestBrokenFilesAreRefusedWithoutTheirContents(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"open quote":         {"people.csv", "age,sex,income,person_id\n1,Male,2,p1\n2,\"" + backendtest.Canary + ",2,p2\n3,Male,2,p3\n", "line 3 has a quote that is not closed"},
		"text after a quote": {"people.csv", "age,sex,income,person_id\n1,Male,2,p1\n2,\"" + backendtest.Canary + "\"x,2,p2\n", "line 3 has a quote that is not closed, or not at the end"},
		"a quote over lines": {"people.csv", "age,sex,income,person_id\n1,\"Ma\nle\",2,p1\n2,\"" + backendtest.Canary + ",2,p2\n3,\"Male\",2,p3\n", "line 4 has a quote"},
		"missing column":     {"people.csv", "age,sex,person_id\n" + backendtest.Canary + ",Male,p1\n", "no column income"},
		"double column":      {"people.csv", "age,sex,income,person_id,Age\n" + backendtest.Canary + ",Male,1,p1,2\n", "one twice"},
		"empty":              {"people.csv", "", "header"},
		"no parquet":         {"people.parquet", backendtest.Canary, "cannot be read"},
		"pattern":            {"p*.parquet", backendtest.Canary, "pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := backendtest.Opener(context.Background(), filePolicy(t, c.file, c.text), backendtest.Discard())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), backendtest.Canary) {
				t.Errorf("got %v, want something of %q", err, c.want)
			}
		})
	}
}

// TestLinesThatAreLeftOut: a line without the header's number of fields is left out and named, by its number alone.
func TestLinesThatAreLeftOut(t *testing.T) {
	text := "age,sex,income,person_id\n1,Male,2,p1\n" + backendtest.Canary + "\n2,\"Ma\nle\",2,p2\n\n3,Male,2,p3," + backendtest.Canary + "\n"
	for range 7 {
		text += backendtest.Canary + "\n"
	}
	h := backendtest.Open(t, filePolicy(t, "people.csv", text+"4,Male,2,p4"))
	if got := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h)); !slices.Equal(got, []string{"[]: [3]"}) {
		t.Errorf("got %v", got)
	}
	got := backendtest.Inspect(t, h)
	if !strings.Contains(got, "fatal=false table people: lines 3, 7, 8, 9, 10 and 4 more of its file have another number of fields than the header, and are left out") || strings.Contains(got, backendtest.Canary) {
		t.Errorf("got\n%s", got)
	}
}

// TestEachLineIsReadByItself (rule 12): whatever one line holds, all others are read as without it, or the file is
// refused.
func TestEachLineIsReadByItself(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SliceOfN(rapid.SampledFrom([]byte{'a', ',', '"', '\n', '\r', 0, 0xff, ' '}), 0, 12).Draw(t, "line")
		head, tail := "a,b\n1,x\n", "\n2,\"y\nz\"\r\n3,\n"
		read := func(text string) (rows []string, err error) {
			for r := csv.NewReader(strings.NewReader(text)); ; {
				fields, err := r.Read()
				if err == io.EOF {
					return rows, nil
				} else if err != nil {
					return nil, err
				}
				row := ""
				for _, f := range fields {
					row += fmt.Sprintf("%q|", f.Value())
				}
				rows = append(rows, row)
			}
		}
		without, err := read(head + tail)
		if err != nil {
			t.Fatal(err)
		}
		with, err := read(head + string(line) + tail)
		var bad csv.BadQuote
		if err != nil {
			if !errors.As(err, &bad) {
				t.Fatal(err)
			}
			return
		}
		if n := len(with); n < len(without) || !slices.Equal(with[:2], without[:2]) || !slices.Equal(with[n-2:], without[2:]) {
			t.Fatalf("%q\nwith %v\nwithout %v", line, with, without)
		}
	})
}

// TestLockdown: nothing outside the loaded tables can be reached from SQL.
func TestLockdown(t *testing.T) {
	for name, h := range map[string]*backendtest.House{"file": backendtest.DuckHouse(t), "memory": backendtest.Open(t, filePolicy(t, "people.csv", "age,sex,income,person_id\n1,Male,2,p1\n"))} {
		db := h.Backend.(*DB).Pool
		for _, statement := range []string{
			"SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM read_text('/etc/hostname')", "ATTACH '/tmp/elsewhere.duckdb' AS elsewhere",
			"COPY (SELECT 1) TO '/tmp/elsewhere.csv'", "INSTALL httpfs", "LOAD httpfs", "SET TimeZone = 'Asia/Tokyo'", "SET enable_external_access = true",
			"SET GLOBAL lock_configuration = false", "RESET temp_directory", "SELECT * FROM people",
		} {
			if _, err := db.Exec(statement); err == nil {
				t.Errorf("%s: %s is allowed", name, statement)
			}
		}
	}
	h := backendtest.DuckHouse(t)
	for _, statement := range []string{"DELETE FROM private.main.people", "CREATE TABLE private.main.t (a integer)", "CREATE MACRO private.main.list_position(a, b) AS 0"} {
		if _, err := h.Backend.(*DB).Pool.Exec(statement); err == nil {
			t.Errorf("%s is allowed", statement)
		}
	}
}

// TestSortsGoToFiles (rule 24): a unit with more rows than fit in memory takes files, not the query's end; they are
// gone with the process's backend.
func TestSortsGoToFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("sorts two million rows: left out by -short")
	}
	h := backendtest.DuckHouseWith(t, "INSERT INTO visits SELECT 1, 'north' || i, i % 60 FROM generate_series(1, 2000000) AS s(i)")
	b := h.Backend.(*DB)
	files := b.Directory
	if info, err := os.Stat(files); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory: %v %v", info, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(files); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its directory is still there: %v", err)
	}
	q := backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "minutes"), h)
	for directory, works := range map[string]bool{"": false, t.TempDir(): true} {
		small, err := sql.Open("duckdb", "")
		if err != nil {
			t.Fatal(err)
		}
		defer small.Close()
		file := dialect.QuoteText(strings.TrimPrefix(h.Policy.Backend.URL, "duckdb:"))
		for _, s := range slices.Concat([]string{"SET GLOBAL memory_limit = '40MB'", "ATTACH " + file + " AS " + dialect.Catalog + " (TYPE duckdb, READ_ONLY)"}, embedded.Settled(directory), embedded.Lockdown) {
			if _, err := small.Exec(s); err != nil {
				t.Fatal(s, err)
			}
		}
		groups, err := (&DB{Instance: &embedded.Instance{Pool: small}, log: backendtest.Discard()}).groups(t.Context(), q)
		if (err == nil && len(groups[0]) > 0) != works {
			t.Errorf("directory %q: %d groups, %v", directory, len(groups), err)
		}
	}
}
