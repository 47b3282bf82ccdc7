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
	{"answers are not held", "proxy/timing.go", "if p.owed = false; !p.cut.Swap(false) {", "if p.owed = false; false {", "proxy.TestEveryOutcomeIsHeld", false},
	{"answers are not held, as clocks see it", "proxy/timing.go", "if p.owed = false; !p.cut.Swap(false) {", "if p.owed = false; false {", "cmd/dpproxy.TestT6ResponseTime", true},
	{"a cancel request takes effect at once", "proxy/timing.go", "		p.wait()\n		p.cut", "		p.cut", "proxy.TestWaitsEndOnTheGrid", false},
}
