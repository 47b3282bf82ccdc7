package backend

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dpproxy/dpproxy/backend/units"
	"github.com/dpproxy/dpproxy/internal/moment"
	"github.com/dpproxy/dpproxy/internal/scratch"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Snapshots is a private database whose private tables are copied at public times (docs/adr/0078). Every paid query reads
// a copy: a DuckDB file in which values are normalised, units are numbers and each row has its rank (package rewrite, snapshot.go).
// The schema and public tables are the database's own (source).
//
// Claim. When a copy is begun and when it comes into force is public: it is begun at a time that the policy names, or at a start,
// and is in force Within later, to the microseconds of package moment. Which rows there are decides no more than whether it is made
// within that time at all, as of a query whether it ends within the owner's deadline (privacy rule 5). What fails it otherwise (the
// network, a full disk, another schema) is not for one row to say: the SQL that reads the rows holds total functions alone, and
// what it returns is bounded by the columns' types. A failed copy is the operator's to hear of, and leaves the last one in force.
type Snapshots struct {
	executor
	source source
	plan   policy.Snapshot
	key    string
	log    *slog.Logger
	making sync.Mutex // one copy at a time

	unitsMost int64 // bytes that the numbers of units may take while one is made

	failed atomic.Bool  // the last copy that was due was not made
	missed atomic.Int64 // how many were not

	mu     sync.Mutex
	copies []*copied // those in force, that of the newest policy first; a second one only after a change of the policy
	left   []*copied // those no longer in force that somebody reads
}

var _ Backend = (*Snapshots)(nil)

// errGone says that no copy has a query's tables.
var errGone = errors.New("backend: no snapshot has the tables")

// openSnapshots has a policy's snapshots made of a source, which it closes where it fails.
func openSnapshots(p *policy.Policy, of source, log *slog.Logger) (*Snapshots, error) {
	key, err := readKey(p.Backend.Snapshot.Key)
	if err != nil {
		return nil, errors.Join(err, of.Close())
	}
	scratch.Sweep(p.Backend.Snapshot.Dir, makingName) // of a process that was killed: private rows
	b := &Snapshots{source: of, plan: *p.Backend.Snapshot, key: key, log: log, unitsMost: units.Memory}
	b.executor = newExecutor(b.Dialect, b.groups, p.Backend.Deadline, log, runtime.GOMAXPROCS(0)) // each query uses every core by itself
	return b, nil
}

// Dialect is described at Backend.
func (b *Snapshots) Dialect() dialect.Dialect { return dialect.Snapshot }

// Close is described at Backend.
func (b *Snapshots) Close() error {
	b.mu.Lock()
	copies := b.copies
	b.copies, b.left = nil, slices.Concat(b.left, copies)
	b.mu.Unlock()
	for _, c := range copies {
		b.leave(c)
	}
	return b.source.Close()
}

// Ready is described at Backend. It looks at the copy alone.
func (b *Snapshots) Ready(caller context.Context, queries ...rewrite.Query) error {
	c := b.enter(queries...)
	switch {
	case c == nil && b.AsOf(nil) == 0:
		b.log.ErrorContext(caller, "no snapshot is in force")
		return ErrUnavailable
	case c == nil:
		b.log.ErrorContext(caller, "no snapshot in force has the tables that a query reads; nothing was charged for it")
		return ErrUnplanned
	}
	defer b.leave(c)
	return c.ready(caller, b.log, queries, c.textOf)
}

// groups runs a query.
func (b *Snapshots) groups(ctx context.Context, query rewrite.Query) ([][]privacy.Group, error) {
	c := b.enter(query)
	if c == nil {
		return nil, errGone
	}
	defer b.leave(c)
	text, err := c.textOf(query)
	if err != nil {
		return nil, err
	}
	return c.answer(ctx, query, text)
}

// ReadPublic is described at Backend: public tables are read live.
func (b *Snapshots) ReadPublic(ctx context.Context, t *policy.Table) (privacy.Released[[][]policy.Value], error) {
	return b.source.ReadPublic(ctx, t)
}

// Inspect is described at Backend.
func (b *Snapshots) Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) ([]Finding, error) {
	findings, err := b.source.Inspect(ctx, p, d)
	if err != nil || fatal(findings) {
		return findings, err
	}
	own, err := b.source.copyFindings(ctx, d)
	return append(findings, own...), err
}

// Adopt is described at Backend.
func (b *Snapshots) Adopt(p *policy.Policy) { b.source.Adopt(p) }

// AsOf is described at Backend.
func (b *Snapshots) AsOf(of *policy.Policy) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return momentOf(ofPolicy(b.copies, of))
}

// ofPolicy puts the copies first that were made for a policy. A session's policy may be the one before the newest.
func ofPolicy(copies []*copied, p *policy.Policy) []*copied {
	var its, others []*copied
	for _, c := range copies {
		if c.policies[p.Whole()] {
			its = append(its, c)
		} else {
			others = append(others, c)
		}
	}
	return append(its, others...)
}

// momentOf is that of the first copy that serves queries; 0: there is none.
func momentOf(copies []*copied, queries ...rewrite.Query) int64 {
	for _, c := range copies {
		if c.serves(queries) {
			return c.at.UnixNano()
		}
	}
	return 0
}

// Admit is described at Backend. The copies that are in force stay open until she leaves.
func (b *Snapshots) Admit(ctx context.Context, step time.Duration, of *policy.Policy) (asOf func(...rewrite.Query) int64, leave func(last time.Time), err error) {
	_, inner, err := b.executor.Admit(ctx, step, of)
	if err != nil {
		return nil, nil, err
	}
	b.mu.Lock()
	kept := ofPolicy(b.copies, of)
	for _, c := range kept {
		c.users++
	}
	b.mu.Unlock()
	return func(queries ...rewrite.Query) int64 { return momentOf(kept, queries...) }, func(last time.Time) {
		inner(last)
		for _, c := range kept {
			b.leave(c)
		}
	}, nil
}

// enter is the copy that queries name, or, where they name none, the first in force that has their tables; it stays open until leave.
// nil: there is none.
func (b *Snapshots) enter(queries ...rewrite.Query) *copied {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range slices.Concat(b.copies, b.left) {
		if !c.serves(queries) || len(queries) > 0 && queries[0].AsOf() != 0 && queries[0].AsOf() != c.at.UnixNano() {
			continue
		}
		c.users++
		return c
	}
	return nil
}

// serves tells whether a copy has the tables of queries.
func (c *copied) serves(queries []rewrite.Query) bool {
	return !slices.ContainsFunc(queries, func(q rewrite.Query) bool {
		return slices.ContainsFunc(q.Tables(), func(t *policy.Table) bool { return !c.names[rewrite.Copied(t)] })
	})
}

// leave closes a copy that is no longer in force when its last query ends.
func (b *Snapshots) leave(c *copied) {
	b.mu.Lock()
	c.users--
	last := c.users == 0
	if last {
		b.left = slices.DeleteFunc(b.left, func(o *copied) bool { return o == c })
	}
	b.mu.Unlock()
	if last {
		c.discard(b.log)
	}
}

// putInForce puts a copy in force for a policy, and with only the one before it out of force.
func (b *Snapshots) putInForce(c *copied, of *policy.Policy, only bool) {
	b.mu.Lock()
	old := b.copies
	c.policies[of.Whole()] = true
	b.copies = []*copied{c}
	if !only && len(old) > 0 {
		b.copies, old = append(b.copies, old[0]), old[1:]
	}
	for _, o := range old {
		o.superseded = true
	}
	b.left = append(b.left, old...)
	b.mu.Unlock()
	for _, o := range old {
		b.leave(o)
	}
	b.sweep()
	b.log.Info("snapshot in force", "as of", c.at.Format(time.RFC3339))
}

// Prepared is a copy of a policy's tables that waits for the policy: the ledger may yet refuse that.
type Prepared struct {
	backend *Snapshots
	copy    *copied
	policy  *policy.Policy
	made    bool // for this policy, just now
}

// PutInForce puts it in force. What queries of the policy before it read stays until the next copy comes into force. It does nothing
// where there are no copies.
func (p *Prepared) PutInForce() {
	if p == nil {
		return
	}
	b, c := p.backend, p.copy
	b.mu.Lock()
	i := slices.IndexFunc(b.copies, func(o *copied) bool { return o.digest == c.digest }) // itself, or one that came into force while it waited
	if i >= 0 {
		b.copies[0], b.copies[i] = b.copies[i], b.copies[0]
		b.copies[0].policies[p.policy.Whole()] = true
		c.superseded = c.superseded || b.copies[0] != c
	}
	b.mu.Unlock()
	if i >= 0 {
		b.leave(c)
		return
	}
	b.putInForce(c, p.policy, false)
}

// GiveUp is called instead where the policy does not come into force.
func (p *Prepared) GiveUp() {
	if p == nil {
		return
	}
	p.backend.mu.Lock()
	p.copy.superseded = p.copy.superseded || p.made
	p.backend.mu.Unlock()
	p.backend.leave(p.copy)
}

// Prepare has a copy of a policy's tables before the policy is in force: one that is in force, the newest that lies there, or one made
// now, which it returns Within after that was begun where another one is in force, and at once at a start. It ends with ctx.
func (b *Snapshots) Prepare(ctx context.Context, p *policy.Policy) (*Prepared, error) {
	want, err := b.extractionsOf(p)
	if err != nil {
		return nil, err
	}
	if c := b.have(want.digest); c != nil {
		return &Prepared{b, c, p, false}, nil
	}
	c, force, err := b.prepare(ctx, want)
	if err != nil {
		return nil, err
	}
	prepared := &Prepared{b, c, p, !force.IsZero()}
	if prepared.made {
		moment.Until(force, ctx.Done())
	}
	if ctx.Err() != nil {
		prepared.GiveUp()
		return nil, ctx.Err()
	}
	return prepared, nil
}

// prepare finds or makes a copy, and tells when it may come into force; the zero time: at once.
func (b *Snapshots) prepare(ctx context.Context, want extractions) (c *copied, force time.Time, err error) {
	b.making.Lock()
	defer b.making.Unlock()
	if c := b.have(want.digest); c != nil {
		return c, force, nil
	}
	if c := b.newest(ctx, want); c != nil {
		return c, force, nil
	}
	if b.AsOf(nil) == 0 {
		b.log.Info("the private tables are copied: dpproxy serves when that is done")
		c, err = b.make(ctx, want)
		return c, force, err
	}
	force = time.Now().Add(b.plan.Within)
	b.log.Info("the private tables are copied for another policy", "in force", force.UTC().Format(time.RFC3339))
	c, err = b.makeWithin(ctx, force, want)
	return c, force, err
}

// have is the copy in force that was made by this SQL, which stays open until leave; nil: there is none.
func (b *Snapshots) have(digest string) *copied {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.copies, func(c *copied) bool { return c.digest == digest })
	if i < 0 {
		return nil
	}
	b.copies[i].users++
	return b.copies[i]
}

// Keep makes copies at their times until ctx ends, for the policy that is in force then.
func (b *Snapshots) Keep(ctx context.Context, current func() *policy.Policy) {
	next := b.plan.Next(time.Now())
	if time.Unix(0, b.AsOf(nil)).Add(b.plan.Every).Before(next) { // one was missed
		next = time.Now()
	}
	for ; ; next = b.plan.Next(next) { // at once where the time has come meanwhile
		for time.Since(next) > b.plan.Every {
			next = b.plan.Next(next)
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		err := b.renew(ctx, next.Add(b.plan.Within), current)
		b.failed.Store(err != nil)
		if err != nil && ctx.Err() == nil {
			b.missed.Add(1)
			b.log.Error("no new snapshot; the last one stays in force", "as of", time.Unix(0, b.AsOf(nil)).UTC().Format(time.RFC3339), "error", err)
		}
	}
}

// mayWrite asks access(2) for the right to write.
const mayWrite = 2

// Next tells what is in the way of the next copy, or of a restart with this one; nil: nothing that is known. Questions wait for neither.
func (b *Snapshots) Next() error {
	b.mu.Lock()
	path := ""
	if len(b.copies) > 0 {
		path = b.copies[0].path
	}
	b.mu.Unlock()
	if path != "" {
		if _, err := os.Stat(path); err != nil {
			return errors.New("the file of the snapshot in force cannot be reached: a restart would wait for a new copy")
		}
	}
	if syscall.Access(b.plan.Dir, mayWrite) != nil {
		return errors.New("nothing can be written to its directory")
	}
	if b.failed.Load() {
		return errors.New("the last copy failed: the log says why")
	}
	return nil
}

// Missed is how many copies were due since the start and not made.
func (b *Snapshots) Missed() int64 { return b.missed.Load() }

// renew makes a copy and puts it in force at a moment.
func (b *Snapshots) renew(ctx context.Context, force time.Time, current func() *policy.Policy) error {
	b.making.Lock()
	defer b.making.Unlock()
	want, err := b.extractionsOf(current())
	if err != nil {
		return err
	}
	c, err := b.makeWithin(ctx, force, want)
	if err != nil {
		return err
	}
	moment.Until(force, ctx.Done())
	p := current()
	now, err := b.extractionsOf(p)
	if ctx.Err() != nil || err != nil || now.digest != want.digest {
		c.superseded = true
		b.leave(c)
		return errors.New("the policy changed meanwhile")
	}
	b.putInForce(c, p, true)
	return nil
}
