package policy

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Analysts at a level of trust have the declared releases with more noise on top: one draw serves all levels
// (docs/adr/0028). For each of them the policy is read as if it had been written for her, with her level's price of
// each release; everything else in it is the same, and so is its digest.

// TrustLevel is a level of trust below the whole.
type TrustLevel struct {
	Name  string
	Share privacy.Epsilon // of each declared release's ε, below 1
}

// level finds a level by its name; nil means there is none.
func (d *Dataset) level(name string) *TrustLevel {
	return foundIn(d.Levels, func(l *TrustLevel) bool { return l.Name == name })
}

// levels reads the levels of a dataset.
func levels(d *Dataset, f *datasetT, at place) {
	if len(f.Levels) >= mechanisms.MaxLevels {
		at.problem("number of levels is %d, must be at most %d", len(f.Levels), mechanisms.MaxLevels-1)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.Levels)) {
		here := at.key(name)
		checkName(name, at.name(name), "name of a level")
		share, err := privacy.ParseEpsilon(string(f.Levels[name]))
		if err != nil || share.Micro() >= 1_000_000 {
			here.problem("share is %.40s, must be a number of at most six decimal places between 0 and 1", f.Levels[name])
			continue
		}
		if at := slices.IndexFunc(d.Levels, func(l TrustLevel) bool { return l.Share == share }); at >= 0 {
			here.problem("share is that of level %s: one level is enough", d.Levels[at].Name)
			continue
		}
		d.Levels = append(d.Levels, TrustLevel{name, share})
	}
	slices.SortFunc(d.Levels, func(a, b TrustLevel) int { return cmp.Compare(b.Share.Micro(), a.Share.Micro()) })
}

// atLevel gives the declared releases of a dataset their levels, and those for whom the policy is read their prices.
// What has no levels is not there for whoever is below the whole.
func (c *checker) atLevel(d *Dataset, at place) {
	if len(d.Levels) == 0 {
		return
	}
	d.Level = d.level(c.levels[d.ID])
	for _, t := range d.Tables {
		kept := t.Releases[:0]
		for _, r := range t.Releases {
			if r.leveled(d, at) || d.Level == nil {
				kept = append(kept, r)
			}
		}
		if t.Releases = kept; d.Level != nil {
			t.Sessions, t.Synthetics = nil, nil
		}
	}
}

// leveled gives a release its levels, and reports whether it has any.
func (r *Release) leveled(d *Dataset, at place) bool {
	if r.Cost.IsZero() || r.Grows() { // zero: a problem reported already
		return false
	}
	whole := r.Epsilon
	r.Levels = []privacy.Cost{r.Cost}
	for _, l := range d.Levels {
		e := shareOf(whole, l.Share)
		cost := privacy.Cost{Epsilon: e}
		if r.Cost.Rho.Pico() > 0 {
			cost = privacy.Cost{Rho: e.Rho()}
		}
		if last := r.Levels[len(r.Levels)-1]; e.Micro() < 1 || cost == last || !cost.Fits(last) {
			at.key("levels").problem("the ε of release %s is too small for level %s", r.Name, l.Name)
			return false
		}
		if r.Levels = append(r.Levels, cost); d.Level != nil && l == *d.Level {
			r.Epsilon, r.Cost = e, cost
		}
	}
	return true
}

// shareOf is a share of an ε, rounded down.
func shareOf(e, share privacy.Epsilon) privacy.Epsilon {
	part := new(big.Int).Mul(big.NewInt(e.Micro()), big.NewInt(share.Micro()))
	return privacy.MicroEpsilon(part.Quo(part, big.NewInt(1_000_000)).Int64())
}

// levelsOf are a user's levels by dataset, of those datasets in which she is below the whole, and a name for all of
// them.
func (p *Policy) levelsOf(user string) (levels map[string]string, key string) {
	var parts []string
	for _, d := range p.Datasets {
		if b, ok := d.Budget(user); ok && b.Level != "" {
			if levels == nil {
				levels = map[string]string{}
			}
			levels[d.ID] = b.Level
			parts = append(parts, d.ID+"\x00"+b.Level)
		}
	}
	return levels, strings.Join(parts, "\x00")
}

// seen reads the policy for each combination of levels that a user can have.
func (p *Policy) seen(read func(map[string]string) *Policy) {
	users := []string{"*"} // whoever has no budget of her own
	for _, u := range p.Users {
		users = append(users, u.Name)
	}
	for _, user := range users {
		levels, key := p.levelsOf(user)
		if key == "" || p.views[key] != nil {
			continue
		}
		if p.views == nil {
			p.views = map[string]*Policy{}
		}
		view := read(levels)
		view.whole = p
		for _, d := range view.Datasets {
			d.whole = p.Dataset(d.ID)
		}
		p.views[key] = view
	}
}

// For returns the policy as it is for a user: her level's releases at her level's prices. For whoever is at the whole
// everywhere it is p itself.
func (p *Policy) For(user string) *Policy {
	if len(p.views) == 0 {
		return p
	}
	if _, key := p.levelsOf(user); p.views[key] != nil {
		return p.views[key]
	}
	return p
}

// Whole is the policy as it is for whoever is at the whole everywhere, of which this one is what a user sees: the one
// that was looked at and came into force.
func (p *Policy) Whole() *Policy {
	if p == nil || p.whole == nil {
		return p
	}
	return p.whole
}

// Whole is the dataset of that policy.
func (d *Dataset) Whole() *Dataset {
	if d.whole == nil {
		return d
	}
	return d.whole
}
