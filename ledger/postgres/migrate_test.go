package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// created makes a ledger in a server.
func created(t *testing.T, s *pgtest.Server) (*Site, store.Store) {
	t.Helper()
	site, err := At(s.URL(), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	st, err := site.Open(context.Background(), true)
	if err != nil {
		t.Fatal(err)
	}
	r := chain.Row{Seq: 1, Kind: chain.RowGenesis, Body: append(make([]byte, 40), 1)}
	new(chain.Links).Link(&r)
	if err := st.Create(r); err != nil {
		t.Fatal(err)
	}
	return site, st
}

// TestMigrationTakesItsTime: an index over a long chain is made however long it takes, though no statement else may
// take that long; and who starts meanwhile waits for it.
func TestMigrationTakesItsTime(t *testing.T) {
	s := pgtest.Start(t, "fsync=on", "full_page_writes=on")
	ctx := context.Background()
	open := func() (store.Store, error) {
		p, err := At(s.URL(), nil, false)
		if err != nil {
			return nil, err
		}
		return p.Open(ctx, true)
	}
	_, first := created(t, s)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	known, wait := migrations, pgWait
	defer func() { migrations, pgWait = known, wait }()
	migrations, pgWait = append(slices.Clone(known), "SELECT pg_catalog.pg_sleep(5)"), 4*time.Second
	errs := make(chan error)
	for range 2 {
		go func() {
			opened, err := open()
			if err == nil {
				err = opened.Close()
			}
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	s.Until(t, fmt.Sprintf("SELECT version = %d FROM dpproxy_ledger.version", len(migrations)))
}

// TestNobodyJoinsAMigration: whoever starts while a newer program changes the tables, which may take long, waits for
// it, and is refused.
func TestNobodyJoinsAMigration(t *testing.T) {
	s := pgtest.Start(t, "fsync=on", "full_page_writes=on")
	ctx := context.Background()
	p, first := created(t, s)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	newer, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", lockSchema), "UPDATE dpproxy_ledger.version SET version = version + 1"} {
		if _, err := newer.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	joined := make(chan error, 1)
	go func() {
		opened, err := p.Open(ctx, true)
		if err == nil {
			err = opened.Close()
		}
		joined <- err
	}()
	for waits := false; !waits; {
		select {
		case err := <-joined:
			t.Fatalf("let in, or refused too early: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		if err := newer.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)").Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-joined:
		t.Fatalf("let in, or refused too early: %v", err)
	default:
	}
	if err := newer.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-joined; !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a program that does not know the tables: %v", err)
	}
}
