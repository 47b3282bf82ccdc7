package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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
	missing := ErrNoPrograms
	for _, dir := range list {
		if !daemon.Executable(filepath.Join(dir, "initdb")) || !daemon.Executable(filepath.Join(dir, "postgres")) {
			continue
		}
		out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
		if n := firstNumber(string(out)); err == nil && n >= oldest {
			return dir, nil
		}
		if missing == ErrNoPrograms {
			missing = fmt.Errorf("%w; those in %s are %q", ErrNoPrograms, dir, cmp.Or(strings.TrimSpace(string(out)), "of no version that they tell"))
		}
	}
	return "", missing
}

// oldest is the oldest version of PostgreSQL that the sandbox runs on.
const oldest = 15

// version is the number in a folder's name, such as /usr/lib/postgresql/15/bin.
func version(dir string) int { return firstNumber(filepath.Base(filepath.Dir(dir))) }

// firstNumber is the first whole number in a text, or 0 if there is none.
func firstNumber(text string) int {
	digits := strings.TrimLeftFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		digits = digits[:end]
	}
	n, _ := strconv.Atoi(digits)
	return n
}
