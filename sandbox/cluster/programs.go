package cluster

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/dpproxy/dpproxy/internal/daemon"
)

// ErrNoPrograms says that PostgreSQL's programs are not there, and what brings them.
var ErrNoPrograms = errors.New("PostgreSQL's programs (initdb, postgres) of version 15 or newer are not found in PATH or the usual places: " +
	"install them (Debian: apt-get install postgresql), name their folder by sandbox.bin, or a server by sandbox.url")

// places are where distributions put a version's programs, which PATH does not name.
var places = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/usr/local/opt/postgresql@*/bin",
	"/opt/homebrew/opt/postgresql@*/bin"}

// Programs returns the folder of initdb and postgres: bin if it is not empty, else that of the newest version found.
func Programs(bin string) (string, error) {
	list := []string{bin}
	if bin == "" {
		list = nil
		for _, place := range places {
			found, _ := filepath.Glob(place)
			slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
			list = append(list, found...)
		}
		if path, err := exec.LookPath("initdb"); err == nil {
			if path, err = filepath.EvalSymlinks(path); err == nil {
				list = append([]string{filepath.Dir(path)}, list...)
			}
		}
	}
	for _, dir := range list {
		if daemon.Executable(filepath.Join(dir, "initdb")) && daemon.Executable(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", ErrNoPrograms
}

// version is the number in a folder's name, such as /usr/lib/postgresql/15/bin.
func version(dir string) int {
	name := filepath.Base(filepath.Dir(dir))
	for i := range name {
		if n, err := strconv.Atoi(name[i:]); err == nil && n > 0 {
			return n
		}
	}
	return 0
}
