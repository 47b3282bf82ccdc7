package ledger

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

const childEnv = "DPPROXY_LEDGER_CHILD"

// killed is the dataset of the kill test: no limit is reached in it.
func killed() DatasetTerms {
	d := census()
	d.Cap, d.Budgets = eps(1e15), map[string]BudgetTerms{"*": {Limit: eps(1e15)}}
	return d
}

// child charges and saves on four goroutines, noting each thing done in a journal, until it is killed.
func child() {
	path := os.Getenv(childEnv)
	l, err := Open(ctx, "sqlite:"+path, Options{})
	if err == nil {
		err = l.Adopt(ctx, terms(killed()))
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	journal, err := os.OpenFile(path+"-journal-of-test", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(1)
	}
	fmt.Println("ready")
	var wg sync.WaitGroup
	for g := range 4 {
		user := fmt.Sprintf("user%d", g)
		wg.Go(func() {
			for n := int64(1); ; n++ {
				it := item(byte(g), eps(1+n%7))
				it.Digest[30], it.Digest[31] = byte(n>>8), byte(n)
				it.Refresh = time.Nanosecond // each one is another epoch
				out, err := l.Charge(ctx, request(user, it))
				if err != nil || out[0].Receipt == nil {
					fmt.Println("charge", err)
					os.Exit(1)
				}
				fmt.Fprintf(journal, "charged %s %d\n", user, it.Cost.Epsilon.Micro())
				if n%2 == 0 {
					out[0].Receipt.Spend(it.Digest)
					id, err := l.Save(ctx, out[0].Receipt, mechanisms.Drawn{Noisy: noisy(n)})
					if err != nil {
						os.Exit(1)
					}
					fmt.Fprintf(journal, "saved %s %d %d\n", user, id, n)
				}
			}
		})
	}
	wg.Wait()
}

// T25: killed at a random moment, again and again: what the journal says was charged is charged, what it says was saved
// is there, at most what was in flight is charged beyond it, and the ledger opens each time.
func TestKilled(t *testing.T) {
	path := place(t)
	random := rand.New(rand.NewPCG(2, 25))
	rounds := threats.Length(12, 500)
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+path)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		said, _ := bufio.NewReader(out).ReadString('\n')
		if said != "ready\n" {
			t.Fatalf("round %d: the child says %q", round, said)
		}
		time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		checkJournal(t, path, 4*(round+1))
	}
}

func checkJournal(t *testing.T, path string, inFlight int) {
	t.Helper()
	f := open(t, path, Options{})
	defer f.Close()
	verify(t, f)
	p, err := os.ReadFile(path + "-journal-of-test")
	if err != nil {
		t.Fatal(err)
	}
	charged, lines := map[string]int64{}, 0
	for _, line := range strings.Split(strings.TrimSpace(string(p)), "\n") {
		var user string
		var a, b int64
		if n, _ := fmt.Sscanf(line, "saved %s %d %d", &user, &a, &b); n == 3 {
			got, err := f.Load(ctx, user, a)
			if err != nil || got.Noisy.Value().Observations[0] != b {
				t.Fatalf("%s: %+v, %v", line, got, err)
			}
		} else if n, _ := fmt.Sscanf(line, "charged %s %d", &user, &a); n == 2 {
			charged[user] += a
			lines++
		}
	}
	total := int64(0)
	for user, sum := range charged {
		own, pool := spent(t, f, user)
		if own < sum {
			t.Fatalf("%s: the journal has %d, the ledger %d", user, sum, own)
		}
		total = pool
	}
	all, err := f.Charges(ctx, "", "census", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	sum := privacy.Cost{}
	for _, c := range all {
		sum = sum.Plus(c.Cost)
	}
	if extra := len(all) - lines; extra < 0 || extra > inFlight || sum.Epsilon.Micro() != total {
		t.Fatalf("%d charges without a line in %s; they sum to %v, the cap says %d", extra, filepath.Base(path), sum, total)
	}
}
