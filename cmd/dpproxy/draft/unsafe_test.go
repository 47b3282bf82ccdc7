package draft

import (
	"cmp"
	"slices"
	"strings"
	"testing"
)

// typed makes columns of names and types: "id integer, remarks text".
func typed(text string) (list []*Column) {
	for column := range strings.SplitSeq(text, ", ") {
		name, typ, _ := strings.Cut(column, " ")
		list = append(list, &Column{Name: name, Type: typ})
	}
	return list
}

// TestWhatNoDraftShows: rows of which each belongs to one of a unit, totals over rows of others, and secrets are in
// no draft as they are, whatever the owner has not read yet.
func TestWhatNoDraftShows(t *testing.T) {
	unit := people("customers")
	asked := keyed("questionnaires", typed("id integer, depression_score integer, remarks text"), nil)
	genotypes := keyed("genotypes", typed("id integer, brca1 boolean"), nil)
	products := keyed("products", typed("id integer, name character varying(80), units_sold integer, avg_rating numeric(3,2), "+
		"balance numeric(10,2), last_sold_at timestamp without time zone, updated_at timestamp without time zone"), nil)
	reps := keyed("salesterritories", typed("id integer, name text, sales_so_far numeric(12,2), salesytd real"), nil)
	cards := keyed("methods", typed("id integer, name text, cardnumber text"), nil)
	addresses := keyed("addresses", typed("id integer, street text, city text"), nil)
	for name, to := range map[string]*Table{
		"asked_id": asked, "gene_id": genotypes, "card_id": cards, "address_id": addresses, "rep_id": reps,
	} {
		unit.Columns = append(unit.Columns, columnsOf(name)...)
		unit.Foreign = append(unit.Foreign, Foreign{Columns: []string{name}, To: to, Keys: []string{"id"}})
	}
	leads := map[string]*Table{"customer_id": unit, "product_id": products}
	orders := keyed("orders", columnsOf("id", "customer_id", "product_id"), leads)
	s := &Schema{Tables: []*Table{unit, asked, genotypes, products, reps, cards, addresses, orders}}
	made, err := Write(s, Options{Dataset: "d", URL: "postgres://u@127.0.0.1/d", Unit: "customers.id"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := read(t, made)
	if err != nil {
		t.Fatal(err, made.Text)
	}
	for _, table := range p.Datasets[0].Tables {
		listed := slices.Contains([]string{"customers", "orders", "products", "salesterritories"}, table.Name)
		if !listed || table.View.Text != "" {
			t.Errorf("%s is listed:\n%s", table.Name, made.Text)
		}
		for _, c := range table.Columns {
			if table.Public && !slices.Contains([]string{"id", "name"}, c.Name) {
				t.Errorf("%s.%s is public", table.Name, c.Name)
			}
		}
	}
	for _, marked := range []string{"salesterritories", "products"} {
		if !slices.ContainsFunc(strings.Split(made.Text, "\n"), func(l string) bool {
			return strings.Contains(l, "# EDIT: every analyst sees") && strings.Contains(l, marked)
		}) {
			t.Errorf("no mark says that %s is public:\n%s", marked, made.Text)
		}
	}
	for _, reason := range []string{
		"units_sold: not listed: it may add up private rows", "last_sold_at: not listed:",
		"addresses is left out: it has street, and no constraint says that one row of customers alone",
	} {
		if !strings.Contains(made.Text, reason) {
			t.Errorf("it does not say %q:\n%s", reason, made.Text)
		}
	}
}

// TestWhatPeopleMakeIsNoList: rows that private ones name, and that have a name or a code, are no list where people are
// their members or write them, where a code lets its owner in, where the name is a person's or a state is a row's, and
// where an index says that no two rows name the same.
func TestWhatPeopleMakeIsNoList(t *testing.T) {
	for name, c := range map[string]struct {
		columns string // of the table that rows of orders name
		member  string // what such rows are called, where it is not orders
		shown   string
		alone   bool
	}{
		"kinds":         {columns: "id integer, name text, state text", shown: "id name"},
		"lists":         {columns: "id integer, name text", alone: true},
		"circles":       {columns: "id integer, name text", member: "circle_members"},
		"conversations": {columns: "id integer, title character varying(80)"},
		"notes":         {columns: "id integer, note character varying(200)"},
		"files":         {columns: "id integer, filename text"},
		"coupons":       {columns: "id integer, code text, title text"},
		"promo_codes":   {columns: "id integer, code text"},
		"surgeons":      {columns: "id integer, name text"},
		"patient_kinds": {columns: "id integer, name text", shown: "id name"},
		"reasons":       {columns: "id integer, reason character varying(40)", shown: "id reason"},
		"stop_reasons":  {columns: "id integer, reason text"},
	} {
		unit, to := people("customers"), keyed(name, typed(c.columns), nil)
		leads := map[string]*Table{"customer": unit, "of": to}
		from := keyed(cmp.Or(c.member, "orders"), columnsOf("id", "customer", "of"), leads)
		from.column("of").Unshared = c.alone
		made, err := Write(&Schema{Tables: []*Table{unit, to, from}},
			Options{Dataset: "d", URL: "postgres://u@127.0.0.1/d", Unit: "customers.id"})
		if err != nil {
			t.Fatal(err)
		}
		p, err := read(t, made)
		if err != nil {
			t.Fatal(err, made.Text)
		}
		var shown []string
		for _, table := range p.Datasets[0].Tables {
			for _, c := range table.Columns {
				if table.Public {
					shown = append(shown, c.Name)
				}
			}
		}
		if got := strings.Join(shown, " "); got != c.shown {
			t.Errorf("%s shows %q, want %q\n%s", name, got, c.shown, made.Text)
		}
	}
}

// TestBareNamesAreTheirTables: of a column called code, value or name the table's name says what it is.
func TestBareNamesAreTheirTables(t *testing.T) {
	for at, hidden := range map[string]bool{
		"verification_codes.code integer": true, "tokens.value text": true, "phones.number bigint": true,
		"passwords.value text": true, "emails.value text": true, "ratings.value integer": false,
		"temperatures.value numeric": false,
	} {
		name, column, _ := strings.Cut(at, ".")
		unit := people("customers")
		columns := append(columnsOf("id", "customer"), typed(column+", shown boolean")...)
		kept := keyed(name, columns, map[string]*Table{"customer": unit})
		lines := lined(t, "customers.id", unit, kept)
		column, _, _ = strings.Cut(column, " ")
		has(t, lines, "- {name: shown")
		if hidden {
			has(t, lines, "# "+column+": not listed")
		} else {
			has(t, lines, "- {name: "+column)
		}
	}
}

// TestColumnsThatMayNotBeRead: constraints on columns that are not there say nothing, and their rows are not public.
func TestColumnsThatMayNotBeRead(t *testing.T) {
	unit := people("customers")
	kinds := keyed("kinds", typed("id integer, name text"), nil)
	leads := map[string]*Table{"customer": unit, "kind": kinds}
	orders := keyed("orders", columnsOf("id", "customer", "kind", "code"), leads)
	orders.Primary, orders.Unique = []string{"nr"}, [][]string{{"nr"}, {"code", "nr"}}
	kinds.Columns = kinds.Columns[1:]
	lines := lined(t, "customers.id", unit, kinds, orders)
	has(t, lines, "# public.kinds is left out", "# kind: not listed: its foreign key is not valid, or leads")
}

// TestTrustedHasAConstraint: a table is read with the rows that name it where each of its rows is named by one alone.
func TestTrustedHasAConstraint(t *testing.T) {
	for _, unique := range []bool{false, true} {
		unit := people("customers")
		unit.Columns = append(unit.Columns, columnsOf("address_id")...)
		addresses := keyed("addresses", typed("id integer, street text, city text"), nil)
		unit.Foreign = []Foreign{{Columns: []string{"address_id"}, To: addresses, Keys: []string{"id"}}}
		if unique {
			unit.Unique = append(unit.Unique, []string{"address_id"})
		}
		made, err := Write(&Schema{Tables: []*Table{unit, addresses}}, Options{Dataset: "d", URL: "postgres://u@127.0.0.1/d"})
		if err != nil || strings.Contains(made.Text, "trusted: true") != unique {
			t.Errorf("unique %t: %v\n%s", unique, err, made.Text)
		}
	}
}

// TestUniqueNamesWhatAPolicyTakes: a key of which a part is found, or any text, or not listed, is not drafted as one.
func TestUniqueNamesWhatAPolicyTakes(t *testing.T) {
	for _, typ := range []string{
		"text", "character varying(20)", "jsonb", "timestamp(6) without time zone", "character(3)", "boolean", "integer",
		"numeric(5,2)", "numeric(5,-2)", "numeric(3,5)",
	} {
		for _, name := range []string{"status", "note", "token", "customer_ref", "x", "amount", "started"} {
			unit := people("customers")
			orders := keyed("orders", append(columnsOf("id", "customer"), &Column{Name: name, Type: typ}), map[string]*Table{"customer": unit})
			orders.Unique = append(orders.Unique, []string{"id", name}, []string{"customer", name}, []string{name})
			made, err := Write(&Schema{Tables: []*Table{unit, orders}}, Options{Dataset: "d", URL: "postgres://u@127.0.0.1/d"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := read(t, made); err != nil {
				t.Errorf("%s %s: %v\n%s", name, typ, err, made.Text)
			}
		}
	}
}

// TestKeysOfEnumeratedTypes: a part of a key that is of an enumerated type is listed, and no key: PostgreSQL compares it
// with no text, which a key elsewhere may be.
func TestKeysOfEnumeratedTypes(t *testing.T) {
	unit := people("customers")
	orders := keyed("orders", append(columnsOf("id", "customer"), &Column{Name: "kind", Type: "e", Labels: []string{"a", "b"}}),
		map[string]*Table{"customer": unit})
	orders.Primary = []string{"id", "kind"}
	orders.Unique = [][]string{{"id", "kind"}, {"customer", "kind"}, {"kind"}, {"id"}}
	lines := lined(t, "customers.id", unit, orders)
	has(t, lines, `- {name: kind, type: "enum", domain: {values: [a, b]}}`, "unique: [[id]]")
}

// TestNothingElseToList: a table of which nothing can be listed, and through which another one finds the unit, has the
// column that names the unit, since a policy takes none without a column.
func TestNothingElseToList(t *testing.T) {
	unit := &Table{Schema: "public", Name: "customers", Primary: []string{"id"}, Unique: [][]string{{"id"}},
		Columns: typed("id bigint, email text, first_name text")}
	keys := keyed("keys", typed("id character(5), customer bigint, token text"), map[string]*Table{"customer": unit})
	uses := keyed("uses", columnsOf("id", "key"), map[string]*Table{"key": keys})
	lines := lined(t, "customers.id", unit, keys, uses)
	has(t, lines, `- {name: id, type: "bigint", keys: join}`, `- {name: customer, type: "bigint", keys: join}`)
}

// TestSchemasAndKeysThatNobodyDeclared: tables of another schema than public are called by it, and a column that names
// another table's rows leads there, marked; moments of any precision are moments.
func TestSchemasAndKeysThatNobodyDeclared(t *testing.T) {
	users := people("users")
	posts := keyed("posts", typed("id bigint, user_id bigint, last_user_id integer, "+
		"created_at timestamp(6) without time zone, kept timestamp(3) with time zone"), nil)
	users.Schema, posts.Schema = "app", "app"
	made, err := Write(&Schema{Tables: []*Table{users, posts}}, Options{Dataset: "d", URL: "postgres://u@127.0.0.1/d"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, made); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"- name: app.posts\n", `unit: "app.posts.user_id = app.users.id"`, "# EDIT: no foreign key says so",
		"#   app.posts.user_id = app.users.id\n", `name: created_at, type: "timestamp",`, `name: kept, type: "timestamptz",`,
		"# EDIT: columns of dates and times have",
	} {
		if !strings.Contains(made.Text, want) {
			t.Errorf("no %q:\n%s", want, made.Text)
		}
	}
}
