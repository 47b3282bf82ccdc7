package kit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// built is the program that this process's tests run: `go build` makes it once for all packages, at bin/test/dpproxy
// below the module, and leaves it as it is where it is up to date. A file lock has packages whose tests run at the same
// time wait for one another.
var built struct {
	once   sync.Once
	path   string
	err    error
	remove string // a directory that is this process's own
}

// Executable is the path of dpproxy, built from the module that the test is in. Under -race it is built so too. What
// -cover measures is what runs in the test's own process.
func Executable() (string, error) {
	built.once.Do(func() {
		if built.path, built.err = build(); built.err != nil {
			built.err = fmt.Errorf("%s: %w", threats.NotBuilt, built.err)
		}
	})
	return built.path, built.err
}

func build() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	if err := dependOn(root); err != nil {
		return "", err
	}
	dir := filepath.Join(root, "bin", "test")
	if strings.Contains(os.Getenv("GOFLAGS"), "-overlay") { // a planted fault must not stay where other tests look
		if dir, err = os.MkdirTemp("", "dpproxy-overlaid-"); err != nil {
			return "", err
		}
		built.remove = dir
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	path, args := filepath.Join(dir, "dpproxy"), []string{"build", "-buildvcs=false"}
	if raced {
		path, args = path+"-race", append(args, "-race")
	}
	before, id := modified(path), buildID(path)
	cmd := exec.Command("go", append(args, "-o", path, "./cmd/dpproxy")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	// `go build` touches what is up to date, and `go test` would not keep the results of tests that run it.
	if id != "" && buildID(path) == id {
		err = os.Chtimes(path, before, before)
	}
	return path, err
}

// buildID names the content of a program, "" where there is none.
func buildID(path string) string {
	out, err := exec.Command("go", "tool", "buildid", path).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// moduleRoot is the directory above the test's own that has the module's go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the test")
		}
	}
}

// dependOn reads the sources of the program's own package, which no test can import: `go test` then knows that what it
// keeps of a test depends on them, as it knows of the packages that are imported here.
func dependOn(root string) error {
	sources, err := filepath.Glob(filepath.Join(root, "cmd", "dpproxy", "*.go"))
	if err != nil {
		return err
	}
	for _, source := range append(sources, filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum")) {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		if _, err := os.ReadFile(source); err != nil {
			return err
		}
	}
	return nil
}
