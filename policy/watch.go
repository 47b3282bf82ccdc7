package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/dpproxy/dpproxy/internal/deadline"
)

const (
	settle    = 200 * time.Millisecond // how long a file must be left alone before it is read: editors write in several steps
	readAgain = 5 * time.Second        // after a read that has not returned in time: nothing may tell of the disk's return
)

// Watch follows a policy file until ctx ends. The file is read at the start (it may have changed since the caller read
// it), after each change and at each signal; a policy that passes is handed to onChange, which compares digests. A file
// that cannot be read, in time or at all, or does not pass, and an error of onChange, go to onError, and whatever was
// in force stays in force. The directory is watched rather than the file, so that a rename over it is seen, and so is a
// swapped symbolic link. Calls of onChange are made one after the other: what one waits for may end with its context,
// which is over when the file holds another policy.
func Watch(ctx context.Context, path string, signals <-chan os.Signal, onChange func(context.Context, *Policy) error, onError func(error)) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		return err
	}
	timer := time.NewTimer(settle)
	timer.Stop()
	defer timer.Stop()
	w := &follower{path: path, gate: deadline.NewGate(), later: timer, load: loadFollowed, onChange: onChange, onError: onError}
	defer w.end()
	w.reload(ctx, false)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-signals:
			w.reload(ctx, true)
		case <-timer.C:
			w.reload(ctx, false)
		case event, open := <-watcher.Events:
			if !open {
				return errors.New("policy: the file watcher ended")
			}
			if w.concerns(event.Name) && event.Op != fsnotify.Chmod {
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

// concerns reports whether an event in the directory may have changed the file: it is about the file itself or, where
// the file is a symbolic link, about anything, because the link may lead through a sibling that was swapped.
func (w *follower) concerns(name string) bool {
	return w.linked || filepath.Base(name) == filepath.Base(w.path)
}

// followed is what a file held when it was read, and whether its name was a symbolic link.
type followed struct {
	data   []byte
	linked bool
}

// loadFollowed reads a file as load does, where it is one: what else may have its name has no end.
func loadFollowed(path string) (of followed, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return of, err
	}
	of.linked = info.Mode()&fs.ModeSymlink != 0
	f, err := deadline.Open(path)
	if err == nil {
		of.data, err = loadFrom(f)
	}
	return of, err
}

// follower knows what was read last, good or bad, so that each state of the file is judged once.
type follower struct {
	path     string
	gate     deadline.Gate
	load     func(path string) (followed, error)
	later    *time.Timer // reads again when it fires
	linked   bool        // its name is a symbolic link
	last     [sha256.Size]byte
	judged   [sha256.Size]byte // of what onChange has, or had last
	cancel   context.CancelFunc
	ended    chan struct{} // closed when onChange returned; nil means it was never called
	onChange func(context.Context, *Policy) error
	onError  func(error)
}

// reload reads the file, and judges it again even where nothing changed if asked to.
func (w *follower) reload(ctx context.Context, again bool) {
	of, err := deadline.Call(w.gate, deadline.Files, func() (followed, error) { return w.load(w.path) })
	if errors.Is(err, deadline.ErrExceeded) {
		err = fmt.Errorf("%s: %w", w.path, err)
		w.later.Reset(readAgain)
	} else {
		w.linked = of.linked
	}
	if err != nil {
		w.last = [sha256.Size]byte{}
		w.onError(err)
		return
	}
	digest := sha256.Sum256(of.data)
	same := digest == w.last && !again || digest == w.judged && w.judging()
	if w.last = digest; same {
		return
	}
	p, err := Parse(of.data, w.path)
	if err != nil {
		w.onError(err)
		return
	}
	w.end()
	waits, cancel := context.WithCancel(ctx)
	w.judged, w.cancel, w.ended = digest, cancel, make(chan struct{})
	go func(ended chan struct{}) {
		defer close(ended)
		if err := w.onChange(waits, p); err != nil && (waits.Err() == nil || !errors.Is(err, context.Canceled)) {
			w.onError(err)
		}
	}(w.ended)
}

// judging reports whether onChange has not returned yet.
func (w *follower) judging() bool {
	select {
	case <-w.ended:
		return false
	default:
		return w.ended != nil
	}
}

// end has onChange return.
func (w *follower) end() {
	if w.ended != nil {
		w.cancel()
		<-w.ended
	}
}
