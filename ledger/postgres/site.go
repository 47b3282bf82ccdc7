package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/ledger/store"
)

// Site is a PostgreSQL database, which many proxies write. What one of them knows of the ledger is the chain up to
// some row; each batch first locks the chain's head, and reads what others have written since.
type Site struct {
	Config    *pgx.ConnConfig
	Owner     int32    // this proxy's number among those that live
	dataRoles []string // under which the private database and the sandbox are asked
	readOnly  bool     // a standby will do

	mu   sync.Mutex // guards the server's time
	base int64
	read time.Time

	unsure atomic.Int64 // commits of which the server has said that their durability was not waited for
}

// How long PostgreSQL may take. A statement waits for the head's lock as long; a proxy that holds it and is silent
// loses it.
const pgConnect = 3 * time.Second

var pgWait = 10 * time.Second // a test's to change

// At is the site that a URL names. A ledger that one of the roles can reach is refused; readOnly, it may lie on a
// standby.
func At(url string, dataRoles []string, readOnly bool) (*Site, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the ledger's url is not one of PostgreSQL") // its text may hold a password
	}
	if err := secureLink(config, url); err != nil {
		return nil, err
	}
	config.ConnectTimeout = pgConnect
	long := strconv.FormatInt(pgWait.Milliseconds(), 10)
	for name, value := range map[string]string{
		"application_name": "dpproxy ledger", "statement_timeout": long, "lock_timeout": long, "idle_in_transaction_session_timeout": long,
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3", "search_path": "pg_catalog",
		// Plans are kept, and made while tables are small: each account and chain is to be found by its index when they
		// no longer are.
		"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
		"jit": "off", // by the costs that such a setting makes it would be on for what reads a few rows
	} {
		config.RuntimeParams[name] = value
	}
	var owner [4]byte
	rand.Read(owner[:])
	p := &Site{Config: config, dataRoles: dataRoles, readOnly: readOnly, Owner: int32(binary.BigEndian.Uint32(owner[:]) >> 1), read: time.Now(), base: time.Now().UnixNano()}
	config.OnNotice = p.noticed
	return p, nil
}

// noticed hears warnings. With one of the general class, and no error, the server answers a commit whose wait for its
// standbys was cancelled: it is done here, and a promotion may lose it. Whatever else is warned of so only has a commit
// confirmed.
func (p *Site) noticed(_ *pgconn.PgConn, n *pgconn.Notice) {
	if n.Code == "01000" && cmp.Or(n.SeverityUnlocalized, n.Severity) == "WARNING" {
		p.unsure.Add(1)
	}
}

func (p *Site) Locks() []string { return nil }

// Witness must be named: there is no place beside a database.
func (p *Site) Shared() bool    { return true }
func (p *Site) Witness() string { return "" }

// Probe leaves it to open to find out.
func (p *Site) Probe(int) error         { return nil }
func (p *Site) Explain(err error) error { return err }

// Clock is the server's time, as of the last word from it and the time since on the monotonic clock of this machine,
// whose own date is never asked.
func (p *Site) Clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Unix(0, p.base+int64(time.Since(p.read)))
}

func (p *Site) told(now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.base, p.read = now, time.Now()
}

func (p *Site) Open(whole context.Context, writes bool) (store.Store, error) {
	ctx, cancel := context.WithTimeout(whole, pgWait)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, p.Config)
	if err != nil {
		return nil, err
	}
	s := &Store{Conn: conn, site: p, writes: writes}
	if writes {
		var changed bool
		if changed, err = s.demand(ctx, whole); changed { // which has taken as long as it had to
			cancel()
			ctx, cancel = context.WithTimeout(whole, pgWait)
			defer cancel()
		}
		if err == nil {
			err = s.join(ctx)
		}
	}
	if err == nil {
		var now int64
		var standby bool
		switch err = conn.QueryRow(ctx, "SELECT "+pgNow+", pg_catalog.pg_is_in_recovery()").Scan(&now, &standby); {
		case err == nil && standby && !p.readOnly: // it may not know yet what was revoked
			err = errStandby
		case err == nil:
			p.told(now)
		}
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

var errStandby = fmt.Errorf("%w: the server is a standby, in recovery", store.ErrServer)

// demand refuses a server whose commits are not durable, and takes the tables to the version that this program knows.
func (s *Store) demand(ctx, whole context.Context) (changed bool, err error) {
	var fsync, pages, sync, encoding string
	var standby bool
	var session int64
	if err := s.Conn.QueryRow(ctx, pgPromises).Scan(&fsync, &pages, &sync, &standby, &encoding, &session); err != nil {
		return false, err
	}
	switch {
	case standby:
		return false, errStandby
	case fsync != "on":
		return false, fmt.Errorf("%w: fsync is %s", store.ErrServer, fsync)
	case pages != "on":
		return false, fmt.Errorf("%w: full_page_writes is %s", store.ErrServer, pages)
	case sync == "off":
		return false, fmt.Errorf("%w: synchronous_commit is off for this role or database", store.ErrServer)
	case encoding != "UTF8":
		return false, fmt.Errorf("%w: the database's encoding is %s, must be UTF8", store.ErrServer, encoding)
	}
	if err := s.keeps(ctx, session); err != nil {
		return false, err
	}
	if sync != "remote_apply" { // with local or remote_write a commit may be lost by the standbys that it should wait for
		sync = "on"
	}
	if _, err := s.Conn.Exec(ctx, "SELECT pg_catalog.set_config('synchronous_commit', $1, false)", sync); err != nil { // whatever a reload says
		return false, err
	}
	version, err := s.version(ctx)
	if err != nil || version == 0 || version == len(migrations) {
		return false, err
	}
	return true, pgx.BeginFunc(whole, s.Conn, func(tx pgx.Tx) error { return s.migrateIn(whole, tx) })
}

// join waits until the server has done with this proxy's connection before: what was sent on it without a transaction
// that holds heads may not have begun yet, and nothing is to come of it once it was looked for. It makes this proxy
// known, and refuses a ledger within the data's reach. It comes last: who is known while the tables are of an older
// version is a proxy of that. Whoever changes the tables meanwhile has either seen it, or is waited for and the version
// looked at again.
func (s *Store) join(ctx context.Context) error {
	_, err := s.Conn.Exec(ctx, pgJoin, LockAlive, s.site.Owner)
	if err == nil {
		_, err = s.Conn.Exec(ctx, "SELECT pg_catalog.pg_advisory_xact_lock_shared($1)", lockSchema)
	}
	fresh := false
	if err == nil {
		fresh, err = s.Empty()
	}
	if err != nil || fresh {
		return err
	}
	return s.apart(ctx)
}

// apart refuses a ledger that a role can reach under which the private data, or what analysts write, are read.
func (s *Store) apart(ctx context.Context) error {
	for _, role := range s.site.dataRoles {
		var known bool
		if err := s.Conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = $1)", role).Scan(&known); err != nil {
			return err
		}
		if !known {
			continue
		}
		var table string
		err := s.Conn.QueryRow(ctx, pgReach, role).Scan(&table)
		if err == nil {
			return fmt.Errorf("%w: role %s, under which the database is asked, can reach its table %s: give the ledger a role and a database of its own", store.ErrServer, role, table)
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
	}
	return nil
}

// migrateIn makes the schema, or takes it to the version that this program knows. An index over a long chain takes as
// long as it takes, and so does the wait for another proxy that makes it.
func (s *Store) migrateIn(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SELECT pg_catalog.pg_advisory_xact_lock(%d); SET LOCAL lock_timeout = %d",
		lockSchema, pgWait.Milliseconds()), pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	version, err := s.version(ctx)
	if err != nil || version == len(migrations) {
		return err
	}
	if version > 0 { // whoever is at work on it could not go on, though this one may yet be refused, for its policy
		n, err := s.Others()
		for tries := 0; err == nil && n > 0 && tries < 20; tries++ { // the server may not have done yet with one that was just stopped
			time.Sleep(50 * time.Millisecond)
			n, err = s.Others()
		}
		if err != nil || n > 0 {
			return cmp.Or(err, fmt.Errorf("%w: %d of an older version are at work on it, which could not go on: stop them first", store.ErrLocked, n))
		}
	}
	for _, m := range migrations[version:] {
		if _, err := tx.Exec(ctx, m, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	s.tables = len(migrations)
	_, err = tx.Exec(ctx, "UPDATE dpproxy_ledger.version SET version = $1", s.tables)
	return err
}

// version is that of the schema, 0 where there is none.
func (s *Store) version(ctx context.Context) (version int, err error) {
	var there bool
	if err := s.Conn.QueryRow(ctx, "SELECT pg_catalog.to_regclass('dpproxy_ledger.version') IS NOT NULL").Scan(&there); err != nil || !there {
		return 0, err
	}
	if err := s.Conn.QueryRow(ctx, "SELECT version FROM dpproxy_ledger.version").Scan(&version); err != nil {
		return 0, err
	}
	if version < 1 || version > len(migrations) {
		return 0, fmt.Errorf("%w: format %d is not known: a newer dpproxy may have written it", store.ErrCorrupt, version)
	}
	s.tables = version
	return version, nil
}

func (s *Store) Empty() (bool, error) {
	ctx, cancel := s.limit()
	defer cancel()
	version, err := s.version(ctx)
	return version == 0, err
}

// Create makes the ledger, unless another proxy has been faster.
func (s *Store) Create(first chain.Row) error {
	ctx, cancel := s.limit()
	defer cancel()
	err := pgx.BeginFunc(ctx, s.Conn, func(tx pgx.Tx) error {
		if err := s.migrateIn(ctx, tx); err != nil {
			return err
		}
		var seq int64
		if err := tx.QueryRow(ctx, "SELECT seq FROM dpproxy_ledger.heads WHERE head = 0 FOR UPDATE").Scan(&seq); err != nil || seq != 0 {
			return err
		}
		s.renew()
		if _, err := tx.Exec(ctx, pgInsert, s.args([]chain.Row{first})...); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, pgAhead, knownArgs([]chain.Head{{Seq: first.Seq, Hash: first.Hash}})...)
		return err
	})
	if err != nil {
		return err
	}
	return s.apart(ctx)
}
