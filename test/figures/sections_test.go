package figures

// A section of docs/benchmarks.md, and the commands whose figures are in it.
type section struct {
	name     string
	long     bool // takes more than a few minutes: only where it is named, or with all
	commands []string
}

const (
	benchmarks = "go test -run ^$ -timeout 60m -bench "    // of testing.B
	tests      = "go test -count=1 -v -timeout 180m -run " // that print figures
)

// sections are all of them, in the order of the document.
var sections = []section{
	{"error", true, []string{benchmarks + "^BenchmarkRangeError$ -benchtime 1x ./mechanisms"}},
	{"strategies", false, []string{benchmarks + "^(BenchmarkBest|BenchmarkPIdentity)$ ./mechanisms/ranges", benchmarks + "^BenchmarkRelease$ ./mechanisms"}},
	{"growing", false, []string{tests + "^TestContinualAgainstFresh$ ./mechanisms"}},
	{"held", false, []string{benchmarks + "^BenchmarkTenThousandHeld$ -benchtime 1000x ./planner"}},
	{"charts", false, []string{benchmarks + "^BenchmarkDashboardTenThousandHeld$/^static=true$ -benchtime 20x ./planner"}},
	{"planning", false, []string{tests + "^TestBenchPlanning$ ./planner"}},
	{"samplers", false, []string{benchmarks + "^BenchmarkSamplers$ ./mechanisms/noise"}},
	{"online", true, []string{benchmarks + "^BenchmarkCovidLike$ -benchtime 1x ./mechanisms/online"}},
	{"budget", true, []string{tests + "^TestBench(Turbo|Ranges)$ ./planner"}},
	{"either", false, []string{tests + "^TestBenchEither$ ./planner"}},
	{"ranges", false, []string{tests + "^TestBench(HeldRanges|AnswersFromRelease)$ ./cmd/dpproxy"}},
	{"answer", false, []string{benchmarks + "^BenchmarkAnswerFromRelease$ ./cmd/dpproxy", benchmarks + "^BenchmarkBuildHeld$ ./planner"}},
	{"connections", false, []string{tests + "^TestBenchConnect$ ./cmd/dpproxy"}},
	{"fresh", true, []string{tests + "^TestBenchFreshLeaf(Postgres)?$ ./cmd/dpproxy"}},
	{"charges", false, []string{benchmarks + "^Benchmark(Flush|Charge1|Charge16|Postgres.*)$ -benchtime 2s ./ledger"}},
	{"snapshot", true, []string{tests + "^TestBenchSnapshot$ ./test/snapshots"}},
	{"rows", true, []string{tests + "^TestBenchRows$ ./test/snapshots"}},
	{"spark", true, []string{tests + "^TestBenchSpark$ ./test/spark -spark-rows 1000000,10000000"}},
	{"growth", true, []string{tests + "^TestGrowth$ ./test/scaling -growth"}},
	{"shop", true, []string{tests + "^TestBenchShop$ ./test/snapshots"}},
	{"totals", true, []string{tests + "^TestBenchTotals$ ./rewrite"}},
	{"constructs", true, []string{tests + "^TestBenchConstructs$ ./rewrite"}},
	{"proven", true, []string{tests + "^TestBenchProven$ ./rewrite"}},
	{"bounds", true, []string{tests + "^TestBenchBounds$ ./rewrite"}},
	{"scans", true, []string{tests + "^TestBenchScans$ ./rewrite"}},
}
