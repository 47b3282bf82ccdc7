package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

func parsed(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := Parse([]byte(text), "/etc/dpproxy/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestReadBase looks at every field that the base policy sets.
func TestReadBase(t *testing.T) {
	p := parsed(t, base(t))
	if p.Path != "/etc/dpproxy/policy.yaml" || p.Digest == [32]byte{} || p.Server.Listen != "127.0.0.1:6432" || p.Server.TLS != nil {
		t.Errorf("server: %+v", p.Server)
	}
	if p.Backend.URL != "postgres://dpproxy@127.0.0.1:5432/prod" || p.Backend.Deadline != 2*time.Minute {
		t.Errorf("backend: %+v", p.Backend)
	}
	if p.Sandbox.URL != "" || p.Ledger.URL != "sqlite:/etc/dpproxy/dpproxy.ledger" {
		t.Errorf("stores: %+v %+v", p.Sandbox, p.Ledger)
	}
	if u := p.User("dba"); u == nil || !u.Admin || p.User("nobody") != nil {
		t.Errorf("users: %+v", p.Users)
	}
	d := p.Dataset("census")
	if d == nil || d.Unit != (Unit{Name: "person", Table: "people", Column: "person_id"}) || d.Neighbors != privacy.AddRemove || d.Accountant != privacy.Pure {
		t.Fatalf("dataset: %+v", d)
	}
	if d.Cap.Cost != (privacy.Cost{Epsilon: privacy.MicroEpsilon(20e6), Delta: privacy.AttoDelta(1e12)}) {
		t.Errorf("cap: %+v", d.Cap)
	}
	alice, ok := d.Budget("alice")
	if !ok || alice.Refresh != 30*24*time.Hour || alice.Lifetime == nil || alice.Lifetime.Cost.Epsilon != privacy.MicroEpsilon(10e6) {
		t.Errorf("alice: %+v", alice)
	}
	if dba, ok := d.Budget("dba"); !ok || dba.Epsilon != privacy.MicroEpsilon(1e6) || dba.Lifetime != nil {
		t.Errorf("others: %+v", dba)
	}
	if d.Defaults.Epsilon != privacy.MicroEpsilon(1e5) || d.Defaults.MaxEpsilon != privacy.MicroEpsilon(1e6) || d.Defaults.Confidence.Float() != 0.95 || d.Defaults.Freshness != 24*time.Hour {
		t.Errorf("defaults: %+v", d.Defaults)
	}
	people := d.Table("public", "people")
	if people.Source != (Source{"public", "people"}) || people.UnitColumn != "person_id" || people.MaxRowsPerUnit != 1 || people.ExpectedRows != 500000 {
		t.Errorf("people: %+v", people)
	}
	age := people.Column("age")
	if age.Type != Int4 || age.Typmod != -1 || age.Source != "age" || age.Outside != OutsideClamp || age.Nulls != NullCell || age.Domain.Size() != 121 || age.Table != people {
		t.Errorf("age: %+v", age)
	}
	if hired := people.Column("hired").Domain; hired.Low(0) != Value(Date(10957)) || hired.Regular != 9862 || !hired.Single() {
		t.Errorf("hired: %+v", hired)
	}
	if r := people.Releases; len(r) != 2 || r[0].Name != "people_age" || r[0].Kind != RangeRelease || r[1].Name != "people_sex_age" || r[1].Cost.Epsilon != privacy.MicroEpsilon(5e5) {
		t.Errorf("releases: %+v", r)
	}
	if visits := d.Table("", "visits"); visits.UnitColumn != "person_id" || visits.Column("at").Domain.Step.Whole != 15*60*1000000 {
		t.Errorf("visits: %+v", visits)
	}
	if regions := d.Table("", "regions"); !regions.Public || regions.MaxRows != 100000 || regions.Column("code").Domain != nil {
		t.Errorf("regions: %+v", regions)
	}
}

// TestRule6DeltaIsSpentOnce: under zcdp and either, where keys can be found, one half of delta buys rho and the other
// half is there for them; where none can, all of it buys rho. Under pure all of it is there for keys.
func TestRule6DeltaIsSpentOnce(t *testing.T) {
	discover := strings.NewReplacer("{name: sex, type: text, domain: {values: [Female, Male]}, outside: other}", "{name: sex, type: text, domain: {values: [Female, Male]}, outside: other}\n          - {name: zip, type: text, keys: discover}")
	large := strings.NewReplacer("    accountant:", "    large_products: threshold\n    accountant:")
	for _, accountant := range []string{"zcdp", "either"} {
		text := strings.Replace(base(t), "accountant: pure", "accountant: "+accountant, 1)
		for _, with := range []struct {
			text        string
			conversions int64
			keys        int64
		}{{text, 1e12, 0}, {discover.Replace(text), 5e11, 5e11}, {large.Replace(text), 5e11, 5e11}} {
			p := parsed(t, with.text)
			c := p.Dataset("census").Cap
			rho, err := accounting.LargestRho(c.Epsilon, privacy.AttoDelta(with.conversions))
			if err != nil {
				t.Fatal(err)
			}
			want := privacy.Cost{Rho: rho, Delta: privacy.AttoDelta(with.keys)}
			if accountant == "either" {
				want.Epsilon = c.Epsilon
			}
			if c.Cost != want || c.Epsilon != privacy.MicroEpsilon(20e6) || c.Delta != privacy.AttoDelta(1e12) {
				t.Errorf("%s: cap is %+v, want %s", accountant, c, want)
			}
			r := p.Dataset("census").Table("", "people").Releases[0]
			if want := map[string]privacy.Cost{"zcdp": {Rho: privacy.PicoRho(125e9)}, "either": {Epsilon: privacy.MicroEpsilon(5e5)}}[accountant]; r.Cost != want { // 0.5²/2
				t.Errorf("%s: a release at epsilon 0.5 costs %v", accountant, r.Cost)
			}
		}
	}
	odd := parsed(t, discover.Replace(strings.NewReplacer("accountant: pure", "accountant: zcdp", "cap: {epsilon: 20, delta: 1e-6}", "cap: {epsilon: 20, delta: 0.000000000000000003}").Replace(base(t))))
	if got := odd.Dataset("census").Cap.Cost.Delta; got != privacy.AttoDelta(1) {
		t.Errorf("half of three atto is %d", got.Atto())
	}
}

// TestRhoOf: under either an epsilon buys no larger a share of rho than it is of the limit's epsilon, and EpsilonFor is
// the least that does.
func TestRhoOf(t *testing.T) {
	limit := privacy.Cost{Epsilon: privacy.MicroEpsilon(1e6), Rho: privacy.PicoRho(24_360_000_000)}
	d := &Dataset{Accountant: privacy.Either}
	for micro, want := range map[int64]int64{10_000: 50_000_000, 48_720: 1_186_819_200, 100_000: 2_436_000_000, 1_000_000: 24_360_000_000, 2_000_000: 48_720_000_000} {
		if got := d.RhoOf(privacy.MicroEpsilon(micro), limit).Pico(); got != want {
			t.Errorf("ε %d micro buys ρ %d pico, want %d", micro, got, want)
		}
	}
	for _, pico := range []int64{1, 499, 50_000_000, 2_436_000_001, 24_360_000_000} {
		e := d.EpsilonFor(privacy.PicoRho(pico), limit)
		if d.RhoOf(e, limit).Pico() < pico || d.RhoOf(privacy.MicroEpsilon(e.Micro()-1), limit).Pico() >= pico {
			t.Errorf("ρ %d pico is bought by ε %s", pico, e)
		}
	}
	if got := (&Dataset{Accountant: privacy.ZCDP}).RhoOf(privacy.MicroEpsilon(1e6), limit); got != privacy.PicoRho(5e11) {
		t.Errorf("under zcdp ε 1 buys ρ %s", got)
	}
}

// TestRhoInPlaceOfEpsilon: the epsilon shown is the smallest that would buy the rho.
func TestRhoInPlaceOfEpsilon(t *testing.T) {
	p := parsed(t, strings.NewReplacer("accountant: pure", "accountant: zcdp", "columns: [age], epsilon: 0.5", "columns: [age], rho: 0.125",
		"epsilon: 0.1, max_epsilon: 1,", "rho: 0.005000000001, max_rho: 0.5,").Replace(base(t)))
	d := p.Dataset("census")
	if r := d.Table("", "people").Releases[0]; r.Cost.Rho != privacy.PicoRho(125e9) || r.Epsilon != privacy.MicroEpsilon(5e5) {
		t.Errorf("release: %v, %v", r.Cost, r.Epsilon)
	}
	if d.Defaults.Epsilon != privacy.MicroEpsilon(100001) || d.Defaults.MaxEpsilon != privacy.MicroEpsilon(1e6) {
		t.Errorf("defaults: %+v", d.Defaults)
	}
	for _, pico := range []int64{1, 2, 499, 500, 501, 125e9, 1e18} {
		e := new(Dataset).EpsilonFor(privacy.PicoRho(pico), privacy.Cost{})
		if e.Rho().Pico() < pico || e.Micro() > 0 && privacy.MicroEpsilon(e.Micro()-1).Rho().Pico() >= pico {
			t.Errorf("rho %d pico is shown as epsilon %v", pico, e)
		}
	}
}

func TestPathsAndVariables(t *testing.T) {
	t.Setenv("DPPROXY_TEST_DIR", "/data")
	text := strings.NewReplacer(
		"url: postgres://dpproxy@127.0.0.1:5432/prod", `url: "duckdb:warehouse.duckdb"
  files: {people: people.csv, visits: "${DPPROXY_TEST_DIR}/visits.parquet"}
ledger: {url: "sqlite:${DPPROXY_TEST_DIR}/ledger"}`,
		"source: public.people", "source: people", "        source: public.visits\n", "",
		"listen: 127.0.0.1:6432", "tls: {cert: tls/cert.pem, key: /keys/key.pem}",
	).Replace(base(t))
	p := parsed(t, text)
	d := p.Dataset("census")
	if p.Backend.URL != "duckdb:/etc/dpproxy/warehouse.duckdb" || p.Ledger.URL != "sqlite:/data/ledger" || *p.Server.TLS != (TLS{Cert: "/etc/dpproxy/tls/cert.pem", Key: "/keys/key.pem"}) {
		t.Errorf("%+v", p)
	}
	if people := d.Table("", "people"); people.File != "/etc/dpproxy/people.csv" || people.Source != (Source{"main", "people"}) {
		t.Errorf("people: %+v", people)
	}
	if visits := d.Table("", "visits"); visits.File != "/data/visits.parquet" {
		t.Errorf("visits: %+v", visits)
	}
	if regions := d.Table("", "regions"); regions.File != "" || regions.Source != (Source{"public", "regions"}) {
		t.Errorf("regions: %+v", regions)
	}
}

// TestRule8OneDatasetPerFile: the same file under two names, or through a link, is one base relation; so are names that
// differ by case in DuckDB.
func TestRule8OneDatasetPerFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.csv"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.csv", filepath.Join(dir, "b.csv")); err != nil {
		t.Fatal(err)
	}
	two := func(url, files, first, second string) error {
		dataset := func(id, source string) string {
			return "  - {id: " + id + `, unit: row, accountant: pure, cap: {epsilon: 1}, budgets: {"*": {epsilon: 1}}, tables: [{name: t, source: ` +
				source + ", columns: [{name: x, type: boolean}]}]}\n"
		}
		_, err := Parse([]byte("version: 1\nbackend: {url: \""+url+"\", files: {"+files+"}}\ndatasets:\n"+dataset("one", first)+dataset("two", second)), filepath.Join(dir, "policy.yaml"))
		return err
	}
	for _, c := range []struct {
		url, files, first, second string
		passes                    bool
	}{
		{"duckdb:", "a: a.csv, c: c.csv", "a", "c", true},
		{"duckdb:", "a: a.csv, c: ./x/../a.csv", "a", "c", false},
		{"duckdb:", "a: a.csv, b: b.csv", "a", "b", false},
		{"duckdb:x.duckdb", "a: a.csv", "People", "main.people", false},
		{"duckdb:x.duckdb", "a: a.csv", "one.people", "two.people", true},
	} {
		if err := two(c.url, c.files, c.first, c.second); (err == nil) != c.passes {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestExamples reads the policies that the repository ships.
func TestExamples(t *testing.T) {
	t.Setenv("DPPROXY_PG", "postgres://dpproxy@127.0.0.1:5432/census")
	var names [][]string
	for _, path := range []string{"../examples/adult/policy.yaml", "../examples/adult/policy-postgres.yaml"} {
		p, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		table := p.Dataset("census").Table("", "adult")
		if len(table.Releases) != 2 || p.User("analyst") == nil || !p.User("dba").Admin {
			t.Errorf("%s: %+v", path, p)
		}
		var list []string
		for _, c := range table.Columns {
			list = append(list, c.Name+" "+c.Type.Format(c.Typmod))
		}
		names = append(names, list)
	}
	header := "age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex,capital_gain,capital_loss,hours_per_week,native_country,income"
	for i, name := range strings.Split(header, ",") {
		if got, _, _ := strings.Cut(names[0][i], " "); got != name {
			t.Errorf("column %d is %s, the file's is %s", i, got, name)
		}
	}
	if !slices.Equal(names[0], names[1]) {
		t.Errorf("the two examples differ: %v, %v", names[0], names[1])
	}
}

// TestParseNeverPanics cuts and breaks the base policy everywhere.
func TestParseNeverPanics(t *testing.T) {
	text := base(t)
	for i := 0; i < len(text); i += 7 {
		_, _ = Parse([]byte(text[:i]), "policy.yaml")
		for _, c := range []string{"{", "- ", "!", "\x00", "~", "&a ", "*a ", "<<: ", "?"} {
			_, _ = Parse([]byte(text[:i]+c+text[i:]), "policy.yaml")
		}
	}
}

func FuzzParse(f *testing.F) {
	data, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse(data, "policy.yaml")
		if (p == nil) == (err == nil) {
			t.Fatal("neither a policy nor an error, or both")
		}
		if p == nil {
			return
		}
		p.Warnings()
		p.Notes()
		for _, d := range p.Datasets {
			for _, table := range d.Tables {
				table.Fingerprint()
			}
		}
	})
}

// TestDocument reads the example of docs/policy.md, and finds every key of the schema in its text.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("docs/policy.md has no example")
	}
	parsed(t, example)
	var visit func(s *jsonschema.Schema)
	visit = func(s *jsonschema.Schema) {
		if s == nil {
			return
		}
		for _, inner := range append([]*jsonschema.Schema{s.Items, s.AdditionalProperties}, s.AnyOf...) {
			visit(inner)
		}
		if s.Properties == nil {
			return
		}
		for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
			if !strings.Contains(string(data), pair.Key) {
				t.Errorf("docs/policy.md does not name %s", pair.Key)
			}
			visit(pair.Value)
		}
	}
	visit(schema())
}
