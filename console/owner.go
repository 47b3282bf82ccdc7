package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
)

// The owners' pages: of the ledger's rows and the policy's words. They hold no answer and no row; but what analysts
// choose to ask may follow from what they were answered, so that only those see them whom the policy names as owners
// (docs/adr/0135).

// Books is what owners' pages read of the ledger, and the one thing that they do to it.
type Books interface {
	Balances(ctx context.Context, dataset string) ([]ledger.Balance, error)
	Cap(ctx context.Context, dataset string) (spent, limit privacy.Cost, err error)
	Charges(ctx context.Context, user, dataset string, limit int) ([]ledger.Charge, error)
	Holdings(user, dataset string) []ledger.Release
	Revoke(ctx context.Context, id int64) error
	Follow(ctx context.Context) error
	Now() time.Time
}

// Alarm is what the log warned of.
type Alarm struct {
	At          time.Time
	Level, Text string
	Public      bool // there would be such a line whatever rows there are
}

func (c *Console) ownersPages(mux *http.ServeMux) {
	only := func(page func(*request)) func(*request) {
		return func(r *request) {
			if !r.owner() {
				r.fail(http.StatusForbidden, "This page is for the owners that the policy names.")
				return
			}
			page(r)
		}
	}
	mux.HandleFunc("GET /owner", c.get(only((*request).spending)))
	mux.HandleFunc("GET /owner/charges", c.get(only((*request).charges)))
	mux.HandleFunc("GET /owner/releases", c.get(only((*request).releases)))
	mux.HandleFunc("POST /owner/revoke", c.post(formBytes, only((*request).revoke)))
	mux.HandleFunc("GET /owner/alarms", c.get(only((*request).alarms)))
	mux.HandleFunc("GET /owner/policy", c.get(only((*request).policyPage)))
	mux.HandleFunc("POST /owner/policy", c.post(policyForm, only((*request).compare)))
}

const (
	chargesRead  = 50_000 // the latest, of which paces and lines are made
	chargesShown = 500
	chartsShown  = 40 // accounts of a dataset that have a line
)

// spendingView is who spent what, and how fast.
type spendingView struct{ Datasets []datasetSpending }

type datasetSpending struct {
	ID, Accountant string
	Cap            accountView
	Accounts       []accountView
	Cut            bool // there are more charges than were read
}

// accountView is one account.
type accountView struct {
	Name                string
	Group               bool
	Members             []string
	Spent, Limit, Left  string
	Share               string // spent, in percent of the bar
	Renewed             string // when the window ends
	Life, LifeOf, Until string
	Outlook             outlook
	LifeOutlook         *outlook
}

func (r *request) spending() {
	books, now := r.console.Books, r.console.Books.Now()
	_ = books.Follow(r.ctx) // where it fails the pages show what is known, and the alarms why
	var v spendingView
	for _, d := range r.policy.Datasets {
		charges, err := books.Charges(r.ctx, "", d.ID, chargesRead)
		balances, err2 := books.Balances(r.ctx, d.ID)
		spent, limit, err3 := books.Cap(r.ctx, d.ID)
		if err := errors.Join(err, err2, err3); err != nil {
			r.unread(err)
			return
		}
		u := unitOf(limit)
		s := datasetSpending{ID: d.ID, Accountant: d.Accountant.String(), Cut: len(charges) == chargesRead,
			Cap: accountView{Name: "cap", Spent: spent.In(limit), Limit: limit.String(), Left: leftOf(limit, spent).In(limit), Share: shareOf(u, spent, limit)}}
		s.Cap.Outlook = account{limit: u.of(limit), left: u.of(limit) - u.of(spent), now: now, spends: spendsOf(charges, "", u, time.Time{})}.look(u)
		for i, b := range unspent(r.policy, d, balances) {
			s.Accounts = append(s.Accounts, accountOf(d, b, charges, now, i < chartsShown))
		}
		slices.SortStableFunc(s.Accounts, func(a, b accountView) int { return cmp.Compare(a.Name, b.Name) })
		v.Datasets = append(v.Datasets, s)
	}
	r.show(http.StatusOK, "spending", "Spending", "owner", v)
}

// unread shows an owner that the ledger cannot be read; why is in the log.
func (r *request) unread(err error) {
	r.console.Log.Error("console: the ledger cannot be read", "error", err)
	r.fail(http.StatusServiceUnavailable, "The ledger cannot be read now; the log says why.")
}

// unspent adds those who have a budget and have not spent anything: the ledger has not met them.
func unspent(p *policy.Policy, d *policy.Dataset, balances []ledger.Balance) []ledger.Balance {
	for _, u := range p.Users {
		b, ok := d.Budget(u.Name)
		holder := d.Holder(u.Name)
		known := slices.ContainsFunc(balances, func(one ledger.Balance) bool { return one.User == holder && one.Group == (holder != u.Name) })
		if ok && !known {
			balances = append(balances, ledger.Balance{User: holder, Group: holder != u.Name, Dataset: d.ID, Limit: b.Cost})
		}
	}
	return balances
}

func leftOf(limit, spent privacy.Cost) privacy.Cost {
	return ledger.Balance{Limit: limit, Spent: spent}.Left()
}

func shareOf(u unit, spent, limit privacy.Cost) string {
	if u.of(limit) <= 0 {
		return percent(0)
	}
	return percentOf(u.of(spent) / u.of(limit))
}

// accountOf is a user's account, or a group's.
func accountOf(d *policy.Dataset, b ledger.Balance, charges []ledger.Charge, now time.Time, drawn bool) accountView {
	u, name := unitOf(b.Limit), b.User
	if b.Group {
		name = ledger.GroupAccount(b.User)
	}
	v := accountView{Name: b.User, Group: b.Group, Spent: b.Spent.In(b.Limit), Limit: b.Limit.String(), Left: leftOf(b.Limit, b.Spent).In(b.Limit), Share: shareOf(u, b.Spent, b.Limit)}
	for _, m := range b.Members {
		v.Members = append(v.Members, fmt.Sprintf("%s: %s", m.User, m.Spent.In(b.Limit)))
	}
	from := time.Time{}
	if !b.WindowEnds.IsZero() {
		v.Renewed = day(b.WindowEnds)
		if terms, ok := d.Budgets[b.User]; ok && terms.Refresh > 0 {
			from = b.WindowEnds.Add(-terms.Refresh)
		} else if terms, ok := d.Budgets["*"]; ok {
			from = b.WindowEnds.Add(-terms.Refresh)
		}
	}
	v.Outlook = account{limit: u.of(b.Limit), left: u.of(b.Limit) - u.of(b.Spent), ends: b.WindowEnds, now: now, spends: spendsOf(charges, name, u, from)}.look(u)
	if !b.LifeLimit.IsZero() && !b.WindowEnds.IsZero() {
		v.Life, v.LifeOf = b.LifeSpent.In(b.LifeLimit), b.LifeLimit.String()
		life := account{limit: u.of(b.LifeLimit), left: u.of(b.LifeLimit) - u.of(b.LifeSpent), now: now, spends: spendsOf(charges, name, u, time.Time{})}.look(u)
		v.LifeOutlook = &life
	}
	if !drawn {
		v.Outlook.Chart = nil
		if v.LifeOutlook != nil {
			v.LifeOutlook.Chart = nil
		}
	}
	return v
}

// chargesView is the latest charges of all datasets, or of one.
type chargesView struct {
	Datasets []string
	Dataset  string
	Rows     []chargeView
	Cut      bool
}

type chargeView struct {
	Number                                     int64
	At, Dataset, User, Group, Kind, Name, Cost string
	Cap, Statement                             string
}

func (r *request) charges() {
	v := chargesView{Dataset: r.URL.Query().Get("dataset")}
	_ = r.console.Books.Follow(r.ctx) // as above
	for _, d := range r.policy.Datasets {
		v.Datasets = append(v.Datasets, d.ID)
		if v.Dataset != "" && v.Dataset != d.ID {
			continue
		}
		list, err := r.console.Books.Charges(r.ctx, "", d.ID, chargesShown+1)
		if err != nil {
			r.unread(err)
			return
		}
		if len(list) > chargesShown {
			list, v.Cut = list[:chargesShown], true
		}
		for _, c := range list {
			one := chargeView{Number: c.Seq, At: c.At.UTC().Format(time.DateTime), Dataset: d.ID, User: c.User, Kind: c.Kind, Name: c.Name, Cost: c.Cost.String(), Cap: "nothing"}
			if c.Account != c.User {
				one.Group = ledger.AccountName(c.Account)
			}
			if r.console.Statement != nil {
				one.Statement = shortened(r.console.Statement(c.Statement))
			}
			if !c.Pool.IsZero() {
				one.Cap = c.Pool.String()
			}
			v.Rows = append(v.Rows, one)
		}
	}
	slices.SortStableFunc(v.Rows, func(a, b chargeView) int { return cmp.Compare(b.Number, a.Number) })
	r.show(http.StatusOK, "charges", "Charges", "charges", v)
}

// shortened is the beginning of a long text: there are hundreds on a page.
func shortened(text string) string {
	const most = 4000
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}

// releasesView is what is held, by whom.
type releasesView struct {
	Rows []releaseView
	Done string // the release that was withdrawn now
	Ask  *releaseView
}

type releaseView struct {
	ID                                           int64
	Dataset, Holder, At, Table, Kind, Name, Cost string
}

// held lists what every account holds.
func (r *request) held() (rows []releaseView, err error) {
	_ = r.console.Books.Follow(r.ctx) // as above
	for _, d := range r.policy.Datasets {
		balances, err := r.console.Books.Balances(r.ctx, d.ID)
		if err != nil {
			return nil, err
		}
		for _, b := range balances {
			name := b.User
			if b.Group {
				name = ledger.GroupAccount(b.User)
			} else if d.Holder(b.User) != b.User {
				continue // what she held before she joined her group, the group holds
			}
			for _, held := range r.console.Books.Holdings(name, d.ID) {
				rows = append(rows, releaseView{ID: held.ID, Dataset: d.ID, Holder: b.User, At: held.At.UTC().Format(time.DateTime), Table: held.Item.Table, Kind: held.Item.Kind, Name: held.Item.Name, Cost: held.Item.Cost.String()})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b releaseView) int { return cmp.Compare(b.ID, a.ID) })
	return rows, nil
}

func (r *request) releases() { r.listed("") }

func (r *request) listed(done string) {
	rows, err := r.held()
	if err != nil {
		r.unread(err)
		return
	}
	r.show(http.StatusOK, "releases", "Releases", "releases", releasesView{Rows: rows, Done: done})
}

// revoke withdraws a release, once that is confirmed.
func (r *request) revoke() {
	id, err := strconv.ParseInt(r.PostFormValue("id"), 10, 64)
	rows, err2 := r.held()
	if err2 != nil {
		r.unread(err2)
		return
	}
	at := slices.IndexFunc(rows, func(one releaseView) bool { return one.ID == id })
	if err != nil || at < 0 {
		r.fail(http.StatusNotFound, "Nobody holds a release of that number.")
		return
	}
	if r.PostFormValue("confirmed") != "yes" {
		r.show(http.StatusOK, "releases", "Releases", "releases", releasesView{Ask: &rows[at]})
		return
	}
	switch err := r.console.Books.Revoke(r.ctx, id); {
	case errors.Is(err, ledger.ErrNotHeld):
		r.fail(http.StatusNotFound, "Nobody holds a release of that number.")
	case err != nil:
		r.unread(err)
	default:
		r.console.Log.Warn("console: release withdrawn", "user", r.user(), "release", id, "dataset", rows[at].Dataset)
		r.listed(fmt.Sprintf("%d, %s", id, rows[at].Name))
	}
}

// alarmsView is whether the parts answer, and what the log warned of.
type alarmsView struct {
	Parts  []partView
	Alarms []Alarm
	Kept   bool
	Hidden bool // which lines there are may depend on rows: not for whoever has a budget
}

type partView struct{ Name, Wrong, AsOf string }

const healthTimeout = 4 * time.Second

func (r *request) alarms() {
	var v alarmsView
	if r.console.Health != nil {
		ctx, done := context.WithTimeout(r.ctx, healthTimeout)
		defer done()
		for _, p := range r.console.Health(ctx) {
			v.Parts = append(v.Parts, partOf(p))
		}
	}
	if r.console.Alarms != nil {
		v.Alarms, v.Kept = r.console.Alarms(), true
		if v.Hidden = r.console.Policy().HasBudget(r.user()); v.Hidden {
			v.Alarms = slices.DeleteFunc(v.Alarms, func(a Alarm) bool { return !a.Public })
		}
	}
	r.show(http.StatusOK, "alarms", "Alarms", "alarms", v)
}

func partOf(p proxy.Part) partView {
	v := partView{Name: p.Name}
	if p.Err != nil {
		v.Wrong = p.Err.Error()
	}
	if !p.AsOf.IsZero() {
		v.AsOf = p.AsOf.UTC().Format(time.DateTime)
	}
	return v
}
