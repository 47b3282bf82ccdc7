// Package policy holds what the data owner wrote: datasets, privacy units, domains, users and budgets, read from a
// YAML file, checked, and immutable afterwards. Every other package takes public facts about the data from here and
// from nowhere else. Read loads and checks a file; nothing here reads a row.
package policy

import (
	"math/big"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Policy is one checked policy file.
type Policy struct {
	Path     string // the file it was read from
	Digest   [32]byte
	Server   Server
	Backend  Backend
	Sandbox  Sandbox
	Ledger   Ledger
	Users    []User
	Groups   []Group
	Owners   []string // users who see everybody's account in the console
	Datasets []*Dataset

	text  []byte              // of the file
	lists map[string][]string // the values of lists that were read, by their names
	views map[string]*Policy  // by the levels of a user in each dataset; see For
	whole *Policy             // of one of these: what it is a view of; nil means it is none
}

// Server says where the proxy listens.
type Server struct {
	Listen string // host:port
	Admin  string // host:port of the operator's pages; empty means none
	TLS    *TLS
	LDAP   *LDAP // nil: no user logs in by a directory
	OIDC   *OIDC // nil: nor by a provider
	Timing Timing
	Limits Limits

	Console string // host:port; empty means none
	MCP     *MCP   // nil: assistants are not served there

	FixedWork bool // noise is drawn in work that does not go with its size
	Spans     bool // of the stages of statements are sent to a collector
}

// MCP is how assistants are served at the console's address.
type MCP struct {
	MaxCost *big.Rat // what one session of an assistant may spend; nil means what its user may
}

// Timing is the grid on which the replies to a question leave: steps since it came, 0 for none.
type Timing struct {
	Grid  time.Duration
	Fresh time.Duration // of the results of queries on private rows; at least Grid
}

// Limits bound what clients may take. A policy that was read has none that is zero but StatementsPerSecond: any number.
type Limits struct {
	Connections         int // sessions in all
	UserConnections     int // sessions of one user
	UserStatements      int // statements of one user that run at a time
	UserPurchases       int // statements of one user that are charged and counted at a time
	StatementsPerSecond int // statements of one user a second
	PurchasesPerSecond  int // statements of one user a second that would be charged, over ten seconds

	StatementCPU    time.Duration // processor time of planning and post-processing one statement
	StatementMemory int64         // bytes of one statement's released tables, post-processing and result, each
	UserMemory      int64         // bytes that one user's statements may take at a time, and as much again that her sessions may keep
	Memory          int64         // bytes of the process and its children; 0 means three quarters of what the machine or its control group has
}

// UserWorked is how many statements of one user may be planned or post-processed at a time, 0 for any number.
func (l Limits) UserWorked() int {
	if l.StatementMemory <= 0 {
		return 0
	}
	return int(max(l.UserMemory/l.StatementMemory, 1))
}

// TLS names the certificate files, absolute paths. Clients signs users' certificates; empty means they have none.
type TLS struct{ Cert, Key, Clients string }

// LDAP is a directory that binds users.
type LDAP struct {
	URL  string
	Bind string // with UserMark for the identity
	CA   string // file, absolute; empty means the system's
}

// UserMark is the place of a user's identity in LDAP.Bind.
const UserMark = "{user}"

// OIDC is a provider of tokens.
type OIDC struct {
	Issuer, Audience, Claim, Scope string
	CA                             string // file, absolute; empty means the system's
}

// LoginMethod is how a user proves who she is.
type LoginMethod uint8

// The methods. The zero value is the verifier of her password.
const (
	ByPassword LoginMethod = iota
	ByCertificate
	ByLDAP
	ByOIDC
)

// loginMethods are the words of the policy file.
var loginMethods = map[string]LoginMethod{"": ByPassword, "password": ByPassword, "certificate": ByCertificate, "ldap": ByLDAP, "oidc": ByOIDC}

func (m LoginMethod) String() string {
	return [...]string{"password", "certificate", "ldap", "oidc"}[m]
}

// Backend says where the private rows are.
type Backend struct {
	URL      string            // postgres://…, mysql://…, spark://… or duckdb:[path], ${NAME} already replaced
	Files    map[string]string // duckdb only: source name -> absolute path of a CSV or Parquet file
	Deadline time.Duration     // the owner's deadline of one leaf
	Snapshot *Snapshot         // nil: private tables are read live
}

// Snapshot says when the private tables are copied, and where to. Its times are public.
type Snapshot struct {
	Dir    string        // absolute
	Every  time.Duration // a part of a day without a rest, or whole days
	At     time.Duration // since midnight, UTC
	Within time.Duration // after which a copy comes into force
	Key    string        // file with the key that copies are encrypted with; empty means they are not

	Connections int // most that read a server's tables at a time
}

// Next is the first time after a moment at which a copy is made: At and a multiple of Every since 1970.
func (s *Snapshot) Next(after time.Time) time.Time {
	begun := time.Unix(0, 0).Add(s.At)
	past := after.Sub(begun)
	return begun.Add(past - past%s.Every + s.Every).UTC()
}

// Sandbox says where outer queries run.
type Sandbox struct {
	URL string // of the owner's server; empty if dpproxy starts one of its own
	Bin string // the folder of PostgreSQL's programs; empty if they are found
}

// Ledger says where budgets are kept.
type Ledger struct {
	URL     string // sqlite:file or postgres://…
	Witness string // the witness's file; empty means beside the ledger's file

	Statements string // file, absolute, in which the texts of charged statements are kept; empty means none is
}

// User may log in.
type User struct {
	Name     string
	Login    LoginMethod
	Verifier string            // SCRAM-SHA-256$…; ByPassword alone
	Identity string            // what the certificate, the directory or the provider calls her
	Disabled bool              // she may not log in
	Admin    bool              // sees every budget
	Settings map[string]string // session defaults: "epsilon" -> "0.05"
	Scoped   bool              // SET dp.… holds until the end of the transaction only: settings_scope
}

// Group is users who hold one account in each dataset (docs/adr/0101): what one of them buys all of them have.
type Group struct {
	Name    string
	Members []string
}

// Dataset is one database to clients, and the holder of budgets.
type Dataset struct {
	ID          string
	RenamedFrom string
	Unit        Unit
	Neighbors   privacy.Neighbors
	Units       int64 // replace-one: the public number of units
	Accountant  privacy.Accountant
	Cap         Allowance
	Budgets     map[string]Budget // by name of the user or group, "*" for each other one
	groups      map[string]string // by member, the name of her group
	Levels      []TrustLevel      // most trusted first; the whole is not among them
	Level       *TrustLevel       // of those for whom the policy is written; nil means the whole. See For
	Defaults    Defaults
	Threshold   bool                // large_products: threshold
	finds       bool                // some question may find keys
	lists       map[string][]string // the values of lists that were read, by their names
	Buying      Buying
	Frequency   Frequency // min_frequency of all tables
	Tables      []*Table

	whole *Dataset // of a view; see Policy
}

// Unit is whom the budget protects.
type Unit struct {
	Row    bool   // unit: row
	Name   string // "person"
	Table  string // table and column that name a unit: people.person_id
	Column string
	Type   Type // of Column's values; 0 means not said
}

// Allowance is an amount of budget: as written, and as it is spent.
type Allowance struct {
	Epsilon privacy.Epsilon // as written
	Delta   privacy.Delta   // as written
	Cost    privacy.Cost    // what may be spent: pure: ε and δ for keys; zcdp: the ρ that implies (ε, δ), or where keys may be found (ε, δ/2), and δ/2 for them; either: ε, that ρ, and δ/2
}

// Budget is what one user may spend.
type Budget struct {
	Allowance
	Refresh  time.Duration // 0: never
	Lifetime *Allowance    // required with Refresh; nil means the allowance is for life
	Level    string        // one of the dataset's; empty means the whole
}

// Defaults are the session defaults and ceilings of a dataset.
type Defaults struct {
	Epsilon, MaxEpsilon privacy.Epsilon
	Confidence          mechanisms.Confidence
	Freshness           time.Duration
}

// Buying is what the planner buys beside what is asked.
type Buying struct {
	Cells int     // most cells of a widened count; 0 means none is
	After float64 // a release is bought when rents come to so many times its price; 0 means never by itself
}

// Dataset returns the dataset of that id, or nil.
func (p *Policy) Dataset(id string) *Dataset {
	return found(p.Datasets, func(d *Dataset) bool { return d.ID == id })
}

// found returns the first of a list of which something is so, or nil if there is none.
func found[T any](list []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}

// foundIn is found in a list of values.
func foundIn[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// Group returns the group of that name, or nil.
func (p *Policy) Group(name string) *Group {
	return foundIn(p.Groups, func(g *Group) bool { return g.Name == name })
}

// Owner reports whether a user is one of the owners. A disabled one is not.
func (p *Policy) Owner(name string) bool {
	u := p.User(name)
	return u != nil && !u.Disabled && slices.Contains(p.Owners, name)
}

// User returns the user of that name, or nil.
func (p *Policy) User(name string) *User {
	return foundIn(p.Users, func(u *User) bool { return u.Name == name })
}

// Holder is whose budget binds a user: her group's name, or her own.
func (d *Dataset) Holder(user string) string {
	if group, ok := d.groups[user]; ok {
		return group
	}
	return user
}

// Budget returns the budget that binds the user in d, and whether she has one.
func (d *Dataset) Budget(user string) (Budget, bool) {
	user = d.Holder(user)
	if b, ok := d.Budgets[user]; ok {
		return b, true
	}
	b, ok := d.Budgets["*"]
	return b, ok
}

// RhoOf is the ρ that a statement's ε buys: ε²/2, and of a dataset of either accountant no larger a share of a limit
// than ε is of the limit's ε. So an ε is worth as many statements there as under pure at the least, and as many as
// under zcdp.
func (d *Dataset) RhoOf(e privacy.Epsilon, limit privacy.Cost) privacy.Rho {
	rho := e.Rho()
	if d.Accountant != privacy.Either || limit.Epsilon.Micro() <= 0 {
		return rho
	}
	share := new(big.Int).Mul(big.NewInt(limit.Rho.Pico()), big.NewInt(e.Micro()))
	if share.Quo(share, big.NewInt(limit.Epsilon.Micro())); share.IsInt64() {
		rho = privacy.PicoRho(min(rho.Pico(), share.Int64()))
	}
	return rho
}

// EpsilonFor is the least ε that buys ρ.
func (d *Dataset) EpsilonFor(rho privacy.Rho, limit privacy.Cost) privacy.Epsilon {
	low, high := int64(0), int64(1e12) // what ParseEpsilon reads at most
	for low < high {
		middle := (low + high) / 2
		if d.RhoOf(privacy.MicroEpsilon(middle), limit).Pico() >= rho.Pico() {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return privacy.MicroEpsilon(low)
}

// Table returns the table that analysts know by that schema and name, or nil. An empty schema means public or d's own.
func (d *Dataset) Table(schema, name string) *Table {
	return found(d.Tables, func(t *Table) bool { return t.Name == name && (schema == "" || schema == t.Schema) })
}
