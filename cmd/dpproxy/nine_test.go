package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// nine are schemas of the kinds that people bring, each with its tables, the schemas they lie in, whom the budget
// protects, how many lines init may mark at most (0 means no bound), and how many private and public tables it has at
// least. Of health init itself finds those who report, to whom nearly all of its tables lead: the largest policy that
// is served here.
var nine = []struct {
	name    string
	from    string // whose tables they are; "" means its own, and then the draft is golden
	tables  int
	schemas string // "" means public
	named   bool   // the owner says the unit
	unit    string // as init writes it
	ask     string // a private table
	marks   int
	least   [2]int // private and public tables
}{
	{name: "clinic", tables: 39, unit: "person.person_id", ask: "visit_occurrence", marks: 30, least: [2]int{20, 5}},
	{name: "icu", tables: 31, schemas: "ward_hosp ward_icu", unit: "ward_hosp.patients.subject_id",
		ask: "icustays", marks: 30, least: [2]int{20, 5}},
	{name: "bikes", tables: 68, schemas: "people staffing making buying selling", unit: "selling.customer.customerid",
		ask: "salesorder", marks: 20, least: [2]int{4, 12}},
	{name: "records", tables: 11, unit: "customer.customer_id", ask: "invoice", marks: 8,
		least: [2]int{3, 6}},
	{name: "map", tables: 57, unit: "users.id", ask: "edits", least: [2]int{40, 1}},
	{name: "billing", tables: 139, unit: "customers.id", ask: "invoices", least: [2]int{60, 8}},
	{name: "links", tables: 76, schemas: "public tools", unit: "member.id", ask: "comment",
		least: [2]int{45, 1}},
	{name: "health", tables: 473, named: true, unit: "tracked.trackedid", ask: "caretaken",
		least: [2]int{15, 12}},
	{name: "health_users", from: "health", tables: 473, unit: "userinfo.userinfoid", ask: "usergroup",
		least: [2]int{400, 0}},
	{name: "forum", tables: 15, unit: "users.id", ask: "posts", marks: 10, least: [2]int{10, 3}},
}

// TestInitOfNineSchemas: what init drafts of each loads as it is, is answered over, has few marks, and lists nothing
// that the schema's own list of what must stay unseen names. The drafts are golden.
func TestInitOfNineSchemas(t *testing.T) {
	server := pgtest.Shared(t)
	if _, err := kit.Executable(); err != nil { // before two ask for it at once
		t.Fatal(err)
	}
	for _, c := range nine {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			role, database := server.Role(t, ""), server.Database(t)
			sql := schemaSQL(t, cmp.Or(c.from, c.name))
			if n := strings.Count("\n"+sql, "\nCREATE TABLE "); n != c.tables {
				t.Errorf("%d tables, want %d", n, c.tables)
			}
			server.Exec(t, database, sql)
			file := filepath.Join(t.TempDir(), "policy.yaml")
			args := []string{"init", server.URLFor(role, database), "--all", "--out", file,
				"--from", "2020-01-01", "--until", "2029-12-31"}
			for _, s := range strings.Fields(cmp.Or(c.schemas, "public")) {
				server.Exec(t, database, "GRANT USAGE ON SCHEMA "+s+" TO "+role,
					"GRANT SELECT ON ALL TABLES IN SCHEMA "+s+" TO "+role)
				args = append(args, "--schema", s)
			}
			if c.named {
				args = append(args, "--unit", c.unit)
			}
			began := time.Now()
			out := kit.Run(t, "", args...)
			if out.Code != 0 {
				t.Fatalf("init: exit %d: %s", out.Code, out.Stderr)
			}
			if !strings.Contains(out.Stderr, "protects each "+c.unit+":") {
				t.Errorf("it protects another than %s: %s", c.unit, out.Stderr)
			}
			t.Logf("init took %.1f s: %s", time.Since(began).Seconds(), lastLine(out.Stderr))
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			marks := strings.Count(string(text), "# EDIT") - 1 // one is the head's word for them
			if c.marks > 0 && marks > c.marks {
				t.Errorf("%d lines are marked EDIT, at most %d should be", marks, c.marks)
			}
			public := unseen(t, c.name, text, c.least)
			server.Exec(t, database, fmt.Sprintf(rowSQL, strings.Join(public, ",")))
			url := lineWith(string(text), "  url: \"postgres:")
			if c.from == "" {
				golden(t, filepath.Join("testdata", "schemas", c.name+".yaml"),
					strings.Replace(string(text), url, "  url: postgres://…\n", 1))
			}
			serves(t, file, database, c.ask)
		})
	}
}

// rowSQL gives each of some tables a row: the keys of an empty one are no domain.
const rowSQL = `DO $$ DECLARE t regclass; columns text; items text;
BEGIN
  PERFORM set_config('session_replication_role', 'replica', true); -- no foreign key is looked at
  FOREACH t IN ARRAY '{%s}'::regclass[] LOOP
    SELECT string_agg(quote_ident(a.attname), ','), string_agg(quote_literal(CASE y.typcategory
        WHEN 'B' THEN 'true' WHEN 'D' THEN '2020-01-01' WHEN 'A' THEN '{}'
        WHEN 'E' THEN (SELECT min(e.enumlabel) FROM pg_enum e WHERE e.enumtypid = a.atttypid)
        WHEN 'U' THEN CASE y.typname WHEN 'uuid' THEN gen_random_uuid()::text WHEN 'xml' THEN '' ELSE '{}' END
        ELSE '1' END), ',')
      INTO columns, items FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid
      WHERE a.attrelid = t AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
        AND (a.attnotnull OR y.typnotnull);
    EXECUTE format('INSERT INTO %%s (%%s) VALUES (%%s)', t, columns, items);
  END LOOP;
END $$`

// serves runs check and serve over a draft, and asks one count of it.
func serves(t *testing.T, file, database, table string) {
	t.Helper()
	kit.Edit(t, file, "/"+database, "/"+database+"?sslmode=disable", "listen: 127.0.0.1:6432", "listen: 127.0.0.1:0")
	if out := kit.Run(t, "alice\n", "user", "add", "alice", "--policy", file); out.Code != 0 {
		t.Fatalf("user add: exit %d: %s", out.Code, out.Stderr)
	}
	began := time.Now()
	if out := kit.Run(t, "", "check", "--policy", file); out.Code != 0 {
		t.Fatalf("check: exit %d: %s%s", out.Code, complaints(out.Stdout), out.Stderr)
	}
	checked := time.Now()
	p := kit.Serve(t, file)
	t.Logf("check took %.1f s, serve listens after %.1f s, and has logged %d bytes",
		checked.Sub(began).Seconds(), time.Since(checked).Seconds(), len(p.LogText()))
	if n := len(p.LogText()); n > 100<<10 {
		t.Errorf("serve has logged %d bytes when it listens", n)
	}
	w, err := p.Dial("alice", "data")
	if err != nil {
		t.Fatal(err)
	}
	if r := w.Ask("SELECT count(*) FROM " + table); r.Err != nil || len(r.Rows) != 1 {
		t.Errorf("count of %s: %v, %d rows", table, r.Err, len(r.Rows))
	}
}

// drafted is what of a policy says who may see what.
type drafted struct {
	Datasets []struct {
		Tables []struct {
			Name    string
			Public  bool
			Trusted bool
			Columns []struct {
				Name, Keys string
			}
		}
	}
}

// unseen holds a draft against testdata/schemas/NAME.unsafe.txt. Its lines are a rule and names, each as path.Match
// takes them, and what is behind a # is why:
//
//	public T …     no other table is public
//	hidden T.C …   no column that is listed
//	key T.C …      a column that is not listed but for joins
//	trusted T …    no other table, but for those that may be public, has a SELECT that the owner vouches for
//
// It has so many private and public tables at least, and unseen returns the public ones.
func unseen(t *testing.T, name string, text []byte, least [2]int) (public []string) {
	t.Helper()
	rules, err := os.ReadFile(filepath.Join("testdata", "schemas", name+".unsafe.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var p drafted
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&p); err != nil || len(p.Datasets) != 1 {
		t.Fatalf("the draft does not read: %v", err)
	}
	names := map[string][]string{}
	for line := range strings.Lines(string(rules)) {
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) > 1 {
			if !slices.Contains([]string{"public", "hidden", "key", "trusted"}, fields[0]) {
				t.Fatalf("%s.unsafe.txt has a rule %q", name, fields[0])
			}
			names[fields[0]] = append(names[fields[0]], fields[1:]...)
		}
	}
	in := func(rule, name string) bool {
		return slices.ContainsFunc(names[rule], func(pattern string) bool {
			match, err := path.Match(pattern, name)
			if err != nil {
				t.Fatal(err)
			}
			return match
		})
	}
	var found []string
	for _, table := range p.Datasets[0].Tables {
		if table.Public {
			public = append(public, table.Name)
		}
		bare := table.Name[strings.LastIndex(table.Name, ".")+1:]
		if table.Public && !in("public", bare) {
			found = append(found, bare+" is public")
		}
		if table.Trusted && !in("trusted", bare) && !in("public", bare) {
			found = append(found, bare+" is trusted")
		}
		for _, column := range table.Columns {
			switch at := bare + "." + column.Name; {
			case in("hidden", at):
				found = append(found, at+" is listed")
			case in("key", at) && column.Keys != "join":
				found = append(found, at+" is listed, and not for joins alone")
			}
		}
	}
	if private := len(p.Datasets[0].Tables) - len(public); private < least[0] || len(public) < least[1] {
		t.Errorf("%d private and %d public tables, at least %v", private, len(public), least)
	}
	if len(found) > 0 {
		t.Errorf("%d unsafe:\n  %s", len(found), strings.Join(found, "\n  "))
	}
	return public
}

// complaints are the errors that check found.
func complaints(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "error:") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// schemaSQL is what creates one of the nine.
func schemaSQL(t *testing.T, name string) string {
	t.Helper()
	sql, err := os.ReadFile(filepath.Join("testdata", "schemas", name+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	if name == "health" {
		return string(sql) + descriptions()
	}
	return string(sql)
}

// described are the things that health's tables describe, the first two before all others; charted are those that are
// shown, with what they show.
var (
	described = strings.Fields(`usergroup attribute userrole optionset optionitem optioncombo option optiongroup
optiongroupset breakdown dataelement dataelementgroup dataelementgroupset dataset datasetsection dataentryform
indicator indicatortype indicatorgroup indicatorgroupset legend legendset constant category categorygroup orgunitgroup
orgunitgroupset validationrule validationrulegroup validationnotice predictor predictorgroup scheme schemestage
schemesection schemerule schemeruleaction schemeruleinput schemeindicator schemeindicatorgroup schemenotice trackedtype
trackedfield trackedfieldgroup trackedfilter relationkind approvallevel approvalflow report document dashboard
dashboarditem externallayer localename colorset color sqlquery pushreport smscommand apptoken`)
	charted = strings.Fields("chart pivot eventchart eventpivot mapview")
)

// A description has an uid and a code, who changed it, and whose it is.
const descriptionSQL = `CREATE TABLE %[1]s (%[1]sid int PRIMARY KEY, uid varchar(11) NOT NULL UNIQUE,
  code varchar(50) UNIQUE, created timestamp NOT NULL, lastupdated timestamp NOT NULL,
  lastupdatedby int REFERENCES userinfo, name varchar(230) NOT NULL UNIQUE, shortname varchar(50), description text,
  %[2]ssortorder int, style jsonb, translations jsonb DEFAULT '[]', userid int REFERENCES userinfo,
  publicaccess varchar(8));
`

const accessSQL = `
CREATE TABLE usergroupaccess (usergroupaccessid int PRIMARY KEY, access varchar(255),
  usergroupid int REFERENCES usergroup);
CREATE TABLE attributevalue (attributevalueid int PRIMARY KEY, created timestamp, lastupdated timestamp, value text,
  attributeid int NOT NULL REFERENCES attribute);
CREATE TABLE usergroupmembers (userid int NOT NULL REFERENCES users, usergroupid int NOT NULL REFERENCES usergroup,
  PRIMARY KEY (usergroupid, userid));
CREATE TABLE userrolemembers (userid int NOT NULL REFERENCES users, userroleid int NOT NULL REFERENCES userrole,
  PRIMARY KEY (userroleid, userid));
CREATE TABLE userroleauthorities (userroleid int NOT NULL REFERENCES userrole, authority varchar(255));
ALTER TABLE trackedvalue ADD FOREIGN KEY (trackedfieldid) REFERENCES trackedfield;
ALTER TABLE trackedvalueaudit ADD FOREIGN KEY (trackedfieldid) REFERENCES trackedfield;
ALTER TABLE enrolled ADD schemeid int NOT NULL REFERENCES scheme;
ALTER TABLE caretaken ADD schemestageid int NOT NULL REFERENCES schemestage;
ALTER TABLE trackedowner ADD schemeid int NOT NULL REFERENCES scheme;
ALTER TABLE datavalue ADD FOREIGN KEY (dataelementid) REFERENCES dataelement;
ALTER TABLE datavalueaudit ADD FOREIGN KEY (dataelementid) REFERENCES dataelement;
ALTER TABLE caredatavalue ADD FOREIGN KEY (dataelementid) REFERENCES dataelement;
ALTER TABLE caredatavalueaudit ADD FOREIGN KEY (dataelementid) REFERENCES dataelement;
ALTER TABLE minmax ADD FOREIGN KEY (dataelementid) REFERENCES dataelement;
`

// descriptions writes the tables of health that repeat: of each thing its own table, and tables of its translations, of
// who may see it, and of its further attributes; of each chart what it shows; and in what order things are members of
// one another.
func descriptions() string {
	var b strings.Builder
	things := append(slices.Clone(described), charted...)
	for i, x := range things {
		of := ""
		if i > 2 {
			of = fmt.Sprintf("%[1]sid int REFERENCES %[1]s, ", things[i/2])
		}
		fmt.Fprintf(&b, descriptionSQL, x, of)
	}
	b.WriteString(accessSQL)
	ordered := func(x, what, column string) {
		fmt.Fprintf(&b, "CREATE TABLE %[1]s_%[2]s (%[1]sid int NOT NULL REFERENCES %[1]s,\n"+
			"  sort_order int NOT NULL, %[3]s,\n"+
			"  PRIMARY KEY (%[1]sid, sort_order));\n", x, what, column)
	}
	members := func(x, of string) { ordered(x, of+"s", fmt.Sprintf("%[1]sid int NOT NULL REFERENCES %[1]s", of)) }
	for i, x := range described {
		for _, l := range [][2]string{{"translations", "objecttranslation"}, {"useraccesses", "useraccess"},
			{"usergroupaccesses", "usergroupaccess"}, {"attributevalues", "attributevalue"}} {
			fmt.Fprintf(&b, "CREATE TABLE %[1]s%[2]s (%[1]sid int NOT NULL REFERENCES %[1]s,\n"+
				"  %[3]sid int NOT NULL UNIQUE REFERENCES %[3]s, PRIMARY KEY (%[1]sid, %[3]sid));\n", x, l[0], l[1])
		}
		if i+1 < len(described) {
			members(x, described[i+1])
		}
	}
	for _, x := range charted {
		ordered(x, "filters", "dimension varchar(255)")
		ordered(x, "rows", "dimension varchar(255)")
		ordered(x, "columns", "dimension varchar(255)")
		ordered(x, "levels", "orgunitlevel int")
		members(x, "period")
		members(x, "orgunit")
		members(x, "indicator")
	}
	return b.String()
}
