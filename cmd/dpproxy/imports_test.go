package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/dpproxy/dpproxy/"

// picture lists, for each package of the project, the packages of the project that its non-test code may import. A
// package that is missing here, or an arrow that is missing, fails the test: ARCHITECTURE.md shows this picture.
var picture = map[string][]string{
	"mechanisms/internal/sealed": {},
	"mechanisms/internal/memo":   {},
	"mechanisms/privacy":         {"mechanisms/internal/sealed"},
	"mechanisms/accounting":      {"mechanisms/privacy"},
	"mechanisms/noise":           {"mechanisms/internal/memo", "mechanisms/privacy"},
	"mechanisms/ranges":          {"mechanisms/internal/memo", "mechanisms/privacy", "mechanisms/noise"},
	"mechanisms/stattest":        {"mechanisms/privacy", "mechanisms/accounting"},
	"mechanisms/marginals":       {"mechanisms/privacy", "mechanisms/noise", "mechanisms/ranges"},
	"mechanisms/histograms":      {"mechanisms/internal/sealed", "mechanisms/privacy", "mechanisms/noise", "mechanisms/ranges"},
	"mechanisms/selection":       {"mechanisms/internal/sealed", "mechanisms/privacy", "mechanisms/noise"},
	"mechanisms/quantiles":       {"mechanisms/internal/sealed", "mechanisms/privacy", "mechanisms/noise", "mechanisms/selection", "mechanisms/ranges"},
	"mechanisms/sparse":          {"mechanisms/internal/sealed", "mechanisms/privacy", "mechanisms/noise"},
	"mechanisms/online":          {"mechanisms/internal/sealed", "mechanisms/privacy", "mechanisms/noise", "mechanisms/sparse", "mechanisms/selection"},
	"mechanisms/synthetic":       {"mechanisms/internal/sealed", "mechanisms/privacy", "mechanisms/noise", "mechanisms/selection"},
	"mechanisms/ladders":         {"mechanisms/noise"},
	"mechanisms/totals":          {"mechanisms/noise"},
	"mechanisms/keys":            {"mechanisms/internal/sealed", "mechanisms/privacy", "mechanisms/noise"},
	"mechanisms":                 {"mechanisms/internal/memo", "mechanisms/internal/sealed", "mechanisms/privacy", "mechanisms/noise", "mechanisms/ranges", "mechanisms/accounting", "mechanisms/selection", "mechanisms/quantiles", "mechanisms/keys", "mechanisms/ladders", "mechanisms/marginals", "mechanisms/online", "mechanisms/sparse", "mechanisms/synthetic", "mechanisms/histograms"},
	"policy":                     {"mechanisms", "mechanisms/privacy", "mechanisms/accounting", "internal/deadline"},
	"planner/scalar":             {"policy"},
	"planner/mysql":              {"policy"},
	"planner/refuse":             {"policy"},
	"planner/pgcatalog":          {"policy"},
	"planner/ast":                {"planner/refuse", "policy"},
	"planner/parse":              {"planner/refuse", "planner/ast", "planner/mysql", "planner/scalar", "policy"},
	"planner/predicate":          {"policy", "mechanisms"},
	"planner/derived":            {"planner/predicate", "policy", "mechanisms/totals"},
	"planner/plans":              {"planner/parse", "planner/pgcatalog", "planner/predicate", "planner/derived", "planner/scalar", "policy", "mechanisms", "mechanisms/privacy", "mechanisms/accounting", "mechanisms/totals"},
	"planner/semantics":          {"planner/refuse", "planner/ast", "planner/parse", "planner/pgcatalog", "planner/predicate", "planner/derived", "planner/plans", "planner/scalar", "policy", "mechanisms"},
	"planner/linear":             {"planner/refuse", "planner/predicate", "planner/derived", "planner/plans", "planner/semantics", "planner/scalar", "policy", "mechanisms", "mechanisms/privacy"},
	"planner/reuse":              {"planner/refuse", "planner/predicate", "planner/derived", "planner/plans", "planner/semantics", "planner/linear", "planner/scalar", "policy", "mechanisms", "mechanisms/privacy", "mechanisms/accounting"},
	"planner/discovery":          {"planner/refuse", "planner/plans", "planner/predicate", "planner/semantics", "planner/linear", "planner/reuse", "planner/scalar", "policy", "mechanisms", "mechanisms/privacy"},
	"planner/lookup":             {"planner/refuse", "planner/predicate", "planner/derived", "planner/plans", "planner/semantics", "planner/linear", "planner/reuse", "planner/scalar", "policy"},
	"planner/formula":            {"planner/refuse", "planner/plans", "planner/semantics", "planner/linear"},
	"planner/bind":               {"planner/refuse", "planner/discovery", "planner/lookup", "planner/ast", "planner/parse", "planner/pgcatalog", "planner/predicate", "planner/derived", "planner/plans", "planner/semantics", "planner/linear", "planner/reuse", "planner/scalar", "policy", "mechanisms"},
	"planner/aggregate":          {"planner/refuse", "planner/formula", "planner/discovery", "planner/lookup", "planner/ast", "planner/predicate", "planner/derived", "planner/plans", "planner/semantics", "planner/linear", "planner/reuse", "planner/bind", "planner/scalar", "policy", "mechanisms"},
	"planner/outerquery":         {"planner/refuse", "planner/ast", "planner/pgcatalog", "planner/predicate", "planner/plans", "planner/semantics", "planner/linear", "planner/reuse", "planner/bind", "planner/aggregate", "planner/scalar", "policy"},
	"planner/choose":             {"planner/refuse", "planner/discovery", "planner/predicate", "planner/derived", "planner/plans", "planner/semantics", "planner/linear", "planner/reuse", "planner/bind", "planner/aggregate", "planner/scalar", "policy", "mechanisms", "mechanisms/privacy", "mechanisms/totals"},
	"planner/workload":           {"planner/refuse", "planner/discovery", "planner/parse", "planner/predicate", "planner/plans", "planner/semantics", "planner/linear", "planner/reuse", "planner/aggregate", "planner/outerquery", "planner/choose", "policy", "mechanisms", "mechanisms/privacy"},
	"planner/bounds":             {"planner/derived", "planner/plans", "planner/linear", "policy", "mechanisms", "mechanisms/privacy"},
	"planner":                    {"planner/refuse", "planner/discovery", "planner/lookup", "planner/ast", "planner/parse", "planner/pgcatalog", "planner/predicate", "planner/plans", "planner/semantics", "planner/linear", "planner/reuse", "planner/bind", "planner/aggregate", "planner/outerquery", "planner/choose", "policy", "mechanisms", "mechanisms/privacy", "mechanisms/accounting", "mechanisms/totals"},
	"rewrite/dialect":            {"policy"},
	"rewrite/outer":              {"rewrite/dialect", "planner/pgcatalog", "planner/plans", "planner/refuse", "planner/ast", "policy"},
	"rewrite":                    {"rewrite/dialect", "planner/plans", "planner/predicate", "planner/derived", "policy", "mechanisms", "mechanisms/totals"},
	"ledger/chain":               {"mechanisms", "mechanisms/privacy", "mechanisms/ranges"},
	"ledger/store":               {"ledger/chain", "mechanisms/privacy", "mechanisms/accounting"},
	"ledger/sqlite":              {"ledger/store", "ledger/chain"},
	"ledger/postgres":            {"ledger/store", "ledger/chain"},
	"ledger":                     {"ledger/chain", "ledger/store", "ledger/sqlite", "ledger/postgres", "mechanisms", "mechanisms/privacy", "mechanisms/accounting", "internal/deadline"},
	"internal/deadline":          {},
	"internal/digits":            {},
	"internal/moment":            {},
	"internal/scratch":           {},
	"internal/structure":         {},
	"internal/structure/raced":   {},
	"internal/memory":            {"internal/scratch"},
	"internal/figures":           {},
	"internal/daemon":            {},
	"internal/daemon/daemontest": {"internal/memory"},
	"internal/material":          {},
	"internal/nested":            {"policy"},
	"internal/request":           {},
	"internal/seeds":             {},
	"backend/hive":               {},
	"backend/units":              {"rewrite", "policy"},
	"backend/csv":                {},
	"backend/parquet":            {},
	"backend":                    {"rewrite", "rewrite/dialect", "policy", "ledger", "mechanisms/privacy"},
	"backend/internal/execute":   {"backend", "rewrite", "rewrite/dialect", "policy", "ledger", "mechanisms", "mechanisms/privacy", "internal/moment"},
	"backend/internal/inspect":   {"backend", "backend/internal/execute", "rewrite", "rewrite/dialect", "policy", "mechanisms/privacy"},
	"backend/internal/embedded":  {"backend", "backend/internal/execute", "backend/internal/inspect", "rewrite", "rewrite/dialect", "mechanisms/privacy", "internal/scratch"},
	"backend/internal/link":      {},
	"backend/snapshot":           {"backend", "backend/internal/execute", "backend/internal/inspect", "backend/internal/embedded", "backend/units", "rewrite", "rewrite/dialect", "policy", "mechanisms/privacy", "internal/moment", "internal/scratch"},
	"backend/files":              {"backend", "backend/internal/execute", "backend/internal/inspect", "backend/internal/embedded", "backend/csv", "backend/parquet", "rewrite", "rewrite/dialect", "policy"},
	"backend/duckdb":             {"backend", "backend/internal/execute", "backend/internal/inspect", "backend/internal/embedded", "backend/files", "backend/snapshot", "rewrite", "rewrite/dialect", "policy", "mechanisms/privacy"},
	"backend/mysql":              {"backend", "backend/internal/execute", "backend/internal/inspect", "backend/internal/embedded", "backend/internal/link", "backend/snapshot", "rewrite", "rewrite/dialect", "policy", "mechanisms/privacy"},
	"backend/postgres":           {"backend", "backend/internal/execute", "backend/internal/inspect", "backend/snapshot", "backend/units", "rewrite", "rewrite/dialect", "policy", "mechanisms/privacy"},
	"backend/spark":              {"backend", "backend/internal/execute", "backend/internal/inspect", "backend/internal/link", "backend/hive", "rewrite", "rewrite/dialect", "policy", "mechanisms/privacy"},
	"backend/engines":            {"backend", "backend/snapshot", "backend/duckdb", "backend/mysql", "backend/postgres", "backend/spark", "policy"},
	"backend/backendtest":        {"backend", "backend/internal/execute", "backend/pgtest", "backend/mariadbtest", "backend/sparktest", "ledger", "mechanisms", "mechanisms/privacy", "planner/plans", "planner/predicate", "policy", "rewrite"},
	"policy/policytest":          {},
	"backend/pgtest":             {"internal/daemon", "internal/daemon/daemontest"},
	"backend/mariadbtest":        {"internal/daemon", "internal/daemon/daemontest"},
	"backend/sparktest":          {"backend/hive", "internal/daemon", "internal/daemon/daemontest"},
	"backend/citustest":          {},
	"internal/simulation":        {"ledger/store"},
	"internal/simulation/whole":  {},
	"internal/threats":           {},
	"internal/threats/report":    {"internal/threats"},
	"internal/processor":         {},
	"sandbox":                    {"rewrite/outer", "rewrite/dialect", "planner/pgcatalog", "planner/plans", "planner/scalar", "policy", "mechanisms/privacy"},
	"sandbox/catalog":            {"sandbox", "rewrite/outer", "rewrite/dialect", "planner/pgcatalog", "planner/scalar", "policy"},
	"sandbox/cluster":            {"internal/daemon", "internal/scratch"},
	"sandbox/twin":               {"internal/processor", "sandbox", "sandbox/catalog", "sandbox/cluster", "rewrite/outer", "rewrite/dialect", "planner/pgcatalog", "planner/scalar", "policy", "mechanisms/privacy"},
	"sandbox/sandboxtest":        {"sandbox", "sandbox/catalog", "sandbox/cluster", "sandbox/twin", "rewrite/outer", "planner", "planner/plans", "planner/reuse", "planner/refuse", "planner/parse", "planner/scalar", "policy", "mechanisms", "mechanisms/privacy", "backend/pgtest", "internal/material", "internal/memory"},
	"proxy/pgerror":              {"planner/refuse", "planner/scalar"},
	"proxy/encoding":             {"proxy/pgerror", "planner/parse", "planner/scalar", "policy", "sandbox", "mechanisms/privacy"},
	"proxy/admission":            {"proxy/pgerror", "backend", "sandbox", "policy", "internal/moment", "internal/processor"},
	"proxy/pipeline":             {"proxy/spans", "proxy/pgerror", "proxy/admission", "backend", "ledger", "rewrite", "rewrite/outer", "rewrite/dialect", "sandbox", "sandbox/catalog", "planner", "planner/plans", "planner/reuse", "planner/parse", "planner/pgcatalog", "planner/refuse", "planner/scalar", "planner/derived", "policy", "mechanisms", "mechanisms/privacy", "mechanisms/accounting", "mechanisms/totals", "internal/moment", "internal/digits"},
	"proxy/login":                {"proxy/pgerror", "proxy/settings", "policy", "internal/deadline"},
	"proxy/login/logintest":      {},
	"proxy/spans":                {"internal/request"},
	"proxy/settings":             {"proxy/pgerror", "proxy/encoding", "rewrite/dialect", "planner/plans", "planner/scalar", "planner/parse", "policy", "mechanisms", "mechanisms/privacy"},
	"proxy":                      {"internal/request", "proxy/spans", "proxy/pgerror", "proxy/encoding", "proxy/admission", "proxy/pipeline", "proxy/settings", "proxy/login", "ledger", "rewrite/dialect", "sandbox", "planner", "planner/plans", "planner/reuse", "planner/workload", "planner/parse", "planner/refuse", "policy", "mechanisms", "mechanisms/privacy", "mechanisms/accounting", "internal/deadline", "internal/moment"},
	"console":                    {"assistant", "internal/digits", "proxy", "proxy/pgerror", "proxy/login", "policy", "ledger", "mechanisms/privacy"},
	"service":                    {"*", "internal/deadline"},
	"cmd/dpproxy":                {"*", "backend/duckdb", "backend/mysql", "internal/request"},
	"cmd/dpproxy/draft":          {"policy"},
	"assistant":                  {"internal/digits"},
	"examples/attacks":           {},
	"packaging/licences":         {},
	"test/kit":                   {"*", "internal/memory", "internal/threats"},
	"test/paths":                 {"planner", "planner/parse", "planner/plans", "planner/reuse", "planner/workload", "policy", "mechanisms/privacy"},
	"test/truth":                 {},
}

// ofEngines are the packages that hold private rows before they are sealed: "*" names none of them, since whoever has
// one of their types is not held to what backend.Backend hands out.
var ofEngines = []string{"backend/duckdb", "backend/files", "backend/mysql", "backend/postgres", "backend/snapshot", "backend/spark"}

// foreign lists which packages may import a module that touches the outside: the grammar, the databases, the wire.
var foreign = map[string][]string{
	"github.com/pganalyze/pg_query_go":       {"planner", "planner/ast", "planner/parse", "planner/semantics", "planner/plans", "planner/formula", "planner/bind", "planner/aggregate", "planner/outerquery", "planner/mysql", "rewrite/outer", "sandbox/sandboxtest", "cmd/dpproxy/draft"},
	"github.com/sqlc-dev/marino":             {"planner/mysql"},
	"github.com/jackc/pgx/v5/pgproto3":       {"console", "backend/postgres", "proxy", "proxy/encoding", "proxy/login", "sandbox/twin", "cmd/dpproxy", "test/kit"},
	"github.com/jackc/pgx/v5/pgtype":         {"proxy", "backend/postgres"},
	"github.com/jackc/pgx/v5":                {"backend/postgres", "backend/backendtest", "backend/pgtest", "backend/citustest", "ledger/postgres", "sandbox/cluster", "sandbox/twin", "sandbox/sandboxtest", "proxy", "service", "cmd/dpproxy", "assistant", "examples/attacks", "test/kit"},
	"github.com/modelcontextprotocol/go-sdk": {"assistant", "cmd/dpproxy"},
	"github.com/go-ldap/ldap":                {"proxy/login"},
	"github.com/coreos/go-oidc":              {"proxy/login", "cmd/dpproxy"},
	"golang.org/x/oauth2":                    {"cmd/dpproxy"},
	"go.opentelemetry.io":                    {"proxy/spans"},
	"github.com/go-sql-driver/mysql":         {"backend/mysql", "backend/mariadbtest"},
	"github.com/beltran/gohive":              {"backend/hive"},
	"github.com/apache/thrift":               {"backend/hive"},
	"github.com/duckdb":                      {"backend/internal/embedded", "backend/snapshot", "backend/files", "backend/duckdb", "backend/mysql", "backend/backendtest", "cmd/dpproxy"},
	"github.com/ncruces":                     {"ledger/sqlite", "internal/simulation"},
	"go.yaml.in/yaml":                        {"policy"},
	"math/rand":                              {"mechanisms/stattest", "internal/nested", "internal/simulation", "examples/attacks"},
	"unsafe":                                 {},
	"database/sql":                           {"backend/internal/embedded", "backend/files", "backend/duckdb", "backend/backendtest", "backend/mysql", "backend/mariadbtest", "cmd/dpproxy", "test/kit"},
	"net":                                    {"assistant", "console", "proxy", "proxy/login", "policy", "service", "cmd/dpproxy", "backend/hive", "backend/backendtest", "backend/pgtest", "backend/citustest", "internal/daemon", "test/kit", "proxy/spans"},
	"net/http":                               {"assistant", "console", "proxy/spans", "proxy", "proxy/login", "proxy/login/logintest", "cmd/dpproxy"},
	"net/url":                                {"console", "packaging/licences", "ledger/sqlite", "backend/internal/link", "backend/spark", "backend/mysql", "backend/pgtest", "backend/citustest", "backend/mariadbtest", "policy", "proxy", "sandbox/cluster", "cmd/dpproxy", "proxy/spans"},
}

// TestImports reads every non-test file with go/parser and holds it against the picture.
func TestImports(t *testing.T) {
	for dir, imports := range imports(t, "../..") {
		allowed, known := picture[dir]
		if !known {
			t.Errorf("package %s is not in the picture", dir)
			continue
		}
		for path, file := range imports {
			if why := forbidden(dir, path, allowed); why != "" {
				t.Errorf("%s: %s", file, why)
			}
		}
	}
}

// TestImportsCatchesForbiddenArrow plants the faults that TestImports is there for.
func TestImportsCatchesForbiddenArrow(t *testing.T) {
	for _, c := range []struct{ dir, path string }{
		{"planner", module + "backend"},
		{"backend", module + "mechanisms/internal/sealed"},
		{"ledger", module + "policy"},
		{"ledger/postgres", module + "ledger/sqlite"},
		{"ledger", "github.com/jackc/pgx/v5"},
		{"sandbox", module + "sandbox/twin"},
		{"sandbox/cluster", module + "sandbox/twin"},
		{"sandbox/twin", module + "backend"},
		{"sandbox/catalog", "github.com/jackc/pgx/v5"},
		{"rewrite", "github.com/jackc/pgx/v5"},
		{"rewrite", module + "rewrite/outer"},
		{"rewrite/outer", module + "rewrite"},
		{"sandbox", module + "rewrite"},
		{"mechanisms/noise", "math/rand/v2"},
		{"planner", "unsafe"},
		{"console", module + "proxy/pipeline"},
		{"backend", module + "backend/internal/execute"},
		{"backend/snapshot", module + "backend/postgres"},
		{"service", module + "backend/postgres"},
		{"proxy/pipeline", module + "backend/engines"},
		{"console", module + "backend"},
		{"console", module + "planner"},
		{"console", module + "sandbox"},
		{"proxy", module + "console"},
		{"planner", "net/http"},
		{"proxy", module + "test/kit"},
		{"cmd/dpproxy", module + "test/kit"},
	} {
		if forbidden(c.dir, c.path, picture[c.dir]) == "" {
			t.Errorf("%s may import %s", c.dir, c.path)
		}
	}
}

func forbidden(dir, path string, allowed []string) string {
	if own, ok := strings.CutPrefix(path, module); ok {
		for _, a := range allowed {
			if a == own || a == "*" && !strings.Contains(own, "internal/") && !strings.HasPrefix(own, "test/") && !slices.Contains(ofEngines, own) {
				return ""
			}
		}
		return dir + " may not import " + own
	}
	best, may := "", []string(nil)
	for prefix, dirs := range foreign {
		if (path == prefix || strings.HasPrefix(path, prefix+"/")) && len(prefix) > len(best) {
			best, may = prefix, dirs
		}
	}
	if best == "" {
		return ""
	}
	for _, d := range may {
		if d == dir {
			return ""
		}
	}
	return dir + " may not import " + path
}

// imports maps package directories to the paths that their non-test files import, each with a file that does.
func imports(t *testing.T, root string) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && len(entry.Name()) > 2 || entry.Name() == "testdata") {
			return fs.SkipDir // what is in testdata is no part of the module
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if all[dir] == nil {
			all[dir] = map[string]string{}
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			all[dir][name] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
