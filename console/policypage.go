package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/policy"
)

// The policy in plain words, and what a proposed one would change. Nothing is put in force here: the file is the
// owner's, and who may write to it is the machine's business.

const (
	maxPolicy  = 1 << 20            // bytes of a proposed policy
	policyForm = maxPolicy + 64<<10 // and of the form around it
)

// policyView is the policy's page.
type policyView struct {
	Path            string
	Warnings, Notes []string
	Users, Owners   []string
	Datasets        []datasetWords
	Compared        bool
	Proposed        string // as it was sent, where it was pasted
	Problems        []string
	Changes         []policy.Change
	Same, Unseen    bool // byte for byte; but for what is not compared
	Effects         []effect
	NewWarnings     []string
}

type datasetWords struct {
	ID, Unit, Neighbors, Accountant, Cap string
	Budgets, Defaults                    []string
	Tables                               []tableWords
}

type tableWords struct {
	Name, Words       string
	Columns, Releases []string
}

// effect is what a proposed policy does to one account.
type effect struct {
	Dataset, Name, Spent, Limit, Then, Left string
	Over                                    bool
}

func (r *request) policyPage() {
	r.show(http.StatusOK, "policy", "Policy", "policy", r.words())
}

// words are the policy in force.
func (r *request) words() policyView {
	p := r.policy
	v := policyView{Path: p.Path, Warnings: p.Warnings(), Notes: p.Notes(), Owners: p.Owners}
	for _, u := range p.Users {
		text := u.Name + ": logs in by " + u.Login.String()
		if u.Disabled {
			text += "; disabled"
		}
		if u.Admin {
			text += "; admin"
		}
		v.Users = append(v.Users, text)
	}
	for _, g := range p.Groups {
		v.Users = append(v.Users, fmt.Sprintf("%s: a group of %s, who share one account in each dataset", g.Name, strings.Join(g.Members, ", ")))
	}
	for _, d := range p.Datasets {
		v.Datasets = append(v.Datasets, datasetIn(d))
	}
	return v
}

func datasetIn(d *policy.Dataset) datasetWords {
	w := datasetWords{ID: d.ID, Unit: d.Unit.Name, Neighbors: d.Neighbors.String(), Accountant: d.Accountant.String(), Cap: d.Cap.Cost.String()}
	if d.Unit.Row {
		w.Unit = "row"
	}
	for _, name := range slices.Sorted(maps.Keys(d.Budgets)) {
		who := name
		if name == "*" {
			who = "each other user"
		}
		w.Budgets = append(w.Budgets, who+": "+d.Budgets[name].Words())
	}
	w.Defaults = []string{fmt.Sprintf("a statement that sets nothing costs at most ε %s; a session may set up to %s", d.Defaults.Epsilon, d.Defaults.MaxEpsilon),
		fmt.Sprintf("error bars hold at %v", d.Defaults.Confidence.Float())}
	if d.Defaults.Freshness > 0 {
		w.Defaults = append(w.Defaults, "public tables are copied anew each "+policy.SpanText(d.Defaults.Freshness))
	}
	for _, t := range d.Tables {
		one := tableWords{Name: t.Name, Words: t.Words()}
		if t.Schema != "public" {
			one.Name = t.Schema + "." + t.Name
		}
		for _, c := range t.Columns {
			one.Columns = append(one.Columns, c.Name+": "+c.Words())
		}
		for _, release := range t.All() {
			one.Releases = append(one.Releases, release.Name+": "+release.Words())
		}
		w.Tables = append(w.Tables, one)
	}
	return w
}

// compare shows what a proposed policy would change, for whom, and what it would do to accounts.
func (r *request) compare() {
	if !r.console.checking.TryLock() {
		refuse(r.out, http.StatusTooManyRequests, "another proposed policy is being read: try again in a moment")
		return
	}
	defer r.console.checking.Unlock()
	v := r.words()
	v.Compared = true
	text, wrong := proposed(r.Request)
	if wrong != "" {
		v.Problems = []string{wrong}
		r.show(http.StatusBadRequest, "policy", "Policy", "policy", v)
		return
	}
	if pasted := r.PostFormValue("text"); pasted != "" {
		v.Proposed = pasted
	}
	p, err := r.console.Check([]byte(text))
	if err != nil {
		v.Problems = strings.Split(strings.TrimSpace(err.Error()), "\n")
		r.show(http.StatusOK, "policy", "Policy", "policy", v)
		return
	}
	v.Changes = policy.Changes(r.policy, p)
	v.Same = p.Digest == r.policy.Digest
	v.Unseen = len(v.Changes) == 0 && !v.Same
	for _, w := range p.Warnings() {
		if !slices.Contains(v.Warnings, w) {
			v.NewWarnings = append(v.NewWarnings, w)
		}
	}
	if v.Effects, err = r.effects(p); err != nil {
		r.unread(err)
		return
	}
	r.show(http.StatusOK, "policy", "Policy", "policy", v)
}

// proposed is the text of a policy that was pasted or uploaded.
func proposed(in *http.Request) (text, wrong string) {
	text = strings.ReplaceAll(in.PostFormValue("text"), "\r\n", "\n")
	if file, head, err := in.FormFile("file"); err == nil && head.Size > 0 {
		defer file.Close()
		read, err := io.ReadAll(io.LimitReader(file, maxPolicy+1))
		if err != nil {
			return "", "The file cannot be read."
		}
		text = string(read)
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "", "There is no policy: paste one, or choose a file."
	case len(text) > maxPolicy:
		return "", fmt.Sprintf("The policy has more than %d KiB: use dpproxy check on the machine.", maxPolicy>>10)
	}
	return text, ""
}

// effects are what a proposed policy does to the accounts of datasets that stay.
func (r *request) effects(p *policy.Policy) (list []effect, err error) {
	for _, d := range p.Datasets {
		was := r.policy.Dataset(d.ID)
		if was == nil || was.Accountant != d.Accountant || was.Neighbors != d.Neighbors {
			continue // every charge is priced anew, or refused: adopting it tells
		}
		balances, err := r.console.Books.Balances(r.ctx, d.ID)
		if err != nil {
			return nil, err
		}
		for _, b := range unspent(r.policy, was, balances) {
			if e, changed := effectOf(p, d, b); changed {
				list = append(list, e)
			}
		}
		spent, limit, err := r.console.Books.Cap(r.ctx, d.ID)
		if err != nil {
			return nil, err
		}
		if limit != d.Cap.Cost {
			list = append(list, effect{Dataset: d.ID, Name: "cap", Spent: spent.In(limit), Limit: limit.String(), Then: d.Cap.Cost.String(), Left: leftOf(d.Cap.Cost, spent).In(d.Cap.Cost), Over: !spent.Fits(d.Cap.Cost)})
		}
	}
	slices.SortStableFunc(list, func(a, b effect) int { return cmp.Or(cmp.Compare(a.Dataset, b.Dataset), cmp.Compare(a.Name, b.Name)) })
	return list, nil
}

// effectOf is what becomes of an account: another limit, or none at all.
func effectOf(p *policy.Policy, d *policy.Dataset, b ledger.Balance) (e effect, changed bool) {
	e = effect{Dataset: d.ID, Name: b.User, Spent: b.Spent.In(b.Limit), Limit: b.Limit.String()}
	then, ok := d.Budgets[b.User]
	if !ok && !b.Group && p.User(b.User) != nil {
		then, ok = d.Budget(b.User)
	}
	if !ok && b.Group && p.Group(b.User) != nil {
		then, ok = d.Budgets["*"]
	}
	switch {
	case !ok:
		e.Then, e.Left = "none", "nothing"
		return e, true
	case then.Cost == b.Limit:
		return e, false
	}
	e.Then, e.Left, e.Over = then.Cost.String(), leftOf(then.Cost, b.Spent).In(then.Cost), !b.Spent.Fits(then.Cost)
	return e, true
}

// price is what EXPLAIN (ALTERNATIVES, FORMAT JSON) says of a statement, as a page shows it.
type price struct {
	Cost         string // as it is charged: "ε 0.1"
	Amount       string // as dp.max_cost takes it
	Free         bool
	Balance      string // after it
	AsOf, ReadAs string
	Confidence   float64
	Leaves       []pricedLeaf
	Columns      []pricedColumn
	Alternatives []pricedWay
	Notes        []string
}

type pricedLeaf struct {
	Table     string
	Kind      string
	Source    string `json:"Answered From"`
	Mechanism string
	Why       string
	Cost      string
	Errors    []string `json:"Expected Error"`
	Query     string
}

type pricedColumn struct {
	Name, Type string
	Error      string `json:"Expected Error"`
}

type pricedWay struct {
	Leaf, Kind string
	Name       string `json:"Measure"`
	Cost       string
	Error      string `json:"Expected Error"`
	Taken      bool
	Why        string
}

// explaining precedes a statement of which the price is asked.
const explaining = "EXPLAIN (ALTERNATIVES, FORMAT JSON) "

// priceOf asks for the price of a statement. Nothing is charged by it, whatever the statement is.
func priceOf(t *talk, statement string) (price, error) {
	a, err := t.ask(explaining + statement)
	var told *message
	if errors.As(err, &told) && told.Position > len(explaining) {
		moved := *told
		moved.Position -= len(explaining)
		return price{}, &moved
	}
	if err != nil {
		return price{}, err
	}
	var text strings.Builder
	for _, row := range a.Rows {
		text.WriteString(row[0].Text)
	}
	var plans []struct {
		Plan struct {
			Cost         string
			Total        json.Number    `json:"Total Cost"`
			Balance      string         `json:"Balance After"`
			AsOf         string         `json:"Rows As Of"`
			ReadAs       string         `json:"Read As"`
			Plans        []pricedLeaf   `json:"Plans"`
			Columns      []pricedColumn `json:"Columns"`
			Alternatives []pricedWay    `json:"Alternatives"`
			Confidence   float64
			Notes        []string
		}
	}
	if err := json.Unmarshal([]byte(text.String()), &plans); err != nil || len(plans) != 1 {
		return price{}, fmt.Errorf("console: EXPLAIN cannot be read: %w", err)
	}
	p := plans[0].Plan
	return price{Cost: p.Cost, Amount: p.Total.String(), Free: p.Cost == "nothing", Balance: p.Balance, AsOf: p.AsOf, ReadAs: p.ReadAs,
		Confidence: p.Confidence, Leaves: p.Plans, Columns: p.Columns, Alternatives: p.Alternatives, Notes: p.Notes}, nil
}
