package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/service"
)

// demo is what `dpproxy demo` was asked for.
type demo struct {
	dir, listen string
	console     string // empty: two thousand ports above listen
	rows        int
	fresh       bool
	quiet       bool // --log-level was left alone: warnings only
	out         io.Writer
}

func demoCommand() *cobra.Command {
	d := demo{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a proxy over a generated population, with everything it needs",
		Long: `Generates a population in an embedded DuckDB file, writes a policy with the users analyst/analyst and dba/dba, and
serves it. What analysts spend stays in the ledger under --dir; --fresh starts anew.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.out, d.quiet = cmd.OutOrStdout(), !cmd.Flags().Changed("log-level")
			return d.run(cmd.Context(), logger(cmd))
		},
	}
	cmd.Flags().IntVar(&d.rows, "rows", 1_000_000, "people to generate")
	cmd.Flags().StringVar(&d.listen, "listen", "127.0.0.1:6432", "address to listen on")
	cmd.Flags().StringVar(&d.console, "console", "", "address of the console's pages (default: 2000 ports above --listen, 127.0.0.1:8432)")
	cmd.Flags().StringVar(&d.dir, "dir", "demo", "directory of the data, the policy and the ledger")
	cmd.Flags().BoolVar(&d.fresh, "fresh", false, "throw away what is in --dir first")
	return cmd
}

// demoFiles are what the demo writes under --dir, and so what --fresh may remove. The ledger's locks stay: a lock that
// is removed holds nobody off.
var demoFiles = []string{"policy.yaml", "warehouse.duckdb", "warehouse.duckdb.partial", "warehouse.duckdb.wal",
	"dpproxy.ledger", "dpproxy.ledger-secret", "dpproxy.ledger-shm", "dpproxy.ledger-wal", "dpproxy.ledger-witness"}

func (d *demo) run(ctx context.Context, log *slog.Logger) error {
	if d.rows < 1 || d.rows > 100_000_000 {
		return exitCode{2, fmt.Errorf("--rows is %d, must be between 1 and 100000000", d.rows)}
	}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	served := log
	if d.quiet {
		served = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	return service.Run(ctx, filepath.Join(d.dir, "policy.yaml"), ledger.Options{}, served, func(address string) {
		log.Info("listening", "address", address)
		d.welcome(address)
	})
}

// prepare makes what is missing under --dir.
func (d *demo) prepare(ctx context.Context) error {
	if err := d.alone(ctx); err != nil {
		return err
	}
	if d.fresh {
		if err := d.clear(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	if err := d.agree(); err != nil {
		return err
	}
	if err := d.reachable(); err != nil {
		return err
	}
	warehouse := filepath.Join(d.dir, "warehouse.duckdb")
	if _, err := os.Stat(warehouse); errors.Is(err, fs.ErrNotExist) {
		if err := generate(ctx, warehouse, d.rows, d.out); err != nil {
			return err
		}
	}
	path := filepath.Join(d.dir, "policy.yaml")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	analyst, err := policy.Verifier("analyst", rand.Reader)
	if err != nil {
		return err
	}
	dba, err := policy.Verifier("dba", rand.Reader)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(demoPolicy(d.listen, d.pages(), d.rows, analyst, dba)), 0o600)
}

// alone refuses a directory in which another demo is running.
func (d *demo) alone(ctx context.Context) error {
	path := filepath.Join(d.dir, "dpproxy.ledger")
	if _, err := os.Stat(path); err != nil {
		return nil // there is no ledger that anybody could have open
	}
	l, err := ledger.Open(ctx, "sqlite:"+path, ledger.Options{})
	if errors.Is(err, ledger.ErrLocked) {
		return fmt.Errorf("another demo runs in %s: stop it, or take another --dir and --listen", d.dir)
	}
	if err != nil {
		return nil // serve says what is wrong with it, and --fresh may throw it away
	}
	return l.Close()
}

// pages is the console's address.
func (d *demo) pages() string {
	if d.console != "" {
		return d.console
	}
	host, port, err := net.SplitHostPort(d.listen)
	if err != nil {
		return ""
	}
	if n, err := strconv.Atoi(port); err == nil && n > 0 && n+consoleAbove < 1<<16 {
		port = strconv.Itoa(n + consoleAbove)
	} else {
		port = "0"
	}
	return net.JoinHostPort(host, port)
}

// consoleAbove is how far the console's port lies above the wire's.
const consoleAbove = 2000

// reachable refuses an address that cannot be listened on, before anything is generated or kept under it.
func (d *demo) reachable() error {
	l, err := net.Listen("tcp", d.listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is taken by another program: stop it, or name another address, such as --listen 127.0.0.1:6433 --dir demo2", d.listen)
	case err != nil:
		return fmt.Errorf("--listen: %w", err)
	}
	return l.Close()
}

// agree refuses flags that contradict what an earlier run wrote.
func (d *demo) agree() error {
	p, err := policy.Read(filepath.Join(d.dir, "policy.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if p.Server.Listen != d.listen {
		return fmt.Errorf("%s says listen: %s; edit it, or start anew with --fresh", p.Path, p.Server.Listen)
	}
	if d.console != "" && p.Server.Console != d.console {
		return fmt.Errorf("%s says console: %s; edit it, or start anew with --fresh", p.Path, p.Server.Console)
	}
	if t := p.Datasets[0].Table("", "people"); t == nil || t.ExpectedRows != int64(d.rows) {
		return fmt.Errorf("%s holds another number of people; start anew with --fresh", d.dir)
	}
	return nil
}

func (d *demo) clear() error {
	for _, pattern := range demoFiles {
		files, err := filepath.Glob(filepath.Join(d.dir, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := os.Remove(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// welcome prints how to connect and what to try.
func (d *demo) welcome(address string) {
	host, port, _ := net.SplitHostPort(address)
	fmt.Fprintf(d.out, `
dpproxy listens on %s. In another terminal:

  PGPASSWORD=analyst psql -h %s -p %s -U analyst demo

and try:

%s
%sThe policy is %s; psql -U dba (password dba) sees every budget. Ctrl-C stops.
`, address, host, port, "  "+strings.Join(demoQueries, "\n  ")+"\n", d.consoleLine(), filepath.Join(d.dir, "policy.yaml"))
}

// consoleLine names the console, where the policy that is served has one at a known port.
func (d *demo) consoleLine() string {
	p, err := policy.Read(filepath.Join(d.dir, "policy.yaml"))
	if err != nil || p.Server.Console == "" || strings.HasSuffix(p.Server.Console, ":0") {
		return ""
	}
	return "Or open http://" + p.Server.Console + " in a browser and log in as analyst; dba sees the owner's pages too.\n"
}

// demoQueries are the first things to try; the README's tour and a test run them.
var demoQueries = []string{
	`SELECT count(*) FROM people WHERE age BETWEEN 30 AND 40;`,
	`SELECT sex, education, count(*) FROM people GROUP BY sex, education ORDER BY 3 DESC;`,
	`EXPLAIN SELECT count(*) FROM people WHERE income >= 100000;`,
	`SET dp.epsilon = 0.5;`,
	`SET dp.release = on;`,
	`SELECT age, sum(count(*)) OVER (ORDER BY age) AS at_most FROM people GROUP BY age ORDER BY age;`,
	`SELECT date_trunc('month', visited_at) AS month, count(*) FROM visits GROUP BY 1 ORDER BY 1;`,
	`SELECT * FROM dp.budget;`,
}
