package threats

// Fault is a defence switched off by a change of one place in the source. It is built with go's -overlay, so that the
// program itself has no such switch.
type Fault struct {
	Name     string
	File     string // below the module's root
	Old, New string // Old occurs exactly once in File
	Test     string // "package.Test": it passes, and fails with the fault
	Long     bool   // links the whole program, or runs long: left to `make safety-full`
}

// Faults are planted by TestFaultsAreCaught.
var Faults = []Fault{
	{"a cost is compared with the limit, not with what is left", "ledger/sqlite_accounts.go", "?6 <= eps_limit - iif(ends <> 0 AND ends <= ?4, 0, eps)", "?6 <= eps_limit", "ledger.TestTwin", false},
	{"a window never ends", "ledger/account.go", "a.ends != 0 && a.ends <= now", "a.ends != 0 && a.ends < 0", "ledger.TestRule7WindowsAndTheLedgersTime", false},
	{"a unit moves half of what it does", "mechanisms/sensitivity.go", "rows, each := unitRows(c, s.Cells), perGroup(c)", "rows, each := max(unitRows(c, s.Cells)/2, 1), perGroup(c)", "cmd/dpproxy.TestT45Recorded", true},
	{"a unit's rows are not bounded", "rewrite/source.go", `".r <= " + strconv.FormatInt(w.table.MaxRowsPerUnit, 10)`, `".r <= " + strconv.FormatInt(1000000*w.table.MaxRowsPerUnit, 10)`, "cmd/dpproxy.TestT45Recorded", true},
	{"the noise of a sum is that of the first one", "mechanisms/plan.go", "calibrate(s.movesOf(c, s.Sums[i]), cost, shares[i])", "calibrate(s.movesOf(c, s.Sums[0]), cost, shares[i])", "cmd/dpproxy.TestT45Recorded", true},
	{"answers are not held", "proxy/timing.go", "if p.owed = false; !p.cut.Swap(false) {", "if p.owed = false; false {", "proxy.TestEveryOutcomeIsHeld", false},
	{"answers are not held, as clocks see it", "proxy/timing.go", "if p.owed = false; !p.cut.Swap(false) {", "if p.owed = false; false {", "cmd/dpproxy.TestT6ResponseTime", true},
	{"a cancel request takes effect at once", "proxy/timing.go", "		p.wait()\n		p.cut", "		p.cut", "proxy.TestWaitsEndOnTheGrid", false},
	{"a charge is not flushed before it is acknowledged", "ledger/sqlite.go", `{"PRAGMA synchronous = full", ""}, {"PRAGMA synchronous", "2"}`, `{"PRAGMA synchronous = normal", ""}, {"PRAGMA synchronous", "1"}`, "internal/simulation.TestLedger", false},
	{"the ledger's time follows the clock back", "ledger/writer.go", "max(f.tick(), t.last.at)", "func() int64 {\n\t\t\tn := max(0, f.opts.Clock().UnixNano())\n\t\t\tf.seen.Store(n)\n\t\t\tt.last.at, f.book.last.at = min(t.last.at, n), min(f.book.last.at, n)\n\t\t\treturn n\n\t\t}()", "internal/simulation.TestLedger", false},
	{"a receipt is spent twice", "ledger/receipt.go", "if !r.state.CompareAndSwap(receiptFresh, receiptSpent) {", "if !r.state.CompareAndSwap(receiptFresh, receiptSpent) && r.state.Load() != receiptSpent {", "internal/simulation.TestLedger", false},
	{"recovery takes a log for flushed that is not", "ledger/sqlite_site.go", "if writes {\n\t\tif err := rewriteLog", "if false {\n\t\tif err := rewriteLog", "internal/simulation.TestLedger", false},
	{"recovery drops the log", "ledger/sqlite_site.go", "f, err := d.OpenFile(path, os.O_RDWR, 0)", "f, err := d.OpenFile(path, os.O_RDWR|os.O_TRUNC, 0)", "internal/simulation.TestLedger", false},
	{"a failed commit is taken for done", "ledger/writer.go", "if err := f.store.commit(); err != nil {\n\t\treturn err", "if err := f.store.commit(); err != nil && false {\n\t\treturn err", "internal/simulation.TestLedger", false},
	{"names are not flushed", "ledger/disk.go", "err = errors.Join(err, d.SyncDir(filepath.Dir(file)))", "_, _ = d, filepath.Dir(file)", "internal/simulation.TestLedger", false},
	{"what was looked up too early is charged", "ledger/charge.go", "return again.free != 0 || again.joins != p.joins || again.key != p.key", "return false && again.free != 0", "internal/simulation.TestLedger", false},
	{"the cap is not asked", "ledger/terms.go", "if capped {\n\t\tkeys", "if false {\n\t\tkeys", "internal/simulation.TestLedger", false},
	{"a release is told before it is durable", "ledger/writer.go", "for _, j := range jobs {\n\t\tif err != nil {\n\t\t\tj.err = err", "for _, j := range jobs {\n\t\tif err != nil && j.err != nil {\n\t\t\tj.err = err", "internal/simulation.TestLedger", false},
	{"two proxies on one file", "ledger/open.go", "return nil, err\n\t\t}\n\t\tf.locks", "_ = err\n\t\t\tcontinue\n\t\t}\n\t\tf.locks", "internal/simulation.TestLedger", false},
	{"of two callers both draw", "ledger/charge.go", "if fl := f.flights.running[p.key]; fl != nil {", "if fl := f.flights.running[p.key]; fl != nil && false {", "internal/simulation.TestLedger", false},
	{"noise is four times too small", "mechanisms/plan.go", "new(big.Rat).Mul(big.NewRat(e, 1e6), share)", "new(big.Rat).Mul(big.NewRat(4*e, 1e6), share)", "cmd/dpproxy.TestT64Differencing", true},
}
