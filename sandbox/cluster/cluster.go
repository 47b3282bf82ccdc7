// Package cluster starts the PostgreSQL server that outer queries run on where the policy names none: a private cluster
// in a scratch directory, reached by a Unix socket there and by nothing else, ended with its parent.
//
// What its sessions run is analysts' SQL, so the server is fenced in from outside too: started by root it has a user id
// that nothing else on the machine has and, where the kernel grants it, a network of its own without an interface;
// each of its sessions has a limit of memory; its only role that may log in is no superuser, and the kernel says who
// logs in (peer). Nothing in it outlives it, so it flushes nothing.
package cluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/internal/daemon"
	"github.com/dpproxy/dpproxy/internal/scratch"
)

// Role is the role that owns the databases of a cluster, and Session the one that analysts' queries run under.
const (
	Role    = "dpproxy"
	Session = "dpproxy_session"
)

const (
	prefix   = "dpproxy-sandbox-"
	base     = 32 << 20 // bytes that a session holds before its first query, and more
	port     = 5432     // of the socket's name alone
	longPath = 80       // of a directory, so that a socket's path has room in its 107 bytes
	firstUID = 61184    // to lastUID: user ids that no distribution gives to anybody for good
	lastUID  = 65519
)

const startAgain = 10 * time.Second

// Server is a running cluster.
type Server struct {
	process daemon.Process
	bin     string
	owner   *syscall.Credential // nil if it runs as this process does
	apart   bool                // it has a network of its own
	pid     atomic.Int64        // of its first process
	memory  atomic.Uint64       // bytes that a session may take
	asked   atomic.Bool         // to start again, for another limit
	log     *slog.Logger
	closing chan struct{}
	ended   sync.WaitGroup
	close   sync.Once
	closed  error
}

// Start starts a cluster of the PostgreSQL whose programs lie in bin, or are found where it is empty. A session may
// take so many bytes of memory. It returns ErrNoPrograms if there are no programs.
func Start(bin string, memory uint64, log *slog.Logger) (*Server, error) {
	bin, err := Programs(bin)
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, log: log, closing: make(chan struct{})}
	s.memory.Store(memory)
	root := os.TempDir()
	if len(root) > longPath {
		root = "/tmp"
	}
	scratch.Sweep(root, prefix)
	if s.process.Dir, s.process.Remove, err = scratch.New(root, prefix); err != nil {
		return nil, fmt.Errorf("a directory for the sandbox's PostgreSQL: %w", err)
	}
	if err = s.begin(); err != nil {
		_ = s.process.Remove()
		return nil, fmt.Errorf("the sandbox's PostgreSQL: %w", err)
	}
	s.ended.Go(s.keep)
	return s, nil
}

// begin makes the cluster and starts it.
func (s *Server) begin() error {
	if os.Geteuid() == 0 {
		id, err := ownUID()
		if err != nil {
			return err
		}
		s.owner = &syscall.Credential{Uid: id, Gid: id}
	}
	s.process.Port = port
	err := s.first(true)
	if err != nil { // a kept template may be torn: a crash of the machine leaves what was not flushed
		err = s.first(false)
	}
	return err
}

// first makes the data directory, of a template that is kept or of a new one, and starts the cluster.
func (s *Server) first(kept bool) error {
	if err := s.initialise(kept); err != nil {
		return err
	}
	s.apart = s.owner != nil
	err := s.run()
	if err != nil && s.apart { // a container's root may make no network
		s.apart = false
		err = s.run()
	}
	return err
}

func (s *Server) run() error {
	memory := s.memory.Load()
	if err := s.process.Again(attributes(s.owner, s.apart), s.command, s.answers); err != nil {
		return err
	}
	s.pid.Store(int64(s.process.Pid()))
	if s.memory.Load() != memory { // it was changed meanwhile
		return s.process.Signal(syscall.SIGINT)
	}
	return nil
}

// ownUID returns a user id that no user of this machine has.
func ownUID() (uint32, error) {
	var random [4]byte
	for range 100 {
		if _, err := rand.Read(random[:]); err != nil {
			return 0, err
		}
		id := firstUID + binary.NativeEndian.Uint32(random[:])%(lastUID-firstUID+1)
		if _, err := user.LookupId(strconv.FormatUint(uint64(id), 10)); err != nil {
			return id, nil
		}
	}
	return 0, errors.New("no user id is free")
}

func (s *Server) data() string { return filepath.Join(s.process.Dir, "data") }

// command starts the server under the limits that its sessions inherit. RLIMIT_DATA counts what a process has mapped to
// write to, and not what all sessions share; what exceeds it fails as out of memory (53200).
func (s *Server) command() *exec.Cmd {
	kilobytes := (base + s.memory.Load()) >> 10
	cmd := exec.Command("/bin/sh", "-c", `ulimit -d "$0" && ulimit -c 0 && exec "$@"`, strconv.FormatUint(kilobytes, 10),
		filepath.Join(s.bin, "postgres"), "-D", s.data(), "-k", s.process.Dir)
	cmd.Env = environment
	return cmd
}

// environment is all that PostgreSQL's programs see of this process's: no PG* variable among it.
var environment = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}

// answers returns an error until the cluster takes sessions.
func (s *Server) answers() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.urlOf("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// URL is the URL of the database that becomes the twin, for Role.
func (s *Server) URL() string { return s.urlOf(Role) }

func (s *Server) urlOf(database string) string {
	return (&url.URL{Scheme: "postgres", User: url.User(Role), Path: "/" + database,
		RawQuery: url.Values{"host": {s.process.Dir}, "port": {strconv.Itoa(port)}}.Encode()}).String()
}

// keep starts the cluster again when it ends by itself: what was in it is still there.
func (s *Server) keep() {
	for pause := time.Duration(0); ; pause = min(2*pause+100*time.Millisecond, 10*time.Second) {
		began := time.Now()
		if !s.wait() {
			return
		}
		if time.Since(began) > time.Minute || s.asked.Swap(false) {
			pause = 0
		}
		s.log.Info("the sandbox's PostgreSQL has ended and is started again")
		select {
		case <-s.closing:
			return
		case <-time.After(pause):
		}
		if err := s.run(); err != nil {
			s.log.Error("the sandbox's PostgreSQL does not start", "error", err)
		}
	}
}

// wait waits until the cluster's process has ended, and reports false if the cluster is closed instead. It keeps the
// log short: PostgreSQL writes kilobytes about each session that runs out of memory.
func (s *Server) wait() bool {
	for {
		select {
		case <-s.closing:
			return false
		case <-s.process.Exited:
			return true
		case <-time.After(time.Minute):
			s.process.ShortenLog()
		}
	}
}

// Limit sets how many bytes of memory a session may take. Where that is another number than before, the cluster starts
// again, and its sessions end: Limit returns when it answers, or after a while.
func (s *Server) Limit(memory uint64) {
	if s.memory.Swap(memory) == memory {
		return
	}
	before := s.pid.Load()
	s.asked.Store(true)
	_ = s.process.Signal(syscall.SIGINT)
	for until := time.Now().Add(startAgain); s.pid.Load() == before && time.Now().Before(until); {
		time.Sleep(20 * time.Millisecond)
	}
}

// Close ends the cluster and removes it.
func (s *Server) Close() error {
	s.close.Do(func() {
		close(s.closing)
		s.ended.Wait()
		s.closed = errors.Join(s.process.End(syscall.SIGQUIT), s.process.Remove())
	})
	return s.closed
}
