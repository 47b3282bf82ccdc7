// Package draft writes a first policy from a database's schema, as its owner would who knows what a policy is: whom the
// budget protects, how each table's rows lead to them, what is a public lookup table, what no analyst should see, and
// what values a column may have. It reads names, types, constraints and comments, never a row.
//
//	customer(customer_id, email, city)          the unit; email is left out
//	orders(order_id, customer_id → customer)    private, its rows name their unit
//	lines(order_id → orders, product_id → product, quantity CHECK (quantity BETWEEN 1 AND 99))   private, through orders
//	product(product_id, title)                  public
//
// Whatever only the owner can know is marked EDIT in the text, with what to decide.
package draft

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Schema is what a database's catalog says of its tables.
type Schema struct {
	Tables []*Table
}

// settle notes what is found of all tables together, before any is looked at. Foreign keys of which a policy cannot
// write a name are unsure. Tables of any other schema than the usual one are called by theirs too, as in FROM
// cdm.person.
func (s *Schema) settle(usual string) {
	names := map[string]int{}
	for i, t := range s.Tables {
		t.at, t.refs, t.from, t.called = i, nil, nil, t.Name
		names[t.Name]++
		for _, c := range t.Columns {
			c.Type, c.of = withoutPrecision(c.Type), words(t.Name)
		}
	}
	for _, t := range s.Tables {
		t.without()
		if names[t.Name] > 1 || usual != "" && t.Schema != usual && callable(t.Schema) {
			t.called = t.Schema + "." + t.Name
		}
	}
	s.guess()
	for _, t := range s.Tables {
		t.Foreign = slices.DeleteFunc(slices.Clone(t.Foreign), func(f Foreign) bool {
			unsure := !t.nameable() || !f.To.nameable() || slices.ContainsFunc(slices.Concat(f.Columns, f.Keys), func(c string) bool { return !nameable(c) })
			if unsure {
				t.Unsure = append(t.Unsure, f.Columns...)
			}
			return unsure
		})
	}
	for _, t := range s.Tables {
		for _, r := range t.references() {
			r.to.from = append(r.to.from, t)
		}
	}
}

// without takes away the constraints on columns that are not there: such as may not be read.
func (t *Table) without() {
	gone := func(of *Table) func(string) bool { return func(c string) bool { return of.column(c) == nil } }
	if slices.ContainsFunc(t.Primary, gone(t)) {
		t.Primary = nil
	}
	t.Unique = slices.DeleteFunc(slices.Clone(t.Unique), func(u []string) bool {
		return slices.ContainsFunc(u, gone(t))
	})
	t.Foreign = slices.DeleteFunc(slices.Clone(t.Foreign), func(f Foreign) bool {
		lost := slices.ContainsFunc(f.Columns, gone(t)) || slices.ContainsFunc(f.Keys, gone(f.To))
		if lost {
			t.Unsure = append(t.Unsure, f.Columns...)
		}
		return lost
	})
}

// callable reports whether tables may be called by a schema: not by the proxy's own, nor by one that no path can name.
func callable(schema string) bool {
	low := strings.ToLower(schema)
	return nameable(schema) && low != "dp" && !strings.HasPrefix(low, "pg_")
}

// withoutPrecision is a type as a policy has it, which knows moments of one precision: of timestamp(6) with time zone
// it is timestamp with time zone.
func withoutPrecision(typ string) string {
	before, rest, found := strings.Cut(typ, "(")
	if _, after, _ := strings.Cut(rest, ")"); found && before == "timestamp" {
		return before + after
	}
	return typ
}

// guess adds the foreign keys that names speak of and nobody declared: posts.user_id beside users.id.
func (s *Schema) guess() {
	tables := s.byRowName()
	for _, t := range s.Tables {
		if !t.nameable() {
			continue
		}
		plain := map[*Table]bool{} // whose rows a column names by nothing else: user_id, beside editing_user_id
		var list []Foreign
		for _, c := range t.Columns {
			to, bare := t.guessed(c, tables)
			if to == nil || !nameable(c.Name) {
				continue
			}
			plain[to] = plain[to] || bare
			if f := (Foreign{Columns: []string{c.Name}, To: to, Keys: []string{to.key()}, Guessed: true}); bare {
				t.Foreign = append(slices.Clip(t.Foreign), f)
			} else {
				list = append(list, f)
			}
		}
		for _, f := range list {
			if !plain[f.To] {
				t.Foreign = append(slices.Clip(t.Foreign), f)
			}
		}
	}
}

// byRowName are tables by the name of columns that name their rows, "user id": their own name and id, or their key's
// name where that is not another table's own: user_profiles.user_id names users.
func (s *Schema) byRowName() map[string][]*Table {
	tables := map[string][]*Table{}
	add := func(name func(*Table) string, taken map[string][]*Table) map[string][]*Table {
		more := map[string][]*Table{}
		for _, t := range s.Tables {
			if n := name(t); t.nameable() && nameable(t.key()) && len(taken[n]) == 0 && strings.Contains(n, " ") {
				more[n] = append(more[n], t)
			}
		}
		return more
	}
	maps.Copy(tables, add((*Table).rowName, nil))
	maps.Copy(tables, add(func(t *Table) string { return strings.Join(words(t.key()), " ") }, tables))
	return tables
}

// rowName is a table's name and id; "" means it has no key of one column.
func (t *Table) rowName() string {
	if t.key() == "" {
		return ""
	}
	return strings.Join(append(words(t.Name), "id"), " ")
}

// mayName reports whether a column has the type of another table's key, and is not this one's of the same name.
func (t *Table) mayName(c *Column, to *Table) bool {
	k := to.column(to.key())
	same := (k.Type == c.Type || whole(k) && whole(c)) && k.Domain == c.Domain
	return same && !(c.Name == t.key() && c.Name == k.Name)
}

// guessed is the one table whose rows a column names by its name: user_id, editing_user_id, user_id_2; bare is true
// where it says no more. A table's own key that has its name names no other row, and a last one (last_post_id) is a
// total of rows, not whose the row is.
func (t *Table) guessed(c *Column, tables map[string][]*Table) (to *Table, bare bool) {
	list := words(c.Name)
	declared := slices.Contains(t.Unsure, c.Name) ||
		slices.ContainsFunc(t.Foreign, func(f Foreign) bool { return slices.Contains(f.Columns, c.Name) })
	own := c.Name == t.key() && strings.Join(list, " ") == t.rowName()
	if declared || own || len(list) < 2 || last(list) != "id" || totalWords.any(list) {
		return nil, false
	}
	for at := range len(list) - 1 {
		fit := slices.DeleteFunc(slices.Clone(tables[strings.Join(list[at:], " ")]), func(to *Table) bool {
			return to == t || !t.mayName(c, to)
		})
		far := func(o *Table) bool { return o.Schema != t.Schema }
		if near := slices.DeleteFunc(slices.Clone(fit), far); len(near) > 0 {
			fit = near
		}
		if len(fit) > 1 {
			return nil, false
		} else if len(fit) == 1 {
			return fit[0], at == 0
		}
	}
	return nil, false
}

// nameable reports whether a policy can write a name in a path, table.column = table.column, and a table's behind its
// schema.
func nameable(name string) bool {
	return !strings.ContainsAny(name, ".= ") && !strings.ContainsFunc(name, unprintable)
}

// nameable reports whether a policy can write a table's name.
func (t *Table) nameable() bool {
	schema := t.Schema // of which a path has none, where no other table has the name
	if t.called == t.Name {
		schema = strings.NewReplacer(" ", "", "=", "").Replace(schema)
	}
	return nameable(t.Name) && nameable(schema)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// distances are how many references lead from each table to one; −1: none do.
func (s *Schema) distances(to *Table) []int {
	list := make([]int, len(s.Tables))
	for i := range list {
		list[i] = -1
	}
	list[to.at] = 0
	for edge := []*Table{to}; len(edge) > 0; edge = edge[1:] {
		for _, t := range edge[0].from {
			if list[t.at] < 0 {
				list[t.at] = list[edge[0].at] + 1
				edge = append(edge, t)
			}
		}
	}
	return list
}

// Table is a table with its constraints.
type Table struct {
	Schema, Name string
	Comment      string
	Columns      []*Column
	Primary      []string   // columns of the primary key; none means nil
	Unique       [][]string // columns of the primary key and of unique constraints that hold at once
	Foreign      []Foreign
	Checks       []string // conditions of CHECK constraints, as SQL
	Unsure       []string // columns of foreign keys that are not valid, or lead to tables that were not read

	at     int          // in its schema
	called string       // in the policy: with its schema, where another table has its name
	refs   *[]reference // references, once they were asked for
	from   []*Table     // whose references lead here
}

// Column is a column of a table.
type Column struct {
	Name    string
	Type    string   // as the database writes it, of a domain what it is over: "integer", "numeric(12,2)"
	Domain  string   // the name of the domain that its type is
	Labels  []string // of an enumerated type, in its order
	Checks  []string // conditions of its domain, over VALUE
	Comment string

	Unshared bool // a unique index holds it alone: no two rows, perhaps of those that a condition picks, have the same

	of []string // the words of its table's name, once that is settled
}

// Foreign is a foreign key: Columns[i] names To.Keys[i].
type Foreign struct {
	Columns []string
	To      *Table
	Keys    []string
	Guessed bool // by names alone: nothing declares it
}

// column finds a column by name.
func (t *Table) column(name string) *Column {
	for _, c := range t.Columns {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// key is the column of a primary key of one column.
func (t *Table) key() string {
	if len(t.Primary) == 1 {
		return t.Primary[0]
	}
	return ""
}

// isUnique reports whether no two rows have the same value of a column.
func (t *Table) isUnique(column string) bool {
	return slices.ContainsFunc(t.Unique, func(u []string) bool { return len(u) == 1 && u[0] == column })
}

// alone reports whether no two rows have the same value of a column, perhaps of those rows that a condition picks.
func (t *Table) alone(column string) bool { return t.isUnique(column) || t.column(column).Unshared }

// reference is one column that names a row of another table, by that one's column.
type reference struct {
	column  string
	to      *Table
	key     string
	guessed bool
}

// keyed reports whether a column is a part of a table's key, or names a row elsewhere.
func (t *Table) keyed(c *Column) bool {
	return slices.Contains(t.Primary, c.Name) ||
		slices.ContainsFunc(t.Foreign, func(f Foreign) bool { return slices.Contains(f.Columns, c.Name) })
}

// counterpart is the column elsewhere that a column of a key of several columns has the values of.
func (t *Table) counterpart(column string) (*Table, *Column) {
	for _, f := range t.Foreign {
		for i, c := range f.Columns {
			if c == column && len(f.Columns) > 1 {
				return f.To, f.To.column(f.Keys[i])
			}
		}
	}
	return nil, nil
}

// ofItself reports whether a column names a row of the table that it is in: employee.manager_id.
func (t *Table) ofItself(column string) bool {
	for _, f := range t.Foreign {
		if f.To == t && slices.Contains(f.Columns, column) {
			return true
		}
	}
	return false
}

// references are the columns of a table that name rows elsewhere. A foreign key of several columns gives those of its
// columns whose counterpart names rows itself: returned(order_id, line_no) → lines(order_id, line_no), where
// lines.order_id → orders.order_id, gives returned.order_id → orders.order_id.
func (t *Table) references() []reference {
	if t.refs != nil {
		return *t.refs
	}
	var list []reference
	t.refs = &list
	add := func(r reference) {
		if r.to != t && !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	for _, f := range t.Foreign {
		if len(f.Columns) == 1 {
			add(reference{f.Columns[0], f.To, f.Keys[0], f.Guessed})
			continue
		}
		for i, key := range f.Keys {
			for _, further := range f.To.Foreign {
				if len(further.Columns) == 1 && further.Columns[0] == key && further.To.nameable() && nameable(further.Keys[0]) {
					add(reference{f.Columns[i], further.To, further.Keys[0], further.Guessed})
				}
			}
		}
	}
	return list
}
