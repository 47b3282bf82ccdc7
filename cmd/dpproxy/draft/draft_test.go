package draft

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for name, want := range map[string][]string{
		"customer_id": {"customer", "id"}, "CustomerId": {"customer", "id"}, "customers": {"customer"}, "ADDRESSES": {"address"},
		"categories": {"category"}, "status": {"status"}, "Student2Course": {"student", "course"}, "": nil, "press": {"press"}, "gas": {"gas"},
	} {
		if got := words(name); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestBounds: conditions as PostgreSQL prints them, and as people write comments. What is not understood bounds
// nothing.
func TestBounds(t *testing.T) {
	for condition, want := range map[string]bounds{
		"((x >= 0) AND (x <= 119))":               {low: "0", high: "119"},
		"(x BETWEEN 1 AND 7)":                     {low: "1", high: "7"},
		"(x >= (-20)::numeric)":                   {low: "-20"},
		"((x > 0) AND (x < 10))":                  {low: "0", below: "10"},
		"(x = ANY (ARRAY['a'::text, 'b'::text]))": {values: []string{"a", "b"}},
		"((x)::text = ANY ((ARRAY['a'::character varying, 'it''s'::character varying])::text[]))": {values: []string{"a", "it's"}},
		"(x IN (0, 1))":             {values: []string{"0", "1"}},
		"((x >= 0) OR (y <= 119))":  {},
		"(NOT (x >= 0))":            {},
		"(x >= y)":                  {},
		"(y >= 3)":                  {},
		"(abs(x) <= 3)":             {},
		"(x >= '2020-01-01'::date)": {low: "2020-01-01"},
		"not SQL at (":              {},
		"(x >= 0)" + strings.Repeat(" AND (x >= 0)", 3000): {},
	} {
		var b bounds
		if b.read(condition, "x"); !reflect.DeepEqual(b, want) {
			t.Errorf("%.60s: %+v, want %+v", condition, b, want)
		}
	}
	for comment, want := range map[string]bounds{
		"from -5 to 10, in degrees": {low: "-5", high: "10"}, "1..5": {low: "1", high: "5"}, "between 0 and 100.": {low: "0", high: "100"},
		"see ticket 17": {}, "since 2020-01-01": {}, "v1.2..v3": {},
	} {
		var b bounds
		if b.hint(&Column{Type: "integer", Comment: comment}); !reflect.DeepEqual(b, want) {
			t.Errorf("%q: %+v, want %+v", comment, b, want)
		}
	}
	var b bounds
	if b.hint(&Column{Type: "text", Comment: "One of: new, 'paid', sent or lost"}); !reflect.DeepEqual(b.values, []string{"new", "paid", "sent", "lost"}) {
		t.Errorf("a list in a comment: %q", b.values)
	}
}

// people makes a table of people with a key and an e-mail address.
func people(name string) *Table {
	return &Table{Schema: "public", Name: name, Primary: []string{"id"}, Unique: [][]string{{"id"}},
		Columns: []*Column{{Name: "id", Type: "integer"}, {Name: "email", Type: "text"}, {Name: "active", Type: "boolean"}}}
}

// TestDoubt: of two tables that look alike as people none is taken; the owner's word decides, and a name that is none
// is reported.
func TestDoubt(t *testing.T) {
	s := &Schema{Tables: []*Table{people("customers"), people("patients")}}
	_, err := Write(s, Options{Dataset: "d"})
	doubt, ok := err.(Doubt)
	if !ok || len(doubt.Candidates) != 2 || !strings.Contains(err.Error(), "--unit customers.id") || !strings.Contains(err.Error(), "--unit patients.id") {
		t.Fatalf("no doubt: %v", err)
	}
	made, err := Write(s, Options{Dataset: "d", Unit: "patients.id"})
	if err != nil || !strings.Contains(made.Text, "key: patients.id") {
		t.Errorf("%v: %s", err, made.Text)
	}
	for _, wrong := range []string{"patients", "nobody.id", "patients.nothing"} {
		if _, err := Write(s, Options{Unit: wrong}); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("--unit %s: %v", wrong, err)
		}
	}
	if _, err := Write(&Schema{Tables: []*Table{{Name: "log"}}}, Options{}); err == nil {
		t.Error("a unit in a schema without a key")
	}
}

// TestNeverPublic: what looks like it is about people, however it is led to, is not shown as it is.
func TestNeverPublic(t *testing.T) {
	unit := people("customers")
	id := func(name, typ string) *Column { return &Column{Name: name, Type: typ} }
	for name, other := range map[string]*Table{
		"other people":           {Columns: []*Column{id("id", "integer"), id("first_name", "text")}},
		"a moment":               {Columns: []*Column{id("id", "integer"), id("began", "timestamp without time zone")}},
		"no key":                 {Columns: []*Column{id("id", "integer")}},
		"one row for each":       {Columns: []*Column{id("id", "integer"), id("colour", "text")}},
		"an address":             {Columns: []*Column{id("id", "integer"), id("street", "text")}},
		"what happens to people": {Name: "claims", Columns: []*Column{id("id", "integer"), id("kind", "text")}},
	} {
		other.Schema = "public"
		if other.Name == "" {
			other.Name = "things"
		}
		if name != "no key" {
			other.Primary, other.Unique = []string{"id"}, [][]string{{"id"}}
		}
		from := *unit
		from.Columns = append(from.Columns[:3:3], id("thing", "integer"))
		from.Foreign = []Foreign{{Columns: []string{"thing"}, To: other, Keys: []string{"id"}}}
		if name == "one row for each" {
			from.Unique = append(from.Unique[:1:1], []string{"thing"})
		}
		made, err := Write(&Schema{Tables: []*Table{&from, other}}, Options{Dataset: "d", Unit: "customers.id"})
		if err != nil || made.Public > 0 || strings.Contains(made.Text, "public: true\n") {
			t.Errorf("%s: %v\n%s", name, err, made.Text)
		}
	}
}

// TestConditions: a column's name picks rows of a list of codes by what classifies them, and never by what a row is
// called, by a text that no other row has, by one of several texts of a column that say the same, or by what its last
// word is not.
func TestConditions(t *testing.T) {
	for values, want := range map[string]string{
		"kind: Colour, Size":                           `where: "\"kind\" = 'Colour' OR \"id\" = 0"`,
		"kind: Colour, Thing, Size":                    `where: "\"kind\" = 'Colour' OR \"id\" = 0"`,
		"kind: Colour, Colour Thing":                   `where: "\"kind\" = 'Colour Thing' OR \"id\" = 0"`,
		"kind: Colour, Size; category: Colours, Sizes": `where: "\"kind\" = 'Colour' OR \"category\" = 'Colours' OR \"id\" = 0"`,
		"name: Colour, Size":                           "",
		"kind: Colour, colours, COLOUR":                "",
		"kind: Size, Weight":                           "",
		"kind: Eye, Thing":                             "",
	} {
		read := map[string]map[string]int64{}
		for _, v := range strings.Split(values, "; ") {
			column, list, _ := strings.Cut(v, ": ")
			read[column] = map[string]int64{}
			for text := range strings.SplitSeq(list, ", ") {
				read[column][text] = 1
			}
		}
		codes := &Table{Schema: "public", Name: "things", Primary: []string{"id"}, Unique: [][]string{{"id"}},
			Columns: []*Column{{Name: "id", Type: "integer"}, {Name: "name", Type: "text"}, {Name: "kind", Type: "text"},
				{Name: "category", Type: "text"}}}
		from := people("customers")
		from.Columns = append(from.Columns, &Column{Name: "eye_colour_thing_id", Type: "integer"})
		from.Foreign = []Foreign{{Columns: []string{"eye_colour_thing_id"}, To: codes, Keys: []string{"id"}}}
		for rows, drafted := range map[int64]string{20: want, 2: ""} {
			made, err := Write(&Schema{Tables: []*Table{from, codes}}, Options{Dataset: "d", Unit: "customers.id",
				Read: func(*Table, []*Column) (Public, error) { return Public{Rows: rows, Values: read}, nil }})
			_, rule, found := strings.Cut(made.Text, "keys_of: things.id")
			rule, _, _ = strings.Cut(strings.TrimPrefix(rule, ", "), "}")
			if err != nil || !found || rule != drafted {
				t.Errorf("%s of %d rows: %v: %q, want %q\n%s", values, rows, err, rule, drafted, made.Text)
			}
		}
	}
}

// TestKeysThatAreTooMany: keys of which a policy lists no more are found instead, and the line says why.
func TestKeysThatAreTooMany(t *testing.T) {
	for _, c := range []struct {
		typ        string
		rows, said int64
		found      bool
	}{
		{"integer", 131_071, 1, false}, {"integer", 131_072, 131_072, true}, {"integer", 2_000_000, 100_000, false},
		{"text", 50_000, 1, false}, {"text", 2_000_000, 50_001, true}, {"uuid", 50_000, 1, false},
	} {
		things := &Table{Schema: "public", Name: "things", Primary: []string{"id"}, Unique: [][]string{{"id"}},
			Columns: typed("id " + c.typ + ", name text, kind text")}
		from := people("customers")
		from.Columns = append(from.Columns, typed("colour_thing_id "+c.typ)...)
		from.Foreign = []Foreign{{Columns: []string{"colour_thing_id"}, To: things, Keys: []string{"id"}}}
		read := map[string]map[string]int64{"kind": {"Colour": c.said, "Size": 1}}
		made, err := Write(&Schema{Tables: []*Table{from, things}}, Options{Dataset: "d", Unit: "customers.id",
			Read: func(*Table, []*Column) (Public, error) { return Public{Rows: c.rows, Values: read}, nil }})
		line := regexp.MustCompile(`.*name: colour_thing_id.*`).FindString(made.Text)
		if err != nil || strings.Contains(line, "keys: discover}   # things has") != c.found ||
			strings.Contains(line, "keys_of: things.id, where:") == c.found {
			t.Errorf("%+v: %v: %s", c, err, line)
		}
	}
}
