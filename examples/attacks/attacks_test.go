package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

var (
	runs = flag.Int("attack-runs", 0, "runs of each attack, each with secrets and a budget of its own; 0: one, and five of the reconstruction")
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m, nil)) }

// targets are whom the attacks are tried on. Of careless there is a ledger that never says no, at ε = 1 a question.
var targets = []string{"PostgreSQL itself", "dpproxy, ε = 1 a question, no end", "dpproxy, ε = 1 in all"}

// most is the share of secrets that nobody whose budget is ε = 1 can expect to name rightly, and its standard error of
// a run.
var (
	most   = math.E / (1 + math.E)
	ofAnst = math.Sqrt(most * (1 - most) / beds)
)

// TestAttacks runs every attack against the database itself, where it finds everybody, and through dpproxy, where it
// does not. The mean of the reconstruction's five runs at ε = 1 is at most 0.60, where 0.52 is expected (false alarm
// 3e-5, from 640 fair bits); no run of anything is above e/(1+e) by more than three standard errors (1e-3 of the
// histogram's, less of the others).
func TestAttacks(t *testing.T) {
	const seed = 20
	t.Logf("seed %d", seed)
	w := open(t)
	reached := map[string][]outcome{} // by attack: one outcome a target
	for _, a := range attacks {
		n := *runs
		if n == 0 {
			n = 1
			if a.name == "reconstruction" {
				n = 5
			}
		}
		for i, target := range targets {
			var o outcome
			for run := range n {
				v := w.meet(t, i, seed*1000+uint64(run))
				guess, err := a.run(t.Context(), v)
				if err != nil {
					t.Fatal(err)
				}
				v.conn.Close(t.Context())
				o.add(score(guess, w.ill), v)
				if i < 2 {
					break // there is no budget that runs shall not share: once is enough
				}
			}
			reached[a.name] = append(reached[a.name], o)
			t.Logf("%-15s %-35s mean %.3f, most %.3f of %d runs; %d questions, %d answered; %s", a.name, target, o.mean(), o.most(), len(o.scores), o.asked, o.answered, o.why)
		}
	}
	judge(t, reached)
	of := reached["reconstruction"]
	threats.Reached(t, "T65", "raw %.1f %%; ε 1 a question without an end %.1f %%; ε 1 in all %.3f in the mean of %d runs, at most %.3f", 100*of[0].mean(), 100*of[1].mean(), of[2].mean(), len(of[2].scores), of[2].most())
	if *kit.Update {
		publish(t, reached)
	}
}

// outcome is what an attack reached on a target.
type outcome struct {
	scores          []float64
	asked, answered int
	why             string
}

func (o *outcome) add(score float64, v *victim) {
	o.scores = append(o.scores, score)
	o.asked, o.answered = o.asked+v.asked, o.answered+v.answered
	if o.why == "" {
		o.why = v.why
	}
}

func (o outcome) mean() float64 {
	sum := 0.0
	for _, s := range o.scores {
		sum += s
	}
	return sum / float64(len(o.scores))
}

func (o outcome) most() (most float64) {
	for _, s := range o.scores {
		most = max(most, s)
	}
	return most
}

// judge holds the figures against what must be.
func judge(t *testing.T, reached map[string][]outcome) {
	t.Helper()
	for name, of := range reached {
		if raw := of[0].mean(); raw < 0.99 && (name != "timing" || raw < 0.9) { // the clock of a busy machine errs
			t.Errorf("%s finds %.3f of the secrets in the database itself: the attack shows nothing", name, raw)
		}
		if held := of[2].most(); held > most+3*ofAnst {
			t.Errorf("%s: %.3f of the secrets at ε = 1, at most %.3f are right", name, held, most+3*ofAnst)
		}
	}
	of := reached["reconstruction"]
	if of[1].mean() < 0.99 {
		t.Errorf("without an end of the budget the reconstruction finds %.3f of the secrets: the noise alone must not be what repels it", of[1].mean())
	}
	if of[2].mean() > 0.60 {
		t.Errorf("the reconstruction finds %.3f of the secrets at ε = 1", of[2].mean())
	}
}

// ward is a ward, its database, and dpproxy in front of it.
type ward struct {
	ill   []bool
	raw   string
	proxy string // address
	users int
}

// attackers is how many analysts the policy has, each with a budget of her own.
const attackers = 200

// meet connects an attacker who has asked nothing yet to a target.
func (w *ward) meet(t *testing.T, target int, seed uint64) *victim {
	t.Helper()
	url, budget := w.raw, 1.0
	if target > 0 {
		if w.users++; w.users > attackers {
			t.Fatal("more runs than attackers")
		}
		name := fmt.Sprintf("mallory%d", w.users)
		if target == 1 {
			name, budget = fmt.Sprintf("careless%d", w.users), 1e5
		}
		url = fmt.Sprintf("postgres://%s:analyst@%s/ward?sslmode=disable", name, w.proxy)
	}
	v, err := meet(t.Context(), url, budget, rand.New(rand.NewPCG(seed, 0)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// open makes the ward and starts dpproxy.
func open(t *testing.T) *ward {
	t.Helper()
	server := pgtest.Shared(t)
	role := server.Role(t, "")
	database := server.Database(t)
	script, err := os.ReadFile("patients.sql")
	if err != nil {
		t.Fatal(err)
	}
	server.Exec(t, database, `SELECT setseed(0.5)`, string(script), `GRANT SELECT ON patients TO `+role)
	w := &ward{raw: server.URLFor("postgres", database)}
	if w.ill, err = secrets(t.Context(), w.raw); err != nil {
		t.Fatal(err)
	}
	w.proxy = serve(t, server.URLFor(role, database))
	return w
}

var listening = regexp.MustCompile(`msg=listening address=(\S+)`)

// serve starts dpproxy on the ward's policy, in which mallory and careless are many.
func serve(t *testing.T, backend string) (address string) {
	t.Helper()
	dir := memory.Dir(t)
	text, err := os.ReadFile("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	replaced := strings.NewReplacer("${WARD}", backend, "127.0.0.1:6432", "127.0.0.1:0").Replace(string(text))
	replaced = regexp.MustCompile(`(?m)^ +(- \{name: )?(mallory|careless)[,:].*\n`).ReplaceAllStringFunc(replaced, func(line string) (many string) {
		for i := range attackers {
			many += regexp.MustCompile(`mallory|careless`).ReplaceAllString(line, fmt.Sprintf("${0}%d", i+1))
		}
		return many
	})
	path := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(path, []byte(replaced), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := kit.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), program, "serve", "--policy", path)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, said := bufio.NewScanner(stderr), ""
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
		<-ended
		_ = cmd.Wait()
	})
	for address == "" && lines.Scan() {
		said += lines.Text() + "\n"
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
	}
	go func() {
		defer close(ended)
		for lines.Scan() { // what it logs later is of no interest, but must not block it
		}
	}()
	if address == "" {
		t.Fatal("dpproxy does not listen:\n", said)
	}
	return address
}
