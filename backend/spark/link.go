package spark

import (
	"cmp"
	"errors"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"unicode"

	"github.com/dpproxy/dpproxy/backend/hive"
	"github.com/dpproxy/dpproxy/backend/internal/link"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// errURL and ErrLink say what is wrong with a URL, whose text may hold a password.
var (
	errURL = errors.New("the url is not spark://user:password@host:port/database, with auth, catalog, queries, ssl-mode, ssl-ca, ssl-cert and ssl-key as its options")
	// ErrLink says that the owner has not said how the way to the database is protected.
	ErrLink = errors.New("the database is on another machine and the url does not say how the way there is protected: " +
		"add ssl-mode=VERIFY_IDENTITY, or another ssl-mode if the network is trusted")
)

// server is what a URL says.
type server struct {
	config  hive.Config
	catalog string // of Spark's, in which the tables are
	weak    bool   // the way may be unencrypted, or to an impostor
	queries int    // that run at a time
}

// linkOf reads a URL. The options of TLS go by the names of MySQL's (link.TLS). By auth=plain, which is the default,
// user and password are sent as SASL's PLAIN does, for a server with authentication NONE, LDAP or CUSTOM; auth=nosasl
// is for one with NOSASL, which asks for none.
func linkOf(text string) (to server, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "spark" || u.Hostname() == "" || strings.Contains(strings.TrimPrefix(u.Path, "/"), "/") {
		return to, errURL
	}
	options := map[string]string{}
	for name, values := range u.Query() {
		if name = strings.ToLower(name); options[name] != "" || len(values) != 1 {
			return to, errURL
		}
		options[name] = values[0]
	}
	to.config = hive.Config{Address: u.Host, User: u.User.Username()}
	if u.Port() == "" {
		to.config.Address += ":10000"
	}
	if to.config.User == "" {
		to.config.User = "dpproxy"
	}
	to.config.Password, _ = u.User.Password()
	switch options["auth"] {
	case "", "plain":
	case "nosasl":
		to.config.Bare = true
	default:
		return to, errors.New("auth must be plain or nosasl")
	}
	if to.catalog = cmp.Or(options["catalog"], dialect.SparkCatalog); len(to.catalog) > 63 || strings.ContainsFunc(to.catalog, func(c rune) bool { return c != '_' && !unicode.In(c, unicode.Letter, unicode.Digit) }) {
		return to, errors.New("catalog must be the name of one of Spark's catalogs: letters, digits and _")
	}
	if to.queries = max(4, runtime.GOMAXPROCS(0)); options["queries"] != "" {
		if to.queries, err = strconv.Atoi(options["queries"]); err != nil || to.queries < 1 || to.queries > 1000 {
			return to, errors.New("queries must be a whole number from 1 to 1000")
		}
	}
	mode, local := strings.ToUpper(options["ssl-mode"]), link.IsLoopback(u.Hostname())
	if mode == "" && !local {
		return to, ErrLink
	}
	if to.config.TLS, err = link.TLS(mode, u.Hostname(), options); err != nil {
		return to, err
	}
	for _, known := range []string{"auth", "catalog", "queries", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key"} {
		delete(options, known)
	}
	if len(options) > 0 {
		return to, errURL
	}
	to.weak = !local && (mode == "DISABLED" || mode == "REQUIRED")
	return to, nil
}
