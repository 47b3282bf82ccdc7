package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

const (
	defaultEpsilon    = "0.1"
	defaultCells      = 1024 // of a widened count
	maxCells          = 1 << 14
	defaultMaxEpsilon = "1"
	defaultConfidence = "0.95"
	defaultFreshness  = 24 * time.Hour
)

func (c *checker) dataset(f *datasetT, at place) {
	at = at.within("dataset", f.ID)
	d := &Dataset{ID: f.ID, RenamedFrom: f.RenamedFrom, Neighbors: privacy.AddRemove, Accountant: privacy.Pure, groups: c.policy.membership()}
	d.lists = c.lists
	if c.policy.Dataset(f.ID) != nil {
		at.key("id").problem("id is given twice")
	}
	c.policy.Datasets = append(c.policy.Datasets, d)
	checkName(f.ID, at.key("id"), "id")
	switch f.Accountant {
	case "zcdp":
		d.Accountant = privacy.ZCDP
	case "either":
		d.Accountant = privacy.Either
	}
	neighbors(d, f, at)
	if f.Unit.Row {
		d.Unit.Row = true
	} else {
		d.Unit.Name = f.Unit.Name
		checkName(f.Unit.Name, at.key("unit").key("name"), "name of the unit")
		unitKey(d, f, at.key("unit").key("key"))
	}
	d.Threshold = f.Large == "threshold"
	if d.Threshold && f.Unit.Row {
		at.key("large_products").problem("large_products: threshold needs a unit that is a key: combinations are shown that enough units have")
	}
	d.finds = findsKeys(f)
	d.Cap = allowance(f.Cap, d, at.key("cap").within("cap", ""))
	levels(d, f, at.key("levels"))
	c.budgets(d, f, at.key("budgets"))
	d.Defaults = defaults(&f.Defaults, d.Accountant, at.key("defaults").within("defaults", ""))
	d.Buying = buying(&f.Buying, at.key("buying"))
	d.Frequency = minFrequency(f.MinFrequency, at.key("min_frequency"))
	if len(f.Tables) == 0 {
		at.key("tables").problem("tables is empty, must have at least one")
	}
	for i := range f.Tables {
		c.table(d, &f.Tables[i], at.key("tables").item(i))
	}
	resolveLists(d)
	unitPaths(d, f, at.key("tables"))
	c.onePath(d)
	for i, t := range d.Tables {
		unique(t, f.Tables[i].Unique, at.key("tables").item(i).within("table", f.Tables[i].Name).key("unique"))
	}
	c.atLevel(d, at)
	if private := privateTables(f); d.Unit.Row && len(private) > 1 {
		at.key("unit").problem("unit is row, which is for a dataset of one private table; this one has %d: name a key that they share", len(private))
	}
}

func privateTables(f *datasetT) []string {
	var names []string
	for _, t := range f.Tables {
		if !t.Public && (t.Trusted || !isSelect(t.Source)) {
			names = append(names, t.Name)
		}
	}
	return names
}

// names reports whether a text such as the table of a unit's key means the table that the policy lists under that name.
func names(text, listed string) bool {
	schema, name, qualified := strings.Cut(listed, ".")
	if !qualified {
		schema, name = "public", listed
	}
	return text == name || text == schema+"."+name
}

// unitKey reads the column that names a unit. After a problem the unit has no table, and the tables' paths to it are
// not checked.
func unitKey(d *Dataset, f *datasetT, at place) {
	table, column := reference(f.Unit.Key, at, "key")
	if table == "" {
		return
	}
	private := privateTables(f)
	if !slices.ContainsFunc(private, func(name string) bool { return names(table, name) }) {
		text := ""
		if near := nearest(table, private); near != "" {
			text = fmt.Sprintf("; the nearest is %q", near)
		}
		at.problem("key is %.80q, but no private table of this dataset is called %.63q%s", f.Unit.Key, table, text)
		return
	}
	d.Unit.Table, d.Unit.Column = table, column
	if f.Unit.Type == "" {
		return
	}
	var err error
	if d.Unit.Type, _, err = ParseType(f.Unit.Type); err != nil {
		at.problem("%v", err)
	}
}

// renames refuses to take the name of a dataset that is still there.
func (c *checker) renames(at place) {
	taken := map[string]bool{}
	for i, d := range c.policy.Datasets {
		here := at.item(i).within("dataset", d.ID).key("renamed_from")
		if d.RenamedFrom == "" {
			continue
		}
		if c.policy.Dataset(d.RenamedFrom) != nil || taken[d.RenamedFrom] {
			here.problem("renamed_from is %.63q, which is the name of another dataset here", d.RenamedFrom)
		}
		taken[d.RenamedFrom] = true
	}
}

func neighbors(d *Dataset, f *datasetT, at place) {
	if f.Neighbors == "replace-one" {
		d.Neighbors = privacy.ReplaceOne
		d.Units = whole64(f.Units, 1, 1e15, at.key("units"), "units")
		if f.Units == "" {
			at.problem("units is missing: replace-one makes the number of units public, so it must be given")
		}
	} else if f.Units != "" {
		at.name("units").problem("units is for neighbors: replace-one")
	}
}

// reference reads table.column.
func reference(text string, at place, what string) (table, column string) {
	dot := strings.LastIndexByte(text, '.')
	if dot < 1 || dot == len(text)-1 || strings.ContainsAny(text, "= ") {
		at.problem("%s is %.80q, must be table.column", what, text)
		return "", ""
	}
	return text[:dot], text[dot+1:]
}

// findsKeys reports whether some question of a dataset may find keys, and so spend δ.
func findsKeys(f *datasetT) bool {
	return f.Large == "threshold" || slices.ContainsFunc(f.Tables, func(t tableT) bool {
		return slices.ContainsFunc(t.Columns, func(c columnT) bool { return c.Keys == "discover" })
	})
}

// allowance reads (ε, δ) and converts it once into what may be spent. Under zcdp and either δ pays for the conversion
// of ρ; where keys may be found one half of it does, and the other half is for them, so that it is spent once (privacy
// rule 6); odd units are lost.
func allowance(f *allowanceT, d *Dataset, at place) Allowance {
	var out Allowance
	var err, errDelta error
	if out.Epsilon, err = privacy.ParseEpsilon(string(f.Epsilon)); err != nil {
		at.key("epsilon").problem("%v", err)
	}
	if f.Delta != "" {
		if out.Delta, errDelta = privacy.ParseDelta(string(f.Delta)); errDelta != nil {
			at.key("delta").problem("%v", errDelta)
		}
	}
	if err != nil || errDelta != nil {
		return out
	}
	epsilon, concentrated := d.Accountant.Takes()
	if !concentrated {
		out.Cost = privacy.Cost{Epsilon: out.Epsilon, Delta: out.Delta}
		return out
	}
	conversion, keys := out.Delta, privacy.Delta{}
	if d.finds {
		keys = privacy.AttoDelta(out.Delta.Atto() / 2)
		conversion = keys
	}
	if conversion.Atto() == 0 {
		at.key("delta").problem("delta is %s, must be greater than 0 under %s: rho holds only together with a delta", out.Delta, d.Accountant)
		return out
	}
	rho, err := accounting.LargestRho(out.Epsilon, conversion)
	if err != nil {
		at.problem("%v", err)
	}
	if out.Cost = (privacy.Cost{Rho: rho, Delta: keys}); epsilon {
		out.Cost.Epsilon = out.Epsilon
	}
	return out
}

func (c *checker) budgets(d *Dataset, f *datasetT, at place) {
	d.Budgets = make(map[string]Budget, len(f.Budgets))
	if len(f.Budgets) == 0 {
		at.problem("budgets is empty: nobody could use this dataset")
	}
	for user, b := range f.Budgets {
		here := at.key(user).within("budget of", user)
		switch group := d.Holder(user); {
		case group != user:
			at.name(user).within("budget of", user).problem("user is in group %.63q: the budget is the group's", group)
		case user != "*" && c.policy.User(user) == nil && c.policy.Group(user) == nil:
			at.name(user).within("budget of", user).problem("no such user; users are named under users, and * is each other user")
		}
		out := Budget{Allowance: allowance(&b.allowanceT, d, here)}
		out.Refresh = duration(b.Refresh, 0, here.key("refresh"), "refresh")
		if out.Level = b.Level; b.Level != "" && d.level(b.Level) == nil {
			here.key("level").problem("level is %.63q, which is not one of levels", b.Level)
		}
		switch {
		case b.Refresh != "" && b.Lifetime == nil:
			here.name("refresh").problem("refresh needs lifetime: {epsilon: …, delta: …}, the most that all windows together may spend")
		case b.Refresh == "" && b.Lifetime != nil:
			here.name("lifetime").problem("lifetime needs refresh; without it the budget itself is for life")
		case b.Lifetime != nil:
			out.Lifetime = lifetime(&b, d, out.Cost, here)
		}
		d.Budgets[user] = out
	}
}

// lifetime checks what all windows of a budget together may spend.
func lifetime(b *budgetT, d *Dataset, window privacy.Cost, at place) *Allowance {
	here := at.key("lifetime")
	if b.Delta == "" || b.Lifetime.Delta == "" {
		at.problem("delta is missing: with refresh, the window and its lifetime both name a delta (0 is allowed under pure)")
		return nil
	}
	life := allowance(b.Lifetime, d, here.within("lifetime", ""))
	if !window.Fits(life.Cost) {
		here.problem("lifetime is smaller than one window")
	}
	return &life
}

func defaults(f *defaultsT, a privacy.Accountant, at place) Defaults {
	out := Defaults{Freshness: duration(f.Freshness, defaultFreshness, at.key("freshness"), "freshness")}
	out.Epsilon = epsilonOrRho(f.Epsilon, f.Rho, defaultEpsilon, a, at, "epsilon", "rho").epsilon
	out.MaxEpsilon = epsilonOrRho(f.MaxEpsilon, f.MaxRho, defaultMaxEpsilon, a, at, "max_epsilon", "max_rho").epsilon
	if f.MaxEpsilon == "" && f.MaxRho == "" && out.MaxEpsilon.Micro() < out.Epsilon.Micro() {
		out.MaxEpsilon = out.Epsilon
	}
	if out.Epsilon.Micro() > out.MaxEpsilon.Micro() {
		at.key("epsilon").problem("epsilon is %s, must be at most max_epsilon, which is %s", out.Epsilon, out.MaxEpsilon)
	}
	if f.Confidence == "" {
		f.Confidence = defaultConfidence
	}
	out.Confidence = confidence(f.Confidence, at.key("confidence"))
	return out
}

func buying(f *buyingT, at place) Buying {
	b := Buying{Cells: defaultCells}
	if f.Cells != "" {
		b.Cells = int(whole64(f.Cells, 0, maxCells, at.key("cells"), "cells"))
	}
	if f.After != "" {
		var err error
		if b.After, err = strconv.ParseFloat(string(f.After), 64); err != nil || !(b.After >= 0 && b.After <= 1000) {
			at.key("after").problem("after is %.40s, must be a number from 0 to 1000", f.After)
		}
	}
	return b
}

// price is what an epsilon or a rho in the file buys.
type price struct {
	epsilon privacy.Epsilon
	cost    privacy.Cost
}

// epsilonOrRho reads a price given in one of two keys. Under zcdp an epsilon e buys ρ = e²/2; under either it is an
// epsilon, and a rho is a rho. A given rho is shown as the smallest epsilon that would buy it under zcdp.
func epsilonOrRho(e, r, otherwise decimal, a privacy.Accountant, at place, keyE, keyR string) price {
	epsilons, rhos := a.Takes()
	switch {
	case e != "" && r != "":
		at.name(keyR).problem("%s and %s are both given, must be one of them", keyE, keyR)
		return price{}
	case r != "" && !rhos:
		at.name(keyR).problem("%s is for accountant: zcdp, or either", keyR)
		return price{}
	case r != "":
		rho, err := privacy.ParseRho(string(r))
		if err != nil {
			at.key(keyR).problem("%v", renamed(err, "rho", keyR))
			return price{}
		}
		return price{new(Dataset).EpsilonFor(rho, privacy.Cost{}), privacy.Cost{Rho: rho}}
	case e == "":
		e = otherwise
	}
	epsilon, err := privacy.ParseEpsilon(string(e))
	if err != nil {
		at.key(keyE).problem("%v", renamed(err, "epsilon", keyE))
		return price{}
	}
	if !epsilons {
		return price{epsilon, privacy.Cost{Rho: epsilon.Rho()}}
	}
	return price{epsilon, privacy.Cost{Epsilon: epsilon}}
}

// renamed gives an error of package privacy the name of the key that it is about.
func renamed(err error, from, to string) string {
	return to + strings.TrimPrefix(err.Error(), from)
}

// whole64 reads a whole number between least and most; empty is 0.
func whole64(text integer, least, most int64, at place, what string) int64 {
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < least || n > most {
		at.problem("%s is %.40s, must be a whole number between %d and %d", what, text, least, most)
		return 0
	}
	return n
}
