package proxy

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// psql runs psql as a user with that input and returns what it printed, both streams in one.
func (b *bench) psql(t *testing.T, url, input string) string {
	t.Helper()
	path, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("psql is not installed")
	}
	cmd := exec.Command(path, "-X", "-A", "-v", "VERBOSITY=default", url)
	cmd.Env = append(os.Environ(), "PGCONNECT_TIMEOUT=10", "HOME=/nonexistent")
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && out.Len() == 0 {
		t.Fatal(err)
	}
	return out.String()
}

func TestPsql(t *testing.T) {
	b := start(t)
	url := b.url("alice", "wonderland", "census", "sslmode=disable")
	for _, c := range []struct{ input, want string }{
		{"select count(*) from people;", "NOTICE:  cost: ε 0.1; left: ε 0.9; ±37 at 95 %\ncount\n1234\n(1 row)\n"},
		{"select nope;", "ERROR:  column \"nope\" does not exist\nLINE 1: select nope;\n               ^\n"},
		{"select too much;", "ERROR:  budget spent\nDETAIL:  It costs more than is left.\nHINT:  Ask what is free.\n"},
		{"set dp.epsilon = 0.2; show dp.epsilon;", "SET\ndp.epsilon\n0.2\n(1 row)\n"},
		{"set dp.epsilon = 2;", "ERROR:  dp.epsilon is 2, the policy allows at most 1 in one statement\nHINT:  SET dp.epsilon = 1, or ask the owner of the data for a higher max_epsilon.\n"},
		{"set dp.epsilom = 2;", "ERROR:  unrecognized configuration parameter \"dp.epsilom\"\nHINT:  Perhaps you meant dp.epsilon.\n"},
		{"set dp.freshness = '1h';", "ERROR:  parameter \"dp.freshness\" is not available yet\n"},
		{"show dp.budget;", "dp.budget\nε 0.9 of 1 left\n(1 row)\n"},
		{"begin; set dp.epsilon = 0.2; rollback; show dp.epsilon;", "BEGIN\nSET\nROLLBACK\ndp.epsilon\n0.1\n(1 row)\n"},
		{"commit;", "WARNING:  there is no transaction in progress\nCOMMIT\n"},
		{"show timezone; set time zone 'Europe/Berlin'; show timezone;", "TimeZone\nEtc/UTC\n(1 row)\nSET\nTimeZone\nEurope/Berlin\n(1 row)\n"},
		{"\\encoding\n", "UTF8\n"},
		{"select 1 \\; select 2;", "?column?\n1\n(1 row)\n?column?\n2\n(1 row)\n"},
		{"\\set FETCH_COUNT 4\nselect n from ten;\n", "n\n0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n(10 rows)\n"},
		{"\\copy (select 1) to stdout csv header\n", "?column?\n1\n"},
		{"\\copy (select too much) to stdout\n", "ERROR:  budget spent\nDETAIL:  It costs more than is left.\nHINT:  Ask what is free.\n"},
		{"prepare q as select $1::int as a, $2::text; execute q;", "PREPARE\nERROR:  wrong number of parameters for prepared statement \"q\"\nDETAIL:  Expected 2 parameters but got 0.\n"},
	} {
		got := b.psql(t, url, c.input)
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s\ngot  %q\nwant %q", c.input, got, c.want)
		}
	}
	if got := b.psql(t, b.url("alice", "wrong", "census", "sslmode=disable"), ""); !strings.Contains(got, `password authentication failed for user "alice"`) {
		t.Errorf("wrong password: %q", got)
	}
}
