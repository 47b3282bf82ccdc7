package hostile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// The storm's clients are a process of their own: in one with the other analyst's they would slow her own client, which
// is no work of dpproxy's. They run at no lower priority, lest a slow client be a mild storm. A storm has begun when
// all its sessions are logged in, for what fifty log-ins take is the clients' own: 4,096 rounds of a hash each.

// stormVariable names the file that holds what a storm is made of.
const stormVariable = "DPPROXY_HOSTILE_STORM"

type stormPlan struct {
	URL      string
	Seed     uint64
	Sessions int
	Texts    []string
}

// stormTold is what a storm tells of itself at its end.
type stormTold struct {
	Sent, Lost int
	States     map[string]int // by SQLSTATE
}

func (s stormTold) String() string {
	var list []string
	for state, n := range s.States {
		list = append(list, fmt.Sprintf("%s: %d", cmp.Or(state, "answered"), n))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// begin lets a storm loose. end ends it.
func begin(t *testing.T, s *shop, seed uint64, sessions int, texts []string) (end func() stormTold) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "storm.json")
	plan, err := json.Marshal(stormPlan{s.URL("mallory", "shop"), seed, sessions, texts})
	if err == nil {
		err = os.WriteFile(path, plan, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env, cmd.Stderr = append(os.Environ(), stormVariable+"="+path), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
	})
	out := json.NewDecoder(pipe)
	var loggedIn int
	if err := out.Decode(&loggedIn); err != nil || loggedIn != sessions {
		t.Fatalf("%d sessions of the storm are logged in: %v", loggedIn, err)
	}
	return func() (told stormTold) {
		_ = in.Close()
		if err := out.Decode(&told); err != nil || told.Sent == 0 {
			t.Errorf("the storm tells %v: %v", told, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the storm's process: %v", err)
		}
		return told
	}
}

// storm is the main function of its process: it ends when its input does.
func storm(path string) int {
	var plan stormPlan
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &plan)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, calm := context.WithCancel(context.Background())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		calm()
	}()
	told := stormTold{States: map[string]int{}}
	var mu sync.Mutex
	var wait, loggedIn sync.WaitGroup
	loggedIn.Add(plan.Sessions)
	for i := range plan.Sessions {
		wait.Go(func() {
			c := plan.connect(ctx)
			loggedIn.Done()
			plan.session(ctx, c, rand.New(rand.NewPCG(plan.Seed, uint64(i))), func(state string) {
				mu.Lock()
				defer mu.Unlock()
				told.Sent++
				told.States[state]++
				if state == "lost" && ctx.Err() == nil {
					told.Lost++
				}
			})
		})
	}
	out := json.NewEncoder(os.Stdout)
	loggedIn.Wait()
	err = out.Encode(plan.Sessions)
	wait.Wait()
	if err := errors.Join(err, out.Encode(told)); err != nil {
		return 1
	}
	return 0
}

// connect opens a session, however often it has to try. It returns nil when ctx ends.
func (p *stormPlan) connect(ctx context.Context) *pgconn.PgConn {
	for ctx.Err() == nil {
		if c, err := pgconn.Connect(ctx, p.URL); err == nil {
			return c
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// session sends statements until ctx ends, whatever becomes of them.
func (p *stormPlan) session(ctx context.Context, c *pgconn.PgConn, r *rand.Rand, tell func(state string)) {
	for ctx.Err() == nil {
		if c.IsClosed() {
			if c = p.connect(ctx); c == nil {
				return
			}
		}
		state := asked(ctx, c, p.Texts[r.IntN(len(p.Texts))])
		if tell(state); state == "25P02" || r.IntN(8) == 0 { // else what it opened stays open
			asked(ctx, c, "ROLLBACK")
		}
	}
	if c != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c.Close(ctx)
	}
}
