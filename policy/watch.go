package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file must be left alone before it is read: editors write in several steps.
const settle = 200 * time.Millisecond

// Watch follows a policy file until ctx ends. The file is read at the start (it may have changed since the caller read
// it), after each change and at each signal; a policy that passes is handed to onChange, which compares digests. A file
// that cannot be read or does not pass, and an error of onChange, go to onError, and whatever was in force stays in
// force. The directory is watched rather than the file, so that a rename over it is seen, and so is a swapped symbolic
// link. Calls are made one after the other, from this goroutine.
func Watch(ctx context.Context, path string, signals <-chan os.Signal, onChange func(*Policy) error, onError func(error)) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		return err
	}
	w := &follower{path: path, onChange: onChange, onError: onError}
	w.reload(false)
	timer := time.NewTimer(settle)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-signals:
			w.reload(true)
		case <-timer.C:
			w.reload(false)
		case event, open := <-watcher.Events:
			if !open {
				return errors.New("policy: the file watcher ended")
			}
			if concerns(event.Name, path) && event.Op != fsnotify.Chmod {
				timer.Reset(settle)
			}
		case err, open := <-watcher.Errors:
			if !open {
				return errors.New("policy: the file watcher ended")
			}
			onError(err)
			timer.Reset(settle) // events may have been lost
		}
	}
}

// concerns tells whether an event in the directory may have changed the file: it is about the file itself or, where the
// file is a symbolic link, about anything, because the link may lead through a sibling that was swapped.
func concerns(name, path string) bool {
	if filepath.Base(name) == filepath.Base(path) {
		return true
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// follower knows what was read last, good or bad, so that each state of the file is judged once.
type follower struct {
	path     string
	last     [sha256.Size]byte
	onChange func(*Policy) error
	onError  func(error)
}

// reload reads the file, and judges it again even where nothing changed if asked to.
func (w *follower) reload(again bool) {
	data, err := load(w.path)
	if err != nil {
		w.last = [sha256.Size]byte{}
		w.onError(err)
		return
	}
	digest := sha256.Sum256(data)
	if digest == w.last && !again {
		return
	}
	w.last = digest
	p, err := Parse(data, w.path)
	if err == nil {
		err = w.onChange(p)
	}
	if err != nil {
		w.onError(err)
	}
}
