package draft

import (
	"strings"
	"testing"
)

// lined are the lines of a draft over some tables.
func lined(t *testing.T, unit string, tables ...*Table) (lines []string) {
	t.Helper()
	made, err := Write(&Schema{Tables: tables}, Options{Dataset: "d", URL: "postgres://u@127.0.0.1/d", Unit: unit})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, made); err != nil {
		t.Fatalf("%v\n%s", err, made.Text)
	}
	for line := range strings.Lines(made.Text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// has checks that a line of a draft begins so.
func has(t *testing.T, lines []string, want ...string) {
	t.Helper()
	for _, w := range want {
		found := false
		for _, line := range lines {
			found = found || strings.HasPrefix(line, w)
		}
		if !found {
			t.Errorf("no line begins %q:\n%s", w, strings.Join(lines, "\n"))
		}
	}
}

// TestKeysOfOneName: user_id names users, though user_profiles' own key is called so; last_post_id names no row that
// boards belong to; and a table's own key that has its name names no other table.
func TestKeysOfOneName(t *testing.T) {
	users := people("users")
	profiles := keyed("user_profiles", typed("user_id integer, views integer"), nil)
	boards := keyed("boards", typed("id integer, name text, last_post_id integer"), nil)
	posts := keyed("posts", typed("id integer, user_id integer, board_id integer, shown boolean"), nil)
	reported := keyed("datavalueaudit", typed("datavalueauditid integer, audittype text"), nil)
	cared := keyed("caredatavalueaudit", typed("caredatavalueauditid integer, user_id integer, kept boolean"), nil)
	lines := lined(t, "users.id", users, profiles, boards, posts, reported, cared)
	has(t, lines, `unit: "user_profiles.user_id = users.id"`, `unit: "posts.user_id = users.id"`,
		"# public.datavalueaudit is left out: its name", `- {name: board_id, type: "integer", domain: {keys_of: boards.id}}`)
	for _, line := range lines {
		if strings.Contains(line, "trusted: true") || strings.Contains(line, "boards.last_post_id") {
			t.Error(line)
		}
	}
}

// TestClientsThatAreNone: a client of OAuth is nobody, and where many more tables lead to other people it is asked.
func TestClientsThatAreNone(t *testing.T) {
	client := keyed("oauthclient", typed("oauthclientid integer, secret text"), nil)
	info := keyed("userinfo", typed("userinfoid integer, surname text"), nil)
	token := keyed("token", typed("id integer, oauthclientid integer, day date"),
		map[string]*Table{"oauthclientid": client})
	made, err := Write(&Schema{Tables: []*Table{client, info, token}}, Options{Dataset: "d"})
	if err != nil || made.Unit.Name() != "userinfo.userinfoid" {
		t.Errorf("%v: %v", made, err)
	}
	s := &Schema{Tables: []*Table{people("customers"), info}}
	for range 11 {
		more := keyed("t", typed("id integer, made_for integer"), map[string]*Table{"made_for": info})
		more.Name += strings.Repeat("x", len(s.Tables))
		s.Tables = append(s.Tables, more)
	}
	doubt, ok := func() (Doubt, bool) {
		_, err := Write(s, Options{Dataset: "d"})
		d, ok := err.(Doubt)
		return d, ok
	}()
	if !ok || len(doubt.Candidates) < 2 || doubt.Candidates[1].Name() != "userinfo.userinfoid" {
		t.Errorf("%t %v", ok, doubt)
	}
}

// TestWorkersAndThoseTheyWorkFor: where as many tables lead to people at work as to others of whom as much is known, it
// is asked; what the workers' own rows name, such as their addresses, is no such table.
func TestWorkersAndThoseTheyWorkFor(t *testing.T) {
	workers := keyed("drivers", typed("id integer, first_name text, email text, phone text, hired date"), nil)
	hailed := keyed("hailers", typed("id integer, first_name text, email text, phone text"), nil)
	rides := keyed("rides", columnsOf("id", "driver", "hailer"), map[string]*Table{"driver": workers, "hailer": hailed})
	for _, own := range []bool{false, true} {
		if own {
			workers.Columns = append(workers.Columns, typed("home integer")...)
			workers.Foreign = []Foreign{{Columns: []string{"home"}, To: hailed, Keys: []string{"id"}}}
		}
		_, err := Write(&Schema{Tables: []*Table{workers, hailed, rides}}, Options{Dataset: "d"})
		if _, asked := err.(Doubt); asked == own {
			t.Errorf("own %t: %v", own, err)
		}
	}
}

// TestNumbersOfMonthsAreNoMonths: how long something lasts has not the ends of a calendar's.
func TestNumbersOfMonthsAreNoMonths(t *testing.T) {
	users := people("users")
	users.Columns = append(users.Columns, typed("term_months smallint, YearsEmployed integer, start_month smallint")...)
	has(t, lined(t, "users.id", users),
		`- {name: term_months, type: "smallint", domain: {min: 0, max: 1000, step: 1}, outside: clamp}   # a guess`,
		`- {name: start_month, type: "smallint", domain: {min: 1, max: 12, step: 1}`)
}

// TestWhatStandsBesideAPlaceOrASecret: what has the same first words is not listed, but for names that all begin as the
// table's does.
func TestWhatStandsBesideAPlaceOrASecret(t *testing.T) {
	users := people("users")
	users.Columns = append(users.Columns, typed("home_lat real, home_tile bigint, restoretoken text, "+
		"restoreexpiry timestamp without time zone")...)
	stops := keyed("stops", typed("id integer, user_id integer, stop_lat real, stop_seconds integer"),
		map[string]*Table{"user_id": users})
	has(t, lined(t, "users.id", users, stops), "# home_tile: not listed: it tells of home_lat",
		"# restoreexpiry: not listed: it tells of restoretoken", `- {name: stop_seconds, type: "integer", domain`)
}

// TestListsOfCodesByTheirKeys: how a public table's rows are related, without a key; what has a code of two columns as
// its key, which private rows have too; and what public rows alone name. Movements of people are none of these.
func TestListsOfCodesByTheirKeys(t *testing.T) {
	patients := people("patients")
	concept := keyed("concept", typed("concept_id integer, concept_name text"), nil)
	grade := keyed("record", typed("id integer, title text"), nil)
	concept.Columns = append(concept.Columns, typed("record_id integer")...)
	concept.Foreign = []Foreign{{Columns: []string{"record_id"}, To: grade, Keys: []string{"id"}}}
	codes := &Table{Schema: "public", Name: "d_diagnoses", Primary: []string{"icd_code", "icd_version"},
		Columns: typed("icd_code character varying(7), icd_version smallint, long_title text")}
	found := keyed("diagnoses", append(typed("id integer, patient integer, concept integer"), codes.Columns[:2]...),
		map[string]*Table{"patient": patients, "concept": concept})
	ends := typed("ancestor_concept_id integer, descendant_concept_id integer, min_levels integer")
	tables := []*Table{patients, concept, grade, codes, found}
	for name, more := range map[string]string{
		"concept_ancestor": "valid_start_date date", "moves": "moved date", "facts": "fact_id_1 integer",
		"cases": "x text",
	} {
		columns := append(ends[:3:3], typed(more)...)
		tables = append(tables, &Table{Schema: "public", Name: name, Columns: columns})
	}
	tables = append(tables, &Table{Schema: "public", Name: "closure", Columns: ends[:3:3],
		Primary: []string{"ancestor_concept_id", "descendant_concept_id"}})
	lines := lined(t, "patients.id", tables...)
	has(t, lines, "- name: concept_ancestor", "- name: d_diagnoses", "- name: record", "# public.moves is left out",
		"# public.facts is left out", "# public.cases is left out", "# EDIT: every analyst sees ancestor_concept_id",
		"# min_levels: not listed")
	joined := strings.Join(lines, "\n")
	for _, name := range []string{"concept_ancestor", "closure", "d_diagnoses", "record"} {
		if !strings.Contains(joined, "- name: "+name+"\nsource: public."+name+"\npublic: true") {
			t.Errorf("%s is not public:\n%s", name, joined)
		}
	}
}
