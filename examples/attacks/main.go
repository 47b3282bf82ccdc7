// Attacks tries to find out who is ill in the ward of patients.sql, by plain SQL that any PostgreSQL client can send:
//
//	go run ./examples/attacks -target raw   -url postgres://postgres@127.0.0.1:5432/ward
//	go run ./examples/attacks -target proxy -url postgres://mallory:analyst@127.0.0.1:6432/ward -attack reconstruction
//
// Against the database itself every attack finds everybody. Against dpproxy in front of the same database they end
// where privacy's theorem says that they must: an analyst whose budget is ε names a patient's secret rightly with a
// probability of at most e^ε/(1+e^ε), whatever she asks. `make attacks` starts both and runs everything (README.md).
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

func main() {
	name := flag.String("attack", "", "one of "+strings.Join(names(), ", ")+"; all of them if left out, one after the other on one budget")
	target := flag.String("target", "raw", "raw: the database itself; proxy: dpproxy in front of it")
	url := flag.String("url", "", "connection string of the target")
	truth := flag.String("truth", "", "connection string of the database itself, to score the guesses; without it -url is asked")
	budget := flag.Float64("epsilon", 1, "what the attacker's budget is: she spreads it over her questions")
	seed := flag.Uint64("seed", 1, "of the attacker's coins")
	flag.Parse()
	if err := run(*name, *target, *url, *truth, *budget, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "attacks:", err)
		os.Exit(1)
	}
}

func names() (list []string) {
	for _, a := range attacks {
		list = append(list, a.name)
	}
	return list
}

func run(name, target, url, truth string, budget float64, seed uint64) error {
	if target != "raw" && target != "proxy" {
		return fmt.Errorf("-target is %q, must be raw or proxy", target)
	}
	if url == "" {
		return fmt.Errorf("-url is missing: whom to attack")
	}
	if truth == "" && target == "raw" {
		truth = url
	}
	ctx := context.Background()
	for _, a := range attacks {
		if name != "" && a.name != name {
			continue
		}
		v, err := meet(ctx, url, budget, rand.New(rand.NewPCG(seed, 0)))
		if err != nil {
			return err
		}
		guess, err := a.run(ctx, v)
		v.conn.Close(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		fmt.Printf("%-15s %-6s %s\n", a.name, target, v.said())
		if truth == "" {
			continue
		}
		ill, err := secrets(ctx, truth)
		if err != nil {
			return err
		}
		fmt.Printf("%-15s %-6s %.1f %% of %d patients guessed rightly\n", "", "", 100*score(guess, ill), beds)
	}
	return nil
}

// beds is how many secrets there are, one a bed.
const beds = 128

// victim is a connection to whoever is attacked, and what the attacker keeps in mind.
type victim struct {
	conn     *pgx.Conn
	r        *rand.Rand // the attacker's own coins
	budget   float64    // that she believes to have
	asked    int
	answered int
	why      string // the first refusal
}

// meet connects to a victim.
func meet(ctx context.Context, url string, budget float64, r *rand.Rand) (*victim, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &victim{conn: conn, r: r, budget: budget}, nil
}

// spread sets what each of so many questions may cost. PostgreSQL itself takes the setting too, and ignores it.
func (v *victim) spread(ctx context.Context, questions int) error {
	micro := max(int(v.budget*1e6)/questions, 1)
	_, err := v.conn.Exec(ctx, "SET dp.epsilon = "+strconv.FormatFloat(float64(min(micro, 1_000_000))/1e6, 'f', 6, 64))
	return err
}

// ask asks for a number. A refusal is an answer too: ok is false.
func (v *victim) ask(ctx context.Context, sql string) (n float64, ok bool) {
	v.asked++
	if err := v.conn.QueryRow(ctx, sql).Scan(&n); err != nil {
		if v.why == "" {
			v.why, _, _ = strings.Cut(err.Error(), "\n")
		}
		return 0, false
	}
	v.answered++
	return n, true
}

// said is what the victim had to say.
func (v *victim) said() string {
	s := fmt.Sprintf("%d questions, %d answered", v.asked, v.answered)
	if v.why != "" {
		s += "; the others: " + v.why
	}
	return s
}

// coins are guesses of somebody who knows nothing.
func (v *victim) coins() []bool {
	guess := make([]bool, beds)
	for i := range guess {
		guess[i] = v.r.IntN(2) == 0
	}
	return guess
}

// secrets reads what is so, to score the guesses.
func secrets(ctx context.Context, url string) ([]bool, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT ill FROM patients ORDER BY bed")
	if err != nil {
		return nil, err
	}
	ill, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	if err == nil && len(ill) != beds {
		err = fmt.Errorf("%d patients, must be %d", len(ill), beds)
	}
	return ill, err
}

// score is the share of guesses that are right.
func score(guess, truth []bool) float64 {
	right := 0
	for i := range truth {
		if guess[i] == truth[i] {
			right++
		}
	}
	return float64(right) / float64(len(truth))
}
