package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// witnessing is a database that notes which policies it was sent.
type witnessing struct {
	backend.Backend
	findings []backend.Finding
	away     error // of public tables
	adopted  []*policy.Policy
	current  func() *policy.Policy
	early    bool // a session could see a policy before the database was sent it
}

func (b *witnessing) Inspect(context.Context, *policy.Policy, *policy.Dataset) ([]backend.Finding, error) {
	return b.findings, nil
}

func (b *witnessing) Adopt(p *policy.Policy) {
	b.early = b.early || b.current() == p
	b.adopted = append(b.adopted, p)
}

func (b *witnessing) ReadPublic(context.Context, *policy.Table) (rows privacy.Released[[][]policy.Value], err error) {
	return privacy.Published([][]policy.Value{{int64(len(b.adopted))}}), b.away
}

// consenting is a ledger that refuses a policy, or does not.
type consenting struct {
	ledger.Ledger
	err   error
	away  int             // so many times it is asked whether it is sound
	first ledger.Digest   // of the policy in force
	asked []ledger.Digest // which policies it has consented to since
}

func (l *consenting) Adopt(_ context.Context, t ledger.Terms) error {
	if l.err == nil {
		l.asked = append(l.asked, t.PolicyDigest)
	}
	return l.err
}

func (l *consenting) Sound(context.Context) error {
	if l.away > 0 {
		l.away--
		return ledger.ErrUnavailable
	}
	return nil
}

func (l *consenting) Policy() (ledger.Digest, bool) {
	if len(l.asked) == 0 {
		return l.first, true
	}
	return l.asked[len(l.asked)-1], true
}

// furnished is a sandbox that takes catalogs, or does not.
type furnished struct {
	sandbox.Engine
	err     error
	refuses int // so many times
	given   int
	loaded  int
}

func (e *furnished) Catalog(context.Context, *policy.Policy) error {
	e.given++
	if e.refuses > 0 {
		e.refuses--
		return errors.New("away")
	}
	return e.err
}

func (e *furnished) Load(_ context.Context, _ string, tables ...sandbox.Table) error {
	e.loaded += len(tables)
	return nil
}

// TestRefusedReloadIsNotAdopted: the database holds its schema against a policy that comes into force and against none
// that anything refuses.
func TestRefusedReloadIsNotAdopted(t *testing.T) {
	old := &policy.Policy{}
	database, l, engine := &witnessing{}, &consenting{}, &furnished{}
	s := &Service{Backend: database, Ledger: l, Engine: engine, log: slog.New(slog.DiscardHandler)}
	s.putInForce(old)
	database.current = s.Policy
	next := func(n byte) *policy.Policy {
		p := &policy.Policy{Datasets: []*policy.Dataset{{ID: "clinic"}}}
		p.Digest[0] = n
		return p
	}
	refused := errors.New("no")
	for name, refuse := range map[string]func(){
		"by the database": func() { database.findings = []backend.Finding{{Fatal: true, Text: "no"}} },
		"by the ledger":   func() { l.err = refused },
		"by the sandbox":  func() { engine.err = refused },
	} {
		database.findings, l.err, engine.err = nil, nil, nil
		refuse()
		waits, newer := context.WithCancel(t.Context()) // what a sandbox refuses is given again until there is a newer one
		if engine.err != nil {
			newer()
		}
		if err := s.adopt(t.Context(), waits, next(1)); err == nil || len(database.adopted) != 0 || s.Policy() != old {
			t.Errorf("refused %s: %v, and the database was told of %d", name, err, len(database.adopted))
		}
		newer()
	}
	database.findings, l.err, engine.err = nil, nil, nil
	p := next(2)
	if err := s.adopt(t.Context(), t.Context(), p); err != nil || !slices.Equal(database.adopted, []*policy.Policy{p}) || s.Policy() != p || database.early {
		t.Errorf("%v: the database was told of %d", err, len(database.adopted))
	}
}

// withPublic is a policy of one public table, of these columns.
func withPublic(n byte, columns ...string) *policy.Policy {
	d := &policy.Dataset{ID: "shop"}
	table := &policy.Table{Name: "parts", Schema: "public", Public: true, Dataset: d}
	for _, c := range columns {
		table.Columns = append(table.Columns, &policy.Column{Table: table, Name: c, Source: c, Type: policy.Int8, Typmod: -1})
	}
	d.Tables = []*policy.Table{table}
	return &policy.Policy{Digest: [32]byte{n}, Datasets: []*policy.Dataset{d}}
}

// TestReloadThatCannotBeCopied: where a public table cannot be read, the ledger is not asked for its consent, after
// which nothing would be charged under the old policy, and the sandbox and plans know nothing of the new one.
func TestReloadThatCannotBeCopied(t *testing.T) {
	old := withPublic(1, "part")
	database, l, engine := &witnessing{away: errors.New("away")}, &consenting{first: old.Digest}, &furnished{}
	s := &Service{Backend: database, Ledger: l, Engine: engine, log: slog.New(slog.DiscardHandler)}
	s.putInForce(old)
	database.current = s.Policy
	if err := s.adopt(t.Context(), t.Context(), withPublic(2, "part", "brand")); err == nil || len(l.asked)+engine.given+engine.loaded+len(database.adopted) > 0 || s.Policy() != old {
		t.Errorf("%v: the ledger was asked for %d, the sandbox given %d catalogs and %d tables, the database told of %d", err, len(l.asked), engine.given, engine.loaded, len(database.adopted))
	}
	if _, ok := s.Public.Rows(old.Datasets[0].Tables[0]); ok {
		t.Error("plans were given a copy")
	}
}

// TestSandboxIsGivenAPolicyAgain: once the ledger has consented, a sandbox that is away for a while does not keep the
// policy from coming into force; and the policy before it can come back, though it never ceased to be in force here.
func TestSandboxIsGivenAPolicyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, p := withPublic(1, "part"), withPublic(2, "brand", "part")
		database, l, engine := &witnessing{}, &consenting{first: old.Digest}, &furnished{refuses: 3}
		s := &Service{Backend: database, Ledger: l, Engine: engine, log: slog.New(slog.DiscardHandler)}
		s.putInForce(old)
		database.current = s.Policy
		if err := s.adopt(t.Context(), t.Context(), p); err != nil || s.Policy() != p || engine.given != 4 || engine.loaded != 1 {
			t.Errorf("%v: given %d catalogs and %d tables", err, engine.given, engine.loaded)
		}
		if _, ok := s.Public.Rows(old.Datasets[0].Tables[0]); ok {
			t.Error("a copy of other columns is read as one of these")
		}
		if _, ok := s.Public.Rows(p.Datasets[0].Tables[0]); !ok {
			t.Error("plans have no copy")
		}

		engine.refuses = 1000
		waits, newer := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, newer)
		if err := s.adopt(t.Context(), waits, withPublic(3, "part")); !errors.Is(err, context.Canceled) || s.Policy() != p {
			t.Errorf("a newer file ends with %v", err)
		}
		engine.refuses = 0
		again := withPublic(2, "brand", "part")
		if err := s.adopt(t.Context(), t.Context(), again); err != nil || s.Policy() != again || l.asked[len(l.asked)-1] != p.Digest {
			t.Errorf("back to the policy before: %v; the ledger has consented to %x", err, l.asked[len(l.asked)-1][:1])
		}
		asked := len(l.asked)
		if err := s.adopt(t.Context(), t.Context(), withPublic(2, "brand", "part")); err != nil || len(l.asked) != asked || s.Policy() != again {
			t.Errorf("what is in force already: %v", err)
		}
	})
}

// TestReloadWhileSomethingIsAway: a policy that comes while the ledger or the database does not answer is taken in when
// they do; one that is refused is not tried again.
func TestReloadWhileSomethingIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, p := withPublic(1, "part"), withPublic(2, "part")
		database, l, engine := &witnessing{}, &consenting{first: old.Digest, away: 3}, &furnished{}
		s := &Service{Backend: database, Ledger: l, Engine: engine, log: slog.New(slog.DiscardHandler)}
		s.putInForce(old)
		database.current = s.Policy
		reported := 0
		if err := s.adoptInTime(t.Context(), t.Context(), p, func(error) { reported++ }); err != nil || reported != 3 || s.Policy() != p {
			t.Errorf("%v, after %d reports", err, reported)
		}
		reported, database.away = 0, fmt.Errorf("cannot be read (%w)", backend.ErrUnavailable)
		waits, newer := context.WithCancel(t.Context())
		time.AfterFunc(adoptAgain*5/2, newer)
		if err := s.adoptInTime(t.Context(), waits, withPublic(3, "part"), func(error) { reported++ }); !errors.Is(err, context.Canceled) || reported != 3 || s.Policy() != p || l.asked[len(l.asked)-1] != p.Digest {
			t.Errorf("%v, after %d reports", err, reported)
		}
		reported, database.away = 0, errors.New("a value that is not of type integer")
		if err := s.adoptInTime(t.Context(), t.Context(), withPublic(4, "part"), func(error) { reported++ }); !errors.Is(err, database.away) || reported != 0 {
			t.Errorf("%v, after %d reports", err, reported)
		}
	})
}

// TestRefreshOfAnEarlierPolicy: copies that were begun under a policy are not taken for those of the one that came into
// force meanwhile.
func TestRefreshOfAnEarlierPolicy(t *testing.T) {
	old, p := withPublic(1, "part"), withPublic(2, "brand", "part")
	engine := &furnished{}
	s := &Service{Backend: &witnessing{}, Engine: engine}
	s.putInForce(p)
	if err := s.loadPublic(t.Context(), old.Datasets[0]); err != nil || engine.loaded > 0 {
		t.Errorf("%v: the sandbox was given %d tables", err, engine.loaded)
	}
	if _, ok := s.Public.Rows(old.Datasets[0].Tables[0]); ok {
		t.Error("plans were given a copy")
	}
	if err := s.loadPublic(t.Context(), p.Datasets[0]); err != nil || engine.loaded != 1 {
		t.Errorf("%v: the sandbox was given %d tables", err, engine.loaded)
	}
}
