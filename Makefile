# dpproxy: everything a user or a developer runs. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
GO ?= go
BIN := bin/dpproxy
DEMO_FLAGS ?=

.PHONY: help build demo server quick test night lint race simulate fuzz bench bench-answers bench-bounds bench-snapshot scaling bench-error bench-samplers bench-online bench-planning clients dashboard paths peers shapes audit safety safety-full tpch tpcds clinic spark spark-scale versions truth attacks hostile docs site dist image packages deps clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

build: ## build bin/dpproxy (the first build compiles PostgreSQL's grammar: about a minute)
	$(GO) build -o $(BIN) ./cmd/dpproxy

demo: server build ## run a proxy over 1,000,000 generated people on 127.0.0.1:6432
	$(BIN) demo $(DEMO_FLAGS)

server:
	@./scripts/deps server

deps: ## what the tests need besides Go and gcc: a PostgreSQL server (installed when root on Debian)
	@./scripts/deps

lint: ## gofmt, go vet, staticcheck, deadcode, govulncheck where its database can be reached
	@./scripts/lint

# What takes longest begins first, so that nothing long is left when all else has ended.
LONGEST := rewrite backend/engines backend/postgres test/attacks test/audits test/answers ledger test/clients test/durability sandbox sandbox/twin internal/threats examples/attacks mechanisms planner internal/simulation test/engines test/truth cmd/dpproxy test/paths test/way test/hostile
# IN_ORDER lists the packages that grep leaves, those of a list first.
IN_ORDER = { printf '$(shell $(GO) list -m)/%s\n' $(1); $(GO) list ./... | grep $(2); } | awk '!seen[$$0]++'
# Tests wait for processes and clocks a good part of their time: both halves run side by side, each with as many packages at a
# time as there are processors, or one more. `make lint` has vetted all of them, and has run internal/structure.
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
TOGETHER := -vet=off -p $(shell expr $(PROCESSORS) + 1)
# A seventh of a compiler's time goes to its collector: compilers and linters alone get another setting, what they build runs as ever. Some thirty
# programs with DuckDB are linked: mold takes half of the default linker's time for one, gold three quarters. Without
# GNU's build id: mold puts it in front of Go's, which `go build` then does not find, and links again what is up to date.
LINKER = $(firstword $(foreach l,mold gold,$(if $(shell command -v $(l) ld.$(l)),$(l))))
COMPILERS = $(shell $(GO) env GOFLAGS) '-toolexec=env GOGC=400' $(if $(LINKER),'-ldflags=-B none "-extldflags=-fuse-ld=$(LINKER) -Xlinker --build-id=none"')

quick: export GOFLAGS = $(COMPILERS)
quick: ## within a minute: gofmt, and the tests of what links no database and starts no server
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "not formatted by gofmt: $$unformatted" >&2; exit 1; }
	DPPROXY_QUICK=1 $(GO) test $(TOGETHER) -short -skip 'Audit|Coverage|Histor|MoreIsNeverWorse|MadeUpRowsHave|Nested|Twin|TemplatesArePlans|WideColumns|ConditionsAre|ComparisonsOf|PeriodsHold|MWEM|ManyLogIns|TestWhole$$|Middle|KeepTheirClaim|TestTokens|ByItsLoss|InFixedWork|WeightsFigures' -timeout 5m $$(./scripts/light)

test: export GOFLAGS = $(COMPILERS)
test: deps lint ## everything that CI runs; `go test` prints how long each package's tests took
	$(MAKE) --no-print-directory -j2 plain race
	$(GO) test -vet=off -parallel 4 -timeout 60m ./test/timing # beside other work it would see less

night: export GOFLAGS = $(COMPILERS)
night: deps ## hours: every test and law at its long length, planted faults, audits, the truth whole; bin/night has the output, and what it found is printed with its seeds
	@./scripts/night

# proxy runs under the race detector alone; the others that have concurrency run without it, and of their tests those that begin goroutines with it too:
# what one goroutine does at a time, thousands of times, takes five times as long with it, and it sees nothing there.
RACED := ledger ledger/postgres backend/internal/execute backend/internal/embedded backend/engines backend/postgres backend/duckdb backend/snapshot backend/spark backend/hive backend/mysql sandbox sandbox/twin

.PHONY: plain
plain:
	$(call IN_ORDER,$(LONGEST),-vE '/test/timing$$|/internal/structure$$|/proxy(/|$$)') | xargs $(GO) test $(TOGETHER) -timeout 60m

# SQLite is C that was made Go of, and nothing in it begins a goroutine or waits for one: the detector sees the driver around it, not
# what it does with its own memory, as it sees no C either. The grammar, which is C, takes half as long to compile.
RACE := env CGO_CFLAGS=-O1 $(GO) test -race -gcflags='github.com/ncruces/go-sqlite3-wasm/v3=-race=false' -vet=off
# What one goroutine does at a time, whatever its test begins beside it; some of its seeds run with the detector below.
ALONE := ^(TestSharedSimulated|TestDamageIsFoundOrHarmless|TestAPlanMayBeLong)$$

race: ## the packages with concurrency, under the race detector: proxy, and of the others the tests that begin goroutines
	$(RACE) -p $(PROCESSORS) $(if $(RACED_WHOLE),,-run "$$($(GO) run ./internal/structure/raced $(RACED))") -skip '$(ALONE)' -timeout 60m $(addprefix ./,$(RACED))
	$(RACE) -p $(PROCESSORS) -timeout 60m ./proxy ./proxy/...
	$(RACE) -run '^TestSharedSimulated$$' -timeout 20m ./ledger -seeds 300
	$(RACE) -run '^TestReplays$$' -timeout 20m ./internal/simulation/... # goroutines run in random order there

simulate: ## a hundred thousand seeds of the simulation (docs/adr/0035); SEEDS=n for another number
	$(GO) test ./internal/simulation -run '^TestLedger$$' -count=1 -timeout 12h -seeds $(or $(SEEDS),100000) -v
	$(GO) test ./ledger -run '^TestSharedSimulated$$' -count=1 -timeout 12h -seeds $$(( $(or $(SEEDS),100000) / 5 )) -v
	$(GO) test ./internal/simulation/whole -run '^TestWhole$$' -count=1 -timeout 12h -seeds $$(( $(or $(SEEDS),100000) / 20 )) -v

fuzz: ## ten minutes of fuzzing a target
	@./scripts/fuzz 10m

# Sections of docs/benchmarks.md: test/figures/sections_test.go has their names and commands.
bench: deps ## measure and write docs/benchmarks.md: its short sections, ONLY="ranges fresh" for some, ONLY=all for hours
	$(GO) test ./test/figures -run '^TestMeasure$$' -measure "$(or $(ONLY),short)" -count=1 -timeout 24h -v | grep -v '^=== '

bench-bounds: ## what bounding a unit's rows and groups costs over 10,000,000 rows, by plan, on both engines
	@$(MAKE) --no-print-directory bench ONLY="proven bounds"

scaling: ## more and more analysts and datasets against one proxy and a durable ledger, and leaves by the number of rows: docs/scaling.md
	@$(MAKE) --no-print-directory bench ONLY="growth rows"

bench-snapshot: ## questions over a snapshot of 10,000,000 rows beside the analyst's own SQL on PostgreSQL and DuckDB, and what making it takes
	@$(MAKE) --no-print-directory bench ONLY="snapshot shop"

bench-error: ## error of ranges: ours, the lecture notes', the best known, the certified limit
	@$(MAKE) --no-print-directory bench ONLY=error

bench-samplers: ## ns and random words a sample: ours, the entropy source's floor, google/differential-privacy
	@$(MAKE) --no-print-directory bench ONLY=samplers

bench-answers: ## what a budget buys on the published set-ups of Turbo and DProvDB, through the planner
	@$(MAKE) --no-print-directory bench ONLY=budget

bench-planning: ## what planning takes by the cells of the columns, 10^3 to 10^9, and by the releases held
	@$(MAKE) --no-print-directory bench ONLY="held charts planning"

bench-online: ## multiplicative weights and median on the Covid-like set-up, beside the plain histogram
	@$(MAKE) --no-print-directory bench ONLY=online

clients: ## real clients and Apache Superset against the demo and PostgreSQL, installed where they can be had: who can do what
	@./scripts/clients

dashboard: ## a dashboard of 30 charts refreshed 1,000 times by 20 analysts over the wire: what it costs
	DPPROXY_NIGHT=1 $(GO) test ./test/answers -run '^TestDashboard(Refreshed|OfATeam)$$' -dashboard-refreshes 1000 -count=1 -timeout 3h -v

paths: deps ## how often each way to answer is possible and taken, over all that people and tools are known to ask: docs/paths.md
	$(GO) test ./test/paths -run '^TestPaths$$' -paths-whole -paths-questions 2000 -count=1 -timeout 60m -v | grep -v '^=== '
	$(GO) test ./test/truth -run '^TestPathsOfGenerated$$' -truth-statements $(or $(STATEMENTS),4000) -count=1 -timeout 60m -v | grep -v '^=== '

audit: ## the statistical audits at full length, and the total rate of their false alarms
	@mkdir -p bin; rm -f bin/alarms
	DPPROXY_AUDIT=full DPPROXY_ALARMS=$(CURDIR)/bin/alarms $(GO) test -count=1 -timeout 4h -run 'Audit|Coverage' ./...
	@awk '{n++; s+=$$NF} END {printf "%d judgements, false-alarm rate of all together at most %.2g\n", n, s}' bin/alarms

safety: deps ## every threat of docs/threats.md at a night's length: a table of the figures reached; then the planted faults
	DPPROXY_NIGHT=1 DPPROXY_SAFETY_LENGTH=short $(GO) run ./internal/threats/report $(UPDATE) $(THREATS)
	DPPROXY_SAFETY_LENGTH=short $(GO) test ./internal/threats -count=1 -timeout 2h -v -run Faults | grep -v '^=== '

safety-full: deps ## the same at full length: hours
	DPPROXY_SAFETY_LENGTH=full $(GO) run ./internal/threats/report $(UPDATE) $(THREATS)
	DPPROXY_SAFETY_LENGTH=full $(GO) test ./internal/threats -count=1 -timeout 4h -v -run Faults | grep -v '^=== '

tpch: ## TPC-H's queries with the customer as the unit: what is answered, and how near at scale 0.01 and 0.1: docs/tpch.md
	$(GO) test ./test/answers -run 'TestTPCH$$' -update -count=1 -timeout 60m -v

shapes: ## counts, sums and averages of a clinic, a shop and devices that differ a lot, by rows, by the ladder and by the best clamp: docs/shapes.md
	$(GO) test ./test/answers -run 'TestShapes$$' -shapes-draws 25 -update -count=1 -timeout 60m -v

clinic: ## 147 questions over a clinic of OMOP's shape and 30,000 persons, beside PostgreSQL: docs/clinic.md
	$(GO) test ./test/answers -run 'TestClinic$$' -clinic-persons 30000 -clinic-every 1 -update -count=1 -timeout 60m -v

tpcds: ## TPC-DS's queries and rows, from DuckDB's extension, with the customer as the unit: docs/tpcds.md
	./scripts/tpcds
	$(GO) test ./test/answers -run 'TestTPCDS$$' -update -count=1 -timeout 60m -v

spark: ## Spark from PyPI (450 MB, Java 17), Iceberg and Delta from Maven (55 MB): its Thrift server under measures, hostile rows, faults, and a whole dpproxy over Parquet
	./scripts/spark
	DPPROXY_SPARK=1 $(GO) test ./test/spark -suite -count=1 -timeout 60m -v | grep -v '^ *=== '
	DPPROXY_SPARK=1 $(GO) test ./test/engines -run '^TestConformance$$/^Spark$$' -count=1 -timeout 60m -v | grep -v '^ *=== '

versions: deps ## PostgreSQL 16, 17 and 18 from Maven (45 MB) as the private database and as what proxies share a ledger in: docs/engines.md
	./scripts/postgres
	for bin in $(CURDIR)/bin/postgres/*/bin; do echo "$$bin"; \
		DPPROXY_POSTGRES=$$bin $(GO) test ./backend/postgres ./backend/engines ./ledger ./ledger/postgres -count=1 -timeout 60m || exit 1; \
		DPPROXY_POSTGRES=$$bin $(GO) test ./test/engines -run '^Test(Conformance|Poolers|OwnerAtWork)$$/^(PostgreSQL|by)' -count=1 -timeout 60m || exit 1; done

spark-scale: ## leaves over 1 and 10 million rows by Spark with one and two executors, beside DuckDB: docs/benchmarks.md
	./scripts/spark
	@$(MAKE) --no-print-directory bench ONLY=spark

peers: deps ## the same questions by dpproxy and by libraries of others, from PyPI: docs/peers.md
	$(GO) test ./test/peers -run 'TestPeers' -peers $(or $(RUNS),100) -update -count=1 -timeout 3h -v

truth: deps ## 20,000 generated statements over six schemas on both engines, at an epsilon where noise vanishes: each is PostgreSQL's own; SEED=n, STATEMENTS=n, HELD=n a ledger
	$(GO) test ./test/truth -run '^(TestTruth|TestTotals)$$' -truth-totals 300 -truth-statements $(or $(STATEMENTS),20000) -truth-seed $(or $(SEED),15) -truth-held $(or $(HELD),20) -count=1 -timeout 6h -v | grep -v '^=== '

attacks: deps ## six attacks against PostgreSQL and against dpproxy in front of it: examples/attacks/README.md and its plot
	$(GO) test ./examples/attacks -run '^TestAttacks$$' -attack-runs 5 -update -count=1 -timeout 60m -v

hostile: deps ## a hostile analyst's hour beside another's dashboard: what she waits, what the process takes; LENGTH=1h
	$(GO) test ./test/hostile -run '^TestHostileAnalyst$$' -hostile $(or $(LENGTH),1h) -slower 3 -count=1 -timeout 6h -v | grep -v '^=== '

docs: build ## regenerate the documents that hold real output, and the golden files behind the others
	@./scripts/docs

site: ## the documents as a site in bin/site, by Sphinx from PyPI at pinned versions; a link that leads nowhere fails it
	@./scripts/site

packages: ## install, start, upgrade and remove the .deb in a clean Debian root, and hold archive, .rpm, unit and alerts; as root, CI=true installs what that takes
	@[ "$${CI:-}" != true ] || ./scripts/deps packages
	DPPROXY_PACKAGES=1 $(GO) test ./test/packages ./proxy/login -count=1 -timeout 60m -v | grep -v '^=== '

dist: ## archive, .deb and .rpm for this machine's kind in dist/, with a bill of materials and sums; VERSION=1.2.3
	@./scripts/dist

image: ## a container image of the .deb in dist/, made without a daemon from packages of this Debian
	@KINDS=deb ./scripts/dist
	@./scripts/image

clean:
	rm -rf bin demo dist
