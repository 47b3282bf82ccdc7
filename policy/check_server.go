package policy

import (
	"cmp"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/mechanisms"
)

const (
	defaultListen = "127.0.0.1:6432"
	maxName       = 63 // bytes of a PostgreSQL identifier
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
	c.assistants(s, at.key("mcp"))
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

// assistants checks how they are served.
func (c *checker) assistants(s *serverT, here place) {
	if s.MCP == nil {
		return
	}
	c.policy.Server.MCP = &MCP{}
	if s.Console == "" {
		here.problem("mcp is served at the console's address: server.console is missing")
	}
	if text := string(s.MCP.MaxCost); text != "" {
		most, ok := amount(text)
		if !ok {
			here.key("max_cost").problem("max_cost is %.40q, must be a number from 0 on, such as 0.5", text)
			return
		}
		c.policy.Server.MCP.MaxCost = most
	}
}

// logins reads who else says that users are who they say. Passwords and tokens go to them, so nobody may listen
// between.
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
	maxGrid   = 10 * time.Minute
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
	if !ok || d < leastGrid || d > maxGrid {
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
		if !ok || d < leastStatementCPU || d > maxStatementCPU {
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
	maxStatementCPU     = 10 * time.Minute
	maxMemory           = 1 << 50
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
	if n < least || n > maxMemory {
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

// loopback reports whether only this machine can reach an address.
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
