package nested

import "strings"

// elsewhere asks what the row's unit has in other rows.
func (d *Drawer) elsewhere(in []column, depth int) string {
	r := d.relation(max(depth-1, 0))
	if d.chance(2) {
		if text := d.member(in, r, depth); text != "" {
			return text
		}
	}
	on := d.equal(in, r.columns)
	if on == "" {
		return d.simple(in)
	}
	for n := d.dice.IntN(6); n > 3; n-- { // none, one or two
		if both := d.both(in, r.columns); both != "" {
			on += " AND " + both
		}
	}
	if d.chance(3) {
		on += " AND " + d.simple(r.columns)
	}
	return d.one("", "NOT ") + "EXISTS (SELECT 1 FROM " + r.name + " WHERE " + on + ")"
}

// member asks whether the row's key, or a key and a column, is among other rows', or in what sets of them have or have
// not in common; empty means they have no key in common.
func (d *Drawer) member(in []column, r relation, depth int) string {
	list := keys(in)
	if len(list) == 0 {
		return ""
	}
	k := d.among(list)
	ofKey := func(list []column) []column { return of(list, func(c column) bool { return c.key == k.key }) }
	same := ofKey(r.columns)
	if len(same) == 0 {
		return ""
	}
	where := ""
	if d.chance(2) {
		where = " WHERE " + d.simple(r.columns)
	}
	own, others, is := k.name, d.among(same).name, d.one(" IN ", " IN ", " NOT IN ")
	if c := d.same(in, r.columns); len(c) > 0 && d.chance(4) {
		return "(" + own + ", " + c[1] + ")" + is + "(SELECT " + others + ", " + c[0] + " FROM " + r.name + where + ")"
	}
	text := "SELECT " + others + " FROM " + r.name + where
	for d.chance(4) {
		o := d.relation(max(depth-1, 0))
		if also := ofKey(o.columns); len(also) > 0 {
			text += d.one(" EXCEPT ", " INTERSECT ", " UNION ", " UNION ALL ") +
				"SELECT " + d.among(also).name + " FROM " + o.name
		}
	}
	return own + is + "(" + text + ")"
}

// same draws two columns of one type, one of others and one of the rows around.
func (d *Drawer) same(in, others []column) []string {
	list := domains(in)
	if len(list) == 0 {
		return nil
	}
	c := d.among(list)
	same := of(others, func(o column) bool { return o.typ == c.typ })
	if len(same) == 0 {
		return nil
	}
	return []string{d.among(same).name, c.name, c.typ}
}

// both is a condition that reads other rows and the row around; empty means they have nothing in common.
func (d *Drawer) both(in, others []column) string {
	c := d.same(in, others)
	if len(c) == 0 {
		return ""
	}
	if c[2] == "boolean" || strings.HasPrefix(c[2], "text") || strings.HasPrefix(c[2], "char") {
		return c[0] + " = " + c[1]
	}
	if d.chance(4) && c[2] != "timestamp without time zone" && c[2] != "timestamp with time zone" {
		return c[0] + " BETWEEN " + c[1] + " AND " + c[1] + " + 3"
	}
	return c[0] + d.one(" < ", " >= ", " <> ", " = ") + c[1]
}
