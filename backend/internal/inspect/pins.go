package inspect

import (
	"maps"
	"sync"

	"github.com/dpproxy/dpproxy/policy"
)

// Pins are what Inspect saw of each dataset, by the policy that it was inspected for. A policy that is looked at may
// yet be refused, by the ledger or by what another of its datasets is like, and then nothing of it may matter to the
// one in force. So what was seen for a policy serves whoever reads its own tables, and decides for others only once it
// is in force (Adopt). What a user at a level reads is the whole policy's. Besides that one's the last one's is kept,
// since sessions may still ask under it, and that of one policy that is not in force; of others nothing.
//
//	inspect(p2), refused     p1's pins are as they were; p2's are dropped when p3 is inspected
//	inspect(p3), Adopt(p3)   p3's decide, p1's are kept for its sessions
type Pins[S any] struct {
	mu      sync.Mutex
	seen    map[*policy.Policy]map[*policy.Dataset]S
	inForce []*policy.Policy // the newest first, two at most
}

// Note is for Inspect.
func (p *Pins[S]) Note(of *policy.Policy, d *policy.Dataset, what S) {
	of, d = of.Whole(), d.Whole()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(append([]*policy.Policy{of}, p.inForce...))
	if p.seen[of] == nil {
		p.seen[of] = map[*policy.Dataset]S{}
	}
	p.seen[of][d] = what
}

// Adopt has what was seen for a policy decide.
func (p *Pins[S]) Adopt(of *policy.Policy) {
	of = of.Whole()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.inForce) == 0 || p.inForce[0] != of {
		p.inForce = append([]*policy.Policy{of}, p.inForce[:min(len(p.inForce), 1)]...)
	}
	p.drop(p.inForce)
}

// drop forgets all but what was seen for these policies.
func (p *Pins[S]) drop(but []*policy.Policy) {
	kept := map[*policy.Policy]map[*policy.Dataset]S{}
	for _, of := range but {
		if seen := p.seen[of]; seen != nil {
			kept[of] = seen
		}
	}
	p.seen = kept
}

// Of is what was seen of a dataset of whichever policy.
func (p *Pins[S]) Of(d *policy.Dataset) (what S, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, seen := range p.seen {
		if what, known = seen[d.Whole()]; known {
			return what, true
		}
	}
	return what, false
}

// All is what was seen for a policy.
func (p *Pins[S]) All(of *policy.Policy) map[*policy.Dataset]S {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.seen[of.Whole()])
}

// Deciding is what was seen for the policy in force.
func (p *Pins[S]) Deciding() map[*policy.Dataset]S {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.inForce) == 0 {
		return nil
	}
	return maps.Clone(p.seen[p.inForce[0]])
}
