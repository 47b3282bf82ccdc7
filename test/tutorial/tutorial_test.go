// Package tutorial does what docs/tutorial.md and docs/tutorial-clinic.md tell a newcomer to do, against a real
// PostgreSQL server and the real dpproxy, and holds what comes of it against what the pages show.
package tutorial

import (
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m, nil)) }

const (
	shellPrompt  = "$ "
	psqlPrompt   = "=> " // after the database's name
	psqlContinue = "-> "
	unrun        = "# On your machine" // the first line of a part that the test does otherwise
	login        = "PGPASSWORD=sesame psql -h 127.0.0.1 -p 6432 -U alice "
	database     = "127.0.0.1:5432" // as the page writes it
	proxy        = "127.0.0.1:6432"
)

// TestTutorial runs each command, edit and statement of a page in its order. Each must be answered, with what the
// page shows: the same words, columns, groups and notices; numbers may differ, but where an answer tells its error, by
// no more than that explains. With -update it writes what comes of them.
func TestTutorial(t *testing.T) { follow(t, "../../docs/tutorial.md", "shop") }

// TestTutorialOfTheClinic does so with the page of the clinic.
func TestTutorialOfTheClinic(t *testing.T) { follow(t, "../../docs/tutorial-clinic.md", "clinic") }

// follow does what a page says of an example, whose database has its name.
func follow(t *testing.T, page, example string) {
	kit.Beside(t)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	n := newcomerIn(t, example)
	written := n.follow(string(text))
	if n.commands < 8 || n.statements < 12 || n.edits < 1 {
		t.Errorf("%d commands, %d statements, %d edits were found: the page is read wrongly", n.commands, n.statements, n.edits)
	}
	if *kit.Update {
		if err := os.WriteFile(page, []byte(written), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// newcomer follows the page in a directory of her own.
type newcomer struct {
	t          *testing.T
	example    string
	dir        string
	env        []string
	here, page *strings.Replacer // from the page's addresses to the test's, and back
	address    string            // of her proxy
	serving    *exec.Cmd
	psql       *kit.Psql

	commands, statements, edits int
}

func newcomerIn(t *testing.T, example string) *newcomer {
	t.Helper()
	server := pgtest.Start(t)
	executable, err := kit.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.Symlink(executable, filepath.Join(bin, "dpproxy")); err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("../../examples/" + example + "/*.sql")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts of %s: %v", example, err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port, free := strconv.Itoa(server.Port), freePort(t)
	n := &newcomer{t: t, example: example, dir: dir, address: "127.0.0.1:" + free}
	n.here = strings.NewReplacer(database, "127.0.0.1:"+port, proxy, n.address)
	n.page = strings.NewReplacer("127.0.0.1:"+port, database, n.address, proxy)
	n.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "PGHOST=127.0.0.1", "PGPORT="+port, "PGUSER=postgres", "PGSSLMODE=prefer", "LC_ALL=C.UTF-8")
	t.Cleanup(n.stop)
	return n
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// follow does what a page says, and returns the page with what came of it.
func (n *newcomer) follow(text string) string {
	n.t.Helper()
	var written strings.Builder
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		written.WriteString(line)
		if !strings.HasPrefix(line, "```") {
			continue
		}
		end := i + 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "```") {
			end++
		}
		if end == len(lines) {
			n.t.Fatalf("line %d: a fence that nothing closes", i+1)
		}
		written.WriteString(n.part(strings.TrimSpace(line[3:]), lines[i+1:end]))
		written.WriteString(lines[end])
		i = end
	}
	return written.String()
}

// part does what one fenced part says. Each is of a kind that it knows, so that nothing is in the page that was not
// tried.
func (n *newcomer) part(kind string, lines []string) string {
	n.t.Helper()
	switch {
	case strings.HasPrefix(lines[0], unrun):
		return strings.Join(lines, "")
	case kind == "diff":
		n.edit(lines)
		return strings.Join(lines, "")
	}
	var written strings.Builder
	for len(lines) > 0 {
		command, of, rest := n.prompted(lines)
		if command == "" {
			n.t.Fatalf("a part of the page begins with %q, which is no prompt, no edit, and not marked as not run", lines[0])
		}
		out := 0
		for out < len(rest) && !n.prompts(rest[out]) {
			out++
		}
		written.WriteString(strings.Join(lines[:of], ""))
		written.WriteString(n.compare(command, strings.Join(rest[:out], ""), n.page.Replace(n.answer(lines[0], command))))
		lines = rest[out:]
	}
	return written.String()
}

// prompted is the command or statement that some lines begin with, how many lines it has, and what follows.
func (n *newcomer) prompted(lines []string) (command string, of int, rest []string) {
	for _, prompt := range []string{shellPrompt, n.example + psqlPrompt} {
		if after, ok := strings.CutPrefix(lines[0], prompt); ok {
			command, of = strings.TrimSpace(after), 1
		}
	}
	for of > 0 && of < len(lines) && strings.HasPrefix(lines[of], n.example+psqlContinue) {
		command += "\n" + strings.TrimSpace(strings.TrimPrefix(lines[of], n.example+psqlContinue))
		of++
	}
	return command, of, lines[of:]
}

// prompts reports whether a line begins with a prompt.
func (n *newcomer) prompts(line string) bool {
	return strings.HasPrefix(line, shellPrompt) || strings.HasPrefix(line, n.example+psqlPrompt)
}

// answer runs a command of the shell or a statement.
func (n *newcomer) answer(line, command string) string {
	n.t.Helper()
	if strings.HasPrefix(line, n.example+psqlPrompt) {
		n.statements++
		if n.psql == nil {
			n.t.Fatalf("%s: before the page has logged in", command)
		}
		return n.psql.Run(command)
	}
	n.commands++
	switch {
	case command == login+n.example:
		n.psql = kit.StartPsqlWith(n.t, n.address, "alice", "sesame", n.example)
		return ""
	case command == "kill %1":
		n.stop()
		return ""
	case strings.HasSuffix(command, " &"):
		n.serve(strings.TrimSuffix(command, " &"))
		return ""
	}
	cmd := exec.CommandContext(n.t.Context(), "bash", "-o", "pipefail", "-c", n.here.Replace(command))
	cmd.Dir, cmd.Env = n.dir, n.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	if strings.HasPrefix(command, "dpproxy init") { // the proxy listens where nobody else does
		path := filepath.Join(n.dir, "policy.yaml")
		kit.Edit(n.t, path, proxy, n.address)
	}
	return string(out)
}

// serve starts a command that goes on, and waits until it listens.
func (n *newcomer) serve(command string) {
	n.t.Helper()
	n.serving = exec.Command("bash", "-c", "exec "+n.here.Replace(command))
	n.serving.Dir, n.serving.Env = n.dir, n.env
	if err := n.serving.Start(); err != nil {
		n.t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if c, err := net.Dial("tcp", n.address); err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(n.dir, "serve.log"))
			n.t.Fatalf("%s does not listen:\n%s", command, log)
		}
	}
}

func (n *newcomer) stop() {
	if n.serving != nil && n.serving.Process != nil {
		_ = n.serving.Process.Signal(syscall.SIGTERM)
		_ = n.serving.Wait()
	}
	n.serving, n.psql = nil, nil
}

// edit makes the changes of policy.yaml that a part shows: lines that begin with - become those that follow with +.
func (n *newcomer) edit(lines []string) {
	n.t.Helper()
	path := filepath.Join(n.dir, "policy.yaml")
	for len(lines) > 0 {
		before, rest := marked(lines, "-")
		after, rest := marked(rest, "+")
		policy, err := os.ReadFile(path)
		if times := strings.Count(string(policy), before); err != nil || before == "" || after == "" || times != 1 {
			n.t.Fatalf("%v: the policy has %q %d times, for %q:\n%s", err, before, times, lines[0], policy)
		}
		n.edits++
		kit.Edit(n.t, path, before, after)
		lines = rest
	}
}

// marked are the first lines that begin with a mark, without it, and the rest.
func marked(lines []string, mark string) (text string, rest []string) {
	for len(lines) > 0 && strings.HasPrefix(lines[0], mark) {
		text, lines = text+lines[0][1:], lines[1:]
	}
	return strings.TrimSpace(text), lines
}

var (
	number  = regexp.MustCompile(`-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?`)
	blanks  = regexp.MustCompile(`[ \t]+`)
	dashes  = regexp.MustCompile(`-{2,}`)
	errorOf = regexp.MustCompile(`error ±([\d.]+) a value`)
	rule    = regexp.MustCompile(`^[-+]+$`)
)

// shape is an answer without its numbers and the width of its columns.
func shape(out string) string {
	out = number.ReplaceAllString(kit.BesideValues(out), "#")
	return dashes.ReplaceAllString(blanks.ReplaceAllString(out, " "), "-")
}

// compare holds an answer against the one that the page shows, and returns what the page should show.
func (n *newcomer) compare(command, shown, now string) string {
	n.t.Helper()
	if *kit.Update {
		return now
	}
	if a, b := shape(shown), shape(now); a != b {
		n.t.Errorf("%s\nnow prints:\n%s\nthe page shows:\n%s", command, now, shown)
		return shown
	}
	if e := errorOf.FindStringSubmatch(now); e != nil && strings.HasPrefix(now, "NOTICE") {
		width, _ := strconv.ParseFloat(e[1], 64)
		if strings.Contains(now, "add up to") { // clamps differ, by how far either is off and by what is above one
			was, _ := strconv.ParseFloat(errorOf.FindStringSubmatch(shown)[1], 64)
			width = 2 * max(width, was)
		}
		if err := near(cells(shown), cells(now), 4*width); err != nil {
			n.t.Errorf("%s: %v, and the answer says ±%g\nnow:\n%s\nthe page:\n%s", command, err, width, now, shown)
		}
	}
	return shown
}

// cells are the rows of the table that psql has printed, its head first.
func cells(out string) (rows [][]string) {
	lines := strings.Split(out, "\n")
	for i := 1; i < len(lines); i++ {
		if !rule.MatchString(lines[i]) {
			continue
		}
		rows = append(rows, split(lines[i-1]))
		for _, line := range lines[i+1:] {
			if strings.HasPrefix(line, "(") {
				break
			}
			rows = append(rows, split(line))
		}
		return rows
	}
	return nil
}

func split(line string) []string {
	list := strings.Split(line, "|")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// near reports whether two draws of one answer differ by no more than within. 4 half-widths of 95 % are more than five
// standard deviations of a difference: fewer than one run in a million fails by chance for each cell.
func near(page, now [][]string, within float64) error {
	if len(page) != len(now) || len(page) == 0 {
		return fmt.Errorf("%d rows became %d", len(page)-1, len(now)-1)
	}
	for r := 1; r < len(page); r++ {
		for c := range min(len(page[r]), len(now[r])) {
			a, err := strconv.ParseFloat(page[r][c], 64)
			b, err2 := strconv.ParseFloat(now[r][c], 64)
			if err != nil || err2 != nil {
				if (err == nil) != (err2 == nil) || err != nil && page[r][c] != now[r][c] {
					return fmt.Errorf("row %d: %q became %q", r, page[r][c], now[r][c])
				}
				continue
			}
			if math.Abs(a-b) > within {
				return fmt.Errorf("row %d: %g became %g", r, a, b)
			}
		}
	}
	return nil
}

// TestFaultsAreSeen: an answer of another shape, another group and a figure too far away are.
func TestFaultsAreSeen(t *testing.T) {
	out := "NOTICE:  cost ε 0.1; error ±10 a value at 95 %\n name | count \n------+-------\n a    |    70 \n b    |   -12 \n(2 rows)\n"
	for changed, same := range map[[2]string]bool{
		{"   70 ", " 1,04 "}: true, {"-12 ", "  3 "}: true, {"count", "total"}: false, {" b    |   -12 \n", ""}: false, {"NOTICE", "ERROR"}: false, {" b ", " c "}: false,
	} {
		other := strings.Replace(out, changed[0], changed[1], 1)
		if other == out || (shape(other) == shape(out)) != same {
			t.Errorf("%q for %q: the same shape is %v", changed[1], changed[0], !same)
		}
	}
	for changed, near40 := range map[[2]string]bool{{"   70", "  109"}: true, {"   70", "  111"}: false, {"  -12", "  -53"}: false, {" b ", " c "}: false} {
		if err := near(cells(out), cells(strings.Replace(out, changed[0], changed[1], 1)), 40); (err == nil) != near40 {
			t.Errorf("%q for %q: %v", changed[1], changed[0], err)
		}
	}
}
