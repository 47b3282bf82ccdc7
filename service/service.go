// Package service is one running dpproxy: it opens what a policy names (the ledger, the database with the private rows,
// the sandbox, the public tables), serves it, follows the policy file and the certificate, and keeps the process to its
// memory. cmd/dpproxy's serve, demo and release use it, and tests that run a proxy within their own process.
package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/engines"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/cluster"
	"github.com/dpproxy/dpproxy/sandbox/twin"
)

// Service is a running proxy: what was opened, and the policy in force.
type Service struct {
	Ledger  ledger.Ledger
	Backend backend.Backend
	Engine  sandbox.Engine
	Public  pipeline.PublicRows

	log     *slog.Logger
	alarms  *alarms
	current atomic.Pointer[policy.Policy]
	since   atomic.Int64 // when it came into force, in nanoseconds since 1970
	adopts  sync.Mutex   // held while a policy is put in force
	shows   sync.Mutex   // held by whoever changes what the sandbox and plans know of public tables
	looks   sync.Map     // gates of health, by part

	policyFile, certificate reloads
	own                     atomic.Int64 // bytes that the process may take by itself, once it is bound
}

// Policy is the one in force.
func (s *Service) Policy() *policy.Policy { return s.current.Load() }

// putInForce has sessions see a policy.
func (s *Service) putInForce(p *policy.Policy) {
	s.current.Store(p)
	s.since.Store(time.Now().UnixNano())
}

// Open reads the policy and opens all that it names. Nothing is served yet.
func Open(ctx context.Context, path string, trust ledger.Options, log *slog.Logger) (*Service, error) {
	p, err := ReadPolicy(path)
	if err != nil {
		return nil, err
	}
	s := &Service{alarms: &alarms{}}
	log = slog.New(&overhears{next: log.Handler(), kept: s.alarms})
	s.log = log
	logAll(ctx, log, slog.LevelWarn, "policy: ", p.Summary(p.Warnings()))
	logAll(ctx, log, slog.LevelInfo, "policy: ", p.Summary(append(p.Notes(), choose.LevelNotes(p)...)))
	s.putInForce(p)
	if s.Ledger, err = ledger.Open(ctx, p.Ledger.URL, LedgerOptions(p, trust, log)); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	database, err := engines.Open(ctx, p, log)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("database: %w", err)
	}
	s.Backend = database
	tables := NewCopies(s.Backend)
	if p, err = ReadLists(ctx, tables, p); err != nil {
		s.Close()
		return nil, err
	}
	s.putInForce(p)
	if err := inspect(ctx, s.Backend, p, log); err != nil {
		s.Close()
		return nil, err
	}
	s.Backend.Adopt(p)
	public, err := readPublic(ctx, tables, p.Datasets...)
	if err != nil {
		s.Close()
		return nil, err
	}
	// Only now: with it a ledger of an earlier form takes the form of this version, which the earlier one cannot read.
	if err := s.Ledger.Adopt(ctx, terms(p)); err != nil {
		s.Close()
		return nil, fmt.Errorf("ledger: %w", err)
	}
	copies, err := s.copyTables(ctx, p)
	if err != nil {
		s.Close()
		return nil, err
	}
	copies.PutInForce()
	if s.Engine, err = OpenSandbox(p, log); err != nil {
		s.Close()
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if err := s.furnish(ctx, p, public); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// copyTables has a snapshot of a policy's tables, where it wants one.
func (s *Service) copyTables(ctx context.Context, p *policy.Policy) (backend.Prepared, error) {
	if b, ok := s.Backend.(backend.Copies); ok {
		return b.Prepare(ctx, p)
	}
	return noCopies{}, nil
}

// noCopies is what waits where tables are read live.
type noCopies struct{}

func (noCopies) PutInForce() {}
func (noCopies) GiveUp()     {}

// inspect refuses to serve over a database that is not as the policy says.
func inspect(ctx context.Context, b backend.Backend, p *policy.Policy, log *slog.Logger) error {
	var fatal, warnings, notes []string
	for _, d := range p.Datasets {
		findings, err := b.Inspect(ctx, p, d)
		if err != nil {
			return fmt.Errorf("database: %w", err)
		}
		for _, f := range findings {
			switch text := "dataset " + d.ID + ": " + f.Text; {
			case f.Fatal:
				fatal = append(fatal, f.Text)
			case f.Note:
				notes = append(notes, text)
			default:
				warnings = append(warnings, text)
			}
		}
	}
	logAll(ctx, log, slog.LevelWarn, "database: ", p.Summary(warnings))
	logAll(ctx, log, slog.LevelInfo, "database: ", p.Summary(notes))
	if len(fatal) == 0 {
		return nil
	}
	return errors.New(strings.Join(p.Summary(fatal), "\n"))
}

func logAll(ctx context.Context, log *slog.Logger, level slog.Level, about string, lines []string) {
	for _, line := range lines {
		log.Log(ctx, level, about+line)
	}
}

// Try does what Open does with a policy over its database, once Inspect has found nothing fatal, and leaves no trace:
// it copies the public tables, asks the ledger, if there is one, whether it would take the policy, and puts the tables
// into a sandbox. It returns why serve would not start. A sandbox on a server of the owner's is left alone, where a
// proxy that runs has its own.
func Try(ctx context.Context, p *policy.Policy, copies *Copies, log *slog.Logger) error {
	s := &Service{log: log}
	public, err := readPublic(ctx, copies, p.Datasets...)
	if err != nil {
		return err
	}
	if err := consents(ctx, p, log); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if p.Sandbox.URL != "" {
		return nil
	}
	if s.Engine, err = OpenSandbox(p, log); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	defer s.Engine.Close()
	return s.furnish(ctx, p, public)
}

// consents asks the ledger whether it would take a policy. One that is not there yet takes any.
func consents(ctx context.Context, p *policy.Policy, log *slog.Logger) error {
	if path, ok := strings.CutPrefix(p.Ledger.URL, "sqlite:"); ok {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	options := LedgerOptions(p, ledger.Options{ReadOnly: true}, slog.New(slog.DiscardHandler))
	book, err := ledger.Open(ctx, p.Ledger.URL, options)
	if err != nil {
		log.Warn("the ledger cannot be read, so whether it takes the policy is not known", "reason", err)
		return nil
	}
	defer book.Close()
	return book.Adopt(ctx, terms(p))
}

// errNoStart is all that an analyst may read of a cluster that does not start: what programs say names files.
var errNoStart = errors.New("its PostgreSQL does not start, and dpproxy's log says why")

// OpenSandbox opens the sandbox that a policy names, or a cluster of its own. It has no catalog yet. Where that does
// not start, for want of PostgreSQL's programs for instance, it refuses what is asked of it, and says why.
func OpenSandbox(p *policy.Policy, log *slog.Logger) (sandbox.Engine, error) {
	options := sandbox.Options{Log: log}
	if p.Sandbox.URL != "" {
		return twin.Open(p.Sandbox.URL, options)
	}
	server, err := cluster.Start(p.Sandbox.Bin, options.Limits(p).Memory, log)
	if err != nil {
		log.Warn("the sandbox is missing, and what needs it is refused: run as a user that has a name, or name a server by sandbox.url", "error", err)
		if errors.Is(err, cluster.ErrNoPrograms) {
			return sandbox.Missing(cluster.ErrNoPrograms), nil
		}
		return sandbox.Missing(errNoStart), nil
	}
	return twin.Own(server, options)
}

// furnish gives the sandbox the catalogs of a policy, and the copies of its public tables to the sandbox and to plans.
func (s *Service) furnish(ctx context.Context, p *policy.Policy, public []publicTables) error {
	if err := s.Engine.Catalog(ctx, p); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	for _, d := range public {
		if err := s.Engine.Load(ctx, d.dataset, d.loaded()...); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	for _, d := range public {
		d.plan(&s.Public)
	}
	return nil
}

// publicTables are the public tables of a dataset as they were copied together: where one cannot be read there is none.
type publicTables struct {
	dataset string
	tables  []*policy.Table
	rows    []privacy.Released[[][]policy.Value]
}

// loaded are they as the sandbox takes them.
func (c publicTables) loaded() (list []sandbox.Table) {
	for i, t := range c.tables {
		list = append(list, pipeline.PublicTable(t, c.rows[i]))
	}
	return list
}

// plan has plans know them.
func (c publicTables) plan(public *pipeline.PublicRows) {
	for i, t := range c.tables {
		public.Set(t, c.rows[i])
	}
}

// readPublic copies the public tables of datasets. Nobody sees the copies yet.
func readPublic(ctx context.Context, copies *Copies, datasets ...*policy.Dataset) (list []publicTables, err error) {
	for _, d := range datasets {
		of := publicTables{dataset: d.ID}
		for _, t := range d.Tables {
			if !t.Public {
				continue
			}
			rows, err := copies.Read(ctx, t)
			if err != nil {
				return nil, err
			}
			of.tables, of.rows = append(of.tables, t), append(of.rows, rows)
		}
		if len(of.tables) > 0 {
			list = append(list, of)
		}
	}
	return list, nil
}

// loadPublic copies the public tables of a dataset anew, and gives them to the sandbox, which takes all of them in at
// once, and to plans. Where another policy has come into force meanwhile it leaves that one's copies as they are; where
// keys that are domains are others now, the policy is put in force anew.
func (s *Service) loadPublic(ctx context.Context, d *policy.Dataset) error {
	tables, now := NewCopies(s.Backend), s.current.Load()
	p, err := ReadLists(ctx, tables, now)
	if err != nil {
		return err
	}
	if !p.SameLists(now) {
		return s.adopt(ctx, ctx, now)
	}
	public, err := readPublic(ctx, tables, d)
	if err != nil {
		return err
	}
	s.shows.Lock()
	defer s.shows.Unlock()
	if !slices.Contains(s.current.Load().Datasets, d) {
		return nil
	}
	for _, of := range public {
		if err := s.Engine.Load(ctx, of.dataset, of.loaded()...); err != nil {
			return err
		}
		of.plan(&s.Public)
	}
	return nil
}

// Close closes what was opened.
func (s *Service) Close() {
	if s.Engine != nil {
		s.Engine.Close()
	}
	if s.Backend != nil {
		s.Backend.Close()
	}
	if s.Ledger != nil {
		if err := s.Ledger.Close(); err != nil {
			s.log.Error("ledger did not close cleanly", "error", err)
		}
	}
}

// A process that takes all memory is killed by the system, and every analyst's work with it. So serve keeps itself and
// its children to server.limits.memory: each session of its own sandbox to what it needs anyway and one statement's
// memory, which the system enforces; itself to the rest, which the collector and the admission of statements keep.

// sessionAtRest is what a session of the sandbox takes before its first query.
const sessionAtRest = 32 << 20

// leastProcess is the least memory that a proxy does anything useful in.
const leastProcess = 256 << 20

// bound keeps the process to its share of the memory, as a policy says.
func (s *Service) bound(p *policy.Policy, workers *admission.Workers) {
	sessions := 0
	if p.Sandbox.URL == "" { // else they are another server's
		sessions = s.Engine.Slots()
	}
	whole, own := shares(p.Server.Limits, sessions, machineMemory())
	if own < leastProcess {
		s.log.Warn("server.limits.memory leaves little for the proxy itself beside its sandbox's sessions", "memory", policy.SizeText(whole), "proxy", policy.SizeText(own))
		own = leastProcess
	}
	s.own.Store(own)
	if !workers.Bound(own) {
		return
	}
	s.log.Info("memory", "limit", whole>>20, "proxy", own>>20, "unit", "MiB")
}

// shares are what the process and its sandbox's sessions may take together, and the process alone.
func shares(l policy.Limits, sessions int, machine int64) (whole, own int64) {
	if whole = l.Memory; whole == 0 {
		whole = machine / 4 * 3
	}
	return whole, whole - int64(sessions)*(sessionAtRest+l.StatementMemory)
}

// machineMemory is what the machine has, or less where a control group of the process says so.
func machineMemory() int64 {
	most := int64(math.MaxInt64)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if fields := bytes.Fields(text); len(fields) > 1 {
			if kib, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				most = kib << 10
			}
		}
	}
	group, err := os.ReadFile("/proc/self/cgroup")
	_, path, ok := bytes.Cut(bytes.TrimSpace(group), []byte("::"))
	if err != nil || !ok {
		return most
	}
	for at := filepath.Clean("/" + string(path)); ; at = filepath.Dir(at) { // a limit of any group above holds as well
		text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", at, "memory.max"))
		if n, bad := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && bad == nil {
			most = min(most, n)
		}
		if at == "/" {
			return most
		}
	}
}

// ReadPolicy reads the policy of a command, and says what to do where there is none.
func ReadPolicy(path string) (*policy.Policy, error) { return readPolicy(path, policy.Read) }

// ReadPolicyForLedger reads it for a command that opens the ledger alone: what names the database or a file of the
// service may be left out of the environment.
func ReadPolicyForLedger(path string) (*policy.Policy, error) {
	return readPolicy(path, policy.ReadForLedger)
}

func readPolicy(path string, read func(string) (*policy.Policy, error)) (*policy.Policy, error) {
	p, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no policy %s: name one by --policy, write a first one with dpproxy init, or try dpproxy demo", path)
	}
	if err != nil {
		return nil, err
	}
	return p, planner.CheckSQL(p)
}

// Copies are public tables, of which each is copied from a database once: the keys that are domains and the rows that
// plans join are then of one moment.
type Copies struct {
	from backend.Backend
	rows map[string]privacy.Released[[][]policy.Value] // by dataset, schema and name
}

// NewCopies copies nothing yet.
func NewCopies(from backend.Backend) *Copies {
	return &Copies{from, map[string]privacy.Released[[][]policy.Value]{}}
}

// Read returns a table's rows, of values in the order of its columns.
func (c *Copies) Read(ctx context.Context, t *policy.Table) (privacy.Released[[][]policy.Value], error) {
	name := fmt.Sprintf("%q.%q.%q", t.Dataset.ID, t.Schema, t.Name)
	if rows, have := c.rows[name]; have {
		return rows, nil
	}
	rows, err := c.from.ReadPublic(ctx, t)
	if err != nil {
		return rows, fmt.Errorf("public table %s: %w", t.Name, err)
	}
	c.rows[name] = rows
	return rows, nil
}

// ReadLists reads a policy again with the keys of public tables that are domains of its columns.
func ReadLists(ctx context.Context, copies *Copies, p *policy.Policy) (*policy.Policy, error) {
	values := map[string][]string{}
	for _, l := range p.Lists() {
		rows, err := copies.Read(ctx, l.Of)
		if err != nil {
			return nil, err
		}
		if values[l.Name()], err = planner.ListValues(l, rows.Value()); err != nil {
			return nil, err
		}
	}
	return p.WithLists(values)
}

// LedgerOptions are those that the policy says.
func LedgerOptions(p *policy.Policy, o ledger.Options, log *slog.Logger) ledger.Options {
	o.Log, o.Witness, o.DataRoles = log, p.Ledger.Witness, nil
	for _, url := range []string{p.Backend.URL, p.Sandbox.URL} {
		if !strings.HasPrefix(url, "postgres") {
			continue
		}
		if config, err := pgx.ParseConfig(url); err == nil {
			o.DataRoles = append(o.DataRoles, config.User)
		}
	}
	return o
}
