package draft

import (
	"cmp"
	"fmt"
	"maps"
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
	about, others := p.about(parts)
	about = cmp.Or(about, p.extends(parts), p.keyless(parts), joined(from))
	led = led || p.table.coded() && p.namedAlike(parts)
	switch {
	case about == "" && (led && !p.single(from, by) && p.codes() || p.links(parts) || p.relates(parts)):
		p.role, p.why = lookup, ""
	case !led && about == "":
		p.why = "no foreign key leads from its rows to the unit, nor to it; give it unit:, or public: true"
	case !led:
		p.why = about + ", and no foreign key says whom; give it unit:"
	case others:
		p.why = about + ": people whom this budget does not protect"
	case about == "" && !p.single(from, by):
		p.why = "beside its key nothing looks like a code or what one is called; public: true would show it to all"
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
	if !p.endsPublic(parts) {
		return false
	}
	// Any other column says more: line(line_id, order_no, product_id → product) is a list of sales, of which no
	// constraint says whose.
	more := func(c *Column) bool {
		return !upkeepWords.in(c.Name) && c.Name != p.table.key() && !p.table.refers(c.Name)
	}
	return slices.ContainsFunc(list, func(r reference) bool { return parts[r.to.at].role == lookup }) && !slices.ContainsFunc(p.table.Columns, more)
}

// keyless says that a table has no key, and does not relate rows of a list either; "" means otherwise.
func (p *part) keyless(parts []*part) string {
	if len(p.table.Primary) > 0 || p.relates(parts) {
		return ""
	}
	return "it has no primary key, as a list of facts has none"
}

// joined says that private rows say who is a member of a table's rows, which people name: ride_group_members of
// ride_groups, participants of conversations; "" means that none do.
func joined(from []*part) string {
	for _, p := range from {
		if memberWords.names(p.table.Name) && p.role == private {
			return "the rows of " + p.table.Name + " are its members"
		}
	}
	return ""
}

// endsPublic reports whether all rows that a table names are public, or may become so by it: category is led to by
// film_category alone.
func (p *part) endsPublic(parts []*part) bool {
	return !slices.ContainsFunc(p.table.references(), func(r reference) bool {
		o := parts[r.to.at]
		about, _ := o.about(parts)
		return o.role != lookup && (about != "" || len(r.to.references()) > 0 || o.role != leftOut)
	})
}

// relates reports whether a table, which has no key but of columns that name rows, says how the rows of one public table
// are related: concept_ancestor(ancestor_concept_id, descendant_concept_id, min_levels). Nothing else in it may name a
// row, or say when something happened.
func (p *part) relates(parts []*part) bool {
	ends := map[*Table]int{}
	for _, r := range p.table.references() {
		if parts[r.to.at].role == lookup {
			ends[r.to]++
		}
	}
	said := func(c *Column) bool {
		k := kindOf(c)
		return p.table.refers(c.Name) || k == measure || k == category || k == moment && listedWords.in(c.Name)
	}
	twice := slices.ContainsFunc(slices.Collect(maps.Values(ends)), func(n int) bool { return n > 1 })
	other := slices.ContainsFunc(p.table.Columns, func(c *Column) bool { return !said(c) })
	own := slices.ContainsFunc(p.table.Primary, func(name string) bool { return !p.table.refers(name) })
	return !own && twice && !other && p.endsPublic(parts)
}

// coded reports whether a table's key is a code of several columns, of a kind that many rows share, and of which none
// names a row: icd_code, icd_version. No event has such a key.
func (t *Table) coded() bool {
	code := false
	for _, name := range t.Primary {
		c := t.column(name)
		k := kindOf(c)
		if k != category && k != measure || t.ofItself(name) || t.refers(name) {
			return false
		}
		code = code || k == category && textual(c)
	}
	return code && len(t.Primary) > 1
}

// refers reports whether a column names a row of another table.
func (t *Table) refers(column string) bool {
	return slices.ContainsFunc(t.references(), func(r reference) bool { return r.column == column })
}

// namedAlike reports whether private rows have columns of the names and types of a table's whole key.
func (p *part) namedAlike(parts []*part) bool {
	return slices.ContainsFunc(parts, func(o *part) bool {
		return (o.role == private || o.role == unitTable) && !slices.ContainsFunc(p.table.Primary, func(name string) bool {
			k, c := p.table.column(name), o.table.column(name)
			return c == nil || textual(c) != textual(k) || whole(c) != whole(k)
		})
	})
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
		coded := key != nil && textual(key) // code and description
		return !t.keyed(c) && publicly(t, c) == "" && (titled(t, c) || coded)
	})
}

// single reports whether each row of a table belongs to one row of a private table, as a constraint or an index says.
func (p *part) single(from []*part, by []reference) bool {
	for i, r := range by {
		if from[i].table.alone(r.column) {
			return true
		}
	}
	return false
}

// turn makes a table about people one that is read with the rows that lead to it, where that is one table by one
// column.
func (p *part) turn(from []*part, by []reference, about string) {
	p.why = about
	if len(from) == 1 && from[0].table.column(by[0].column).Unshared && !from[0].table.isUnique(by[0].column) {
		p.why += ", but an index says so of some rows alone"
	} else if len(from) == 1 && !from[0].table.isUnique(by[0].column) {
		p.why += fmt.Sprintf(", and no constraint says that one row of %s alone names each of its rows", from[0].table.Name)
	} else if len(from) == 1 && (from[0].role == unitTable || from[0].role == private && len(from[0].paths) == 1) {
		p.role, p.from, p.of = backward, from[0], by[0]
	} else if len(from) > 1 {
		p.why += fmt.Sprintf(", and %s and %s lead to it: a SELECT as source would say whose its rows are", from[0].table.Name, from[1].table.Name)
	}
}

// about says why a table is not public, and whether it is about people of another kind than the unit; "" means nothing
// says so.
func (p *part) about(parts []*part) (why string, others bool) {
	t := p.table
	if people, why := peopled(t); people > 0 {
		return why, !secretWords.in(t.Name) && (protectedWords.names(t.Name) || workingWords.names(t.Name))
	}
	switch {
	case !t.nameable():
		return "a policy cannot write its name; give it a view", false
	case len(t.Unsure) > 0:
		return "its column " + t.Unsure[0] + " has a foreign key that is not valid, or leads to a table that was not read", false
	case eventWords.names(t.Name) && !t.coded():
		return "its name is that of something that happens to people", false
	case identityWords.names(t.Name), ownedWords.names(t.Name) && !t.ofThings(parts):
		return "its name is that of something that people have", false
	}
	for _, c := range t.Columns {
		if why := t.speaks(c); why != "" {
			return why, false
		}
	}
	return "", false
}

// ofThings reports whether public rows name a table's, and no other rows do: then a record is one that is played.
func (t *Table) ofThings(parts []*part) bool {
	return len(t.from) > 0 && !slices.ContainsFunc(t.from, func(o *Table) bool { return o != t && parts[o.at].role != lookup })
}

// speaks says by what a column tells that rows are about people; "" means that nothing does.
func (t *Table) speaks(c *Column) string {
	if kindOf(c) == secret {
		return "its column " + c.Name + " is " + why[secret]
	}
	if documentWords.in(c.Name) && kindOf(c) == naming {
		return "its column " + c.Name + " is the number of a document or a device"
	}
	if named(c) && !t.refers(c.Name) {
		return "its column " + c.Name + " names people, though no foreign key says so"
	}
	if dated(c) && c.Type != "date" && !upkeepWords.in(c.Name) && !listedWords.in(c.Name) {
		return "its column " + c.Name + " says when something happened"
	}
	if list := subject(words(c.Name)); intimateWords.any(list) && !intimateWords.in(t.Name) {
		return "its column " + c.Name + " says what people are"
	}
	return ""
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
