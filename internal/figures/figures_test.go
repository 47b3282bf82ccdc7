package figures

import (
	"strings"
	"testing"
)

// TestRead: rows of the same name are one, text stays as it is, Go's own lines are read even where a benchmark prints
// between its name and its figures.
func TestRead(t *testing.T) {
	printed := strings.Join([]string{
		"=== RUN   TestBench",
		"BenchmarkTold   \tfigures|cells  error",
		"figures|   64   5.55",
		"1\t  2500000 ns/op\t  12.345 rows",
		"figure\tfresh\t`count(*)`\tours\t12 ms\town SQL\t215 ms",
		"figure\tfresh\t`a | b`\tours\t3 ms",
		"figure\tfresh\t`count(*)`\town SQL\t210 ms",
		"BenchmarkCharge16/sqlite-2         \t   30303\t     147123 ns/op\t     30312.7 charges/s",
		"ok  \tx\t3.2s",
	}, "\n")
	tables, err := Read(strings.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	want := "```\ncells  error\n   64   5.55\n```\n" + `
| fresh | ours | own SQL |
| --- | --- | --- |
| ` + "`count(*)`" + ` | 12 ms | 215 ms; 210 ms |
| ` + "`a \\| b`" + ` | 3 ms |  |

| benchmark | measured |
| --- | --- |
| ` + "`Charge16/sqlite`" + ` | 147 µs/op; 30,313 charges/s |
`
	if got := Markdown(tables); got != want {
		t.Errorf("reads\n%s\nmust read\n%s", got, want)
	}
	if _, err := Read(strings.NewReader("figure\tfresh\tno column")); err == nil {
		t.Error("half a line is read")
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.08123: "0.0812", 0.97: "0.97", 1: "1", 6.25: "6.25", 43.26: "43.3", 475.4: "475", 72000: "72,000", 1234567: "1,234,567", 0.0004: "0.0004"} {
		if got := Number(v); got != want {
			t.Errorf("%v is written %s, must be %s", v, got, want)
		}
	}
}
