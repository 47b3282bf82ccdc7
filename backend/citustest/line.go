package citustest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Line is the way by which the nodes of a cluster reach its last worker, which a test may cut: to them the worker is
// lost as if its machine were, without a last message.
type Line struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	open  map[net.Conn]bool
	left  int64 // what may still come from the worker before all is cut; below 0: no end
	gone  bool
	times int // that it was mended
	ended sync.WaitGroup
}

func newLine(t testing.TB, to string) *Line {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("citustest: %v", err)
	}
	l := &Line{listener: listener, to: to, open: map[net.Conn]bool{}, left: -1}
	l.ended.Go(l.accept)
	return l
}

// CutAfter cuts the line once so many more bytes have come from the worker; 0 means now.
func (l *Line) CutAfter(bytes int64) {
	l.mu.Lock()
	l.left = bytes
	times := l.times
	l.mu.Unlock()
	if bytes == 0 {
		l.cut(times)
	}
}

// Mend lets connections be made again.
func (l *Line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.gone, l.times = -1, false, l.times+1
}

func (l *Line) close() {
	l.listener.Close()
	l.cut(-1)
	l.ended.Wait()
}

// cut ends all connections, unless the line has been mended since.
func (l *Line) cut(times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if times >= 0 && times != l.times {
		return
	}
	l.gone = true
	for c := range l.open {
		c.Close()
	}
	clear(l.open)
}

func (l *Line) port() int { return l.listener.Addr().(*net.TCPAddr).Port }

func (l *Line) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.to)
		if err != nil || !l.enter(near, far) {
			near.Close()
			if err == nil {
				far.Close()
			}
			continue
		}
		l.ended.Go(func() { l.carry(far, near, false) })
		l.ended.Go(func() { l.carry(near, far, true) })
	}
}

func (l *Line) enter(both ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return false
	}
	for _, c := range both {
		l.open[c] = true
	}
	return true
}

func (l *Line) carry(to, from net.Conn, worker bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 4096)
	for err := error(nil); err == nil; {
		var n int
		n, err = from.Read(buffer)
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				return
			}
			if !worker {
				continue
			}
			if times, all := l.spent(int64(n)); all {
				time.Sleep(200 * time.Millisecond) // in which what has come is read
				l.cut(times)
				return
			}
		}
	}
}

// spent reports whether all has come that may.
func (l *Line) spent(n int64) (times int, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left < 0 {
		return l.times, false
	}
	l.left = max(l.left-n, 0)
	return l.times, l.left == 0
}
