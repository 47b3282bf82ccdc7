package service

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/internal/deadline"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/admission"
)

// renew has the certificate read again on SIGHUP, whatever becomes of the policy, and again where its files cannot be
// read in time.
func (s *Service) renew(ctx context.Context, server *proxy.Server) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
		case <-again:
		}
		err := server.Renew()
		s.certificate.note(err)
		if err != nil {
			s.log.Error("certificate not reloaded; the old one stays in force", "error", err)
		}
		if again = nil; errors.Is(err, deadline.ErrExceeded) {
			again = time.After(renewAgain)
		}
	}
}

// watch follows the policy file and SIGHUP. A policy that cannot be adopted leaves the old one in force.
func (s *Service) watch(ctx context.Context, path string, workers *admission.Workers, metrics *proxy.Metrics) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	failed := func(err error) {
		metrics.Reloaded(err)
		s.policyFile.note(err)
		s.log.Error("policy not reloaded; the old one stays in force", "error", err)
	}
	err := policy.Watch(ctx, path, hup, func(waits context.Context, p *policy.Policy) error {
		if err := s.adoptInTime(ctx, waits, p, failed); err != nil {
			return err
		}
		s.bound(p, workers)
		metrics.Reloaded(nil)
		s.policyFile.note(nil)
		return nil
	}, failed)
	if err != nil && ctx.Err() == nil {
		s.policyFile.note(err)
		s.log.Error("policy file is not watched", "error", err)
	}
}

// adoptInTime is adopt, again and again while the ledger or the database is away, which says nothing of the policy:
// whoever changed the file would have to change it once more, and other proxies that share the ledger may have taken it
// in. Each failure but the last is reported.
func (s *Service) adoptInTime(ctx, waits context.Context, p *policy.Policy, failed func(error)) error {
	for {
		err := s.adopt(ctx, waits, p)
		if !errors.Is(err, ledger.ErrUnavailable) && !errors.Is(err, backend.ErrUnavailable) {
			return err
		}
		if waits.Err() == nil {
			failed(err)
		}
		select {
		case <-waits.Done():
			return waits.Err()
		case <-time.After(adoptAgain):
		}
	}
}

// How long what is away is left alone: a ledger or a database, a sandbox that has not taken a policy, and the files of
// the certificate.
const (
	renewAgain   = 5 * time.Second
	adoptAgain   = 5 * time.Second
	furnishAgain = 2 * time.Second
)

// adopt puts a new policy in force: what can be refused first, then the ledger's consent, then the sandbox, then the
// swap that sessions see. What it waits for ends with waits.
//
// Until the ledger has consented whatever fails leaves everything as it was. From then on nothing is charged under the
// old policy, here or by another proxy: so where the sandbox does not take the new one, because its server is away, it
// is given again until it does.
func (s *Service) adopt(ctx, waits context.Context, p *policy.Policy) (err error) {
	s.adopts.Lock()
	defer s.adopts.Unlock()
	old := s.current.Load()
	tables := NewCopies(s.Backend)
	if p, err = ReadLists(waits, tables, p); err != nil {
		return err
	}
	if consented, _ := s.Ledger.Policy(); p.Digest == old.Digest && p.Digest == consented && p.SameLists(old) {
		return nil
	}
	if err := s.Ledger.Sound(ctx); err != nil { // before anything is copied for it
		return err
	}
	if !sameHouse(old, p) {
		return errors.New("a change of listen, console, tls, spans, backend, sandbox, ledger or of the tables of a duckdb backend needs a restart")
	}
	if err := planner.CheckSQL(p); err != nil {
		return err
	}
	if err := inspect(ctx, s.Backend, p, s.log); err != nil {
		return err
	}
	copies, err := s.copyTables(waits, p)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			copies.GiveUp()
		}
	}()
	public, err := readPublic(waits, tables, p.Datasets...)
	if err != nil {
		return cmp.Or(waits.Err(), err)
	}
	if err := s.Ledger.Adopt(ctx, terms(p)); err != nil {
		return err
	}
	s.shows.Lock()
	defer s.shows.Unlock()
	for err = s.furnish(ctx, p, public); err != nil; err = s.furnish(ctx, p, public) {
		s.log.Error("the ledger has consented to a policy that the sandbox does not take; it is given again", "error", err)
		select {
		case <-waits.Done():
			return errors.Join(waits.Err(), err)
		case <-time.After(furnishAgain):
		}
	}
	copies.PutInForce()
	s.Backend.Adopt(p)
	s.putInForce(p)
	s.log.Info("policy reloaded", append([]any{"path", p.Path}, changes(old, p)...)...)
	return nil
}

// sameHouse reports whether two policies can be served by the same open connections.
func sameHouse(a, b *policy.Policy) bool {
	return a.Server.Listen == b.Server.Listen && a.Server.Admin == b.Server.Admin && a.Server.Console == b.Server.Console && reflect.DeepEqual(a.Server.TLS, b.Server.TLS) &&
		reflect.DeepEqual(a.Backend, b.Backend) && a.Sandbox == b.Sandbox && a.Ledger == b.Ledger && a.Server.Spans == b.Server.Spans
}

// refresh copies the public tables anew every freshness of their dataset, until ctx ends.
func (s *Service) refresh(ctx context.Context) {
	copied := map[string]time.Time{}
	tick := time.NewTicker(refreshStep)
	defer tick.Stop()
	for start := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, d := range s.current.Load().Datasets {
				last, ok := copied[d.ID]
				if !ok {
					last = start
				}
				if d.Defaults.Freshness <= 0 || now.Sub(last) < d.Defaults.Freshness {
					continue
				}
				copied[d.ID] = now
				if err := s.loadPublic(ctx, d); err != nil {
					s.log.Error("public tables not refreshed; the earlier copies stay", "dataset", d.ID, "error", err)
				}
			}
		}
	}
}

// refreshStep is how often the ages of the public copies are looked at.
const refreshStep = time.Minute

// terms says in the ledger's words what a policy grants.
func terms(p *policy.Policy) ledger.Terms {
	t := ledger.Terms{PolicyDigest: p.Digest}
	for _, d := range p.Datasets {
		t.Datasets = append(t.Datasets, datasetTerms(p, d))
	}
	return t
}

func datasetTerms(p *policy.Policy, d *policy.Dataset) ledger.DatasetTerms {
	t := ledger.DatasetTerms{ID: d.ID, RenamedFrom: d.RenamedFrom, Accountant: d.Accountant, Neighbors: d.Neighbors, Unit: unitText(d),
		Cap: d.Cap.Cost, Budgets: map[string]ledger.BudgetTerms{}, Groups: map[string][]string{}, Paths: map[string]string{}}
	for _, table := range d.Tables {
		if table.Public {
			continue
		}
		t.Relations = append(t.Relations, relations(p, table)...)
		if table.View.Text == "" && !d.Unit.Row {
			t.Paths[relation(p, table)] = path(p, table)
		}
	}
	for user, b := range d.Budgets {
		limits := ledger.BudgetTerms{Limit: b.Cost, Refresh: b.Refresh, Lifetime: privacy.Cost{}}
		if b.Lifetime != nil {
			limits.Lifetime = b.Lifetime.Cost
		}
		if p.Group(user) != nil {
			user = ledger.GroupAccount(user)
		}
		t.Budgets[user] = limits
	}
	for _, g := range p.Groups {
		t.Groups[g.Name] = g.Members
	}
	return t
}

func unitText(d *policy.Dataset) string {
	if d.Unit.Row {
		return "row"
	}
	return d.Unit.Name + " " + d.Unit.Table + "." + d.Unit.Column
}

// path says how a table's rows name their unit, in the names of the database: "customer_id", or "order_id =
// public.orders.id, customer_id" of rows whose unit is found in another table; a file goes by its name in the policy,
// so that it may be moved. Two tables over one relation have the same.
func path(p *policy.Policy, t *policy.Table) string {
	column := t.UnitColumn
	if t.Via != nil {
		through := t.Via.Table.Name // of a SELECT
		if t.Via.Table.View.Text == "" {
			through = t.Via.Table.Source.Schema + "." + t.Via.Table.Source.Name
		}
		column = t.Via.Column + " = " + through + "." + t.Via.Key
	}
	if p.Backend.Folds() {
		column = strings.ToLower(column)
	}
	if t.Via == nil {
		return column
	}
	return column + ", " + path(p, t.Via.Table)
}

// relations names all that a table reads: those of a trusted SELECT are in its text, and what an analysed one reads are
// tables of the dataset. A relation that is a file goes by the file.
func relations(p *policy.Policy, t *policy.Table) []string {
	switch {
	case t.Analysed():
		return nil
	case t.View.Text == "":
		return []string{relation(p, t)}
	}
	var names []string
	for _, s := range planner.ViewSources(p, t) {
		name := relation(p, &policy.Table{Source: s})
		for _, d := range p.Datasets {
			for _, other := range d.Tables {
				if other.File != "" && strings.EqualFold(other.Source.Schema+"."+other.Source.Name, s.Schema+"."+s.Name) {
					name = relation(p, other)
				}
			}
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// relation names what a table reads, by one name for however it is spelled, so that two datasets cannot give two
// budgets over the same rows: DuckDB does not tell capitals apart, and a link leads to the file that is read.
func relation(p *policy.Policy, t *policy.Table) string {
	if t.File != "" {
		if real, err := filepath.EvalSymlinks(t.File); err == nil {
			return "file " + real
		}
		return "file " + t.File
	}
	name := t.Source.Schema + "." + t.Source.Name
	if p.Backend.Folds() {
		return strings.ToLower(name)
	}
	return name
}

// changes says in a log line's words what another policy changes for whom (policy.Changes): each kind, and a list of
// those it concerns.
func changes(old, now *policy.Policy) (words []any) {
	var list []string
	told := policy.Changes(old, now)
	for i, c := range told {
		if list = append(list, c.What); i+1 == len(told) || told[i+1].Kind != c.Kind {
			words = append(words, c.Kind, list)
			list = nil
		}
	}
	return words
}
