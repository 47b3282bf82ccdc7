package pgtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"

	"github.com/dpproxy/dpproxy/internal/daemon"
)

// binaries returns the directory of postgres and initdb: DPPROXY_POSTGRES where it is set, so that a suite runs on
// another version (`make versions`), otherwise the newest version that is installed.
func binaries() (string, error) {
	if dir := os.Getenv("DPPROXY_POSTGRES"); dir != "" {
		return dir, nil
	}
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	version := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		return n
	}
	sort.Slice(dirs, func(i, j int) bool { return version(dirs[i]) > version(dirs[j]) })
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, dir := range dirs {
		if daemon.Executable(filepath.Join(dir, "initdb")) && daemon.Executable(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", ErrNoBinaries
}
