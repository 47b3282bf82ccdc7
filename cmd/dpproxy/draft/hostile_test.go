package draft

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// read is a draft as the policy's own reader takes it, once it has a user.
func read(t *testing.T, made *Draft) (*policy.Policy, error) {
	t.Helper()
	const alice = `users: [{name: alice, password: "SCRAM-SHA-256$4096:8EWKhj2ogpvGvd7KaI/qCQ==$bAANfPPZ9drMzPBuhqgN3dO4gvAJCK6kkd6rmt3mG9A=:4q8DTu8uRc3WMOS/Xkv6HPcWmrMsDUzCViSBvTWG1eg="}]`
	if !strings.Contains(made.Text, "\nusers: []") {
		t.Fatal(made.Text)
	}
	return policy.Parse([]byte(strings.Replace(made.Text, "\nusers: []", "\n"+alice, 1)), "policy.yaml")
}

// columnsOf makes integer columns.
func columnsOf(names ...string) (list []*Column) {
	for _, n := range names {
		list = append(list, &Column{Name: n, Type: "integer"})
	}
	return list
}

// keyed makes a table whose first column is its key, with a foreign key to the first column of another by each further
// name.
func keyed(name string, columns []*Column, to map[string]*Table) *Table {
	key := []string{columns[0].Name}
	t := &Table{Schema: "public", Name: name, Primary: key, Unique: [][]string{key}, Columns: columns}
	for _, c := range columns {
		if other := to[c.Name]; other != nil {
			t.Foreign = append(t.Foreign, Foreign{Columns: []string{c.Name}, To: other, Keys: []string{other.Columns[0].Name}})
		}
	}
	return t
}

// TestHostileNames: whatever anything is called, a policy is written that loads, no name adds a table to it or makes
// one public, and nothing is expanded; of the unit's own name it may be said that no policy can write it.
func TestHostileNames(t *testing.T) {
	names := []string{"a\n      - {name: evil, source: public.evil, public: true, columns: [{name: x, type: integer}]}\n      #", "a\r      - {name: evil}", "a\u2028      - name: x", "a\u0085b", "a\u00a0b", "a # EDIT: x", `a"b`, `a'b`, "a: b",
		"${HOME}", `a\nb`, "A.B", "a = b", "-", "~", "a, b", "{a}", "ünï", "a\tb", "x\x1b[31m", "e5", "1e5", "null", "a b", " a ", "SELECT", "*", "&a", "!!int", "%x", "@", "|", "> "}
	for _, name := range names {
		for place, rename := range map[string]func(unit, orders, kinds, addresses, free *Table){
			"nothing":              func(_, _, _, _, _ *Table) {},
			"the unit":             func(unit, _, _, _, _ *Table) { unit.Name = name },
			"a private table":      func(_, orders, _, _, _ *Table) { orders.Name = name },
			"a public table":       func(_, _, kinds, _, _ *Table) { kinds.Name = name },
			"a table read by join": func(_, _, _, addresses, _ *Table) { addresses.Name = name },
			"a table left out":     func(_, _, _, _, free *Table) { free.Name = name },
			"a schema":             func(_, orders, _, _, _ *Table) { orders.Schema = name },
			"a column":             func(_, orders, _, _, _ *Table) { orders.Columns[3].Name = name },
			"an enumeration": func(_, orders, _, _, _ *Table) {
				orders.Columns[3].Type, orders.Columns[3].Labels = name, []string{name, "b"}
			},
			"a comment": func(_, orders, _, _, _ *Table) { orders.Columns[3].Comment = name },
			"a list": func(_, orders, _, _, _ *Table) {
				orders.Checks = []string{"word = " + "'" + strings.ReplaceAll(name, "'", "''") + "'"}
			},
			"a column of a join": func(_, _, _, addresses, _ *Table) { addresses.Columns[2].Name = name },
			"a public column":    func(_, _, kinds, _, _ *Table) { kinds.Columns[1].Name = name },
			"a type":             func(_, orders, _, _, _ *Table) { orders.Columns[3].Type = name },
			"a domain":           func(_, orders, _, _, _ *Table) { orders.Columns[3].Domain = name },
		} {
			kinds := keyed("kinds", append(columnsOf("id"), &Column{Name: "label", Type: "text"}), nil)
			addresses := keyed("addresses", append(columnsOf("id"), &Column{Name: "street", Type: "text"}, &Column{Name: "town", Type: "text"}, &Column{Name: "country", Type: "text"}), nil)
			unit := people("customers")
			unit.Columns = append(unit.Columns, columnsOf("home")...)
			unit.Foreign = []Foreign{{Columns: []string{"home"}, To: addresses, Keys: []string{"id"}}}
			orders := keyed("orders", append(columnsOf("id", "customer", "kind"), &Column{Name: "word", Type: "text"}), map[string]*Table{"customer": unit, "kind": kinds})
			free := &Table{Schema: "public", Name: "free", Columns: columnsOf("id")}
			rename(unit, orders, kinds, addresses, free)
			made, err := Write(&Schema{Tables: []*Table{unit, orders, kinds, addresses, free}}, Options{Dataset: "d", URL: "postgres://u@127.0.0.1/d", Unit: unit.Name + ".id"})
			if err != nil {
				if place != "the unit" || !strings.Contains(err.Error(), "a policy cannot write that name") {
					t.Errorf("%s %q: %v", place, name, err)
				}
				continue
			}
			p, err := read(t, made)
			if err != nil {
				t.Errorf("%s %q: %v\n%s", place, name, err, made.Text)
				continue
			}
			for _, table := range p.Datasets[0].Tables {
				if table.Public && table.Name != kinds.Name || !slices.Contains([]string{unit.Name, orders.Name, kinds.Name, addresses.Name}, table.Name) {
					t.Errorf("%s %q: has the table %q, public: %t", place, name, table.Name, table.Public)
				}
			}
			for line := range strings.Lines(made.Text) {
				if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unprintable) {
					t.Errorf("%s %q: %q", place, name, line)
				}
			}
		}
	}
}

// TestLookupsThatAreNone: tables that a private one leads to, or that lead to public ones, and that are about people by
// what no foreign key says. None is public.
func TestLookupsThatAreNone(t *testing.T) {
	product := keyed("product", append(columnsOf("product_id"), &Column{Name: "title", Type: "text"}), nil)
	for name, other := range map[string]*Table{
		"lines of an order that no key says":  keyed("line", columnsOf("line_id", "order_no", "product", "quantity"), map[string]*Table{"product": product}),
		"customers that no key says":          keyed("shipment", columnsOf("shipment_id", "customer_id", "weight"), nil),
		"patients by another name":            keyed("bed", columnsOf("bed_id", "PatientNo"), nil),
		"a key to a table that was not read":  {Schema: "public", Name: "place", Primary: []string{"id"}, Columns: columnsOf("id", "owner"), Unsure: []string{"owner"}},
		"addresses":                           keyed("addresses", append(columnsOf("id"), &Column{Name: "line1", Type: "text"}), nil),
		"families":                            keyed("family", columnsOf("id", "income"), nil),
		"a table whose name is not writeable": keyed("a b", columnsOf("id", "income"), nil),
	} {
		unit := people("customers")
		unit.Columns = append(unit.Columns, columnsOf("other", "bought")...)
		unit.Foreign = []Foreign{{Columns: []string{"bought"}, To: product, Keys: []string{"product_id"}}}
		if len(other.Foreign) == 0 {
			unit.Foreign = append(unit.Foreign, Foreign{Columns: []string{"other"}, To: other, Keys: []string{other.Columns[0].Name}})
		}
		made, err := Write(&Schema{Tables: []*Table{unit, other, product}}, Options{Dataset: "d", URL: "postgres://u@127.0.0.1/d", Unit: "customers.id"})
		if err != nil {
			t.Fatal(name, err)
		}
		p, err := read(t, made)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, made.Text)
			continue
		}
		for _, table := range p.Datasets[0].Tables {
			if table.Public != (table.Name == "product") {
				t.Errorf("%s: %s is public: %t\n%s", name, table.Name, table.Public, made.Text)
			}
		}
	}
}

// TestLongerWays: where rows lead to a unit by a longer way too, which may be another one, the policy says what it
// takes for granted.
func TestLongerWays(t *testing.T) {
	unit := people("users")
	thread := keyed("threads", columnsOf("id", "owner"), map[string]*Table{"owner": unit})
	message := keyed("posts", columnsOf("id", "sender", "thread"), map[string]*Table{"sender": unit, "thread": thread})
	made, err := Write(&Schema{Tables: []*Table{unit, thread, message}}, Options{Dataset: "d", URL: "postgres://u@127.0.0.1/d"})
	if err != nil || !strings.Contains(made.Text, "        # assumed: the row of threads that thread names is the same user's\n") {
		t.Errorf("%v\n%s", err, made.Text)
	}
}

// TestTablesOfOneName: of two schemas both have a table of one name, which the policy tells apart.
func TestTablesOfOneName(t *testing.T) {
	unit := people("customers")
	here, there := keyed("orders", columnsOf("id", "customer", "size"), map[string]*Table{"customer": unit}), keyed("orders", columnsOf("id", "customer", "size"), map[string]*Table{"customer": unit})
	there.Schema = "archive"
	line := keyed("lines", columnsOf("id", "of", "size"), map[string]*Table{"of": there})
	made, err := Write(&Schema{Tables: []*Table{unit, here, there, line}}, Options{Dataset: "d", URL: "postgres://u@127.0.0.1/d"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := read(t, made)
	if err != nil {
		t.Fatal(err, made.Text)
	}
	var got []string
	for _, table := range p.Datasets[0].Tables {
		got = append(got, table.Schema+"."+table.Name+" of "+table.Source.Schema+"."+table.Source.Name)
	}
	slices.Sort(got)
	if want := []string{"archive.orders of archive.orders", "public.customers of public.customers", "public.lines of public.lines", "public.orders of public.orders"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestEndsThatFitNoDomain: what constraints say of numbers becomes a domain that the policy takes, which holds all that
// they let in.
func TestEndsThatFitNoDomain(t *testing.T) {
	for _, c := range []struct{ typ, check, want string }{
		{"integer", "(x >= 0.5) AND (x < 120.5)", "min: 0, below: 121, step: 1"},
		{"bigint", "(x >= 0) AND (x <= '100000000000'::bigint)", "min: 0, max: 100000000000, step: 100"},
		{"numeric(12,2)", "(x >= (0)::numeric) AND (x <= (50000000)::numeric)", "min: 0, max: 50000000, step: 0.1"},
		{"numeric(10,2)", "(x >= 0.005) AND (x <= 9.999)", "min: 0, max: 10, step: 0.01"},
		{"numeric(4,2)", "(x >= 0) AND (x <= 1000)", "min: 0, max: 1000, step: 0.01"},
		{"smallint", "(x >= 0) AND (x < 40000)", "min: 0, max: 32767, step: 1"},
		{"integer", "(x >= 0) AND (x <= 2147483647)", "min: 0, max: 2147483640, step: 10"},
		{"double precision", "(x >= '0'::double precision) AND (x <= '1e+15'::double precision)", "min: 0, max: 1000000000000000, step: 1000000"},
		{"double precision", "(x >= (0.25)::double precision) AND (x <= (0.75)::double precision)", "min: 0, max: 1, step: 1"},
		{"date", "(x)::text >= '0000-{{-##'::text", "2000-01-01"},
		{"date", "(x <= '2026-12-31'::date)", "min: 2000-01-01, max: 2026-12-31"},
		{"timestamp with time zone", "(x IS NOT NULL)", "min: 2000-01-01, below: 2040-01-01, step: 1 hour"},
		{"timestamp without time zone", "(x >= '2020-01-01'::date) AND (x <= '2026-12-31'::date)", "min: 2020-01-01, below: 2027-01-01, step: 1 hour"},
		{"timestamp without time zone", "(x <= '9999-12-31'::date)", "below: 9999-12-31, step: 1 hour"},
	} {
		unit := people("customers")
		table := keyed("things", append(columnsOf("id", "customer"), &Column{Name: "x", Type: c.typ}), map[string]*Table{"customer": unit})
		table.Checks = []string{c.check}
		made, err := Write(&Schema{Tables: []*Table{unit, table}}, Options{Dataset: "d", URL: "postgres://u@127.0.0.1/d"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := read(t, made); err != nil || !strings.Contains(made.Text, c.want) {
			t.Errorf("%s %s: %v\n%s", c.typ, c.check, err, made.Text)
		}
	}
}

// TestManyTables: of two thousand tables, each of which leads to two others, a policy is written, with circles and
// without.
func TestManyTables(t *testing.T) {
	for _, circle := range []bool{false, true} {
		s := &Schema{Tables: []*Table{people("customers")}}
		for i := 1; i < 2000; i++ {
			s.Tables = append(s.Tables, keyed(fmt.Sprintf("t%d", i), columnsOf("id", "p", "q"), map[string]*Table{"p": s.Tables[i-1], "q": s.Tables[i/2]}))
		}
		if circle {
			last := s.Tables[len(s.Tables)-1]
			s.Tables[1].Foreign = append(s.Tables[1].Foreign, Foreign{Columns: []string{"p"}, To: last, Keys: []string{"id"}}, Foreign{Columns: []string{"p"}, To: s.Tables[1], Keys: []string{"id"}})
		}
		made, err := Write(s, Options{Dataset: "d", URL: "postgres://u@127.0.0.1/d"})
		if err != nil || made.Private != 2000 {
			t.Fatalf("%+v %v", made, err)
		}
		if _, err := read(t, made); err != nil {
			t.Errorf("%.2000s", err.Error())
		}
	}
}
