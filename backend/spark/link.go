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

// errURL says what is wrong with a URL, whose text may hold a password.
var errURL = errors.New("the url is not spark://user:password@host:port/database, with auth, catalog, queries, ssl-mode, ssl-ca, ssl-cert and ssl-key as its options")

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
	options, known := link.Options(u, "auth", "catalog", "queries")
	if !known {
		return to, errURL
	}
	to.config = hive.Config{Address: u.Host, User: cmp.Or(u.User.Username(), "dpproxy")}
	if u.Port() == "" {
		to.config.Address += ":10000"
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
	to.config.TLS, to.weak, err = link.TLS(u.Hostname(), link.IsLoopback(u.Hostname()), options)
	return to, err
}
