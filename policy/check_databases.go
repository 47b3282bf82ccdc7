package policy

import (
	"net/url"
	"strings"
	"time"
)

// The databases that a policy names: the backend, which has the private rows, the sandbox's, which has none, and the
// ledger's.

const (
	defaultDeadline = 2 * time.Minute
	defaultLedger   = "sqlite:dpproxy.ledger"
)

func (c *checker) backend(b *backendT, at place) {
	to := &c.policy.Backend
	to.URL = c.databaseURL(c.elsewhere(b.URL, at.key("url"), "url"), at.key("url"))
	if d, ok := brief(b.Deadline); ok && d > 0 {
		to.Deadline = d
	} else {
		to.Deadline = duration(b.Deadline, defaultDeadline, at.key("deadline"), "deadline")
	}
	c.snapshot(b.Snapshot, at.key("snapshot"))
	if to.MySQL() && b.Snapshot == nil {
		at.name("url").problem("a mysql:// backend needs snapshot, such as {dir: snapshots, every: 6h}: its tables are copied at public times, and no query is sent to it")
	}
	if to.Spark() && b.Snapshot != nil {
		at.name("snapshot").problem("snapshot is not for a spark:// backend, whose tables are read where they are")
	}
	if len(b.Files) == 0 {
		return
	}
	files := at.key("files")
	if !c.embedded() {
		at.name("files").problem("files is for a duckdb: backend")
		return
	}
	to.Files = make(map[string]string, len(b.Files))
	folded := map[string]bool{}
	for name, path := range b.Files {
		checkName(name, files.name(name), "table name in files")
		if low := strings.ToLower(name); folded[low] {
			files.name(name).problem("files has two tables that differ from %.63q by case alone, which DuckDB cannot tell apart", name)
		} else {
			folded[low] = true
		}
		path = c.elsewhere(path, files.key(name), "file of "+name)
		low := strings.ToLower(path)
		if !strings.HasSuffix(low, ".csv") && !strings.HasSuffix(low, ".parquet") {
			files.key(name).problem("file of %s must end in .csv or .parquet", name)
		}
		to.Files[name] = c.resolve(path)
	}
}

// embedded reports whether the backend is DuckDB.
func (c *checker) embedded() bool { return strings.HasPrefix(c.policy.Backend.URL, "duckdb:") }

// MySQL reports whether the private rows are in MySQL or MariaDB.
func (b Backend) MySQL() bool { return strings.HasPrefix(b.URL, mysqlScheme) }

// Spark reports whether the private rows are behind Spark's Thrift server.
func (b Backend) Spark() bool { return strings.HasPrefix(b.URL, sparkScheme) }

// Folds reports whether the database may take names for one that differ by case alone: DuckDB and Spark do, and MySQL
// of columns, and on some systems of tables.
func (b Backend) Folds() bool { return strings.HasPrefix(b.URL, "duckdb:") || b.MySQL() || b.Spark() }

const (
	mysqlScheme = "mysql://"
	sparkScheme = "spark://"
)

// isPostgres tells the URL of a PostgreSQL server.
func isPostgres(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

// databaseURL checks a backend's URL, whose text is never repeated: it may hold a password.
func (c *checker) databaseURL(text string, at place) string {
	if isPostgres(text) {
		return text
	}
	if strings.HasPrefix(text, mysqlScheme) {
		if parsed, err := url.Parse(text); err != nil || parsed.Host == "" || urlDatabase(text) == "" {
			at.problem("url must be mysql://user@host:port/database")
		}
		return text
	}
	if strings.HasPrefix(text, sparkScheme) {
		if parsed, err := url.Parse(text); err != nil || parsed.Hostname() == "" || strings.Contains(urlDatabase(text), "/") {
			at.problem("url must be spark://user@host:port/database")
		}
		return text
	}
	file, ok := strings.CutPrefix(text, "duckdb:")
	if !ok {
		at.problem("url must begin with postgres://, mysql://, spark:// or duckdb:")
		return text
	}
	if file == "" {
		return text
	}
	return "duckdb:" + c.resolve(file)
}

// urlDatabase is the database that a mysql:// or spark:// URL names, in which tables lie whose schema a policy does not
// give.
func urlDatabase(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(parsed.Path, "/")
}

// stores checks the sandbox and the ledger.
func (c *checker) stores(f *fileT, at place) {
	if f.Sandbox.URL != "" {
		here := at.key("sandbox").key("url")
		switch text := c.elsewhere(f.Sandbox.URL, here, "url"); {
		case isPostgres(text):
			c.policy.Sandbox.URL = text
			c.twin(text, here)
		case strings.HasPrefix(text, "duckdb:"):
			here.problem("sandbox: DuckDB is no sandbox any more; leave the url out, and dpproxy starts a PostgreSQL of its own")
		default:
			here.problem("sandbox: url must be postgres://…/database; without it dpproxy starts a PostgreSQL of its own")
		}
	}
	if f.Sandbox.Bin != "" {
		c.policy.Sandbox.Bin = c.resolve(expand(f.Sandbox.Bin, at.key("sandbox").key("bin"), "bin"))
	}
	text, url := defaultLedger, at.key("ledger").key("url")
	if f.Ledger.URL != "" {
		text = expand(f.Ledger.URL, url, "url")
	}
	if f.Ledger.Witness != "" {
		c.policy.Ledger.Witness = c.resolve(expand(f.Ledger.Witness, at.key("ledger").key("witness"), "witness"))
	}
	if f.Ledger.Statements != "" {
		c.policy.Ledger.Statements = c.resolve(f.Ledger.Statements)
	}
	if isPostgres(text) {
		c.policy.Ledger.URL = text
		c.sharedLedger(text, url)
		return
	}
	file, ok := strings.CutPrefix(text, "sqlite:")
	if !ok || file == "" {
		url.problem("ledger: url must be sqlite:file or postgres://…/database")
	}
	c.policy.Ledger.URL = "sqlite:" + c.resolve(file)
}

// defaultWitness is the witness of a ledger in PostgreSQL: beside the policy, since it must not be where the ledger is.
const defaultWitness = "dpproxy.ledger-witness"

// sharedLedger checks the URL of a ledger in PostgreSQL, whose text is never repeated: it may hold a password.
func (c *checker) sharedLedger(text string, at place) {
	if c.policy.Ledger.Witness == "" {
		c.policy.Ledger.Witness = c.resolve(defaultWitness)
	}
	ledger, err := url.Parse(text)
	if err != nil {
		at.problem("ledger: url is not a URL")
		return
	}
	database := strings.TrimPrefix(ledger.Path, "/")
	if database == "" {
		at.problem("ledger: url must name a database, such as dpproxy_ledger")
	}
	twin, err := url.Parse(c.policy.Sandbox.URL)
	if err == nil && sameServer(ledger, twin) && database == strings.TrimPrefix(twin.Path, "/") {
		at.problem("ledger: url names the sandbox's own database, where analysts' SQL runs")
	}
}

// twin checks the URL of a PostgreSQL sandbox, whose text is never repeated: it may hold a password.
func (c *checker) twin(text string, at place) {
	twin, err := url.Parse(text)
	if err != nil {
		at.problem("sandbox: url is not a URL")
		return
	}
	database := strings.TrimPrefix(twin.Path, "/")
	if database == "" || database == "postgres" || strings.HasPrefix(database, "template") {
		at.problem("sandbox: url must name a database of its own, such as dpproxy_twin")
		return
	}
	if private, err := url.Parse(c.policy.Backend.URL); err == nil && sameServer(twin, private) && database == strings.TrimPrefix(private.Path, "/") {
		at.problem("sandbox: url names the backend's own database; the sandbox may hold no private rows")
	}
}

// sameServer reports whether two URLs name one host and port.
func sameServer(a, b *url.URL) bool {
	address := func(u *url.URL) string {
		host, port := u.Hostname(), u.Port()
		if given := u.Query().Get("host"); host == "" {
			host = given
		}
		if given := u.Query().Get("port"); port == "" {
			port = given
		}
		if host == "" || host == "::1" || strings.HasPrefix(host, "127.") || strings.HasPrefix(host, "/") {
			host = "localhost"
		}
		if port == "" {
			port = "5432"
		}
		return host + " " + port
	}
	return strings.HasPrefix(b.Scheme, "postgres") && address(a) == address(b)
}

// The bounds of a snapshot's times.
const (
	leastEvery = time.Minute
	maxWithin  = time.Hour // by default
)

// snapshot checks when copies of the private tables are made, and where to.
func (c *checker) snapshot(s *snapshotT, at place) {
	if s == nil {
		return
	}
	to := &Snapshot{Every: duration(s.Every, 0, at.key("every"), "every"), Dir: c.resolve(c.elsewhere(s.Dir, at.key("dir"), "dir"))}
	c.policy.Backend.Snapshot = to
	if s.Dir == "" {
		at.key("dir").problem("snapshot needs dir, the directory of the copies")
	}
	const day = 24 * time.Hour
	switch {
	case s.Every == "":
		at.key("every").problem("snapshot needs every, such as 6h")
	case to.Every > 0 && (to.Every < leastEvery || to.Every < day && day%to.Every != 0 || to.Every > day && to.Every%day != 0):
		at.key("every").problem("every is %.40q, must be a part of a day without a rest, from 1m on, or whole days, such as 6h or 1d", s.Every)
	}
	if s.At != "" {
		clock, err := time.Parse("15:04", s.At)
		if err != nil {
			at.key("at").problem("at is %.40q, must be hour and minute in UTC, such as 02:00", s.At)
		}
		to.At = clock.Sub(clock.Truncate(day))
	}
	to.Within = min(to.Every/4, maxWithin)
	if s.Within != "" {
		if to.Within = duration(s.Within, to.Within, at.key("within"), "within"); to.Within > to.Every {
			at.key("within").problem("within is %.40q, must be at most every", s.Within)
		}
	}
	to.Connections = 2
	if s.Connections != "" {
		to.Connections = int(whole64(s.Connections, 1, 16, at.key("connections"), "connections"))
	}
	if s.Key != "" {
		to.Key = c.resolve(c.elsewhere(s.Key, at.key("key"), "key"))
	}
}
