package policy

import (
	"cmp"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/xdg-go/stringprep"

	"github.com/dpproxy/dpproxy/mechanisms"
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
var settingRules = map[string]settingRule{
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
	"contribution": {"policy, rows, ladder or a number above 0", func(text string) bool {
		_, most, ok := ReadContribution(text)
		return ok && (most == nil || most.Cmp(big.NewRat(1e18, 1)) <= 0)
	}},
	"hints":   oneOf("separate", "message"),
	"digits":  oneOf("exact", "significant"),
	"dialect": oneOf("postgres", "mysql"),
}

// settingRule is what the text of a setting must be.
type settingRule struct {
	must  string
	holds func(text string) bool
}

// oneOf is the rule of a setting that is a word.
func oneOf(words ...string) settingRule {
	return settingRule{strings.Join(words, " or "), func(text string) bool { return contains(words, text) }}
}

// ReadContribution reads what bounds a unit in counts and sums, dp.contribution: a word (policy, rows, ladder), or a
// number above 0.
func ReadContribution(text string) (word string, most *big.Rat, ok bool) {
	if contains([]string{"policy", "rows", "ladder"}, text) {
		return text, nil, true
	}
	most, ok = amount(text)
	return "", most, ok && most.Sign() > 0
}

// amount reads a decimal number from 0 on.
func amount(text string) (x *big.Rat, ok bool) {
	x, ok = new(big.Rat).SetString(text)
	return x, ok && len(text) <= 30 && strings.Trim(text, "0123456789.") == ""
}

// settings checks a user's session settings and writes them as SET would take them.
func settings(s *settingsT, at place) map[string]string {
	set := map[string]string{"epsilon": string(s.Epsilon), "delta": string(s.Delta),
		"confidence": string(s.Confidence), "max_error": string(s.MaxError),
		"alarms": string(s.Alarms), "probes": s.Probes, "contribution": string(s.Contribution), "dialect": s.Dialect,
		"hints": s.Hints, "digits": s.Digits}
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

// Analysts at a level of trust have the declared releases with more noise on top: one draw serves all levels
// (docs/adr/0028). For each of them the policy is read as if it had been written for her, with her level's price of
// each release; everything else in it is the same, and so is its digest.

// TrustLevel is a level of trust below the whole.
type TrustLevel struct {
	Name  string
	Share privacy.Epsilon // of each declared release's ε, below 1
}

// level finds a level by its name; nil means there is none.
func (d *Dataset) level(name string) *TrustLevel {
	return foundIn(d.Levels, func(l *TrustLevel) bool { return l.Name == name })
}

// levels reads the levels of a dataset.
func levels(d *Dataset, f *datasetT, at place) {
	if len(f.Levels) >= mechanisms.MaxLevels {
		at.problem("number of levels is %d, must be at most %d", len(f.Levels), mechanisms.MaxLevels-1)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(f.Levels)) {
		here := at.key(name)
		checkName(name, at.name(name), "name of a level")
		share, err := privacy.ParseEpsilon(string(f.Levels[name]))
		if err != nil || share.Micro() >= 1_000_000 {
			here.problem("share is %.40s, must be a number of at most six decimal places between 0 and 1", f.Levels[name])
			continue
		}
		if at := slices.IndexFunc(d.Levels, func(l TrustLevel) bool { return l.Share == share }); at >= 0 {
			here.problem("share is that of level %s: one level is enough", d.Levels[at].Name)
			continue
		}
		d.Levels = append(d.Levels, TrustLevel{name, share})
	}
	slices.SortFunc(d.Levels, func(a, b TrustLevel) int { return cmp.Compare(b.Share.Micro(), a.Share.Micro()) })
}

// atLevel gives the declared releases of a dataset their levels, and those for whom the policy is read their prices.
// What has no levels is not there for whoever is below the whole.
func (c *checker) atLevel(d *Dataset, at place) {
	if len(d.Levels) == 0 {
		return
	}
	d.Level = d.level(c.levels[d.ID])
	for _, t := range d.Tables {
		kept := t.Releases[:0]
		for _, r := range t.Releases {
			if r.leveled(d, at) || d.Level == nil {
				kept = append(kept, r)
			}
		}
		if t.Releases = kept; d.Level != nil {
			t.Sessions, t.Synthetics = nil, nil
		}
	}
}

// leveled gives a release its levels, and reports whether it has any.
func (r *Release) leveled(d *Dataset, at place) bool {
	if r.Cost.IsZero() || r.Grows() { // zero: a problem reported already
		return false
	}
	whole := r.Epsilon
	r.Levels = []privacy.Cost{r.Cost}
	for _, l := range d.Levels {
		e := shareOf(whole, l.Share)
		cost := privacy.Cost{Epsilon: e}
		if r.Cost.Rho.Pico() > 0 {
			cost = privacy.Cost{Rho: e.Rho()}
		}
		if last := r.Levels[len(r.Levels)-1]; e.Micro() < 1 || cost == last || !cost.Fits(last) {
			at.key("levels").problem("the ε of release %s is too small for level %s", r.Name, l.Name)
			return false
		}
		if r.Levels = append(r.Levels, cost); d.Level != nil && l == *d.Level {
			r.Epsilon, r.Cost = e, cost
		}
	}
	return true
}

// shareOf is a share of an ε, rounded down.
func shareOf(e, share privacy.Epsilon) privacy.Epsilon {
	part := new(big.Int).Mul(big.NewInt(e.Micro()), big.NewInt(share.Micro()))
	return privacy.MicroEpsilon(part.Quo(part, big.NewInt(1_000_000)).Int64())
}

// levelsOf are a user's levels by dataset, of those datasets in which she is below the whole, and a name for all of
// them.
func (p *Policy) levelsOf(user string) (levels map[string]string, key string) {
	var parts []string
	for _, d := range p.Datasets {
		if b, ok := d.Budget(user); ok && b.Level != "" {
			if levels == nil {
				levels = map[string]string{}
			}
			levels[d.ID] = b.Level
			parts = append(parts, d.ID+"\x00"+b.Level)
		}
	}
	return levels, strings.Join(parts, "\x00")
}

// seen reads the policy for each combination of levels that a user can have.
func (p *Policy) seen(read func(map[string]string) *Policy) {
	users := []string{"*"} // whoever has no budget of her own
	for _, u := range p.Users {
		users = append(users, u.Name)
	}
	for _, user := range users {
		levels, key := p.levelsOf(user)
		if key == "" || p.views[key] != nil {
			continue
		}
		if p.views == nil {
			p.views = map[string]*Policy{}
		}
		view := read(levels)
		view.whole = p
		for _, d := range view.Datasets {
			d.whole = p.Dataset(d.ID)
		}
		p.views[key] = view
	}
}

// For returns the policy as it is for a user: her level's releases at her level's prices. For whoever is at the whole
// everywhere it is p itself.
func (p *Policy) For(user string) *Policy {
	if len(p.views) == 0 {
		return p
	}
	if _, key := p.levelsOf(user); p.views[key] != nil {
		return p.views[key]
	}
	return p
}

// Whole is the policy as it is for whoever is at the whole everywhere, of which this one is what a user sees: the one
// that was looked at and came into force.
func (p *Policy) Whole() *Policy {
	if p == nil || p.whole == nil {
		return p
	}
	return p.whole
}

// Whole is the dataset of that policy.
func (d *Dataset) Whole() *Dataset {
	if d.whole == nil {
		return d
	}
	return d.whole
}

const (
	scramPrefix     = "SCRAM-SHA-256$"
	scramIterations = 4096 // the least of RFC 7677 §4, and what PostgreSQL writes
	scramMost       = 10_000_000
	scramSalt       = 16
	maxPassword     = 1024
)

// Verifier makes what a policy stores of a password: a SCRAM-SHA-256 verifier (RFC 5802 §3, RFC 7677) in PostgreSQL's
// form. A password that SASLprep does not accept is used as it is, as PostgreSQL does.
func Verifier(password string, random io.Reader) (string, error) {
	if password == "" || len(password) > maxPassword {
		return "", fmt.Errorf("password must have 1 to %d bytes", maxPassword)
	}
	password = Prepared(password)
	salt := make([]byte, scramSalt)
	if _, err := io.ReadFull(random, salt); err != nil {
		return "", fmt.Errorf("salt: %w", err)
	}
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", err
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return scramPrefix + strconv.Itoa(scramIterations) + ":" + encode(salt) + "$" + encode(stored[:]) + ":" + encode(sign(salted, "Server Key")), nil
}

// Prepared is a password as both sides of an exchange take it: by SASLprep, or as it is where that does not accept it.
func Prepared(password string) string {
	if prepared, err := stringprep.SASLprep.Prepare(password); err == nil && prepared != "" {
		return prepared
	}
	return password
}

func sign(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// checkVerifier never repeats the text: it may be a plain password put there by mistake.
func checkVerifier(text string) error {
	rest, ok := strings.CutPrefix(text, scramPrefix)
	if !ok {
		return errors.New("password must be a SCRAM-SHA-256$ verifier, which dpproxy user add writes; a plain password is never stored")
	}
	bad := errors.New("password is not a whole verifier: SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey")
	front, keys, ok := strings.Cut(rest, "$")
	iterations, salt, ok2 := strings.Cut(front, ":")
	stored, server, ok3 := strings.Cut(keys, ":")
	if !ok || !ok2 || !ok3 {
		return bad
	}
	n, err := strconv.Atoi(iterations)
	if err != nil || n < scramIterations || n > scramMost {
		return fmt.Errorf("password: iterations of the verifier must be between %d and %d", scramIterations, scramMost)
	}
	if raw, err := base64.StdEncoding.DecodeString(salt); err != nil || len(raw) == 0 {
		return bad
	}
	for _, key := range []string{stored, server} {
		if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) != sha256.Size {
			return bad
		}
	}
	return nil
}

// groups reads the users who hold one account, after the users. One is in one group at most, and so has one account in
// each dataset (privacy rule 8).
func (c *checker) groups(groups []groupT, at place) {
	seen, in := map[string]bool{}, map[string]string{}
	for i := range groups {
		g, here := &groups[i], at.item(i).within("group", groups[i].Name)
		checkName(g.Name, here.key("name"), "name")
		switch {
		case g.Name == "*":
			here.key("name").problem("name is *, which stands for each other user and group in budgets")
		case c.policy.User(g.Name) != nil:
			here.key("name").problem("name is that of a user")
		case seen[g.Name]:
			here.key("name").problem("name is given twice")
		}
		seen[g.Name] = true
		if len(g.Members) == 0 {
			here.key("members").problem("members is empty, must have at least one")
		}
		set := settings(&g.Settings, here.key("settings"))
		for n, name := range g.Members {
			member, user := here.key("members").item(n), c.policy.User(name)
			switch {
			case user == nil:
				member.problem("no such user: %.63q; users are named under users", name)
				continue
			case in[name] == g.Name:
				member.problem("user %.63q is given twice", name)
			case in[name] != "":
				member.problem("user %.63q is in group %.63q already: one account is whose she is", name, in[name])
			}
			in[name] = g.Name
			own := user.Settings
			user.Settings = maps.Clone(set)
			maps.Copy(user.Settings, own)
		}
		c.policy.Groups = append(c.policy.Groups, Group{Name: g.Name, Members: g.Members})
	}
}

// membership is the group of each member.
func (p *Policy) membership() map[string]string {
	of := map[string]string{}
	for _, g := range p.Groups {
		for _, user := range g.Members {
			of[user] = g.Name
		}
	}
	return of
}

// groupNotes says what it means that users are one group.
func (p *Policy) groupNotes() (notes []string) {
	for _, g := range p.Groups {
		notes = append(notes, "group "+g.Name+": "+strings.Join(g.Members, ", ")+" hold one account: each sees what the others asked and bought, and the privacy statement speaks of them as one analyst; who joins brings what she was shown and who leaves takes all of the group's with her, each charged to the account that then knows it, so joining is refused where that is above the group's lifetime")
	}
	return notes
}
