package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/embedded"
	"github.com/dpproxy/dpproxy/sandbox/twin"
)

// shutdownGrace is how long running statements may take to end by themselves after a signal; then their waits end. What does
// not end for that, such as a query on the private database, has until exitWithin.
const shutdownGrace = 3 * time.Second

func serveCommand() *cobra.Command {
	var path string
	var o serving
	cmd := &cobra.Command{
		Use:   "serve --policy policy.yaml",
		Short: "Run the proxy",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(cmd)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), path, o, log, func(address string) { log.Info("listening", "address", address) })
		},
	}
	policyFlag(cmd, &path)
	rollbackFlags(cmd, &o.trust)
	return cmd
}

// serving is how a proxy is to be run, besides what the policy says.
type serving struct {
	trust ledger.Options
}

// policyFlag adds --policy, which a command that uses it cannot do without.
func policyFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "policy", "policy.yaml", "the policy file")
}

// readPolicy reads the policy of a command, and says what to do where there is none.
func readPolicy(path string) (*policy.Policy, error) {
	p, err := policy.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no policy %s: name one by --policy, write a first one with dpproxy init, or try dpproxy demo", path)
	}
	if err != nil {
		return nil, err
	}
	return p, planner.CheckViews(p)
}

// house is a running proxy: what serve opened, and the policy in force.
type house struct {
	log     *slog.Logger
	policy  atomic.Pointer[policy.Policy]
	ledger  ledger.Ledger
	backend backend.Backend
	engine  sandbox.Engine
	public  pipeline.PublicRows
}

// serve runs a proxy until ctx ends; listening is told the address once clients can connect.
func serve(ctx context.Context, path string, o serving, log *slog.Logger, listening func(address string)) error {
	if err := parserSelfTest(ctx); err != nil {
		return err
	}
	h, err := open(ctx, path, o.trust, log)
	if err != nil {
		return err
	}
	defer h.close()
	return h.serve(ctx, listening)
}

// serve serves what has been opened until ctx ends.
func (h *house) serve(ctx context.Context, listening func(address string)) error {
	log, path := h.log, h.policy.Load().Path
	secret, err := h.mockSecret()
	if err != nil {
		return err
	}
	metrics := proxy.NewMetrics()
	answers := pipeline.NewAnswerer(h.backend, h.ledger, h.engine, rand.Reader, log, metrics)
	answers.UsePublic(&h.public)
	workers := answers.Workers()
	server, err := proxy.New(proxy.Config{Policy: h.policy.Load, Pipeline: answers, Workers: workers, Log: log, Metrics: metrics, Secret: secret})
	if err != nil {
		return err
	}
	h.bound(h.policy.Load(), workers)
	admission.SpareThreads()
	go workers.Watch(ctx)
	go h.watch(ctx, path, workers)
	go h.renew(ctx, server)
	go h.refresh(ctx)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ctx) }()
	select {
	case err := <-failed:
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%s is taken by another program: stop it, or change listen in %s", h.policy.Load().Server.Listen, path)
		}
		return err
	case <-server.Listening():
		listening(server.Addr().String())
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
		log.Info("shutting down")
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		err = server.Shutdown(grace)
		<-failed
	}
	answers.Drain()
	return err
}

// mockSecret reads, or makes on first use, the secret behind the salts that unknown users are shown. It lies beside the
// ledger and stays the same across restarts, so that they cannot be told from the salts of real users. Proxies that share
// a ledger have one secret, of the ledger's own.
func (h *house) mockSecret() ([]byte, error) {
	p := h.policy.Load()
	if !strings.HasPrefix(p.Ledger.URL, "sqlite:") {
		secret := h.ledger.Secret("salts of unknown users")
		return secret[:], nil
	}
	path := strings.TrimPrefix(p.Ledger.URL, "sqlite:") + "-secret"
	if secret, err := os.ReadFile(path); err == nil && len(secret) == 32 {
		return secret, nil
	}
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	return secret, os.WriteFile(path, secret, 0o600)
}

// open reads the policy and opens all that it names. Nothing is served yet.
func open(ctx context.Context, path string, trust ledger.Options, log *slog.Logger) (*house, error) {
	p, err := readPolicy(path)
	if err != nil {
		return nil, err
	}
	for _, w := range p.Warnings() {
		log.Warn("policy: " + w)
	}
	for _, n := range append(p.Notes(), planner.LevelNotes(p)...) {
		log.Info("policy: " + n)
	}
	h := &house{log: log}
	h.policy.Store(p)
	if h.ledger, err = ledger.Open(ctx, p.Ledger.URL, ledgerOptions(p, trust, log)); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if err := h.ledger.Adopt(ctx, terms(p)); err != nil {
		h.close()
		return nil, fmt.Errorf("ledger: %w", err)
	}
	database, err := backend.Open(ctx, p, log)
	if err != nil {
		h.close()
		return nil, fmt.Errorf("database: %w", err)
	}
	h.backend = database
	if err := inspect(ctx, h.backend, p, log); err != nil {
		h.close()
		return nil, err
	}
	if h.engine, err = openSandbox(ctx, p, log); err != nil {
		h.close()
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := h.furnish(ctx, p); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// inspect refuses to serve over a database that is not as the policy says.
func inspect(ctx context.Context, b backend.Backend, p *policy.Policy, log *slog.Logger) error {
	var fatal []error
	for _, d := range p.Datasets {
		findings, err := b.Inspect(ctx, p, d)
		if err != nil {
			return fmt.Errorf("database: %w", err)
		}
		for _, f := range findings {
			if f.Fatal {
				fatal = append(fatal, errors.New(f.Text))
				continue
			}
			level := slog.LevelWarn
			if f.Note {
				level = slog.LevelInfo
			}
			log.Log(ctx, level, "database: "+f.Text, "dataset", d.ID)
		}
	}
	return errors.Join(fatal...)
}

// openSandbox starts the engine that a policy's sandbox URL names. It has no catalog yet.
func openSandbox(ctx context.Context, p *policy.Policy, log *slog.Logger) (sandbox.Engine, error) {
	if strings.HasPrefix(p.Sandbox.URL, "postgres") { // package policy lets through "duckdb:" and URLs of PostgreSQL
		return twin.Open(p.Sandbox.URL, sandbox.Options{Log: log})
	}
	return embedded.Start(ctx, sandbox.Options{Log: log})
}

// furnish gives the sandbox the catalogs and the public tables of a policy.
func (h *house) furnish(ctx context.Context, p *policy.Policy) error {
	if err := h.engine.Catalog(ctx, p); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	for _, d := range p.Datasets {
		if err := h.loadAllPublic(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// renew has the certificate read again on SIGHUP, whatever becomes of the policy.
func (h *house) renew(ctx context.Context, server *proxy.Server) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
		}
		if err := server.Renew(); err != nil {
			h.log.Error("certificate not reloaded; the old one stays in force", "error", err)
		}
	}
}

// watch follows the policy file and SIGHUP. A policy that cannot be adopted leaves the old one in force.
func (h *house) watch(ctx context.Context, path string, workers *admission.Workers) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	err := policy.Watch(ctx, path, hup, func(p *policy.Policy) error {
		if err := h.adopt(ctx, p); err != nil {
			return err
		}
		h.bound(p, workers)
		return nil
	}, func(err error) {
		h.log.Error("policy not reloaded; the old one stays in force", "error", err)
	})
	if err != nil && ctx.Err() == nil {
		h.log.Error("policy file is not watched", "error", err)
	}
}

// adopt puts a new policy in force: the ledger's consent first, then the sandbox, then the swap that sessions see.
func (h *house) adopt(ctx context.Context, p *policy.Policy) error {
	old := h.policy.Load()
	if p.Digest == old.Digest {
		return nil
	}
	if !sameHouse(old, p) {
		return errors.New("a change of listen, tls, backend, sandbox, ledger or of the tables of a duckdb backend needs a restart")
	}
	if err := planner.CheckViews(p); err != nil {
		return err
	}
	if err := inspect(ctx, h.backend, p, h.log); err != nil {
		return err
	}
	if err := h.ledger.Adopt(ctx, terms(p)); err != nil {
		return err
	}
	if err := h.furnish(ctx, p); err != nil {
		return err
	}
	h.policy.Store(p)
	h.log.Info("policy reloaded", "path", p.Path)
	return nil
}

// sameHouse tells whether two policies can be served by the same open connections.
func sameHouse(a, b *policy.Policy) bool {
	return a.Server.Listen == b.Server.Listen && a.Server.Admin == b.Server.Admin && reflect.DeepEqual(a.Server.TLS, b.Server.TLS) &&
		reflect.DeepEqual(a.Backend, b.Backend) && a.Sandbox == b.Sandbox && a.Ledger == b.Ledger
}

func (h *house) loadPublic(ctx context.Context, d *policy.Dataset, t *policy.Table) error {
	rows, err := h.backend.ReadPublic(ctx, t)
	if err != nil {
		return err
	}
	h.public.Set(t, rows)
	return h.engine.Load(ctx, d.ID, publicTable(t, rows))
}

// publicTable gives the rows of a public table their columns.
func publicTable(t *policy.Table, rows privacy.Released[[][]policy.Value]) sandbox.Table {
	return sandbox.Table{Schema: t.Schema, Name: t.Name, Rows: privacy.PostProcess(rows, func(data [][]policy.Value) sandbox.Rows {
		columns := make([]sandbox.Column, len(t.Columns))
		for i, c := range t.Columns {
			columns[i] = sandbox.Column{Name: c.Name, Type: c.Type, Typmod: c.Typmod}
		}
		return sandbox.Rows{Columns: columns, Data: data}
	})}
}

// refresh copies the public tables anew every freshness of their dataset, until ctx ends.
func (h *house) refresh(ctx context.Context) {
	copied := map[string]time.Time{}
	tick := time.NewTicker(refreshStep)
	defer tick.Stop()
	for start := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, d := range h.policy.Load().Datasets {
				last, ok := copied[d.ID]
				if !ok {
					last = start
				}
				if d.Defaults.Freshness <= 0 || now.Sub(last) < d.Defaults.Freshness {
					continue
				}
				copied[d.ID] = now
				if err := h.loadAllPublic(ctx, d); err != nil {
					h.log.Error("public tables not refreshed; the earlier copies stay", "dataset", d.ID, "error", err)
				}
			}
		}
	}
}

// refreshStep is how often the ages of the public copies are looked at.
const refreshStep = time.Minute

func (h *house) loadAllPublic(ctx context.Context, d *policy.Dataset) error {
	for _, t := range d.Tables {
		if t.Public {
			if err := h.loadPublic(ctx, d, t); err != nil {
				return fmt.Errorf("public table %s: %w", t.Name, err)
			}
		}
	}
	return nil
}

func (h *house) close() {
	if h.engine != nil {
		h.engine.Close()
	}
	if h.backend != nil {
		h.backend.Close()
	}
	if h.ledger != nil {
		if err := h.ledger.Close(); err != nil {
			h.log.Error("ledger did not close cleanly", "error", err)
		}
	}
}
