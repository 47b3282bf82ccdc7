// Package snapshot answers from copies of private tables, which are made at public times. What they are made of is a
// Source, of a package of its own.
package snapshot

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

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/backend/units"
	"github.com/dpproxy/dpproxy/internal/moment"
	"github.com/dpproxy/dpproxy/internal/scratch"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Snapshots is a private database whose private tables are copied at public times (docs/adr/0078). Every paid query
// reads a copy: a DB file in which values are normalised, units are numbers and each row has its rank (package rewrite,
// snapshot.go). The schema and public tables are the database's own (source).
//
// Claim. When a copy is begun and when it comes into force is public: it is begun at a time that the policy names, or
// at a start, and is in force Within later, to the microseconds of package moment. Which rows there are decides no more
// than whether it is made within that time at all, as of a query whether it ends within the owner's deadline (privacy
// rule 5). What fails it otherwise (the network, a full disk, another schema) is not for one row to say: the SQL that
// reads the rows holds total functions alone, and what it returns is bounded by the columns' types. A failed copy is
// the operator's to hear of, and leaves the last one in force.
type Snapshots struct {
	execute.Executor
	Source Source
	Plan   policy.Snapshot
	key    string
	Log    *slog.Logger
	making sync.Mutex // one copy at a time

	UnitsMost int64 // bytes that the numbers of units may take while one is made

	failed atomic.Bool  // the last copy that was due was not made
	missed atomic.Int64 // how many were not

	mu     sync.Mutex
	Copies []*Copied // those in force, that of the newest policy first; a second one only after a change of the policy
	left   []*Copied // those no longer in force that somebody reads
}

var _ backend.Copies = (*Snapshots)(nil)

// errGone says that no copy has a query's tables.
var errGone = errors.New("backend: no snapshot has the tables")

// Open has a policy's snapshots made of a source, which it closes where it fails.
func Open(p *policy.Policy, of Source, log *slog.Logger) (*Snapshots, error) {
	key, err := ReadKey(p.Backend.Snapshot.Key)
	if err != nil {
		return nil, errors.Join(err, of.Close())
	}
	scratch.Sweep(p.Backend.Snapshot.Dir, makingName) // of a process that was killed: private rows
	b := &Snapshots{Source: of, Plan: *p.Backend.Snapshot, key: key, Log: log, UnitsMost: units.Memory}
	b.Executor = execute.NewExecutor(b.Dialect, b.groups, p.Backend.Deadline, log, runtime.GOMAXPROCS(0)) // each query uses every core by itself
	return b, nil
}

// Dialect: see Backend.
func (b *Snapshots) Dialect() dialect.Dialect { return dialect.Snapshot }

// Close: see Backend.
func (b *Snapshots) Close() error {
	b.mu.Lock()
	copies := b.Copies
	b.Copies, b.left = nil, slices.Concat(b.left, copies)
	b.mu.Unlock()
	for _, c := range copies {
		b.Leave(c)
	}
	return b.Source.Close()
}

// Ready: see Backend. It looks at the copy alone.
func (b *Snapshots) Ready(caller context.Context, queries ...rewrite.Query) error {
	c := b.Enter(queries...)
	switch {
	case c == nil && b.AsOf(nil) == 0:
		b.Log.ErrorContext(caller, "no snapshot is in force")
		return backend.ErrUnavailable
	case c == nil:
		b.Log.ErrorContext(caller, "no snapshot in force has the tables that a query reads; nothing was charged for it")
		return backend.ErrUnplanned
	}
	defer b.Leave(c)
	return c.ReadyTo(caller, b.Log, queries, c.textOf)
}

// groups runs a query.
func (b *Snapshots) groups(ctx context.Context, query rewrite.Query) ([][]privacy.Group, error) {
	c := b.Enter(query)
	if c == nil {
		return nil, errGone
	}
	defer b.Leave(c)
	text, err := c.textOf(query)
	if err != nil {
		return nil, err
	}
	return c.Answer(ctx, query, text)
}

// ReadPublic: see Backend. Public tables are read live.
func (b *Snapshots) ReadPublic(ctx context.Context, t *policy.Table) (privacy.Released[[][]policy.Value], error) {
	return b.Source.ReadPublic(ctx, t)
}

// Inspect: see Backend.
func (b *Snapshots) Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) ([]backend.Finding, error) {
	findings, err := b.Source.Inspect(ctx, p, d)
	if err != nil || inspect.Fatal(findings) {
		return findings, err
	}
	own, err := b.Source.CopyFindings(ctx, d)
	return append(findings, own...), err
}

// Adopt: see Backend.
func (b *Snapshots) Adopt(p *policy.Policy) { b.Source.Adopt(p) }

// AsOf: see Backend.
func (b *Snapshots) AsOf(of *policy.Policy) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return momentOf(ofPolicy(b.Copies, of))
}

// ofPolicy puts the copies first that were made for a policy. A session's policy may be the one before the newest.
func ofPolicy(copies []*Copied, p *policy.Policy) []*Copied {
	var its, others []*Copied
	for _, c := range copies {
		if c.policies[p.Whole()] {
			its = append(its, c)
		} else {
			others = append(others, c)
		}
	}
	return append(its, others...)
}

// momentOf is that of the first copy that serves queries; 0 means there is none.
func momentOf(copies []*Copied, queries ...rewrite.Query) int64 {
	for _, c := range copies {
		if c.serves(queries) {
			return c.At.UnixNano()
		}
	}
	return 0
}

// Admit: see Backend. The copies that are in force stay open until she leaves.
func (b *Snapshots) Admit(ctx context.Context, step time.Duration, of *policy.Policy) (asOf func(...rewrite.Query) int64, leave func(last time.Time), err error) {
	_, inner, err := b.Executor.Admit(ctx, step, of)
	if err != nil {
		return nil, nil, err
	}
	b.mu.Lock()
	kept := ofPolicy(b.Copies, of)
	for _, c := range kept {
		c.users++
	}
	b.mu.Unlock()
	return func(queries ...rewrite.Query) int64 { return momentOf(kept, queries...) }, func(last time.Time) {
		inner(last)
		for _, c := range kept {
			b.Leave(c)
		}
	}, nil
}

// Enter is the copy that queries name, or, where they name none, the first in force that has their tables; it stays
// open until leave. nil means there is none.
func (b *Snapshots) Enter(queries ...rewrite.Query) *Copied {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range slices.Concat(b.Copies, b.left) {
		if !c.serves(queries) || len(queries) > 0 && queries[0].AsOf() != 0 && queries[0].AsOf() != c.At.UnixNano() {
			continue
		}
		c.users++
		return c
	}
	return nil
}

// serves reports whether a copy has the tables of queries.
func (c *Copied) serves(queries []rewrite.Query) bool {
	return !slices.ContainsFunc(queries, func(q rewrite.Query) bool {
		return slices.ContainsFunc(q.Tables(), func(t *policy.Table) bool { return !c.Names[rewrite.Copied(t)] })
	})
}

// Leave closes a copy that is no longer in force when its last query ends.
func (b *Snapshots) Leave(c *Copied) {
	b.mu.Lock()
	c.users--
	last := c.users == 0
	if last {
		b.left = slices.DeleteFunc(b.left, func(o *Copied) bool { return o == c })
	}
	b.mu.Unlock()
	if last {
		c.Discard(b.Log)
	}
}

// putInForce puts a copy in force for a policy, and with only the one before it out of force.
func (b *Snapshots) putInForce(c *Copied, of *policy.Policy, only bool) {
	b.mu.Lock()
	old := b.Copies
	c.policies[of.Whole()] = true
	b.Copies = []*Copied{c}
	if !only && len(old) > 0 {
		b.Copies, old = append(b.Copies, old[0]), old[1:]
	}
	for _, o := range old {
		o.Superseded = true
	}
	b.left = append(b.left, old...)
	b.mu.Unlock()
	for _, o := range old {
		b.Leave(o)
	}
	b.sweep()
	b.Log.Info("snapshot in force", "as of", c.At.Format(time.RFC3339))
}

// Prepared implements Prepared.
type Prepared struct {
	backend *Snapshots
	Copy    *Copied
	policy  *policy.Policy
	made    bool // for this policy, just now
}

// PutInForce puts it in force. What queries of the policy before it read stays until the next copy comes into force.
func (p *Prepared) PutInForce() {
	b, c := p.backend, p.Copy
	b.mu.Lock()
	i := slices.IndexFunc(b.Copies, func(o *Copied) bool { return o.Digest == c.Digest }) // itself, or one that came into force while it waited
	if i >= 0 {
		b.Copies[0], b.Copies[i] = b.Copies[i], b.Copies[0]
		b.Copies[0].policies[p.policy.Whole()] = true
		c.Superseded = c.Superseded || b.Copies[0] != c
	}
	b.mu.Unlock()
	if i >= 0 {
		b.Leave(c)
		return
	}
	b.putInForce(c, p.policy, false)
}

// GiveUp: see Prepared.
func (p *Prepared) GiveUp() {
	p.backend.mu.Lock()
	p.Copy.Superseded = p.Copy.Superseded || p.made
	p.backend.mu.Unlock()
	p.backend.Leave(p.Copy)
}

// Prepare has a copy of a policy's tables before the policy is in force: one that is in force, the newest that lies
// there, or one made now, which it returns Within after that was begun where another one is in force, and at once at a
// start. It ends with ctx.
func (b *Snapshots) Prepare(ctx context.Context, p *policy.Policy) (backend.Prepared, error) {
	want, err := b.ExtractionsOf(p)
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
	made := &Prepared{b, c, p, !force.IsZero()}
	if made.made {
		moment.Until(force, ctx.Done())
	}
	if ctx.Err() != nil {
		made.GiveUp()
		return nil, ctx.Err()
	}
	return made, nil
}

// prepare finds or makes a copy, and tells when it may come into force; the zero time: at once.
func (b *Snapshots) prepare(ctx context.Context, want extractions) (c *Copied, force time.Time, err error) {
	b.making.Lock()
	defer b.making.Unlock()
	if c := b.have(want.digest); c != nil {
		return c, force, nil
	}
	if c := b.newest(ctx, want); c != nil {
		return c, force, nil
	}
	if b.AsOf(nil) == 0 {
		b.Log.Info("the private tables are copied: dpproxy serves when that is done")
		c, err = b.Make(ctx, want)
		return c, force, err
	}
	force = time.Now().Add(b.Plan.Within)
	b.Log.Info("the private tables are copied for another policy", "in force", force.UTC().Format(time.RFC3339))
	c, err = b.makeWithin(ctx, force, want)
	return c, force, err
}

// have is the copy in force that was made by this SQL, which stays open until leave; nil means there is none.
func (b *Snapshots) have(digest string) *Copied {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.Copies, func(c *Copied) bool { return c.Digest == digest })
	if i < 0 {
		return nil
	}
	b.Copies[i].users++
	return b.Copies[i]
}

// Keep makes copies at their times until ctx ends, for the policy that is in force then.
func (b *Snapshots) Keep(ctx context.Context, current func() *policy.Policy) {
	next := b.Plan.Next(time.Now())
	if time.Unix(0, b.AsOf(nil)).Add(b.Plan.Every).Before(next) { // one was missed
		next = time.Now()
	}
	for ; ; next = b.Plan.Next(next) { // at once where the time has come meanwhile
		for time.Since(next) > b.Plan.Every {
			next = b.Plan.Next(next)
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		err := b.Renew(ctx, next.Add(b.Plan.Within), current)
		b.failed.Store(err != nil)
		if err != nil && ctx.Err() == nil {
			b.missed.Add(1)
			b.Log.Error("no new snapshot; the last one stays in force", "as of", time.Unix(0, b.AsOf(nil)).UTC().Format(time.RFC3339), "error", err)
		}
	}
}

// mayWrite asks access(2) for the right to write.
const mayWrite = 2

// Next tells what is in the way of the next copy, or of a restart with this one; nil means nothing that is known.
// Questions wait for neither.
func (b *Snapshots) Next() error {
	b.mu.Lock()
	path := ""
	if len(b.Copies) > 0 {
		path = b.Copies[0].Path
	}
	b.mu.Unlock()
	if path != "" {
		if _, err := os.Stat(path); err != nil {
			return errors.New("the file of the snapshot in force cannot be reached: a restart would wait for a new copy")
		}
	}
	if syscall.Access(b.Plan.Dir, mayWrite) != nil {
		return errors.New("nothing can be written to its directory")
	}
	if b.failed.Load() {
		return errors.New("the last copy failed: the log says why")
	}
	return nil
}

// Missed is how many copies were due since the start and not made.
func (b *Snapshots) Missed() int64 { return b.missed.Load() }

// Renew makes a copy and puts it in force at a moment.
func (b *Snapshots) Renew(ctx context.Context, force time.Time, current func() *policy.Policy) error {
	b.making.Lock()
	defer b.making.Unlock()
	want, err := b.ExtractionsOf(current())
	if err != nil {
		return err
	}
	c, err := b.makeWithin(ctx, force, want)
	if err != nil {
		return err
	}
	moment.Until(force, ctx.Done())
	p := current()
	now, err := b.ExtractionsOf(p)
	if ctx.Err() != nil || err != nil || now.digest != want.digest {
		c.Superseded = true
		b.Leave(c)
		return errors.New("the policy changed meanwhile")
	}
	b.putInForce(c, p, true)
	return nil
}
