package policy

import (
	"cmp"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

const (
	defaultListen   = "127.0.0.1:6432"
	defaultDeadline = 2 * time.Minute
	defaultSandbox  = "duckdb:"
	defaultLedger   = "sqlite:dpproxy.ledger"
	maxName         = 63 // bytes of a PostgreSQL identifier
)

func (c *checker) server(s *serverT, at place) {
	to := &c.policy.Server
	to.Listen, to.Admin = s.Listen, s.Admin
	if s.Listen == "" {
		to.Listen = defaultListen
	}
	to.Limits = limits(&s.Limits, at.key("limits"))
	whole := checkAddress(to.Listen, at.key("listen"), "listen")
	if s.Admin != "" {
		checkAddress(s.Admin, at.key("admin"), "admin")
	}
	c.timing(&s.Timing, at.key("timing"))
	to.FixedWork = s.Sampling == "fixed-work"
	to.Spans = s.Spans
	if s.TLS != nil {
		file := func(name, key string) string { return c.resolve(c.elsewhere(name, at.key("tls").key(key), key)) }
		to.TLS = &TLS{Cert: file(s.TLS.Cert, "cert"), Key: file(s.TLS.Key, "key")}
		if s.TLS.Clients != "" {
			to.TLS.Clients = file(s.TLS.Clients, "clients")
		}
		if s.TLS.Cert == "" || s.TLS.Key == "" {
			at.key("tls").problem("tls: cert and key must name files")
		}
	} else if whole && !loopback(to.Listen) {
		at.key("listen").problem("listen is %.80q: any other than a loopback address needs tls: {cert: …, key: …}", to.Listen)
	}
	c.console(s, at)
	c.logins(&s.Login, at.key("login"))
}

// console checks the console's address: what the wire asks of its own, and that it is another.
func (c *checker) console(s *serverT, at place) {
	to, here := &c.policy.Server, at.key("console")
	if to.Console = s.Console; s.Console == "" || !checkAddress(s.Console, here, "console") {
		return
	}
	if s.TLS == nil && !loopback(s.Console) {
		here.problem("console is %.80q: any other than a loopback address needs tls: {cert: …, key: …}", s.Console)
	}
	if _, port, _ := net.SplitHostPort(s.Console); port != "0" && (s.Console == to.Listen || s.Console == s.Admin) {
		here.problem("console is %.80q, where something else listens already", s.Console)
	}
}

// owners checks that owners are users.
func (c *checker) owners(names []string, at place) {
	for i, name := range names {
		switch here := at.item(i); {
		case c.policy.User(name) == nil:
			here.problem("owners: %.80q is no user", name)
		case slices.Contains(c.policy.Owners, name):
			here.problem("owners: %s is given twice", name)
		default:
			c.policy.Owners = append(c.policy.Owners, name)
		}
	}
}

// logins reads who else says that users are who they say. Passwords and tokens go to them, so nobody may listen between.
func (c *checker) logins(l *loginT, at place) {
	file := func(name string) string {
		if name == "" {
			return ""
		}
		return c.resolve(name)
	}
	if l.LDAP != nil {
		here := at.key("ldap")
		secureURL(l.LDAP.URL, "ldaps", "ldap", here.key("url"), "ldap: url")
		if strings.Count(l.LDAP.Bind, UserMark) != 1 {
			here.key("bind").problem("ldap: bind is %.80q, must have %s once", l.LDAP.Bind, UserMark)
		}
		c.policy.Server.LDAP = &LDAP{URL: l.LDAP.URL, Bind: l.LDAP.Bind, CA: file(l.LDAP.CA)}
	}
	if l.OIDC != nil {
		here := at.key("oidc")
		secureURL(l.OIDC.Issuer, "https", "http", here.key("issuer"), "oidc: issuer")
		if l.OIDC.Audience == "" {
			here.key("audience").problem("oidc: audience is empty: tokens for anybody would let in")
		}
		c.policy.Server.OIDC = &OIDC{Issuer: l.OIDC.Issuer, Audience: l.OIDC.Audience, Claim: cmp.Or(l.OIDC.Claim, "sub"), Scope: cmp.Or(l.OIDC.Scope, "openid"), CA: file(l.OIDC.CA)}
	}
}

// secureURL checks an address of which the plain scheme is for this machine alone.
func secureURL(text, secure, plain string, at place, what string) {
	u, err := url.Parse(text)
	host := ""
	if err == nil {
		if host = u.Host; u.Port() == "" {
			host += ":0"
		}
	}
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		at.problem("%s is no address such as %s://host", what, secure)
	case u.Scheme != secure && !(u.Scheme == plain && loopback(host)):
		at.problem("%s must begin with %s://; %s:// is for a loopback address", what, secure, plain)
	}
}

// leastGrid is the shortest step of the grid: the last milliseconds of each are waited for with the processor.
const (
	leastGrid = 5 * time.Millisecond
	mostGrid  = 10 * time.Minute
)

func (c *checker) timing(t *timingT, at place) {
	if t.Grid == "" {
		if t.Fresh != "" {
			at.key("fresh").problem("timing: fresh needs grid, the step of everything else")
		}
		return
	}
	to := &c.policy.Server.Timing
	to.Grid = step(t.Grid, at.key("grid"), "grid")
	if to.Fresh = to.Grid; t.Fresh == "" {
		return
	}
	if to.Fresh = step(t.Fresh, at.key("fresh"), "fresh"); to.Fresh%to.Grid != 0 {
		at.key("fresh").problem("timing: fresh is %.40q, must be a multiple of grid", t.Fresh)
	}
}

func step(text string, at place, what string) time.Duration {
	d, ok := brief(text)
	if !ok || d < leastGrid || d > mostGrid {
		at.problem("timing: %s is %.40q, must be a whole number of ms, s or m from 5ms to 10m, such as 20ms", what, text)
		return leastGrid
	}
	return d
}

// limits reads what clients may take.
func limits(l *limitsT, at place) (to Limits) {
	for _, k := range []struct {
		name           string
		text           integer
		standard, most int64
		field          *int
	}{
		{"connections", l.Connections, 1000, 100_000, &to.Connections},
		{"user_connections", l.UserConnections, 200, 100_000, &to.UserConnections},
		{"user_statements", l.UserStatements, 64, 100_000, &to.UserStatements},
		{"user_purchases", l.UserPurchases, 8, 100_000, &to.UserPurchases},
		{"statements_per_second", l.StatementsPerSecond, 0, 1_000_000, &to.StatementsPerSecond},
		{"purchases_per_second", l.PurchasesPerSecond, 200, 1_000_000, &to.PurchasesPerSecond},
	} {
		n := k.standard
		if k.text != "" {
			n = whole64(k.text, 1, k.most, at.key(k.name), k.name)
		}
		*k.field = int(n)
	}
	to.StatementCPU = defaultStatementCPU
	if l.StatementCPU != "" {
		d, ok := brief(l.StatementCPU)
		if !ok || d < leastStatementCPU || d > mostStatementCPU {
			at.key("statement_cpu").problem("statement_cpu is %.40q, must be a whole number of ms, s or m from 100ms to 10m, such as 5s", l.StatementCPU)
		} else {
			to.StatementCPU = d
		}
	}
	to.StatementMemory = size(l.StatementMemory, 512<<20, 64<<20, at.key("statement_memory"), "statement_memory")
	to.UserMemory = size(l.UserMemory, max(1<<30, to.StatementMemory), 64<<20, at.key("user_memory"), "user_memory")
	to.Memory = size(l.Memory, 0, 512<<20, at.key("memory"), "memory")
	if to.UserMemory < to.StatementMemory {
		at.key("user_memory").problem("user_memory is %.40s, less than statement_memory, so that no statement could be answered", l.UserMemory)
	}
	if to.Memory > 0 && to.Memory < 2*to.StatementMemory {
		at.key("memory").problem("memory is %.40s, must be at least twice statement_memory: a statement takes memory in the process and in its child", l.Memory)
	}
	return to
}

// The bounds of what a statement may take: a limit below them refuses what every client asks when it connects.
const (
	defaultStatementCPU = 5 * time.Second
	leastStatementCPU   = 100 * time.Millisecond
	mostStatementCPU    = 10 * time.Minute
	mostMemory          = 1 << 50
)

// sizeForm is an amount of memory: a whole number of MiB, GiB or TiB.
var sizeForm = regexp.MustCompile(`^([0-9]{1,6})\s*(MiB|GiB|TiB)$`)

// size reads an amount of memory, in bytes.
func size(text string, otherwise, least int64, at place, what string) int64 {
	if text == "" {
		return otherwise
	}
	match := sizeForm.FindStringSubmatch(text)
	if match == nil {
		at.problem("%s is %.40q, must be a whole number of MiB, GiB or TiB, such as 512MiB", what, text)
		return otherwise
	}
	n, _ := strconv.ParseInt(match[1], 10, 64)
	n *= map[string]int64{"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[match[2]]
	if n < least || n > mostMemory {
		at.problem("%s is %.40s, must be at least %s", what, text, SizeText(least))
		return otherwise
	}
	return n
}

// SizeText writes an amount of memory as a policy does, in the largest unit that it is a whole number of.
func SizeText(bytes int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes > 0 && bytes%u.size == 0 {
			return strconv.FormatInt(bytes/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(bytes, 10) + " bytes"
}

func checkAddress(address string, at place, what string) bool {
	colon := strings.LastIndexByte(address, ':')
	port, err := strconv.ParseUint(address[colon+1:], 10, 16)
	host := address[:max(colon, 0)]
	bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	bracketed := strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")
	if colon < 0 || err != nil || port > 65535 || strings.ContainsAny(host, " \t/") || strings.Contains(bare, ":") != bracketed {
		at.problem("%s is %.80q, must be host:port", what, address)
		return false
	}
	return true
}

// loopback tells whether only this machine can reach an address.
func loopback(address string) bool {
	host := address[:max(strings.LastIndexByte(address, ':'), 0)]
	if host == "localhost" || host == "[::1]" {
		return true
	}
	parts := strings.Split(host, ".")
	for _, part := range parts {
		if _, err := strconv.ParseUint(part, 10, 8); err != nil {
			return false
		}
	}
	return len(parts) == 4 && parts[0] == "127"
}

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

// embedded tells whether the backend is DuckDB.
func (c *checker) embedded() bool { return strings.HasPrefix(c.policy.Backend.URL, "duckdb:") }

// MySQL tells whether the private rows are in MySQL or MariaDB.
func (b Backend) MySQL() bool { return strings.HasPrefix(b.URL, mysqlScheme) }

// Spark tells whether the private rows are behind Spark's Thrift server.
func (b Backend) Spark() bool { return strings.HasPrefix(b.URL, sparkScheme) }

// Folds tells whether the database may take names for one that differ by case alone: DuckDB and Spark do, and MySQL of columns, and on some
// systems of tables.
func (b Backend) Folds() bool { return strings.HasPrefix(b.URL, "duckdb:") || b.MySQL() || b.Spark() }

const (
	mysqlScheme = "mysql://"
	sparkScheme = "spark://"
)

// databaseURL checks a backend's URL, whose text is never repeated: it may hold a password.
func (c *checker) databaseURL(text string, at place) string {
	if strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://") {
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

// urlDatabase is the database that a mysql:// or spark:// URL names, in which tables lie whose schema a policy does not give.
func urlDatabase(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(parsed.Path, "/")
}

// stores checks the sandbox and the ledger.
func (c *checker) stores(f *fileT, at place) {
	c.policy.Sandbox.URL = defaultSandbox
	if f.Sandbox.URL != "" {
		here := at.key("sandbox").key("url")
		switch text := c.elsewhere(f.Sandbox.URL, here, "url"); {
		case strings.HasPrefix(text, "postgres://"), strings.HasPrefix(text, "postgresql://"):
			c.policy.Sandbox.URL = text
			c.twin(text, here)
		case text != defaultSandbox:
			here.problem("sandbox: url must be duckdb: or postgres://…/database")
		}
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
	if strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://") {
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

// sameServer tells whether two URLs name one host and port.
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

func (c *checker) users(users []userT, at place) {
	seen, identities := map[string]bool{}, map[string]bool{}
	for i := range users {
		u, here := &users[i], at.item(i).within("user", users[i].Name)
		checkName(u.Name, here.key("name"), "name")
		if u.Name == "*" {
			here.key("name").problem("name is *, which stands for each other user in budgets")
		}
		if seen[u.Name] {
			here.key("name").problem("name is given twice")
		}
		seen[u.Name] = true
		login := loginMethods[u.Login]
		c.userLogin(u, login, here)
		who := cmp.Or(u.Identity, u.Name)
		if login == ByLDAP { // directories compare names without regard to case, and to how many spaces there are (RFC 4519, caseIgnoreMatch)
			who = strings.ToLower(strings.Join(strings.Fields(who), " "))
		}
		if who = login.String() + " " + who; login != ByPassword {
			if identities[who] {
				here.key("identity").problem("identity is another user's already: one person would have two budgets")
			}
			identities[who] = true
		}
		c.policy.Users = append(c.policy.Users, User{
			Name: u.Name, Login: login, Verifier: u.Password, Identity: cmp.Or(u.Identity, u.Name), Disabled: u.Disabled, Admin: u.Admin, Settings: settings(&u.Settings, here.key("settings")), Scoped: u.Scope == "transaction",
		})
	}
}

// userLogin checks that a user can log in by what she is to log in by, and by nothing else.
func (c *checker) userLogin(u *userT, login LoginMethod, here place) {
	s := &c.policy.Server
	if login == ByPassword {
		if err := checkVerifier(u.Password); err != nil {
			here.key("password").problem("%v", err)
		}
		if u.Identity != "" {
			here.key("identity").problem("identity is for users with another login than password")
		}
		return
	}
	if u.Password != "" {
		here.key("password").problem("password is given, but login is %s: one of the two would let her in behind the other's back", login)
	}
	missing := ""
	switch {
	case login == ByCertificate && (s.TLS == nil || s.TLS.Clients == ""):
		missing = "server.tls.clients"
	case login == ByLDAP && s.LDAP == nil:
		missing = "server.login.ldap"
	case login == ByOIDC && s.OIDC == nil:
		missing = "server.login.oidc"
	}
	if missing != "" {
		here.key("login").problem("login is %s, and there is no %s", login, missing)
	}
}

// settings checks a user's session settings and writes them as SET would take them.
func settings(s *settingsT, at place) map[string]string {
	set := map[string]string{}
	if s.Epsilon != "" {
		if _, err := privacy.ParseEpsilon(string(s.Epsilon)); err != nil {
			at.key("epsilon").problem("%v", err)
		}
		set["epsilon"] = string(s.Epsilon)
	}
	if s.Delta != "" {
		if d, err := privacy.ParseDelta(string(s.Delta)); err != nil || d.Atto() == 0 {
			at.key("delta").problem("delta is %.40q, must be above 0 and below 1", s.Delta)
		}
		set["delta"] = string(s.Delta)
	}
	if s.Confidence != "" {
		confidence(s.Confidence, at.key("confidence"))
		set["confidence"] = string(s.Confidence)
	}
	if s.MaxError != "" {
		if e, err := strconv.ParseFloat(string(s.MaxError), 64); err != nil || !(e >= 1e-9 && e <= 1e15) {
			at.key("max_error").problem("max_error is %.40q, must be a number above 0", s.MaxError)
		}
		set["max_error"] = string(s.MaxError)
	}
	if s.Alarms != "" {
		if n, err := strconv.Atoi(string(s.Alarms)); err != nil || n < 0 || n > 1000 {
			at.key("alarms").problem("alarms is %.40q, must be a whole number from 0 to 1000", s.Alarms)
		}
		set["alarms"] = string(s.Alarms)
	}
	if s.Probes != "" {
		set["probes"] = s.Probes
	}
	switch s.Dialect {
	case "":
	case "postgres", "mysql":
		set["dialect"] = s.Dialect
	default:
		at.key("dialect").problem("dialect is %.40q, must be postgres or mysql", s.Dialect)
	}
	for name, flag := range map[string]*bool{"error_columns": s.ErrorColumns, "release": s.Release} {
		if flag != nil {
			set[name] = map[bool]string{false: "off", true: "on"}[*flag]
		}
	}
	return set
}

func confidence(text decimal, at place) mechanisms.Confidence {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		at.problem("confidence is %.40q, must be a number between 0 and 1", text)
		return mechanisms.Confidence{}
	}
	level, err := mechanisms.NewConfidence(f)
	if err != nil {
		at.problem("%v", err)
	}
	return level
}

// checkName refuses what PostgreSQL could not hold as an identifier.
func checkName(name string, at place, what string) bool {
	switch {
	case name == "":
		at.problem("%s is empty", what)
	case len(name) > maxName:
		at.problem("%s is %.80q, must have at most %d bytes", what, name, maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		at.problem("%s is %.80q, must be text without control characters", what, name)
	default:
		return true
	}
	return false
}
