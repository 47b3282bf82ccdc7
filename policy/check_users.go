package policy

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Users, how each logs in, what her sessions begin with, and which users are owners. A person is one user: of two she
// would have two budgets.

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

// settingRules are what the texts of some settings must be.
var settingRules = map[string]struct {
	must  string
	holds func(text string) bool
}{
	"delta": {"above 0 and below 1", func(text string) bool {
		d, err := privacy.ParseDelta(text)
		return err == nil && d.Atto() != 0
	}},
	"max_error": {"a number above 0", func(text string) bool {
		e, err := strconv.ParseFloat(text, 64)
		return err == nil && e >= 1e-9 && e <= 1e15
	}},
	"alarms": {"a whole number from 0 to 1000", func(text string) bool {
		n, err := strconv.Atoi(text)
		return err == nil && n >= 0 && n <= 1000
	}},
	"dialect": {"postgres or mysql", func(text string) bool { return contains([]string{"postgres", "mysql"}, text) }},
}

// settings checks a user's session settings and writes them as SET would take them.
func settings(s *settingsT, at place) map[string]string {
	set := map[string]string{"epsilon": string(s.Epsilon), "delta": string(s.Delta), "confidence": string(s.Confidence), "max_error": string(s.MaxError),
		"alarms": string(s.Alarms), "probes": s.Probes, "dialect": s.Dialect}
	maps.DeleteFunc(set, func(_, text string) bool { return text == "" })
	if _, err := privacy.ParseEpsilon(string(s.Epsilon)); err != nil && s.Epsilon != "" {
		at.key("epsilon").problem("%v", err)
	}
	if s.Confidence != "" {
		confidence(s.Confidence, at.key("confidence"))
	}
	for name, rule := range settingRules {
		if text, given := set[name]; given && !rule.holds(text) {
			at.key(name).problem("%s is %.40q, must be %s", name, text, rule.must)
		}
	}
	for name, flag := range map[string]*bool{"error_columns": s.ErrorColumns, "release": s.Release} {
		if flag != nil {
			set[name] = map[bool]string{false: "off", true: "on"}[*flag]
		}
	}
	return set
}
