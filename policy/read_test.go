package policy

import "testing"

func TestExamples(t *testing.T) {
	t.Setenv("DPPROXY_PG", "postgres://dpproxy@127.0.0.1:5432/census")
	for _, path := range []string{"../examples/adult/policy.yaml", "../examples/adult/policy-postgres.yaml"} {
		p, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		table := p.Dataset("census").Table("", "adult")
		if len(table.Columns) != 15 || len(table.Releases) != 2 {
			t.Errorf("%s: %d columns, %d releases", path, len(table.Columns), len(table.Releases))
		}
		t.Log(p.Warnings())
		t.Logf("%+v\n%s", *p, table.Fingerprint())
	}
}
