package kit

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Psql is a real psql whose statements are fed one by one.
type Psql struct {
	t     *testing.T
	in    io.WriteCloser
	out   chan string
	notes chan string
}

// StartPsql starts a real psql against a proxy, as a user whose password is her name; without one on the machine the
// test is skipped.
func StartPsql(t *testing.T, address, user, dataset string) *Psql {
	t.Helper()
	return StartPsqlWith(t, address, user, user, dataset)
}

// StartPsqlWith does it for a user with another password.
func StartPsqlWith(t *testing.T, address, user, password, dataset string) *Psql {
	t.Helper()
	path, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("no psql on this machine")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-X", "-h", host, "-p", port, "-U", user, dataset)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password, "PAGER=", "PGSSLMODE=prefer", "LC_ALL=C.UTF-8", "PGCLIENTENCODING=UTF8")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	notes, _ := cmd.StderrPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &Psql{t: t, in: in, out: lines(out), notes: lines(notes)}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return s
}

func lines(r io.Reader) chan string {
	c := make(chan string, 1000)
	go func() {
		scan := bufio.NewScanner(r)
		scan.Buffer(nil, 1<<22)
		for scan.Scan() {
			c <- scan.Text()
		}
		close(c)
	}()
	return c
}

const endMark = "--end-of-answer--"

// Run feeds one statement or backslash command and returns what psql printed: standard error first, as a terminal shows
// notices before rows.
func (s *Psql) Run(statement string) string {
	s.t.Helper()
	fmt.Fprintf(s.in, "%s\n\\echo %s\n\\warn %s\n", statement, endMark, endMark)
	var text strings.Builder
	for _, stream := range []chan string{s.notes, s.out} {
		for done := false; !done; {
			select {
			case line, open := <-stream:
				if !open {
					s.t.Fatalf("%s: psql ended:\n%s", statement, text.String())
				}
				if done = line == endMark; !done {
					text.WriteString(line + "\n")
				}
			case <-time.After(60 * time.Second):
				s.t.Fatalf("%s: no answer from psql:\n%s", statement, text.String())
			}
		}
	}
	return text.String()
}
