package pipeline

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// remembered is what is kept of statements, to be found by who asks, what, and under which settings (compile.go),
// as long as the policy and what the user holds are the very ones that it was made from. Of SELECT count(*) FROM people
// WHERE income BETWEEN 20 AND 3000 that is one template of plans for all numbers that may be in it (ADR 86), and the
// answers for some. Each user has a share of the room, beyond which all of hers is forgotten: what another asks makes
// nothing of hers slower (privacy rule 1). What is not found is made anew, so that nothing but time depends on what is
// kept.
type remembered struct {
	room int // cells of all users

	mu sync.RWMutex
	of map[string]*share // by user
}

type share struct {
	policy *policy.Policy
	known  map[string]*ofStatement
	size   int
	met    [maxMet]atomic.Uint32
}

// ofStatement is what is kept of one text under one set of settings.
type ofStatement struct {
	held     []ledger.Release
	template *planner.Template // nil: none
	answers  map[string]Result // by its parameters, or the numbers that were lifted out of it
	size     int
}

const (
	// maxRemembered is the room, some 200 MB.
	maxRemembered = 1 << 21
	// templateCells and statementCells are what a template takes of it, and a statement beside its text.
	templateCells, statementCells = 64, 16
	// maxMet is how many questions of a user are remembered to have been asked, or so.
	maxMet = 1 << 12
)

// cellsOf is what keeping an answer takes of maxRemembered.
func cellsOf(values []byte, r Result) int {
	rows := r.Rows.Value()
	return 8 + len(values)/8 + len(rows.Data)*len(rows.Columns)
}

// repeatable reports whether an answer is worth keeping: it was free, made in Go, and does not depend on the time.
func repeatable(plan *plans.Plan, bought purchase) bool {
	if plan.Outer.Direct == nil || isOnline(plan) || len(plan.Measures) == 0 || !bought.charged.IsZero() || !plan.Timeless() {
		return false
	}
	for _, m := range plan.Measures {
		if !m.Held {
			return false
		}
	}
	return true
}

// find looks for what is kept of a statement.
func (m *remembered) find(s *Session, l *lookup) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	own := m.of[s.User]
	if own == nil || own.policy != s.Policy {
		return
	}
	if known := own.known[string(l.statement)]; known != nil && sameList(known.held, l.held) {
		l.template = known.template
		if l.valued {
			l.answer, l.answered = known.answers[string(l.values)]
		}
	}
}

// keepAnswer keeps the answer of a statement that was looked up.
func (m *remembered) keepAnswer(s *Session, l *lookup, r Result) {
	if l.valued {
		m.keep(s, l, cellsOf(l.values, r), func(known *ofStatement) { known.answers[string(l.values)] = r })
	}
}

// keepTemplate keeps how it is planned.
func (m *remembered) keepTemplate(s *Session, l *lookup, t *planner.Template) {
	m.keep(s, l, templateCells, func(known *ofStatement) { known.template = t })
}

func (m *remembered) keep(s *Session, l *lookup, size int, put func(*ofStatement)) {
	whole := size + statementCells + len(l.statement)/8
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]*share{}
	}
	own := m.of[s.User]
	if own == nil || own.policy != s.Policy || own.size+whole > m.room/max(len(s.Policy.Users), 1) {
		own = &share{policy: s.Policy, known: map[string]*ofStatement{}}
		m.of[s.User] = own
	}
	known := own.known[string(l.statement)]
	if known != nil && !sameList(known.held, l.held) {
		own.size, known = own.size-known.size, nil
	}
	if known == nil {
		known, size = &ofStatement{held: l.held, answers: map[string]Result{}}, whole
		own.known[string(l.statement)] = known
	}
	put(known)
	known.size += size
	own.size += size
}

// meets reports whether a question has been asked lately, and notes that it has. It is wrong of a few, which costs time
// alone.
func (m *remembered) meets(s *Session, l *lookup) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	own := m.of[s.User]
	if own == nil {
		return false
	}
	var h maphash.Hash
	h.SetSeed(metSeed)
	_, _ = h.Write(l.statement) // never fails
	_, _ = h.Write(l.values)    // as above
	sum := h.Sum64()
	return own.met[sum%maxMet].Swap(uint32(sum>>32)) == uint32(sum>>32)
}

var metSeed = maphash.MakeSeed()

// holdingsIndex keeps the planner's inventory of each user and dataset. The ledger hands out one immutable list for
// them; when that is longer, what is new is added, and when something has gone from it, the inventory is made anew.
type holdingsIndex struct{ byUser sync.Map }

// heldIndex is the inventory of one user and dataset.
type heldIndex struct {
	mu  sync.Mutex // for changes
	now atomic.Pointer[inventoryOf]
}

// inventoryOf is an inventory with the list that it was made of. It may already hold more.
type inventoryOf struct {
	from      []ledger.Release
	kept      []ledger.Release // of these, those that were not refined: what refines them has taken their place
	inventory *reuse.Index
}

func (h *holdingsIndex) of(releases []ledger.Release, user, dataset string) *reuse.Index {
	key := [2]string{user, dataset}
	got, ok := h.byUser.Load(key)
	if !ok {
		got, _ = h.byUser.LoadOrStore(key, &heldIndex{})
	}
	return got.(*heldIndex).of(releases)
}

func (h *heldIndex) of(releases []ledger.Release) *reuse.Index {
	if now := h.now.Load(); now != nil && sameList(now.from, releases) {
		return now.inventory
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now, next, from := h.now.Load(), &inventoryOf{from: releases}, 0
	grown := now != nil && hasGrown(now.from, releases)
	if grown {
		next.kept = appendStanding(now.kept, releases[len(now.from):])
	} else {
		next.kept = appendStanding(nil, releases)
	}
	if grown || now != nil && isPrefix(now.kept, next.kept) {
		next.inventory, from = now.inventory, len(now.kept)
	} else { // something has gone, be it the last of them: it was withdrawn, or she has left a group
		next.inventory = reuse.NewIndex()
	}
	for _, r := range next.kept[from:] {
		next.inventory.Add(reuse.Holding{ID: r.ID, Digest: plans.Digest(r.Item.Digest), Spec: r.Item.Spec, At: r.At, AsOf: r.Item.AsOf, Cost: r.Item.Cost, Described: r.Item.Described,
			Refinable: plans.RefinableLevels{Level: r.Item.Ladder.Level, Top: r.Item.Ladder.Finest}})
	}
	h.now.Store(next)
	return next.inventory
}

// hasGrown reports whether a list is another with more behind it, as the ledger makes it of what is bought: for all
// else it makes a new one.
func hasGrown(before, now []ledger.Release) bool {
	return len(before) > 0 && len(before) <= len(now) && &before[0] == &now[0]
}

// appendStanding adds the releases that were not refined.
func appendStanding(kept, releases []ledger.Release) []ledger.Release {
	for _, r := range releases {
		if !r.Refined {
			kept = append(kept, r)
		}
	}
	return kept
}

func sameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// isPrefix reports whether a list begins with the releases of another.
func isPrefix(a, b []ledger.Release) bool {
	if len(a) > len(b) {
		return false
	}
	for i := range a {
		if a[i].ID != b[i].ID || !a[i].At.Equal(b[i].At) || a[i].Item.Ladder != b[i].Item.Ladder {
			return false
		}
	}
	return true
}

// alarmTold says what a question of a run of alarms learnt.
func alarmTold(m *plans.Measure, answer mechanisms.SessionAnswer) string {
	positives, left := m.Spec.Kind.(*mechanisms.Alarm).Positives, answer.Left
	switch yes := answer.Value != 0; {
	case answer.Guessed:
		return m.Name + ": not asked, since the run ended before: the answer is NULL"
	case yes && left == 0:
		return fmt.Sprintf("%s: yes, the last of the run's %d: it has ended, and the next such question buys a new one", m.Name, positives)
	case yes:
		return fmt.Sprintf("%s: yes; %d of the run's %d are left", m.Name, left, positives)
	}
	return fmt.Sprintf("%s: no, which is free; %d of the run's %d yes answers are left", m.Name, left, positives)
}

// onlineParts says what a statement learnt of its online releases: all of it are released values.
func (r *releases) onlineParts(ctx context.Context, s *Session, plan *plans.Plan, ids []int64, answers runAnswers) []string {
	var parts []string
	for i, m := range plan.Measures {
		o, ok := m.Spec.Kind.(*mechanisms.Online)
		if !ok {
			continue
		}
		hard, guessed, asked := 0, 0, false
		for run := range runs(plan) {
			if run.Measure != i {
				continue
			}
			asked = true
			for _, one := range answers[run] {
				if one.Guessed {
					guessed++
				} else if one.Hard {
					hard++
				}
			}
		}
		if !asked {
			continue // its hypothesis alone is read
		}
		left := r.left(ctx, s)(ids[i])
		text := fmt.Sprintf("online release %s: %d from the rows, the others from its hypothesis; %d of %d updates left", m.Name, hard, left, o.Updates)
		if guessed > 0 {
			text += fmt.Sprintf("; it stopped on the way: %d values are its hypothesis's own, and their error is not known", guessed)
		} else if left == 0 {
			text += ": it has stopped"
		}
		parts = append(parts, text)
	}
	return parts
}

// withDetail adds to the detail of the answer's notice.
func withDetail(notices []Notice, told []string) []Notice {
	if len(told) == 0 || len(notices) == 0 {
		return notices
	}
	out := slices.Clone(notices)
	if out[0].Detail != "" {
		told = append(told, out[0].Detail)
	}
	out[0].Detail = strings.Join(told, "\n")
	return out
}

// refinements tell what was refined.
func refinements(plan *plans.Plan, bought purchase) (lines []string) {
	if bought.charged.IsZero() {
		return nil
	}
	for _, m := range plan.Measures {
		if m.Refines() {
			lines = append(lines, m.Name+" refines what you had: ε "+m.Refinement.Paid.String()+" was paid for it, ε "+m.Refinement.Level.String()+
				" now in all; it tells of the data as they were then")
		}
	}
	return lines
}
