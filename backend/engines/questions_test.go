package engines

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/backend/mariadbtest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

var drawnPairs = flag.Int("pairs", 1, "pairs of neighbouring tables that are drawn for each type of a key and source (TestNeighboursOfStrangeKeys)")

// strangePolicy is over one or two tables whose unit is the column k.
func strangePolicy(t *testing.T, backend, unit, tables string) *policy.Policy {
	t.Helper()
	text := strings.Replace(policytest.Over("duckdb:"), `{url: "duckdb:"}`, backend, 1) + `
  - id: clinic
    unit: ` + unit + `
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
` + tables
	p, err := policy.Parse([]byte(text), filepath.Join(t.TempDir(), "policy.yaml"))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return p
}

const strangeTable = "      - {name: visits, max_rows_per_unit: 2, columns: [{name: n, type: integer, domain: {min: 0, max: 9, step: 1}}]}\n"

// strangeKeys are types of keys with values as SQL writes them: those of one list are one unit.
var strangeKeys = map[string]struct {
	kind, declared string
	units          [][]string
	csv            bool // and texts of a file
}{
	"text":                 {"VARCHAR", "", [][]string{{"'ann'"}, {"'ANN'"}, {"'Ann '"}, {"'é'"}, {"'e'"}, {"''"}}, true},
	"without case":         {"VARCHAR COLLATE NOCASE", "", [][]string{{"'ann'"}, {"'ANN'"}, {"'Ann'"}, {"'aNN'"}}, false},
	"without accents":      {"VARCHAR COLLATE NOACCENT", "", [][]string{{"'é'"}, {"'e'"}, {"'è'"}, {"'ê'"}}, false},
	"of a language":        {"VARCHAR COLLATE de", "", [][]string{{"'ann'"}, {"'ANN'"}, {"'e'"}}, false},
	"intervals":            {"INTERVAL", "", [][]string{{"INTERVAL '1 month'"}, {"INTERVAL '30 days'"}, {"INTERVAL '720 hours'"}}, false},
	"floating":             {"DOUBLE", "", [][]string{{"0.0", "-0.0"}, {"1.0"}}, false},
	"whole":                {"BIGINT", ", type: bigint", [][]string{{"7"}, {"8"}, {"-7"}}, true},
	"texts that are whole": {"VARCHAR", ", type: bigint", [][]string{{"'7'", "'07'", "'007'", "' 7'"}, {"'8'", "'+8'"}, {"'9'"}}, true},
	"decimals":             {"DECIMAL(9,2)", "", [][]string{{"1", "1.0", "1.00"}, {"1.01"}, {"-1"}}, false},
	"bytes":                {"BLOB", "", [][]string{{`'a'::BLOB`}, {`'\xFF'::BLOB`}, {`'\x5CxFF'::BLOB`}}, false},
	"moments":              {"TIMESTAMP", "", [][]string{{"TIMESTAMP '2024-01-01'", "TIMESTAMP '2024-01-01 00:00:00.000'"}, {"TIMESTAMP '2024-01-01 00:00:00.000001'"}}, false},
	"times":                {"TIME", "", [][]string{{"TIME '01:00:00'"}, {"TIME '02:00:00'"}}, false},
	"uuid":                 {"UUID", "", [][]string{{"'6ba7b810-9dad-11d1-80b4-00c04fd430c8'", "'6BA7B810-9DAD-11D1-80B4-00C04FD430C8'"}, {"'6ba7b810-9dad-11d1-80b4-00c04fd430c9'"}}, false},
	"lists":                {"VARCHAR[]", "", [][]string{{"['a']"}, {"['a, b']"}, {"['a', 'b']"}}, false},
}

// TestNeighboursOfStrangeKeys (rule 30): of each type of a key, in each source that has it, either the policy is
// refused, or two tables that differ by the rows of one unit, which are drawn, differ in a histogram by as many rows as
// the bound of the policy claims, and no more; and a snapshot counts what a query on the rows themselves does.
func TestNeighboursOfStrangeKeys(t *testing.T) {
	t.Parallel()
	answered, refused := map[string]int{}, map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(strangeKeys)) {
		c := strangeKeys[name]
		random := rand.New(rand.NewPCG(45, uint64(len(name))))
		for range *drawnPairs {
			rows, without, counted := drawStrange(random, c.units)
			for _, source := range []string{"table", "parquet", "csv"} {
				if source == "csv" && !c.csv {
					continue
				}
				var lives [2][]string
				for i, list := range [][]string{rows, without} {
					dir := t.TempDir()
					db := filepath.Join(dir, "rows.duckdb")
					backendtest.RunDuck(t, db, "CREATE TABLE visits (k "+c.kind+", n INTEGER); INSERT INTO visits VALUES "+strings.Join(list, ", "))
					backend := "url: " + fmt.Sprintf("%q", "duckdb:"+db)
					if source != "table" {
						file := filepath.Join(dir, "visits."+source)
						backendtest.RunDuck(t, db, fmt.Sprintf("COPY visits TO '%s' (FORMAT %s)", file, source))
						backend = fmt.Sprintf("url: \"duckdb:\", files: {visits: %q}", file)
					}
					live, ok := strangeCounts(t, "{"+backend+"}", c.declared)
					copied, also := strangeCounts(t, fmt.Sprintf("{%s, snapshot: {dir: %q, every: 1d}}", backend, filepath.Join(dir, "snapshots")), c.declared)
					if ok != also || !slices.Equal(live, copied) {
						t.Errorf("%s in a %s, of %s: live %v (accepted: %v), of a snapshot %v (%v)", name, source, list, live, ok, copied, also)
					}
					if lives[i] = live; !ok {
						refused[source]++
						break
					}
					answered[source]++
				}
				if n := distance(t, lives[0], nil); lives[1] != nil && n != counted {
					t.Errorf("%s in a %s: %d rows are counted, of %d that count at two of each unit: %v", name, source, n, counted, rows)
				}
				if moved := distance(t, lives[0], lives[1]); lives[1] != nil && moved > 2 {
					t.Errorf("%s in a %s: one unit moves %d rows, of 2 that the policy claims: %v and %v", name, source, moved, rows, without)
				}
			}
		}
	}
	t.Logf("histograms by source: answered %v, refused %v", answered, refused)
	for _, source := range []string{"table", "parquet", "csv"} {
		if answered[source] == 0 {
			t.Errorf("no %s is accepted", source)
		}
	}
	if refused["table"] == 0 {
		t.Error("no table is refused")
	}
}

// drawStrange draws rows, which are left without one unit's, and how many count at two of each unit.
func drawStrange(random *rand.Rand, units [][]string) (rows, without []string, counted int) {
	gone, of := random.IntN(len(units)), make([]int, len(units))
	for range 5 + random.IntN(20) {
		u := random.IntN(len(units))
		if of[u]++; of[u] <= 2 {
			counted++
		}
		row := fmt.Sprintf("(%s, %d)", units[u][random.IntN(len(units[u]))], random.IntN(10))
		if rows = append(rows, row); u != gone {
			without = append(without, row)
		}
	}
	if len(without) == 0 {
		without = []string{"(NULL, 0)"}
	}
	return rows, without, counted
}

// strangeCounts is the histogram of n; ok is false where the policy is refused.
func strangeCounts(t *testing.T, backend, declared string) (list []string, ok bool) {
	t.Helper()
	p := strangePolicy(t, backend, "{name: person, key: visits.k"+declared+"}", strangeTable)
	b, err := Open(t.Context(), p, slog.New(slog.DiscardHandler))
	if err != nil {
		if strings.Contains(err.Error(), "of which no values are read") {
			return nil, false
		}
		t.Fatal(err)
	}
	h := &backendtest.House{Backend: b, Policy: p, Log: &backendtest.LogBook{}}
	defer b.Close()
	findings, err := b.Inspect(t.Context(), p, p.Datasets[0])
	if err != nil || inspect.Fatal(findings) {
		if err != nil && !strings.Contains(err.Error(), "of which no values are read") {
			t.Fatal(err)
		}
		return nil, false
	}
	if p.Backend.Snapshot != nil {
		backendtest.Prepare(t, h)
	}
	return backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, p, "visits", "n"), h)), true
}

var cellCount = regexp.MustCompile(`^\[(\d+)\]: \[(\d+)\]$`)

// distance is by how much two histograms differ.
func distance(t *testing.T, a, b []string) (moved int) {
	t.Helper()
	of := map[string]int{}
	for sign, list := range map[int][]string{1: a, -1: b} {
		for _, text := range list {
			m := cellCount.FindStringSubmatch(text)
			if m == nil {
				t.Fatal(text)
			}
			n := 0
			_, _ = fmt.Sscan(m[2], &n)
			of[m[1]] += sign * n
		}
	}
	for _, n := range of {
		moved += max(n, -n)
	}
	return moved
}

// TestTextsUnderACollation: a column whose collation takes some texts for equal is refused of whatever use it is, in a
// table, a view and a trusted SELECT.
func TestTextsUnderACollation(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"VARCHAR", "VARCHAR COLLATE C", "VARCHAR COLLATE NOCASE", "VARCHAR COLLATE NOACCENT.NOCASE", "VARCHAR COLLATE de"} {
		file := filepath.Join(t.TempDir(), "rows.duckdb")
		backendtest.RunDuck(t, file, "CREATE TABLE visits (k BIGINT, w "+kind+"); CREATE VIEW seen AS SELECT k, w FROM visits")
		for name, tables := range map[string]string{
			"discovered": "{name: visits, max_rows_per_unit: 2, columns: [{name: w, type: text, keys: discover}]}",
			"declared":   "{name: visits, max_rows_per_unit: 2, columns: [{name: w, type: text, domain: {values: [a, b]}}]}",
			"a join key": "{name: visits, max_rows_per_unit: 2, columns: [{name: w, type: text, keys: join}]}",
			"a view":     "{name: visits, source: main.seen, max_rows_per_unit: 2, columns: [{name: w, type: text, keys: discover}]}",
			"a SELECT":   "{name: visits, source: 'SELECT k, w FROM private.main.visits', trusted: true, max_rows_per_unit: 2, columns: [{name: w, type: text, keys: discover}]}",
		} {
			p := strangePolicy(t, fmt.Sprintf("{url: %q}", "duckdb:"+file), "{name: person, key: visits.k}", "      - "+tables+"\n")
			got := backendtest.Inspect(t, backendtest.Open(t, p))
			want := strings.Contains(kind, "NO") || strings.HasSuffix(kind, "de")
			if strings.Contains(got, "fatal=true") != want || strings.Contains(got, "under a collation") != want {
				t.Errorf("%s, %s:\n%s", kind, name, got)
			}
		}
	}
}

// TestOneFileOfSeveralNames (rule 8): a file of several names is one relation, and so is what a view, a macro or a
// function of a file reads.
func TestOneFileOfSeveralNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := filepath.Join(dir, "one.csv")
	if err := os.WriteFile(one, []byte("k,n\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hard, other := filepath.Join(dir, "hard.csv"), filepath.Join(dir, "other.csv")
	for _, err := range []error{os.Link(one, hard), os.WriteFile(other, []byte("k,n\n1,2\n"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	db := filepath.Join(dir, "rows.duckdb")
	for _, statement := range []string{"CREATE TABLE visits (k BIGINT, n INTEGER); CREATE TABLE apart (k BIGINT, n INTEGER)",
		"CREATE MACRO all_of() AS TABLE SELECT * FROM visits; CREATE VIEW by_macro AS SELECT * FROM all_of()",
		"CREATE VIEW by_name AS SELECT * FROM query_table('visits'); CREATE VIEW by_query AS SELECT * FROM query('SELECT * FROM visits')",
		"CREATE MACRO most(x) AS (SELECT max(n) FROM visits v WHERE v.k = x); CREATE VIEW by_value AS SELECT k, most(k)::INTEGER AS n FROM apart",
		"CREATE VIEW by_view AS FROM by_macro; CREATE VIEW of_none AS SELECT range AS k, 1 AS n FROM range(3)"} {
		backendtest.RunDuck(t, db, statement)
	}
	file := func(path string) string {
		return fmt.Sprintf("{url: \"duckdb:\", files: {one: %q, two: %q}}", one, path)
	}
	table := func(string) string { return fmt.Sprintf("{url: %q}", "duckdb:"+db) }
	for name, c := range map[string]struct {
		backend  string
		one, two string // what the tables are
		shared   bool
	}{
		"a hard link": {file(hard), "one", "two", true}, "two files": {file(other), "one", "two", false},
		"a macro of a table": {table(""), "visits", "by_macro", true}, "a table by its name": {table(""), "visits", "by_name", true}, "a query": {table(""), "visits", "by_query", true},
		"a macro of a value": {table(""), "visits", "by_value", true}, "a view of a view": {table(""), "visits", "by_view", true}, "two views": {table(""), "by_name", "by_value", true},
		"no table": {table(""), "visits", "of_none", false}, "two tables": {table(""), "visits", "apart", false},
	} {
		t.Run(name, func(t *testing.T) {
			const columns = "max_rows_per_unit: 2, columns: [{name: n, type: integer, domain: {min: 0, max: 9, step: 1}}]}\n"
			tables := fmt.Sprintf("      - {name: a, source: %s, %s", c.one, columns)
			second := fmt.Sprintf("  - id: other\n    unit: {name: person, key: b.k}\n    accountant: pure\n    cap: {epsilon: 20}\n    budgets: {alice: {epsilon: 3}}\n    tables:\n      - {name: b, source: %s, %s", c.two, columns)
			p := strangePolicy(t, c.backend, "{name: person, key: a.k}", tables+second)
			h := backendtest.Open(t, p)
			findings, err := h.Inspect(t.Context(), p, p.Datasets[1])
			if err != nil {
				t.Fatal(err)
			}
			if said := fmt.Sprint(findings); strings.Contains(said, "two budgets") != c.shared || inspect.Fatal(findings) != c.shared {
				t.Errorf("shared: %v\n%s", c.shared, said)
			}
		})
	}
}

// TestParquetCellsFailNoRead (rules 12 and 30): a cell of a Parquet file that its column's type does not have is a text
// outside each domain, or NULL, one that it has far off lies outside, and all other cells are as they are: by whatever
// type the policy declares, live and for a snapshot. The cells are put into files that DB has written, which writes
// none.
func TestParquetCellsFailNoRead(t *testing.T) {
	t.Parallel()
	const text, moment = "@@@@@@@@", 1111111111111
	bad := map[string][]byte{"no UTF-8": {0xff, 0xfe, 'a', 'b', 'c', 'd', 'e', 'f'}, "a surrogate": {0xed, 0xa0, 0x80, 'b', 'c', 'd', 'e', 'f'}, "half a character": {'a', 'b', 'c', 'd', 'e', 'f', 'g', 0xc3},
		"beyond": {7: 0x20}, "before": {7: 0xe0}, "far off": {6: 0x20, 7: 0}}
	cells := 0
	for kind, of := range map[string]struct {
		strange  string // what is where the cell is to be
		cells    []string
		declared []string
	}{
		"VARCHAR": {"'" + text + "'", []string{"no UTF-8", "a surrogate", "half a character"}, []string{"type: text, domain: {values: [f, '7']}", "type: integer, domain: {min: 0, max: 9, step: 1}",
			"type: 'numeric(9,2)', domain: {min: 0, max: 9, step: 1}", "type: date, domain: {min: 2024-01-01, max: 2024-12-31, step: 1 day}", "type: double precision, domain: {min: 0, max: 9, step: 1}",
			"type: boolean", "type: timestamp, domain: {min: 2024-01-01, max: 2024-12-31, step: 1 day}", "type: uuid, domain: {values: [6ba7b810-9dad-11d1-80b4-00c04fd430c8]}"}},
		"TIMESTAMP_MS": {fmt.Sprintf("make_timestamp_ms(%d)::TIMESTAMP_MS", moment), []string{"beyond", "before", "far off"}, []string{"type: timestamp, domain: {min: 2024-01-01, max: 2024-12-31, step: 1 day}",
			"type: date, domain: {min: 2024-01-01, max: 2024-12-31, step: 1 day}", "type: text, domain: {values: [f]}"}},
	} {
		good := map[string]string{"VARCHAR": "'f'), (2, '7'), (3, '2024-02-29'), (4, NULL", "TIMESTAMP_MS": "TIMESTAMP '2024-02-29 12:00:00.5'), (2, '0001-01-01'), (3, NULL"}[kind]
		dir := t.TempDir()
		write := func(name, cell string) string {
			file := filepath.Join(dir, name+".parquet")
			backendtest.RunDuck(t, filepath.Join(dir, "rows.duckdb"), fmt.Sprintf("CREATE OR REPLACE TABLE visits (k BIGINT, v %s); INSERT INTO visits VALUES (1, %s), (9, %s); COPY visits TO '%s' (FORMAT parquet, COMPRESSION uncompressed)", kind, good, cell, file))
			return file
		}
		instead := "NULL" // of the cell
		if kind == "VARCHAR" {
			instead = "'\uFFFDC3'"
		}
		null := write("null", instead)
		for _, cell := range of.cells {
			file := write("bad", of.strange)
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			was := []byte(text)
			if kind != "VARCHAR" {
				was = binary.LittleEndian.AppendUint64(nil, moment)
			}
			if !bytes.Contains(data, was) {
				t.Fatalf("DuckDB writes %s otherwise", kind)
			}
			if err := os.WriteFile(file, bytes.ReplaceAll(data, was, bad[cell]), 0o600); err != nil {
				t.Fatal(err)
			}
			stands := null
			if cell == "far off" { // a moment that DB has, outside each domain
				stands = write("near", of.strange)
			}
			for number, declared := range of.declared {
				var got [4]string
				for i, from := range []string{stands, file} {
					for k, snapshot := range []string{"", fmt.Sprintf(", snapshot: {dir: %q, every: 1d}", filepath.Join(t.TempDir(), "snapshots"))} {
						if got[2*i+k] = got[0]; snapshot != "" && number > 1 {
							continue
						}
						p := strangePolicy(t, fmt.Sprintf("{url: \"duckdb:\", files: {visits: %q}%s}", from, snapshot), "{name: person, key: visits.k, type: bigint}",
							"      - {name: visits, max_rows_per_unit: 1, columns: [{name: v, "+declared+"}]}\n")
						h := backendtest.Open(t, p)
						if said := backendtest.Inspect(t, h); strings.Contains(said, "fatal=true") || strings.Contains(said, "lies outside each domain") != (i == 1 && k == 0 && cell != "far off") {
							t.Fatalf("%s in %s as %s:\n%s", cell, kind, declared, said)
						}
						if snapshot != "" {
							backendtest.Prepare(t, h)
						}
						got[2*i+k] = fmt.Sprint(backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, p, "visits", "v"), h)))
						h.Close()
					}
				}
				if cells++; got[0] != got[1] || got[0] != got[2] || got[0] != got[3] {
					t.Errorf("%s in %s as %s: what stands for the cell is counted %s and %s, the cell %s and %s", cell, kind, declared, got[0], got[1], got[2], got[3])
				}
			}
		}
	}
	t.Logf("%d cells by type of the policy", cells)
}

// farValues are types of columns with what is stored in them as SQL writes it: the ends of the domain, a value within
// it that is replaced by other bits in a file (and its bits, and theirs), values far outside, and those that are
// missing.
var farValues = map[string]struct {
	kind, declared string
	least, most    string
	within         string
	bits           [2][]byte // nil: none are replaced
	isMissing      bool      // what they are replaced by is
	below, above   []string
	missing        []string
}{
	"days": {"DATE", "date", "'2024-01-01'", "'2024-12-31'", "'2024-03-05'", [2][]byte{little(uint32(19787)), little(uint32(1 << 30))}, false,
		[]string{"'-infinity'", "'5877642-06-25 (BC)'", "'0001-01-01'"}, []string{"'infinity'", "'5881580-07-10'", "'9999-12-31'"}, []string{"NULL"}},
	"moments": {"TIMESTAMP", "timestamp", "'2024-01-01'", "'2024-12-31'", "'2024-03-05 00:00:00.000001'", [2][]byte{little(uint64(1709596800000001)), little(uint64(1 << 62))}, false,
		[]string{"'-infinity'", "'290309-12-22 (BC) 00:00:00'", "'0001-01-01'"}, []string{"'infinity'", "'294247-01-10 04:00:54.775806'", "'9999-12-31'"}, []string{"NULL"}},
	"moments of seconds":     {"TIMESTAMP_S", "timestamp", "'2024-01-01'", "'2024-12-31'", "'2024-03-05'", [2][]byte{}, false, []string{"'0001-01-01'"}, []string{"'294247-01-10 04:00:54'", "'9999-12-31'"}, []string{"NULL"}},
	"moments of nanoseconds": {"TIMESTAMP_NS", "timestamp", "'2024-01-01'", "'2024-12-31'", "'2024-03-05'", [2][]byte{}, false, []string{"'1677-09-22'"}, []string{"'2262-04-11 23:47:16.854775'"}, []string{"NULL"}},
	"moments of a zone": {"TIMESTAMPTZ", "timestamptz", "'2024-01-01 00:00:00+00'", "'2024-12-31 00:00:00+00'", "'2024-03-05 00:00:00+00'", [2][]byte{}, false,
		[]string{"'-infinity'", "'0001-01-01 00:00:00+00'"}, []string{"'infinity'", "'294247-01-10 04:00:54.775806+00'"}, []string{"NULL"}},
	"floating numbers": {"DOUBLE", "double precision", "0", "100", "12.3", [2][]byte{little(math.Float64bits(12.3)), little(math.Float64bits(math.NaN()))}, true,
		[]string{"'-inf'", "-1.7e308", "-1e-300"}, []string{"'inf'", "1.7e308", "100.00000000000001"}, []string{"NULL", "'nan'"}},
	"short floating numbers": {"FLOAT", "real", "0", "100", "12.3", [2][]byte{little(math.Float32bits(12.3)), little(math.Float32bits(float32(math.NaN())))}, true,
		[]string{"'-inf'", "-3.4e38"}, []string{"'inf'", "3.4e38"}, []string{"NULL", "'nan'"}},
	"whole numbers": {"BIGINT", "bigint", "0", "100", "12", [2][]byte{}, false, []string{"'-9223372036854775808'", "-1"}, []string{"9223372036854775807", "101"}, []string{"NULL"}},
}

func little[N uint32 | uint64](n N) []byte {
	data, _ := binary.Append(nil, binary.LittleEndian, n)
	return data
}

var farTables = flag.Int("far", 1, "tables that are drawn for each type of a column and rule for what is outside (TestFarValues)")

// TestFarValues (rules 12 and 24): no value that a column may hold fails a query, live or over a snapshot, or is
// counted elsewhere than its rule says: of tables of DB, of Parquet files, and of Parquet files in whose statistics the
// value is not, as NaN is in those of no writer that follows the format.
func TestFarValues(t *testing.T) {
	t.Parallel()
	counted := 0
	for _, name := range slices.Sorted(maps.Keys(farValues)) {
		c := farValues[name]
		domain := "{min: 2024-01-01, max: 2024-12-31, step: 1 day}"
		if c.least == "0" {
			domain = "{min: 0, max: 100, step: 1}"
		}
		for _, rule := range []string{"clamp", "other", "exclude"} {
			random := rand.New(rand.NewPCG(201, uint64(len(name+rule))))
			of := func(backend string) []string {
				p := strangePolicy(t, backend, "{name: person, key: visits.k, type: bigint}", fmt.Sprintf("      - {name: visits, max_rows_per_unit: 20, columns: [{name: v, type: %s, outside: %s, domain: %s}]}\n", c.declared, rule, domain))
				h := backendtest.Open(t, p)
				defer h.Close()
				if p.Backend.Snapshot != nil {
					backendtest.Prepare(t, h)
				} else if said := backendtest.Inspect(t, h); strings.Contains(said, "fatal=true") {
					t.Fatalf("%s: %s", name, said)
				}
				return backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, p, "visits", "v"), h))
			}
			// compare counts rows as they are stored, from everywhere, beside those that the rule makes of them.
			compare := func(stored, made []string, bits bool) {
				dir := t.TempDir()
				rows, plain, file := filepath.Join(dir, "rows.duckdb"), filepath.Join(dir, "made.duckdb"), filepath.Join(dir, "visits.parquet")
				for db, values := range map[string][]string{rows: stored, plain: made} {
					backendtest.RunDuck(t, db, "CREATE TABLE visits (k BIGINT, v "+c.kind+"); INSERT INTO visits SELECT 1, v::"+c.kind+" FROM (VALUES ("+strings.Join(values, "::"+c.kind+"), (")+"::"+c.kind+")) AS t(v)")
				}
				backendtest.RunDuck(t, rows, "COPY visits TO '"+file+"' (FORMAT parquet, COMPRESSION uncompressed)")
				backends := []string{fmt.Sprintf("url: \"duckdb:\", files: {visits: %q}", file)}
				if bits {
					data, err := os.ReadFile(file)
					if err != nil || bytes.Count(data, c.bits[0]) != 1 {
						t.Fatalf("DuckDB writes %s otherwise (%v)", c.kind, err)
					}
					if err := os.WriteFile(file, bytes.Replace(data, c.bits[0], c.bits[1], 1), 0o600); err != nil {
						t.Fatal(err)
					}
				} else {
					backends = append(backends, fmt.Sprintf("url: %q", "duckdb:"+rows))
				}
				want := of(fmt.Sprintf("{url: %q}", "duckdb:"+plain))
				for _, b := range backends {
					for _, snapshot := range []string{"", fmt.Sprintf(", snapshot: {dir: %q, every: 1d}", filepath.Join(t.TempDir(), "snapshots"))} {
						if got := of("{" + b + snapshot + "}"); len(want) == 0 || !slices.Equal(got, want) {
							t.Errorf("%s, %s, of {%s%s}, %s: %v, want %v", name, rule, b, snapshot, stored, got, want)
						}
						counted++
					}
				}
			}
			added := func(made []string, end string, missing bool) []string {
				switch {
				case missing || rule == "other":
					return append(made, "NULL")
				case rule == "clamp":
					return append(made, end)
				}
				return made
			}
			start := []string{c.least, c.most, c.most}
			for range *farTables {
				if !threats.Night() && rule != []string{"clamp", "other", "exclude"}[len(name)%3] { // each type by one rule
					break
				}
				stored, made := slices.Clone(start), slices.Clone(start)
				for range 4 + random.IntN(8) {
					at := random.IntN(3)
					list := [][]string{c.below, c.above, c.missing}[at]
					stored = append(stored, list[random.IntN(len(list))])
					made = added(made, []string{c.least, c.most, ""}[at], at == 2)
				}
				compare(stored, made, false)
			}
			if c.bits[0] != nil {
				compare(append(slices.Clone(start), c.within), added(slices.Clone(start), c.most, c.isMissing), true)
			}
		}
	}
	t.Logf("%d histograms", counted)
}

// TestParquetTypesThatAreRefused: columns of which values would be read as others, or of whose types no values are
// read.
func TestParquetTypesThatAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct{ kind, value, said string }{
		"times": {"TIME", "'01:00:00'", "is TIME, of which no values are read"}, "intervals": {"INTERVAL", "'1 day'", "is INTERVAL, of which no values are read"},
		"lists": {"INTEGER[]", "[1]", "is INTEGER[], of which no values are read"}, "structures": {"STRUCT(a INTEGER)", "{'a': 1}", "of which no values are read"},
		"decimals": {"DECIMAL(38,2)", "1.10", ""}, "bytes": {"BLOB", "'a'::BLOB", ""}, "JSON": {"JSON", "'1'", ""},
	} {
		file := filepath.Join(dir, name+".parquet")
		backendtest.RunDuck(t, filepath.Join(dir, "rows.duckdb"), fmt.Sprintf("CREATE OR REPLACE TABLE visits (k BIGINT, v %s); INSERT INTO visits VALUES (1, %s); COPY visits TO '%s' (FORMAT parquet)", c.kind, c.value, file))
		refusesParquet(t, file, "v", c.said)
	}
	for _, digits := range []string{"39", "50", "56", "76"} { // of 1.10 and -1.10, by pyarrow 26
		refusesParquet(t, filepath.Join("..", "parquet", "testdata", "decimals.parquet"), "d"+digits, "decimals of "+digits+" digits, of which DuckDB reads other numbers than stand there")
	}
	refusesParquet(t, filepath.Join("..", "parquet", "testdata", "decimals.parquet"), "d38", "")
}

// refusesParquet opens a policy over a file, live and for a snapshot, which is refused by such words; empty means it is
// not.
func refusesParquet(t *testing.T, file, column, words string) {
	t.Helper()
	file, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, snapshot := range []string{"", fmt.Sprintf(", snapshot: {dir: %q, every: 1d}", filepath.Join(t.TempDir(), "snapshots"))} {
		p := strangePolicy(t, fmt.Sprintf("{url: \"duckdb:\", files: {visits: %q}%s}", file, snapshot), "{name: person, key: visits.k}",
			"      - {name: visits, max_rows_per_unit: 1, columns: [{name: v, source: "+column+", type: text, domain: {values: [a]}}]}\n")
		b, err := Open(t.Context(), p, slog.New(slog.DiscardHandler))
		if err == nil {
			_, err = b.Inspect(t.Context(), p, p.Datasets[0])
			b.Close()
		}
		if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
			t.Errorf("%s of %s%s: %v, must say %q", column, filepath.Base(file), snapshot, err, words)
		}
	}
}

// TestNeighboursOfMariaDBsKeys (rule 30): as TestNeighboursOfStrangeKeys, of MariaDB's character sets: each byte is a
// unit of its own where it is stored as one.
func TestNeighboursOfMariaDBsKeys(t *testing.T) {
	t.Parallel()
	server := mariadbtest.Shared(t)
	bytesOf := func(list ...string) (units [][]string) {
		for _, s := range list {
			units = append(units, []string{s})
		}
		return units
	}
	for name, c := range map[string]struct {
		kind    string
		refused bool
		units   [][]string
	}{
		"ascii":             {"varchar(9) CHARACTER SET ascii COLLATE ascii_bin", false, bytesOf("CAST(x'80' AS char CHARACTER SET ascii)", "CAST(x'81' AS char CHARACTER SET ascii)", "CAST(x'ff' AS char CHARACTER SET ascii)", "'?'")},
		"latin1":            {"varchar(9) CHARACTER SET latin1 COLLATE latin1_bin", false, bytesOf("_latin1 x'80'", "_latin1 x'81'", "_latin1 x'e4'", "'?'")},
		"utf8mb4":           {"varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", false, bytesOf("'ä'", "'Ä'", "'a'", "'?'")},
		"an empty label":    {"enum('a', '') COLLATE utf8mb4_bin", true, bytesOf("'a'", "''", "'zzz'")},
		"labels":            {"enum('a', 'b', '''') COLLATE utf8mb4_bin", false, bytesOf("'a'", "'b'", "''''", "'zzz'")},
		"without accents":   {"varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", true, bytesOf("'ä'", "'a'")},
		"ascii of any case": {"varchar(9) CHARACTER SET ascii COLLATE ascii_general_ci", true, bytesOf("'A'", "'a'")},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(45, uint64(len(name))))
			for range *drawnPairs {
				rows, without, counted := drawStrange(random, c.units)
				var both [2][]string
				for i, list := range [][]string{rows, without} {
					database := server.Database(t)
					role := server.Role(t, database)
					server.ExecIn(t, database, "SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'", "CREATE TABLE visits (k "+c.kind+", n int)", "INSERT IGNORE INTO visits VALUES "+strings.Join(list, ", "))
					h := backendtest.MariaPolicy(t, server.URL(role, database), "{name: person, key: visits.k}", strangeTable)
					findings, err := h.Inspect(t.Context(), h.Policy, h.Policy.Datasets[0])
					if err != nil || inspect.Fatal(findings) != c.refused {
						t.Fatal(findings, err)
					}
					if c.refused {
						return
					}
					backendtest.Prepare(t, h)
					both[i] = backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "n"), h))
					h.Close()
				}
				if n := distance(t, both[0], nil); n != counted {
					t.Errorf("%d rows are counted, of %d that count at two of each unit: %v", n, counted, rows)
				}
				if moved := distance(t, both[0], both[1]); moved > 2 {
					t.Errorf("one unit moves %d rows, of 2 that the policy claims: %v and %v", moved, rows, without)
				}
			}
		})
	}
}
