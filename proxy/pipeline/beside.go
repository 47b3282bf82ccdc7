package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/rewrite"
)

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
// one scan, which stand together where the first of them does. So no scan's result waits for another scan.
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
