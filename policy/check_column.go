package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxColumns is PostgreSQL's.
const maxColumns = 1600

func columns(t *Table, list *tableT, at place) {
	if len(list.Columns) == 0 {
		at.problem("columns is empty: a column that is not listed does not exist for analysts")
	}
	if len(list.Columns) > maxColumns {
		at.problem("columns has %d entries, must have at most %d", len(list.Columns), maxColumns)
		return
	}
	for i := range list.Columns {
		f := &list.Columns[i]
		here := at.item(i).within("column", f.Name)
		checkName(f.Name, here.key("name"), "name")
		for _, other := range append(t.Keys[:len(t.Keys):len(t.Keys)], t.Columns...) {
			if strings.EqualFold(other.Name, f.Name) {
				here.key("name").problem("name is given twice")
			}
		}
		c := column(t, f, here)
		if f.Keys == "join" && !c.Join { // a column with cells that rows are joined by too
			t.addKey(c.Source, c.Type, c.Typmod)
		}
		extremes := list.Extremes
		if f.Extremes != "" && !c.Private {
			extremes = f.Extremes
			if c.Domain == nil || !c.Domain.Ordered() {
				here.name("extremes").problem("extremes is for private columns with a domain from min to max")
			}
		}
		c.Extreme, c.Ends = extremes == "true", extremes == "declared"
		t.Listed = append(t.Listed, c)
		if c.Join {
			t.Keys = append(t.Keys, c)
		} else {
			t.Columns = append(t.Columns, c)
		}
	}
}

func column(t *Table, f *columnT, at place) *Column {
	col := &Column{Table: t, Name: f.Name, Source: f.Source, Nulls: NullCell, Outside: OutsideOther, Typmod: -1, Snap: f.Offgrid == "snap", Comment: f.Comment}
	if f.Source == "" {
		col.Source = f.Name
	} else {
		checkName(f.Source, at.key("source"), "source")
	}
	if err := col.parseType(f.Type); err != nil {
		at.key("type").problem("%v", err)
		return col
	}
	if col.Blanks > 0 && !t.Public && (f.Domain.empty() || f.Domain.any) {
		at.key("type").problem("char(n) is for private columns with values, and public ones; text reads one too")
		return col
	}
	if col.Enum && t.Public {
		at.key("type").problem("enum is for private columns; text reads a public one")
		return col
	}
	col.MaxTotal = maxTotal(t, f.MaxTotal, at.key("max_total_per_unit"))
	col.Frequency = minFrequency(f.MinFrequency, at.key("min_frequency"))
	if t.Analysed() {
		viewColumn(col, f, at)
		return col
	}
	if f.Keys == "join" && (t.Public || t.Dataset.Unit.Row) {
		at.key("keys").problem("keys: join is for private tables whose unit is a key")
	}
	if f.Keys == "join" && f.Domain.empty() {
		col.Join = true
		at.unwanted("%s is given, but without a domain rows are only joined by this column: it has no cells",
			map[string]bool{
				"outside": f.Outside != "", "nulls": f.Nulls != "", "offgrid": f.Offgrid != "", "other": f.Other != "",
			})
		return col
	}
	if f.Domain.any && !t.Public {
		anyColumn(col, f, at)
		return col
	}
	if f.Keys == "discover" {
		openColumn(col, f, at)
		return col
	}
	if t.Public {
		at.unwanted("%s is for columns of private tables, and this table is public", map[string]bool{
			"domain": !f.Domain.empty(), "outside": f.Outside != "", "nulls": f.Nulls != "", "offgrid": f.Offgrid != "", "other": f.Other != "",
		})
		return col
	}
	if f.Domain.private {
		privateColumn(col, f, at)
		return col
	}
	if f.Nulls == "exclude" {
		col.Nulls = NullExclude
	}
	switch f.Outside {
	case "clamp":
		col.Outside = OutsideClamp
	case "exclude":
		col.Outside = OutsideExclude
	}
	if col.Type == Bool && f.Outside != "" {
		at.name("outside").problem("outside is given, but a boolean has no values outside false and true")
		return col
	}
	if f.Domain.KeysOf != "" || f.Domain.Where != "" {
		listColumn(col, f, at)
		hide(col, f, at)
		return col
	}
	col.Domain = domain(col, &f.Domain, at)
	if col.Domain != nil && !col.Domain.Ordered() && f.Offgrid != "" {
		at.name("offgrid").problem("offgrid is for ordered columns")
	}
	hide(col, f, at)
	return col
}

// privateColumn reads a column of `domain: private`: one whose bounds are not known yet.
func privateColumn(col *Column, f *columnT, at place) {
	at.unwanted("%s is given, but the domain is private: nothing is answered over the column until its bounds stand there",
		map[string]bool{
			"outside": f.Outside != "", "nulls": f.Nulls != "", "offgrid": f.Offgrid != "", "other": f.Other != "", "extremes": f.Extremes != "", "keys": f.Keys != "",
		})
	if col.Enum || col.Blanks > 0 {
		at.key("domain").problem("domain is private, which finds the ends of numbers, dates and times; labels and texts have none")
		return
	}
	d, err := NewLadder(col.Type, col.Typmod)
	if err != nil {
		at.key("domain").problem("%v", err)
		return
	}
	col.Private, col.Outside, col.Domain = true, OutsideClamp, d
}

// hide reads `other: hide`. The group that it hides must hold nothing but values outside the domain: neither a value
// that is declared nor, in columns that are not text, NULLs of the database.
func hide(col *Column, f *columnT, at place) {
	if f.Other != "hide" || col.Domain == nil {
		return
	}
	switch d := col.Domain; {
	case col.Outside != OutsideOther || col.Type == Bool:
		at.name("other").problem("other is hide, but no group holds the values outside this domain")
	case d.Other >= 0 && d.Other < d.Regular:
		at.name("other").problem("other is hide, but the value %q is declared, and its group has its rows too", OtherValue)
	case d.Other < 0 && col.Nulls != NullExclude:
		at.name("other").problem("other is hide, but values outside the domain of a column of %s are in the group of NULL: nulls: exclude leaves NULLs out of it", col.Type)
	default:
		col.Hide = true
	}
}

// asked reports whether extremes are answered.
func (e extremesT) asked() bool { return e != "" && e != "false" }

func (f *domainT) empty() bool {
	return !f.private && !f.any && f.KeysOf == "" && f.Where == "" && f.Values == nil && f.ends() == ""
}

// ends are what an ordered domain has, "" for none.
func (f *domainT) ends() scalar { return f.Min + f.Max + f.Below + f.Step }

// domain reads a private column's domain; nil after a problem.
func domain(col *Column, f *domainT, at place) *Domain {
	here := at.key("domain")
	if f.empty() && col.Type != Bool {
		at.problem("domain is missing: the public values of the column")
		return nil
	}
	rules := Rules{Nulls: col.Nulls, Outside: col.Outside}
	if col.Type.Textual() || col.Type == UUID || col.Type == Bool || col.Type.Integer() && f.Values != nil {
		return enumerated(col, f, rules, at)
	}
	if f.Values != nil {
		here.key("values").problem("values are for columns of text, whole numbers and uuids; %s takes min, max and step",
			col.Type)
		return nil
	}
	least, ok1 := bound(col.Type, f.Min, here, "min")
	most, beyond, ok2 := end(col, f, here)
	step, ok3 := stepOf(col.Type, f.Step, here)
	if !ok1 || !ok2 || !ok3 {
		return nil
	}
	if beyond != nil && sameKind(least, beyond) && compare(beyond, least) <= 0 {
		here.key("below").problem("below is %s, must be greater than min, which is %s", FormatValue(col.Type, beyond), FormatValue(col.Type, least))
		return nil
	}
	d, err := Steps(col.Type, col.Typmod, least, most, step, rules)
	if err != nil {
		here.problem("%v", err)
		return nil
	}
	d.Below = beyond
	return d
}

// end reads where an ordered domain ends: at max, which is in it, or before below (nil means max is given).
func end(col *Column, f *domainT, here place) (most, beyond Value, ok bool) {
	if f.Below == "" {
		most, ok = bound(col.Type, f.Max, here, "max")
		return most, nil, ok
	}
	if f.Max != "" {
		here.key("below").problem("max and below are both given: below takes the place of max")
		return nil, nil, false
	}
	if beyond, ok = bound(col.Type, f.Below, here, "below"); !ok {
		return nil, nil, false
	}
	if most, ok = before(col.Type, col.Typmod, beyond); !ok {
		here.key("below").problem("below is for whole numbers, dates, times and numeric(p,s), where a greatest value lies before it; %s takes max", col.Type.Format(col.Typmod))
	}
	return most, beyond, ok
}

func enumerated(col *Column, f *domainT, rules Rules, at place) *Domain {
	here := at.key("domain")
	if f.ends() != "" {
		here.problem("min, max and step are for ordered columns; %s takes values", col.Type)
		return nil
	}
	if col.Outside == OutsideClamp {
		at.key("outside").problem("outside is clamp, which needs an ordered column")
		return nil
	}
	values := make([]string, len(f.Values))
	for i, v := range f.Values {
		values[i] = string(v)
		if col.Blanks > 0 {
			values[i] = strings.TrimRight(values[i], " ")
		}
	}
	if col.Type == Bool && f.Values != nil && !contains([]string{"false true", "true false"}, strings.Join(values, " ")) {
		here.problem("values of a boolean column are false and true, and need not be given")
		return nil
	}
	d, err := Enumerate(col.Type, values, rules)
	if err == nil {
		err = d.checkLength(col.Typmod)
	}
	if i := slices.IndexFunc(values, func(v string) bool { return col.Blanks > 0 && utf8.RuneCountInString(v) > col.Blanks }); err == nil && i >= 0 {
		err = fmt.Errorf("value %.40q is longer than char(%d) allows", values[i], col.Blanks)
	}
	if err != nil {
		here.problem("%v", err)
		return nil
	}
	return d
}

func bound(t Type, text scalar, at place, key string) (Value, bool) {
	if text == "" {
		at.problem("%s is missing: an ordered column has min, max and step", key)
		return nil, false
	}
	v, err := ParseValue(t, string(text))
	if err != nil {
		at.key(key).problem("%s %v", key, err)
		return nil, false
	}
	return v, true
}

func stepOf(t Type, text scalar, at place) (Step, bool) {
	if text == "" && (t.Integer() || t == DateType) {
		return Step{Whole: 1}, true
	}
	if text == "" {
		at.problem("step is missing: the width of a cell")
		return Step{}, false
	}
	step, err := ParseStep(t, string(text))
	if err != nil {
		at.key("step").problem("step %v", err)
		return Step{}, false
	}
	return step, true
}

func release(t *Table, f *releaseT, at place) {
	kinds := map[string]ReleaseKind{"range": RangeRelease, "online": OnlineRelease, "synthetic": SyntheticRelease}
	r := &Release{Table: t, Kind: cmp.Or(kinds[f.Kind], HistogramRelease), Name: f.Name}
	if r.Name == "" {
		r.Name = t.Name
		for _, c := range f.Columns {
			r.Name += "_" + c.Column
		}
		if r.Kind == OnlineRelease || r.Kind == SyntheticRelease {
			r.Name += "_" + r.Kind.String()
		}
	} else {
		checkName(r.Name, at.key("name"), "name")
	}
	at = at.within("release", r.Name)
	for _, table := range t.Dataset.Tables {
		for _, other := range table.All() {
			if other.Name == r.Name {
				at.key("name").problem("name is given twice in this dataset; name: makes another")
			}
		}
	}
	switch r.Kind {
	case OnlineRelease:
		t.Sessions = append(t.Sessions, r)
	case SyntheticRelease:
		t.Synthetics = append(t.Synthetics, r)
	default:
		t.Releases = append(t.Releases, r)
	}
	if f.Epsilon == "" && f.Rho == "" {
		at.problem("epsilon is missing: what each user pays once")
	} else {
		p := epsilonOrRho(f.Epsilon, f.Rho, "", t.Dataset.Accountant, at, "epsilon", "rho")
		r.Epsilon, r.Cost = p.epsilon, p.cost
	}
	r.Refresh = duration(f.Refresh, 0, at.key("refresh"), "refresh")
	releaseColumns(t, r, f, at.key("columns"))
	instance(r, f, at)
	if r.Refresh > 0 && r.Grows() {
		at.name("refresh").problem("refresh is given, but days that close are added to this release at no further cost (appends)")
	}
}

func releaseColumns(t *Table, r *Release, f *releaseT, at place) {
	cells := 1
	for i, given := range f.Columns {
		name := given.Column
		col := t.Column(name)
		switch {
		case col == nil && t.Key(name) != nil:
			at.item(i).problem("columns: rows are only joined by %.63q, it has no cells", name)
			return
		case col == nil:
			at.item(i).problem("columns: table %s has no column %.63q", t.Name, name)
			return
		case col.List != nil && col.Private: // checked once it is read
			r.Columns, r.Widths = append(r.Columns, col), append(r.Widths, 1)
			continue
		case col.Private:
			at.item(i).problem("columns: the domain of %s is private: dpproxy bounds finds its ends, and a release needs them", name)
			return
		case col.Any:
			at.item(i).problem("columns: the domain of %s is any: it has no cells, and a release needs declared values", name)
			return
		case col.Open != nil:
			at.item(i).problem("columns: the values of %s are to be discovered, and a release needs declared ones", name)
			return
		case col.Domain == nil: // a problem reported already
			return
		}
		if slices.Contains(r.Columns, col) {
			at.item(i).problem("columns: %s is given twice", name)
		}
		r.Columns = append(r.Columns, col)
		if !coarsen(r, given, at.item(i)) {
			return
		}
		if cells *= r.Size(i); cells > MaxCells {
			at.problem("columns have more than %d cells together", MaxCells)
			return
		}
	}
	if len(r.Columns) == 0 {
		at.problem("columns is empty, must name at least one")
		return
	}
	if r.Kind == RangeRelease && (len(r.Columns) != 1 || !r.Columns[0].Domain.Ordered()) {
		at.problem("a range release needs exactly one column, and an ordered one")
	}
}
