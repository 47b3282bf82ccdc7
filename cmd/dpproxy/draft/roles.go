package draft

import (
	"fmt"
	"slices"
)

// role is what a table is for the policy.
type role int

const (
	leftOut role = iota
	unitTable
	private  // its rows lead to the unit
	backward // the unit's rows, or those of a private table, lead to its rows, which are about people all the same
	lookup   // public
)

// part is one table's place in the policy.
type part struct {
	table *Table
	role  role
	paths []reference // private: how its rows lead to the unit, the first is taken
	from  *part       // backward: whose rows lead to it, by column of
	of    reference
	why   string // left out or backward: why
}

// assign gives each table its role.
func assign(s *Schema, unit Candidate) []*part {
	parts, distances := make([]*part, len(s.Tables)), s.distances(unit.Table)
	for i, t := range s.Tables {
		p := &part{table: t}
		parts[i] = p
		if t == unit.Table {
			p.role = unitTable
		} else if p.paths = t.paths(distances); len(p.paths) > 0 {
			p.role = private
		}
	}
	for changed := true; changed; { // a public table may make others public
		changed = false
		for _, p := range parts {
			if p.role == leftOut {
				p.rest(parts)
				changed = changed || p.role != leftOut
			}
		}
	}
	s.unlist(parts)
	return parts
}

// leading returns the private tables that lead here at once, by which references; led is true of public ones too.
func (p *part) leading(parts []*part) (from []*part, by []reference, led bool) {
	for i, t := range p.table.from {
		other := parts[t.at]
		if slices.Contains(p.table.from[:i], t) {
			continue
		}
		for _, r := range t.references() {
			if r.to != p.table || other.role == leftOut {
				continue
			}
			led = true
			if other.role == unitTable || other.role == private {
				from, by = append(from, other), append(by, r)
			}
		}
	}
	return from, by, led
}

// rest gives a role to a table whose rows do not lead to the unit.
func (p *part) rest(parts []*part) {
	from, by, led := p.leading(parts)
	about, others := p.about()
	if about == "" {
		about = p.extends(parts)
	}
	switch {
	case about == "" && (led && !p.single(from, by) && p.codes() || p.links(parts)):
		p.role, p.why = lookup, ""
	case !led && about == "":
		p.why = "no foreign key leads from its rows to the unit, nor to it; give it unit:, or public: true"
	case !led:
		p.why = about + ", and no foreign key says whom; give it unit:"
	case others:
		p.why = about + ": people whom this budget does not protect"
	case about == "" && !p.single(from, by):
		p.why = "beside its key nothing looks like a code or what one is called; public: true would show it to every analyst"
	case about == "":
		p.turn(from, by, "each of its rows belongs to one row of "+from[0].table.Name)
	default:
		p.turn(from, by, about)
	}
}

// links reports whether a table says nothing but which rows of public tables belong together: film_category(film_id,
// category_id).
func (p *part) links(parts []*part) bool {
	list := p.table.references()
	for _, r := range list {
		if o := parts[r.to.at]; o.role != lookup {
			// Its other end may become public by it: category is led to by film_category alone.
			if about, _ := o.about(); about != "" || len(r.to.references()) > 0 || o.role != leftOut {
				return false
			}
		}
	}
	// Any other column says more: line(line_id, order_no, product_id → product) is a list of sales, of which no
	// constraint says whose.
	more := func(c *Column) bool {
		return !upkeepWords.in(c.Name) && c.Name != p.table.key() && !slices.ContainsFunc(list, func(r reference) bool { return r.column == c.Name })
	}
	return slices.ContainsFunc(list, func(r reference) bool { return parts[r.to.at].role == lookup }) && !slices.ContainsFunc(p.table.Columns, more)
}

// extends says that a table's rows are those of another one, which is not public; "" means that they are not.
func (p *part) extends(parts []*part) string {
	for _, r := range p.table.references() {
		if r.column == p.table.key() && parts[r.to.at].role != lookup {
			return "each of its rows is one of " + r.to.Name
		}
	}
	return ""
}

// codes reports whether a table looks like a list of codes: it says what each is called, or is a list of places and
// copies of things.
func (p *part) codes() bool {
	t := p.table
	key := t.column(t.key())
	return stockWords.names(t.Name) || slices.ContainsFunc(t.Columns, func(c *Column) bool {
		return !t.keyed(c) && publicly(t, c) == "" && (titled(t, c) || key != nil && textual(key)) // code and description
	})
}

// single reports whether each row of a table belongs to one row of a private table, as a constraint says.
func (p *part) single(from []*part, by []reference) bool {
	for i, r := range by {
		if from[i].table.isUnique(r.column) {
			return true
		}
	}
	return false
}

// turn makes a table about people one that is read with the rows that lead to it, where that is one table by one
// column.
func (p *part) turn(from []*part, by []reference, about string) {
	p.why = about
	if len(from) == 1 && !from[0].table.isUnique(by[0].column) {
		p.why += fmt.Sprintf(", and no constraint says that one row of %s alone names each of its rows", from[0].table.Name)
	} else if len(from) == 1 && (from[0].role == unitTable || from[0].role == private && len(from[0].paths) == 1) {
		p.role, p.from, p.of = backward, from[0], by[0]
	} else if len(from) > 1 {
		p.why += fmt.Sprintf(", and %s and %s lead to it: a SELECT as source would say whose its rows are", from[0].table.Name, from[1].table.Name)
	}
}

// about says why a table is not public, and whether it is about people of another kind than the unit; "" means nothing
// says so.
func (p *part) about() (why string, others bool) {
	t := p.table
	if people, why := peopled(t); people > 0 {
		return why, protectedWords.names(t.Name) || workingWords.names(t.Name)
	}
	switch {
	case !t.nameable():
		return "a policy cannot write its name; give it a view", false
	case len(t.Unsure) > 0:
		return "its column " + t.Unsure[0] + " has a foreign key that is not valid, or leads to a table that was not read", false
	case eventWords.names(t.Name):
		return "its name is that of something that happens to people", false
	case identityWords.names(t.Name), ownedWords.names(t.Name):
		return "its name is that of something that people have", false
	}
	for _, c := range t.Columns {
		if documentWords.in(c.Name) && kindOf(c) == naming {
			return "its column " + c.Name + " is the number of a document or a device", false
		}
		if named(c) && !slices.ContainsFunc(t.references(), func(r reference) bool { return r.column == c.Name }) {
			return "its column " + c.Name + " names people, though no foreign key says so", false
		}
		if dated(c) && c.Type != "date" && !upkeepWords.in(c.Name) && !listedWords.in(c.Name) {
			return "its column " + c.Name + " says when something happened", false
		}
		if list := subject(words(c.Name)); intimateWords.any(list) && !intimateWords.in(t.Name) {
			return "its column " + c.Name + " says what people are", false
		}
	}
	if len(t.Primary) == 0 {
		return "it has no primary key, as a list of facts has none", false
	}
	return "", false
}

// unlist leaves out what a public table leads to, if that is about people: a public table may not reach private rows.
func (s *Schema) unlist(parts []*part) {
	for _, p := range parts {
		if p.role != backward {
			continue
		}
		distances := s.distances(p.table)
		for _, other := range parts {
			if other.role == lookup && distances[other.table.at] > 0 {
				p.role, p.why = leftOut, p.why+fmt.Sprintf("; a SELECT as source would read it with the rows of %s, but %s, which is public, leads to it too", p.from.table.Name, other.table.Name)
				break
			}
		}
	}
}
