package backend

import (
	"cmp"
	"errors"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"unicode"

	"github.com/dpproxy/dpproxy/backend/hive"
	"github.com/dpproxy/dpproxy/backend/mysql"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// errSparkURL and ErrSparkLink say what is wrong with a URL, whose text may hold a password.
var (
	errSparkURL = errors.New("the url is not spark://user:password@host:port/database, with auth, catalog, queries, ssl-mode, ssl-ca, ssl-cert and ssl-key as its options")
	// ErrSparkLink says that the owner has not said how the way to the database is protected.
	ErrSparkLink = errors.New("the database is on another machine and the url does not say how the way there is protected: " +
		"add ssl-mode=VERIFY_IDENTITY, or another ssl-mode if the network is trusted")
)

// sparkServer is what a URL says.
type sparkServer struct {
	config  hive.Config
	catalog string // of Spark's, in which the tables are
	weak    bool   // the way may be unencrypted, or to an impostor
	queries int    // that run at a time
}

// sparkLink reads a URL. The options of TLS go by the names of MySQL's (mysql.TLS). By auth=plain, which is the default, user and password are sent as
// SASL's PLAIN does, for a server with authentication NONE, LDAP or CUSTOM; auth=nosasl is for one with NOSASL, which asks for none.
func sparkLink(text string) (link sparkServer, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "spark" || u.Hostname() == "" || strings.Contains(strings.TrimPrefix(u.Path, "/"), "/") {
		return link, errSparkURL
	}
	options := map[string]string{}
	for name, values := range u.Query() {
		if name = strings.ToLower(name); options[name] != "" || len(values) != 1 {
			return link, errSparkURL
		}
		options[name] = values[0]
	}
	link.config = hive.Config{Address: u.Host, User: u.User.Username()}
	if u.Port() == "" {
		link.config.Address += ":10000"
	}
	if link.config.User == "" {
		link.config.User = "dpproxy"
	}
	link.config.Password, _ = u.User.Password()
	switch options["auth"] {
	case "", "plain":
	case "nosasl":
		link.config.Bare = true
	default:
		return link, errors.New("auth must be plain or nosasl")
	}
	if link.catalog = cmp.Or(options["catalog"], dialect.SparkCatalog); len(link.catalog) > 63 || strings.ContainsFunc(link.catalog, func(c rune) bool { return c != '_' && !unicode.In(c, unicode.Letter, unicode.Digit) }) {
		return link, errors.New("catalog must be the name of one of Spark's catalogs: letters, digits and _")
	}
	if link.queries = max(4, runtime.GOMAXPROCS(0)); options["queries"] != "" {
		if link.queries, err = strconv.Atoi(options["queries"]); err != nil || link.queries < 1 || link.queries > 1000 {
			return link, errors.New("queries must be a whole number from 1 to 1000")
		}
	}
	mode, local := strings.ToUpper(options["ssl-mode"]), mysql.IsLoopback(u.Hostname())
	if mode == "" && !local {
		return link, ErrSparkLink
	}
	if link.config.TLS, err = mysql.TLS(mode, u.Hostname(), options); err != nil {
		return link, err
	}
	for _, known := range []string{"auth", "catalog", "queries", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key"} {
		delete(options, known)
	}
	if len(options) > 0 {
		return link, errSparkURL
	}
	link.weak = !local && (mode == "DISABLED" || mode == "REQUIRED")
	return link, nil
}
