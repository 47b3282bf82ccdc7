package attacks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestT49DeepSQL: 16 shapes at growing sizes are refused with 54000 or 54001 (comments that never end with 42601), or
// answered, and the process lives.
func TestT49DeepSQL(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "1000", Cap: "1000"}, 0))
	deep(p, slices.Sorted(maps.Keys(deepShapes)), []int{1_000, 10_000, 28_000, 60_000}).None(t)
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
	if !p.Alive() {
		t.Error("the process did not survive")
	}
	threats.Reached(t, "T49", "16 shapes up to %d KiB: %d texts refused by 54000 or 54001 beyond those of %d terms, the longest took %v with its connection", threats.Length(2<<20, 16<<20)>>10, huge, 60_000, longest.Round(time.Millisecond))
}

// tooLarge sends a text on a connection of its own, which may be closed before all of it is taken.
func tooLarge(p *kit.Program, text string) string {
	w := p.Connect("alice", "lab")
	defer w.Conn.Close()
	go func() { _, _ = w.Conn.Write(frame('Q', text+"\x00")) }()
	return complaint(w)
}

// TestT49CatchesBareParser: a proxy that hands the text to the grammar without limits answers what it must refuse, and
// dies of a chain of additions. One such shape shows it; over the others the bare grammar takes a minute.
func TestT49CatchesBareParser(t *testing.T) {
	found := deep(kit.Start(t, "bare-parser", ""), []string{"plus"}, []int{1_000, 28_000, 60_000})
	found.Some(t, "a parser without limits")
	if !strings.Contains(strings.Join(found, "\n"), "the process died") {
		t.Errorf("a parser without limits lives: %.1000q", found)
	}
}

// deep sends texts that are nested or chained so many times, of the shapes named.
func deep(p *kit.Program, names []string, sizes []int) (found kit.Findings) {
	w := p.Connect("alice", "lab")
	for _, name := range names {
		for _, n := range sizes {
			sql := deepShapes[name](n)
			if len(sql) > 900_000 {
				continue
			}
			a, err := w.TryAsk(sql)
			if err != nil {
				found.Add("%s of %d: the connection died: %v", name, n, err)
				if w, err = p.Dial("alice", "lab"); err != nil {
					found.Add("the process died: %v", err)
					return found
				}
				continue
			}
			if name == "open comments" && a.Err != nil && a.Err.Code == "42601" {
				continue
			}
			if a.Err != nil && n >= 28_000 && !strings.HasPrefix(a.Err.Code, "54") {
				found.Add("%s of %d: %s %s, want 54000 or 54001", name, n, a.Err.Code, a.Err.Message)
			}
			if a.Err == nil && n >= 28_000 {
				found.Add("%s of %d: answered", name, n)
			}
		}
	}
	if a, err := w.TryAsk("SELECT 1"); err != nil || a.Err != nil || !p.Alive() {
		found.Add("the process did not survive: %v %v", err, a.Err)
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
	if out := kit.Run(t, "", "__parser-self-test"); out.Code != 0 { // what serve begins with, in a child of its own
		t.Errorf("the deepest admitted texts: exit %d: %s", out.Code, out.Stderr)
	}
}

// TestT52LengthField: 200 connections announce 2 GiB with five bytes. Memory stays, the connections are closed.
func TestT52LengthField(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0))
	before, begun := residentKiB(t, p.Cmd.Process.Pid), time.Now()
	announced(p, 200, 10*time.Second).None(t)
	threats.Reached(t, "T52", "200 connections announce 2 GiB each: %d KiB more, all closed within %v", residentKiB(t, p.Cmd.Process.Pid)-before, time.Since(begun).Round(time.Millisecond))
}

// TestT52CatchesNoLimit: a proxy that leaves the codec's limit on messages alone waits for the announced bytes.
func TestT52CatchesNoLimit(t *testing.T) {
	kit.Beside(t)
	announced(kit.Start(t, "bare-parser", ""), 2, time.Second).Some(t, "no limit on the length of a message")
}

// announced sends the head of a message of 2 GiB on many connections, before and after the login.
func announced(p *kit.Program, connections int, patience time.Duration) (found kit.Findings) {
	before := residentKiB(p.T, p.Cmd.Process.Pid)
	huge := append([]byte{'Q'}, 0x7f, 0xff, 0xff, 0xff)
	for c := range connections {
		var conn net.Conn
		if c%4 == 0 {
			conn = p.Connect("alice", "lab").Conn
		} else {
			var err error
			if conn, err = net.Dial("tcp", p.Address); err != nil {
				found.Add("connection %d: %v", c, err)
				return found
			}
			p.T.Cleanup(func() { conn.Close() })
		}
		_, err := conn.Write(huge)
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			found.Add("connection %d is still open", c)
			return found
		}
	}
	if grown := residentKiB(p.T, p.Cmd.Process.Pid) - before; grown > 64<<10 {
		found.Add("memory grew by %d KiB, may grow by 65536", grown)
	}
	if a, err := p.Connect("alice", "lab").TryAsk("SELECT 1"); err != nil || a.Err != nil {
		found.Add("afterwards: %v %v", err, a.Err)
	}
	return found
}

// TestT52Edges: each edge of the length field is refused, before and after authentication, and the process lives.
func TestT52Edges(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0))
	closed := 0
	edges := []uint32{0, 1, 2, 3, 1<<20 + 5, 1 << 24, 1<<31 - 1, 1 << 31, 1<<32 - 1}
	for _, n := range edges {
		w := p.Connect("alice", "lab")
		head := binary.BigEndian.AppendUint32([]byte{'Q'}, n)
		if _, err := w.Conn.Write(head); err != nil {
			t.Fatal(err)
		}
		_ = w.Conn.SetReadDeadline(time.Now().Add(60 * time.Second))
		if _, err := io.Copy(io.Discard, w.Conn); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("length %d: the connection is still open", n)
			continue
		}
		closed++
	}
	threats.Reached(t, "T52", "%d of %d edges of the length closed", closed, len(edges))
	if a := p.Connect("alice", "lab").Ask("SELECT 1"); a.Err != nil {
		t.Error(a.Err)
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

// bareGrammar serves the codec as it comes and the grammar as it comes.
func bareGrammar(_ context.Context, _, _ string, listening func(net.Addr)) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	listening(l.Addr())
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			back := pgproto3.NewBackend(conn, conn)
			if _, err := back.ReceiveStartupMessage(); err != nil {
				return
			}
			back.Send(&pgproto3.AuthenticationOk{})
			back.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			for back.Flush() == nil {
				m, err := back.Receive()
				q, ok := m.(*pgproto3.Query)
				if err != nil || !ok {
					return
				}
				if _, err := pg.Parse(q.String); err != nil {
					back.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "54001", Message: "refused"})
				} else {
					back.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 0")})
				}
				back.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			}
		}()
	}
}
