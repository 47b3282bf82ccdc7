package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/internal/moment"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/spans"
	"github.com/dpproxy/dpproxy/rewrite"
)

// database is the private database as statements come to it: each waits for slots, and runs what it has paid for.
type database struct {
	backend   backend.Backend
	purchases *admission.Slots // each user's, of statements that are charged and counted
	workers   *admission.Workers
	log       *slog.Logger
}

// grants are what admission has granted a statement that has private rows read, whether it finds keys, buys or asks:
// one of its user's slots for purchases, a slot of the private database, and memory for results. It has them until its
// last answer is read, and what it began has ended: nothing of it waits or is refused after another part was paid. A
// user's slot is waited for before the database's, never with one of these in hand: else some could hold all of the
// database's and wait for their users', whose holders wait for the database's.
type grants struct {
	mu       sync.Mutex
	holders  int                  // what goes on of the statement
	user     func()               // gives its user's slot back; nil means it has none
	database func(last time.Time) // gives the database's slot back; nil means it has none
	last     time.Time            // when its last query returned
	asOf     int64                // of the rows that its queries read
	bytes    int64                // that are reserved for its results
	giveBack []func(last time.Time)
	beside   int       // how many of its queries may run beside the first of them
	first    sync.Once // ends the first of the holders
}

// done ends the first of the holders.
func (g *grants) done() { g.first.Do(g.leave) }

// leave ends one of the holders. With the last of them all is given back.
func (g *grants) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holders--; g.holders > 0 {
		return
	}
	if g.database != nil {
		g.database(g.last)
	}
	for _, giveBack := range g.giveBack {
		giveBack(g.last)
	}
	if g.user != nil {
		g.user()
	}
	g.database, g.user, g.last, g.giveBack, g.bytes, g.beside = nil, nil, time.Time{}, nil, 0, 0
}

// join is for what a statement begins and does not wait for to its end: it calls leave.
func (g *grants) join() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holders++
}

// rows is the moment of the rows that the statement's queries read.
func (g *grants) rows() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asOf
}

// lastQuery is when the last query of the statement returned, the zero time if it has run none.
func (g *grants) lastQuery() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last
}

// returned notes that a query has just returned.
func (g *grants) returned() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = time.Now()
}

// queriesBeside is how many queries may run beside the first.
func (g *grants) queriesBeside() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.beside
}

// takeToken takes one of its user's for a statement that buys: one, however often it is planned anew (ADR 44).
func (d *database) takeToken(x *execution) bool {
	x.token = x.token || d.purchases.TakeToken(x.User, x.Policy.Server.Limits.PurchasesPerSecond, time.Now())
	return x.token
}

// awaitUser has a statement that buys wait for one of its user's slots, if it has none yet.
func (d *database) awaitUser(ctx context.Context, x *execution) (err error) {
	g := &x.admitted
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.user == nil {
		g.user, err = d.purchases.Wait(ctx, x.User, x.Policy.Server.Limits.UserPurchases)
	}
	return err
}

// admit has a statement wait for a slot of the private database, if it has none yet, and then looks whether the private
// database can run queries, and would plan these. It fails before anything is charged for what follows; kept is what an
// analyst is answered of that.
func (d *database) admit(ctx context.Context, x *execution, queries []rewrite.Query, kept string) error {
	g := &x.admitted
	g.mu.Lock()
	defer g.mu.Unlock()
	leave := g.database
	if leave == nil {
		var err error
		var asOf func(...rewrite.Query) int64
		if asOf, leave, err = d.awaitDatabase(ctx, x.Session); err != nil {
			return err
		}
		g.asOf = asOf(queries...)
	} else if len(queries) == 0 {
		return nil
	}
	queries = slices.Clone(queries)
	for i := range queries {
		queries[i] = queries[i].Of(g.asOf)
	}
	err := g.reserve(ctx, d.workers, x.Policy.Server.Timing.Fresh, queries)
	if err == nil {
		err = d.backend.Ready(ctx, queries...)
	}
	if err != nil {
		if g.database == nil {
			leave(time.Time{})
		}
		if errors.Is(err, admission.ErrMemory) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err() // the client no longer waits: that says nothing of the database
		}
		d.log.ErrorContext(ctx, "private database not ready", "error", err)
		if errors.Is(err, backend.ErrUnplanned) {
			return &pgerror.Failure{SQLState: "DP004", Message: "the database does not accept the query that would answer this; " + kept,
				Hint: "The operator's log names the cause. Another form of the question may be accepted: EXPLAIN shows each one's query, free of charge.", Logged: true}
		}
		if errors.Is(err, backend.ErrDrift) || errors.Is(err, backend.ErrSettings) { // one word for all causes
			return &pgerror.Failure{SQLState: "DP004", Message: "the database is not, at present, what the policy was checked against; " + kept,
				Hint: "The operator's log names the cause. What was paid for is answered as ever.", Logged: true}
		}
		return &pgerror.Failure{SQLState: "DP004", Message: "the database cannot be reached; " + kept, Logged: true}
	}
	g.database = leave
	return nil
}

// awaitDatabase waits until the private database has a slot for a statement of this user, and until it is admitted
// there.
func (d *database) awaitDatabase(ctx context.Context, s *Session) (asOf func(...rewrite.Query) int64, leave func(last time.Time), err error) {
	step := s.Policy.Server.Timing.Fresh
	done, err := d.workers.Query(ctx, s.User, step, d.backend.OnTimetable(step))
	if err != nil {
		return nil, nil, err
	}
	asOf, left, err := d.backend.Admit(ctx, step, s.Policy)
	if err != nil {
		done(time.Time{})
		return nil, nil, err
	}
	return asOf, func(last time.Time) {
		left(last)
		done(last)
	}, nil
}

// runQuery runs the paid query of one measure of a statement.
func (d *database) runQuery(ctx context.Context, x *execution, query rewrite.Query, receipt *ledger.Receipt) (privacy.Sensitive[[]privacy.Group], error) {
	counted, err := d.runScan(ctx, x, query, []*ledger.Receipt{receipt})
	if err != nil {
		return privacy.Sensitive[[]privacy.Group]{}, err
	}
	return counted[0], nil
}

// runScan runs a paid query of a statement, for all measures of its scan. A query after another begins on the grid: how
// long what lies between them took (whether an alarm's yes had to be saved) is not to show in when others' turns come.
func (d *database) runScan(ctx context.Context, x *execution, query rewrite.Query, receipts []*ledger.Receipt) ([]privacy.Sensitive[[]privacy.Group], error) {
	defer spans.Begin(ctx, spans.Execute, spans.Table(query.Table().Name))()
	timing := x.Policy.Server.Timing
	if last := x.admitted.lastQuery(); !last.IsZero() && timing.Grid > 0 {
		moment.Until(moment.Next(last, timing.Grid), nil)
	}
	defer x.admitted.returned()
	return d.backend.Execute(ctx, query.Of(x.admitted.rows()), receipts, timing.Fresh)
}

// recovered turns a panic into an error. Its text may hold values and is not logged.
func (d *database) recovered(ctx context.Context, err *error) {
	if r := recover(); r != nil {
		d.log.ErrorContext(ctx, "panic while drawing a release", "panic", fmt.Sprintf("%T", r))
		*err = errInternal
	}
}

// runs reports whether what is bought of a plan runs queries: all but what refines a release that is held.
func (r *releases) runs(plan *plans.Plan, wanted []int) bool {
	return r.behind(plan) || slices.ContainsFunc(wanted, func(i int) bool { return plan.Measures[i].Reads() != plans.Never })
}

// resultBytes is what the results of queries take at most, which are run one after the other: each as it comes, and
// once more with its weights.
func resultBytes(queries []rewrite.Query) (most int64) {
	for _, q := range queries {
		most = max(most, 2*backend.Reserved(q))
	}
	return most
}

// reserve reserves memory for results of queries, as far as the statement has not done so before.
func (g *grants) reserve(ctx context.Context, workers *admission.Workers, step time.Duration, queries []rewrite.Query) error {
	bytes := resultBytes(queries) - g.bytes
	if bytes <= 0 {
		return nil
	}
	giveBack, err := workers.Reserve(ctx, bytes)
	if err != nil {
		return err
	}
	g.bytes += bytes
	g.giveBack = append(g.giveBack, admission.OnGrid(step, giveBack))
	return nil
}

// queriesToPlan are those that buying the wanted measures of a plan runs, which the database is asked to plan before
// the charge: those of releases that grow too, which are rendered in their last step's form.
func queriesToPlan(plan *plans.Plan, queries []rewrite.Query, wanted []int) (list []rewrite.Query) {
	for i, q := range queries {
		if q.Valid() && (plan.Measures[i].Reads() == plans.EachStep || slices.Contains(wanted, i)) && !slices.ContainsFunc(list, q.Beside) {
			list = append(list, q)
		}
	}
	return list
}

// The queries of a statement that buys several measures run side by side, as far as the private database has slots that
// nobody waits for:
//
//	SELECT (SELECT count(*) FROM people), (SELECT count(*) FROM visits WHERE minutes > 20)
//
// has two. (Those over one table are read in one scan, package rewrite: what follows says of queries what holds of
// scans.) Only the reading overlaps: they are charged together before the first of them runs, and drawn and saved one
// after another in the plan's order, those of one scan one after another (scans), each as soon as its groups are there
// and those before it are saved (privacy rule 4). What is read, and what is drawn from it with which randomness, is
// what it would be one after the other.
//
// Claim. On a grid (ADRs 36 and 45) the times tell no more of the rows than one after the other. Proof. How many run
// beside the first depends on the plan and on which slots are free, which become free at public moments. Each query is
// admitted to the timetable by itself, so that its turn still comes within three steps, and returns at a public moment
// since its turn; the first to be drawn waits for the first query, and so on, so that what follows begins at the
// largest of some public moments.

// admitBeside takes slots for queries beside the first of a statement that has been admitted, and memory for their
// results, of what is to be had at once.
func (d *database) admitBeside(ctx context.Context, x *execution, plan *plans.Plan, queries []rewrite.Query, wanted []int) {
	if !readOnce(plan, wanted) {
		return
	}
	var bytes []int64
	for k, i := range wanted {
		if queries[i].Valid() && !slices.ContainsFunc(wanted[:k], func(j int) bool { return queries[i].Beside(queries[j]) }) {
			bytes = append(bytes, resultBytes(queries[i:i+1]))
		}
	}
	slices.SortFunc(bytes, func(a, b int64) int { return int(min(max(b-a, -1), 1)) })
	g, step := &x.admitted, x.Policy.Server.Timing.Fresh
	g.mu.Lock()
	defer g.mu.Unlock()
	for k := 1 + g.beside; k < min(len(bytes), d.backend.Slots()); k++ { // memory for the largest has been reserved
		leave, had := d.workers.Spare(x.User, step, d.backend.OnTimetable(step))
		if !had {
			return
		}
		_, left, err := d.backend.Admit(ctx, step, x.Policy)
		if err != nil {
			leave(time.Time{})
			return
		}
		giveBack, had := d.workers.ReserveSpare(bytes[k])
		if !had {
			left(time.Time{})
			leave(time.Time{})
			return
		}
		g.beside++
		g.giveBack = append(g.giveBack, left, leave, admission.OnGrid(step, giveBack))
	}
}

// readOnce reports whether each of the measures that are bought reads its rows when it is bought, or none: what asks
// its rows again and again does so by itself.
func readOnce(plan *plans.Plan, wanted []int) bool {
	return !slices.ContainsFunc(wanted, func(i int) bool {
		when := plan.Measures[i].Reads()
		return when != plans.Once && when != plans.Never
	})
}

// scans puts what is bought of a plan in the order in which it is drawn: the plan's, but for measures that are read in
// one scan, which are together where the first of them is. So no scan's result waits for another scan.
func scans(queries []rewrite.Query, wanted []int) []int {
	var order []int
	for k, i := range wanted {
		if slices.Contains(order, i) {
			continue
		}
		order = append(order, i)
		for _, j := range wanted[k+1:] {
			if queries[i].Beside(queries[j]) {
				order = append(order, j)
			}
		}
	}
	return order
}

// trueCounts are what is counted for a measure: groups waits for it, or is nil if nothing is; over says that it is
// drawn from.
type trueCounts struct {
	groups func() (privacy.Sensitive[[]privacy.Group], error)
	over   func()
}

// scanned is one scan of a statement, and what comes of it.
type scanned struct {
	query    rewrite.Query
	receipts []*ledger.Receipt // by the measures that it is for
	left     int               // measures that are not drawn from yet
	read     func() ([]privacy.Sensitive[[]privacy.Group], error)
	over     func()
}

// readBeside runs the queries of the receipts that a statement has. rows are those of the kth of what is wanted, each
// taken once, in the order of scans: so many queries run, or wait to be drawn from, as the statement has slots.
func (d *database) readBeside(ctx context.Context, x *execution, plan *plans.Plan, queries []rewrite.Query, wanted []int, outcomes []ledger.Outcome) (rows func(k int) trueCounts) {
	var run []*scanned
	of := make([]*scanned, len(wanted))
	for k, i := range wanted {
		if when := plan.Measures[i].Reads(); outcomes[k].Receipt == nil || when != plans.Once && when != plans.OnceKept {
			continue
		}
		at := slices.IndexFunc(run, func(s *scanned) bool { return s.query.Beside(queries[i]) })
		if at < 0 {
			at, run = len(run), append(run, &scanned{query: queries[i], receipts: make([]*ledger.Receipt, len(queries[i].Measures())), over: func() {}})
		}
		of[k] = run[at]
		of[k].left++
		of[k].receipts[queries[i].Number()] = outcomes[k].Receipt
	}
	for _, one := range run {
		one.read = sync.OnceValues(func() ([]privacy.Sensitive[[]privacy.Group], error) {
			return d.runScan(ctx, x, one.query, one.receipts)
		})
	}
	if beside := x.admitted.queriesBeside(); beside > 0 && readOnce(plan, wanted) {
		d.start(ctx, run, 1+beside)
	}
	return func(k int) trueCounts {
		i, one := wanted[k], of[k]
		if one == nil { // it refines what is held, or asks its rows by itself
			return trueCounts{over: func() {}}
		}
		return trueCounts{func() (privacy.Sensitive[[]privacy.Group], error) {
			counted, err := one.read()
			if err != nil {
				return privacy.Sensitive[[]privacy.Group]{}, err
			}
			return counted[queries[i].Number()], nil
		}, func() {
			if one.left--; one.left == 0 {
				one.over()
			}
		}}
	}
}

// start runs scans side by side, in so many slots, each of which is free again when all measures of its scan are drawn
// from.
func (d *database) start(ctx context.Context, run []*scanned, slots int) {
	free := make(chan struct{}, slots)
	begin := make([]func(), len(run))
	for i, one := range run {
		type result struct {
			counted []privacy.Sensitive[[]privacy.Group]
			err     error
		}
		alone, done := one.read, make(chan result, 1)
		begin[i] = func() {
			var r result
			defer func() { done <- r }()
			defer d.recovered(ctx, &r.err)
			r.counted, r.err = alone()
		}
		one.read = sync.OnceValues(func() ([]privacy.Sensitive[[]privacy.Group], error) {
			r := <-done
			return r.counted, r.err
		})
		one.over = func() { <-free }
	}
	go func() {
		for _, one := range begin {
			free <- struct{}{}
			go one()
		}
	}()
}
