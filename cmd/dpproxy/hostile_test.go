package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/planner/parse"
)

// TestT49DeepSQL: 16 shapes at growing sizes are refused with 54000 or 54001 (comments that never end with 42601), or
// answered, and the process lives.
func TestT49DeepSQL(t *testing.T) {
	p := serveProcess(t, duckFixture(t, budgets{"1000", "1000"}, 0))
	deep(p, []int{1_000, 10_000, 28_000, 60_000}).none(t)
	huge, longest := 0, time.Duration(0)
	for _, size := range []int{70 << 10, 1 << 20, threats.Length(2<<20, 16<<20)} {
		for name, shape := range deepShapes {
			text := shape(1 + size/(len(shape(2))-len(shape(1))))
			begun := time.Now()
			got := tooLarge(p, text)
			longest = max(longest, time.Since(begun))
			if !strings.HasSuffix(got, " 54000") && !strings.HasSuffix(got, " 54001") {
				t.Errorf("%s of %d bytes: %s", name, len(text), got)
				continue
			}
			huge++
		}
	}
	if !p.alive() {
		t.Error("the process did not survive")
	}
	threats.Reached(t, "T49", "16 shapes up to %d KiB: %d texts refused by 54000 or 54001 beyond those of %d terms, the longest took %v with its connection", threats.Length(2<<20, 16<<20)>>10, huge, 60_000, longest.Round(time.Millisecond))
}

// tooLarge sends a text on a connection of its own, which may be closed before all of it is taken.
func tooLarge(p *program, text string) string {
	w := p.connect("alice", "lab")
	defer w.conn.Close()
	go func() { _, _ = w.conn.Write(frame('Q', text+"\x00")) }()
	return w.complaint()
}

// TestT49CatchesBareParser: a proxy that hands the text to the grammar without limits dies, and is found.
func TestT49CatchesBareParser(t *testing.T) {
	deep(startProcess(t, standInBareParser, ""), []int{1_000, 28_000, 60_000}).some(t, "a parser without limits")
}

// deep sends texts that are nested or chained so many times.
func deep(p *program, sizes []int) (found findings) {
	w := p.connect("alice", "lab")
	for name, shape := range deepShapes {
		for _, n := range sizes {
			sql := shape(n)
			if len(sql) > 900_000 {
				continue
			}
			a, err := w.tryAsk(sql)
			if err != nil {
				found.add("%s of %d: the connection died: %v", name, n, err)
				if w, err = p.dial("alice", "lab"); err != nil {
					found.add("the process died: %v", err)
					return found
				}
				continue
			}
			if name == "open comments" && a.err != nil && a.err.Code == "42601" {
				continue
			}
			if a.err != nil && n >= 28_000 && !strings.HasPrefix(a.err.Code, "54") {
				found.add("%s of %d: %s %s, want 54000 or 54001", name, n, a.err.Code, a.err.Message)
			}
			if a.err == nil && n >= 28_000 {
				found.add("%s of %d: answered", name, n)
			}
		}
	}
	if a, err := w.tryAsk("SELECT 1"); err != nil || a.err != nil || !p.alive() {
		found.add("the process did not survive: %v %v", err, a.err)
	}
	return found
}

var deepShapes = map[string]func(n int) string{
	"plus":        func(n int) string { return "SELECT 1" + strings.Repeat("+1", n) },
	"cast":        func(n int) string { return "SELECT 1" + strings.Repeat("::int", n) },
	"parentheses": func(n int) string { return "SELECT " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) },
	"not":         func(n int) string { return "SELECT " + strings.Repeat("NOT ", n) + "true" },
	"union":       func(n int) string { return "SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", n) },
	"and":         func(n int) string { return "SELECT true" + strings.Repeat(" AND true", n) },
	"or":          func(n int) string { return "SELECT true" + strings.Repeat(" OR true", n) },
	"in":          func(n int) string { return "SELECT 1 IN (1" + strings.Repeat(",1", n) + ")" },
	"concat":      func(n int) string { return "SELECT ''" + strings.Repeat("||''", n) },
	"case": func(n int) string {
		return "SELECT " + strings.Repeat("CASE WHEN true THEN ", n) + "1" + strings.Repeat(" END", n)
	},
	"brackets": func(n int) string { return "SELECT " + strings.Repeat("ARRAY[", n) + "1" + strings.Repeat("]", n) },
	"subquery": func(n int) string {
		return strings.Repeat("SELECT * FROM (", n) + "SELECT 1" + strings.Repeat(") t", n)
	},
	"comments":      func(n int) string { return "SELECT 1" + strings.Repeat("/**/", n) },
	"open comments": func(n int) string { return "SELECT 1" + strings.Repeat("/*", n) },
	"minus":         func(n int) string { return "SELECT " + strings.Repeat("- ", n) + "1" },
	"statements":    func(n int) string { return strings.Repeat("SELECT 1;", n) },
}

// TestT49SelfTest: the deepest admitted text is parsed, and what would kill the parser is not admitted.
func TestT49SelfTest(t *testing.T) {
	if _, refusal := parse.Parse(deepShapes["plus"](28_000)); refusal == nil {
		t.Error("28,000 additions were admitted")
	}
	if err := parserSelfTest(t.Context()); err != nil {
		t.Errorf("the deepest admitted texts: %v", err)
	}
}

// TestT52LengthField: 200 connections announce 2 GiB with five bytes. Memory stays, the connections are closed.
func TestT52LengthField(t *testing.T) {
	p := serveProcess(t, duckFixture(t, budgets{"10", "10"}, 0))
	before, begun := residentKiB(t, p.cmd.Process.Pid), time.Now()
	announced(p, 200, 10*time.Second).none(t)
	threats.Reached(t, "T52", "200 connections announce 2 GiB each: %d KiB more, all closed within %v", residentKiB(t, p.cmd.Process.Pid)-before, time.Since(begun).Round(time.Millisecond))
}

// TestT52CatchesNoLimit: a proxy that leaves the codec's limit on messages alone waits for the announced bytes.
func TestT52CatchesNoLimit(t *testing.T) {
	beside(t)
	announced(startProcess(t, standInBareParser, ""), 2, time.Second).some(t, "no limit on the length of a message")
}

// announced sends the head of a message of 2 GiB on many connections, before and after the login.
func announced(p *program, connections int, patience time.Duration) (found findings) {
	before := residentKiB(p.t, p.cmd.Process.Pid)
	huge := append([]byte{'Q'}, 0x7f, 0xff, 0xff, 0xff)
	for c := range connections {
		var conn net.Conn
		if c%4 == 0 {
			conn = p.connect("alice", "lab").conn
		} else {
			var err error
			if conn, err = net.Dial("tcp", p.address); err != nil {
				found.add("connection %d: %v", c, err)
				return found
			}
			p.t.Cleanup(func() { conn.Close() })
		}
		_, err := conn.Write(huge)
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			found.add("connection %d is still open", c)
			return found
		}
	}
	if grown := residentKiB(p.t, p.cmd.Process.Pid) - before; grown > 64<<10 {
		found.add("memory grew by %d KiB, may grow by 65536", grown)
	}
	if a, err := p.connect("alice", "lab").tryAsk("SELECT 1"); err != nil || a.err != nil {
		found.add("afterwards: %v %v", err, a.err)
	}
	return found
}

// TestT52Edges: each edge of the length field is refused, before and after authentication, and the process lives.
func TestT52Edges(t *testing.T) {
	p := serveProcess(t, duckFixture(t, budgets{"10", "10"}, 0))
	closed := 0
	edges := []uint32{0, 1, 2, 3, 1<<20 + 5, 1 << 24, 1<<31 - 1, 1 << 31, 1<<32 - 1}
	for _, n := range edges {
		w := p.connect("alice", "lab")
		head := binary.BigEndian.AppendUint32([]byte{'Q'}, n)
		if _, err := w.conn.Write(head); err != nil {
			t.Fatal(err)
		}
		_ = w.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, w.conn); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("length %d: the connection is still open", n)
			continue
		}
		closed++
	}
	threats.Reached(t, "T52", "%d of %d edges of the length closed", closed, len(edges))
	if a := p.connect("alice", "lab").ask("SELECT 1"); a.err != nil {
		t.Error(a.err)
	}
}

// residentKiB reads the resident memory of a process.
func residentKiB(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "status"))
	if err != nil {
		t.Skip("no /proc here: ", err)
	}
	for _, line := range strings.Split(string(status), "\n") {
		var n int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &n); err == nil {
			return n
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
