package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/dpproxy/dpproxy/internal/daemon"
)

// A cluster is a copy of one that initdb has made and that is kept: making one takes a second, copying it a tenth.

// settings are the cluster's whole postgresql.conf.
const settings = `listen_addresses = ''
unix_socket_permissions = 0700
max_connections = 300
huge_pages = off
shared_buffers = 32MB
fsync = off
full_page_writes = off
synchronous_commit = off
wal_level = minimal
max_wal_senders = 0
min_wal_size = 2MB
max_wal_size = 64MB
max_worker_processes = 0
max_parallel_workers = 0
max_logical_replication_workers = 0
temp_file_limit = 256MB
jit = off
timezone = UTC
shared_preload_libraries = ''
log_min_messages = fatal
log_min_error_statement = panic
log_checkpoints = off
`

// roles make Role, which owns no data but the twins', and Session. Nobody may log in as the superuser.
const roles = `CREATE ROLE ` + Role + ` LOGIN CREATEDB
CREATE ROLE ` + Session + ` NOLOGIN NOINHERIT
GRANT ` + Session + ` TO ` + Role + `
REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC
GRANT CONNECT ON DATABASE postgres TO ` + Role + `
`

// initialise makes the data directory, of a template that is kept if that is wanted.
func (s *Server) initialise(kept bool) error {
	if err := os.RemoveAll(s.data()); err != nil {
		return err
	}
	me, err := nameOf(os.Geteuid())
	if err != nil {
		return err
	}
	made, err := s.template(kept)
	if err == nil {
		err = os.CopyFS(s.data(), os.DirFS(made))
	}
	_ = os.RemoveAll(s.making())
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"postgresql.conf": settings, "postgresql.auto.conf": "", "pg_hba.conf": "local all " + Role + " peer map=parent\n",
		"pg_ident.conf": "parent \"" + strings.ReplaceAll(me, `"`, `""`) + "\" " + Role + "\n"} {
		_ = os.Remove(filepath.Join(s.data(), name)) // were it a link, root would write what it names
		if err := os.WriteFile(filepath.Join(s.data(), name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := os.Chmod(s.data(), 0o700); err != nil {
		return err
	}
	return give(s.process.Dir, s.owner)
}

// nameOf returns the name of a user. initdb, and peer authentication, refuse a user id without one, as containers run
// under.
func nameOf(id int) (string, error) {
	u, err := user.LookupId(strconv.Itoa(id))
	if err != nil {
		return "", fmt.Errorf("user id %d has no name here, and PostgreSQL starts for none without: run dpproxy as a user that /etc/passwd lists, or name a server by sandbox.url (%w)", id, err)
	}
	return u.Username, nil
}

// give gives a directory and all that is in it to the user that the server runs as.
func give(dir string, owner *syscall.Credential) error {
	if owner == nil {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(owner.Uid), int(owner.Gid)))
	})
}

// template returns a directory of this user's alone that holds a fresh cluster with its roles, and makes it if it is
// not there yet.
func (s *Server) template(keep bool) (string, error) {
	server, err := os.Stat(filepath.Join(s.bin, "postgres"))
	if err != nil {
		return "", err
	}
	of := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s", s.bin, server.Size(), server.ModTime().UnixNano(), roles))
	root, err := os.UserCacheDir()
	if err != nil {
		return s.make()
	}
	kept := filepath.Join(root, "dpproxy", "postgres-"+hex.EncodeToString(of[:8]))
	s.sweep(filepath.Dir(kept))
	if keep && own(kept) {
		return kept, nil
	}
	_ = os.RemoveAll(kept)
	made, err := s.make()
	if err != nil || os.MkdirAll(filepath.Dir(kept), 0o700) != nil {
		return made, err
	}
	moving := kept + "-" + filepath.Base(s.process.Dir)
	if err := os.CopyFS(moving, os.DirFS(made)); err != nil || os.Chmod(moving, 0o700) != nil || os.Rename(moving, kept) != nil {
		_ = os.RemoveAll(moving) // it cannot be kept, or another process was faster
	}
	return made, nil
}

// sweep removes copies on their way to be kept whose processes are gone, as their own directories are.
func (s *Server) sweep(dir string) {
	copies, _ := filepath.Glob(filepath.Join(dir, "postgres-*-"+prefix+"*"))
	for _, path := range copies {
		_, of, _ := strings.Cut(filepath.Base(path), "-"+prefix)
		if _, err := os.Stat(filepath.Join(filepath.Dir(s.process.Dir), prefix+of)); errors.Is(err, fs.ErrNotExist) {
			_ = os.RemoveAll(path)
		}
	}
}

// own reports whether a path is a directory of this user's that nobody else may enter.
func own(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// making is where a fresh cluster is made.
func (s *Server) making() string { return filepath.Join(s.process.Dir, "made") }

// make makes a fresh cluster below the server's directory. initdb wants a user that has a name, and refuses root.
func (s *Server) make() (string, error) {
	maker, err := daemon.Owner("nobody", "postgres")
	if err != nil {
		return "", err
	}
	parent := s.making()
	if err := os.Mkdir(parent, 0o700); err != nil {
		return "", err
	}
	if maker != nil { // the directory above is for this user alone until the cluster is whole
		if err := errors.Join(os.Chmod(s.process.Dir, 0o711), give(parent, maker)); err != nil {
			return "", err
		}
	}
	made := filepath.Join(parent, "data")
	run := func(input, program string, args ...string) error {
		cmd := exec.Command(filepath.Join(s.bin, program), args...)
		cmd.Dir, cmd.Env, cmd.Stdin, cmd.SysProcAttr = parent, environment, strings.NewReader(input), daemon.Attr(maker, syscall.SIGKILL)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w\n%s", program, err, said.Bytes())
		}
		return nil
	}
	if err := run("", "initdb", "-D", made, "-U", "postgres", "--auth=reject", "--no-locale", "--encoding=UTF8", "--no-sync",
		"--wal-segsize=1"); err != nil {
		return "", err
	}
	if err := run(roles, "postgres", "--single", "-F", "-D", made, "postgres"); err != nil {
		return "", err
	}
	return made, os.Chmod(s.process.Dir, 0o700)
}
