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
	{"texts of any number of tokens reach the grammar", "planner/limits.go", "if tokens >= MaxTokens {", "if tokens >= 1000*MaxTokens {", "planner.TestLimitsRefuse", false},
	{"chains of any length reach the grammar", "planner/limits.go", "maxChain   = 200 ", "maxChain   = 200_000_000 ", "planner.TestLimitsRefuse", false},
	{"every function may be called above the counts", "planner/functions.go", "if refusal != nil || engineFunctions[name] {", "if refusal != nil || name != \"\" {", "planner.TestFunctionsNotOverRows", false},
	{"messages of any length after the log-in", "proxy/login.go", "back.SetMaxBodyLen(bodyAfterLogin)", "back.SetMaxBodyLen(0)", "proxy.TestLengthField", false},
	{"a log-in may take for ever", "proxy/login.go", "time.Now().Add(s.config.Limits.LoginTime)", "time.Now().Add(1000 * s.config.Limits.LoginTime)", "proxy.TestStartupThatNeverEnds", false},
	{"a client may leave its answers unread for ever", "proxy/login.go", "out.limit = s.config.Limits.WriteTime", "out.limit = 0", "proxy.TestReaderThatNeverReads", false},
	{"plain log-ins from other machines", "proxy/login.go", "if o.secure == nil && !isLoopback(address) {", "if o.secure == nil && address == \"\" {", "proxy.TestPlainFromElsewhere", false},
	{"plain bytes are read where TLS was to begin", "proxy/startup.go", "\treturn o.encrypt(o.conn)\n", "\treturn nil\n", "proxy.TestPlainBytesBeforeTLS", false},
	{"a cancel request's key is not compared", "proxy/cancel.go", "subtle.ConstantTimeCompare(entry.key, key)&known", "subtle.ConstantTimeCompare(entry.key, entry.key)&known", "proxy.TestCancelGuesses", false},
	{"a key outlives its session", "proxy/login.go", "\tc.server.keys.remove(c.pid)\n", "", "proxy.TestCancelGuesses", false},
	{"unknown users get no exchange of their own", "proxy/auth.go", "\treturn mock, false\n", "\t_ = mock\n\treturn scram.StoredCredentials{}, false\n", "proxy.TestUnknownUsersLookLikeOthers", false},
	{"channel binding may be taken away", "proxy/auth.go", "return server.NewConversationWithChannelBinding(binding), known, nil", "return server.NewConversation(), known, nil", "proxy.TestChannelBindingFlags", false},
	{"guesses are not slowed", "proxy/gate.go", "f.count <= free {", "f.count > 0 {", "proxy.TestUnknownUsersLookLikeOthers", false},
	{"after an error the rest of a batch runs", "proxy/session.go", "\tc.skipping = true\n", "\tc.skipping = false\n", "proxy.TestMessageOrder", false},
	{"a user's statements have no limit", "proxy/turns.go", "if most <= 0 || l.running < most && len(l.waiting) == 0 {", "if most <= 0 || most > 0 {", "proxy.TestTurns", false},
	{"a user's rate has no limit", "proxy/turns.go", "\tif l.tokens < 1 {\n", "\tif l.tokens < -2 {\n", "proxy.TestTickets", false},
	{"a table may be replaced while it is served", "backend/postgres.go", "drifted = drifted || !maps.Equal(now, pinned.shape)", "drifted = drifted || len(now) < 0 && !maps.Equal(now, pinned.shape)", "backend.TestDriftIsFoundBeforeACharge", false},
	{"a database role may do anything", "backend/postgres_inspect.go", "findings = append(findings, role...)", "findings = append(findings, role[:0]...)", "backend.TestRolesThatAreTooStrong", false},
	{"a receipt pays for any measure", "ledger/receipt.go", "\tif r.digest != d {\n", "\tif r.digest != d && r.charge < 0 {\n", "backend.TestPaidQueriesRunOnce", false},
	{"a database's rows are believed whatever they are", "backend/groups.go", "\tif _, twice := c.seen[string(key)]; twice {\n", "\tif _, twice := c.seen[string(key)]; twice && len(counts) == 0 {\n", "backend.TestCollectorRefusesWhatNoCountIs", false},
	{"a database may ask for the password as it is", "backend/postgres_link.go", "config.RequireAuth = \"!password\"", "config.RequireAuth = \"\"", "backend.TestLinkToAnImpostor", false},
	{"a database over a network without a word of TLS", "backend/postgres_link.go", "\t\treturn ErrLink\n", "\t\treturn nil\n", "backend.TestLinkToAnImpostor", false},
	{"a message of the database of any length", "backend/postgres_link.go", "\tconfig.MaxProtocolMessageBodyLen = mostMessage\n", "\tconfig.MaxProtocolMessageBodyLen = 0\n", "backend.TestHostileDatabase", true},
	{"notifications of the database are kept", "backend/postgres_link.go", "\tconfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {} // without it they would be kept, however many come\n", "\t_ = pgconn.Config{}\n", "backend.TestHostileDatabase", true},
	{"a unit moves half of what it does", "mechanisms/sensitivity.go", "rows, each := unitRows(c, s.Cells), perGroup(c)", "rows, each := max(unitRows(c, s.Cells)/2, 1), perGroup(c)", "cmd/dpproxy.TestT45Recorded", true},
	{"a unit's rows are not bounded", "rewrite/source.go", `".r <= " + strconv.FormatInt(w.table.MaxRowsPerUnit, 10)`, `".r <= " + strconv.FormatInt(1000000*w.table.MaxRowsPerUnit, 10)`, "cmd/dpproxy.TestT45Recorded", true},
	{"the noise of a sum is that of the first one", "mechanisms/plan.go", "calibrate(s.movesOf(c, s.Sums[i]), cost, shares[i])", "calibrate(s.movesOf(c, s.Sums[0]), cost, shares[i])", "cmd/dpproxy.TestT45Recorded", true},
	{"answers are not held", "proxy/timing.go", "if p.owed, p.cut = false, false; cut {", "if p.owed, p.cut = false, false; true {", "proxy.TestEveryOutcomeIsHeld", false},
	{"answers are not held, as clocks see it", "proxy/timing.go", "if p.owed, p.cut = false, false; cut {", "if p.owed, p.cut = false, false; true {", "cmd/dpproxy.TestT6ResponseTime", true},
	{"a cancel request takes effect at once", "proxy/timing.go", "		p.wait()\n		cancel", "		cancel", "proxy.TestWaitsEndOnTheGrid", false},
	{"the next message is read before the grid", "proxy/timing.go", "p != nil && p.reads.Load()", "p != nil && false", "proxy.TestReadingOnWaits", false},
	{"rows are read under a policy that another proxy has replaced", "proxy/answer.go", "!a.inForce(s)", "false", "cmd/dpproxy.TestSharedLedger", true},
	{"a run of alarms is restored before it is held", "proxy/watch.go", "	receipt, err := a.ledger.Ask(context", "	_, _ = a.ledger.Load(ctx, s.User, id)\n	receipt, err := a.ledger.Ask(context", "proxy.TestRunIsHeldBeforeItIsRestored", false},
	{"a charge is not flushed before it is acknowledged", "ledger/sqlite.go", `{"PRAGMA synchronous = full", ""}, {"PRAGMA synchronous", "2"}`, `{"PRAGMA synchronous = normal", ""}, {"PRAGMA synchronous", "1"}`, "internal/simulation.TestLedger", false},
	{"the ledger's time follows the clock back", "ledger/writer.go", "max(f.tick(), t.last.at)", "func() int64 {\n\t\t\tn := max(0, f.opts.Clock().UnixNano())\n\t\t\tf.seen.Store(n)\n\t\t\tt.last.at, f.book.last.at = min(t.last.at, n), min(f.book.last.at, n)\n\t\t\treturn n\n\t\t}()", "internal/simulation.TestLedger", false},
	{"a receipt is spent twice", "ledger/receipt.go", "if !r.state.CompareAndSwap(receiptFresh, receiptSpent) {", "if !r.state.CompareAndSwap(receiptFresh, receiptSpent) && r.state.Load() != receiptSpent {", "internal/simulation.TestLedger", false},
	{"recovery takes a log for flushed that is not", "ledger/sqlite_site.go", "if writes {\n\t\tif err := rewriteLog", "if false {\n\t\tif err := rewriteLog", "internal/simulation.TestLedger", false},
	{"recovery drops the log", "ledger/sqlite_site.go", "f, err := d.OpenFile(path, os.O_RDWR, 0)", "f, err := d.OpenFile(path, os.O_RDWR|os.O_TRUNC, 0)", "internal/simulation.TestLedger", false},
	{"a failed commit is taken for done", "ledger/writer.go", "if err := f.store.commit(t.rows); err != nil {\n\t\treturn err", "if err := f.store.commit(t.rows); err != nil && false {\n\t\treturn err", "internal/simulation.TestLedger", false},
	{"names are not flushed", "ledger/disk.go", "err = errors.Join(err, d.SyncDir(filepath.Dir(file)))", "_, _ = d, filepath.Dir(file)", "internal/simulation.TestLedger", false},
	{"what was looked up too early is charged", "ledger/charge.go", "return again.free != 0 || again.joins != p.joins || again.key != p.key", "return false && again.free != 0", "internal/simulation.TestLedger", false},
	{"the cap is not asked", "ledger/terms.go", "if capped {\n\t\tkeys", "if false {\n\t\tkeys", "internal/simulation.TestLedger", false},
	{"a release is told before it is durable", "ledger/writer.go", "for _, j := range jobs {\n\t\tif err != nil {\n\t\t\tj.err = err", "for _, j := range jobs {\n\t\tif err != nil && j.err != nil {\n\t\t\tj.err = err", "internal/simulation.TestLedger", false},
	{"two proxies on one file", "ledger/open.go", "return err\n\t}\n\tf.locks", "return nil\n\t}\n\tf.locks", "internal/simulation.TestLedger", false},
	{"of two callers both draw", "ledger/charge.go", "if fl := f.flights.running[p.key]; fl != nil {", "if fl := f.flights.running[p.key]; fl != nil && false {", "internal/simulation.TestLedger", false},
	{"noise is four times too small", "mechanisms/plan.go", "new(big.Rat).Mul(big.NewRat(e, 1e6), share)", "new(big.Rat).Mul(big.NewRat(4*e, 1e6), share)", "cmd/dpproxy.TestT64Differencing", true},
	{"what is paid is left when its analyst goes", "proxy/answer.go", "a.drawAll(context.WithoutCancel(ctx), s", "a.drawAll(ctx, s", "internal/simulation/whole.TestWhole", true},
	{"half the noise", "mechanisms/plan.go", "Num: num.Int64(), Den: den.Int64()}, nil", "Num: num.Int64(), Den: 2 * den.Int64()}, nil", "cmd/dpproxy.TestT21LowerBounds", true},
	{"keys are shown from one unit on", "mechanisms/keys/release.go", "n >= threshold {", "n >= min(threshold, 1) {", "mechanisms/keys.TestT4KeysOfOneUnit", false},
	{"a sampler of fixed work stops where it has found", "mechanisms/noise/fixed.go", "		k += 1 - borrow\n", "		if k += 1 - borrow; borrow == 1 {\n			break\n		}\n", "mechanisms/noise.TestT19SamplerTime", false},
	{"failing randomness is not noticed", "mechanisms/release.go", "	if err := reader.Err(); err != nil {\n		return nil, err\n	}\n	return drawn, nil", "	return drawn, nil", "cmd/dpproxy.TestT20NoRandomnessNoAnswer", true},
	{"NaN is a number like others", "rewrite/column.go", "return \"(\" + null + \" OR \" + nan + \")\"", "return null", "rewrite.TestHostileRowsLieInGosCells", false},
	{"a unit's rows are not bounded", "rewrite/source.go", "w.alias + \".r <= \" + strconv.FormatInt(w.table.MaxRowsPerUnit, 10)", "w.alias + \".r <= \" + strconv.FormatInt(w.table.MaxRowsPerUnit+1, 10)", "rewrite.TestAuditNeighbours", false},
	{"a unit's groups are not bounded", "rewrite/groups.go", " + \" AND s.d <= \" + strconv.FormatInt(w.table.MaxGroups, 10)", "", "rewrite.TestGroupBoundsHoldOnNeighbours", false},
	{"numbers are printed without their last zeros", "proxy/encode_text.go", "	whole := len(digits) - scale\n", "	for scale > 0 && digits[len(digits)-1] == '0' {\n		digits, scale = digits[:len(digits)-1], scale-1\n	}\n	whole := len(digits) - scale\n", "cmd/dpproxy.TestT18TextOfNumbers", true},
	{"a fault after the charge is an error", "backend/execute.go", "return privacy.Seal(x.settle(query)), nil", "groups := x.settle(query)\n	if groups == nil {\n		return privacy.Sensitive[[]privacy.Group]{}, errQueue\n	}\n	return privacy.Seal(groups), nil", "cmd/dpproxy.TestT3AnswersThroughFaults", true},
	{"the database's text is logged", "backend/execute.go", "\"cause\", cause(o.fault))", "\"cause\", o.fault)", "cmd/dpproxy.TestRule5AfterTheChargeOnlyAnAnswer", true},
	{"the database's text is sent", "proxy/answer.go", "\"the database cannot be reached; nothing was charged\"}", "\"the database cannot be reached; nothing was charged: \" + err.Error()}", "cmd/dpproxy.TestRule5UnreachableBeforeDispatch", true},
}
