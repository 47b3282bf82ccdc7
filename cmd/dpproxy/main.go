// Command dpproxy is a differential-privacy proxy that speaks the PostgreSQL protocol. This package only wires the
// others: flags, files, signals, exit codes. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 check, price or
// verify found a fault.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/dpproxy/dpproxy/backend/duckdb"
	"github.com/dpproxy/dpproxy/internal/request"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/ledger/sqlite"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/service"
)

func main() {
	service.ChildMain() // the parser's self-test is this program, run again
	os.Exit(process(os.Args[1:], os.Interrupt, syscall.SIGTERM))
}

// exitWithin is how long (below the five seconds that are promised) a process lives on after a signal to end, whatever
// it is doing. What it was doing is lost as by a power cut, for which all that is durable is made: a charge before its
// draw, a draw before its answer.
const exitWithin = 4500 * time.Millisecond

// process executes one command line as a process does.
func process(args []string, signals ...os.Signal) (code int) {
	_ = untilSignal(func(ctx context.Context) error { code = run(ctx, args); return nil }, signals...)
	return code
}

// untilSignal does what a process is there for, until it is done or a signal ends it. A second signal ends it at once.
func untilSignal(do func(context.Context) error, signals ...os.Signal) error {
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		stop()
		time.Sleep(exitWithin)
		fmt.Fprintf(os.Stderr, "dpproxy: ended %v after the signal, with work under way\n", exitWithin)
		os.Exit(1)
	})()
	return do(ctx)
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		if code.err != nil {
			fmt.Fprintln(os.Stderr, "dpproxy:", code.err)
		}
		return code.code
	}
	fmt.Fprintln(os.Stderr, "dpproxy:", err)
	return 1
}

// exitCode is an error that asks for an exit code of its own.
type exitCode struct {
	code int
	err  error
}

func (e exitCode) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "dpproxy [command]",
		Short: "A differential-privacy proxy that people use as if it were PostgreSQL",
		Long: `dpproxy stands between analysts and a database. Analysts point psql, a driver or a BI tool at it; each SELECT is
answered with calibrated noise and charged to the analyst's budget; they never see a row.

Every flag can also be set by the environment: --policy by DPPROXY_POLICY, and so on.`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			_, err := logLevel(cmd) // a wrong one is reported before anything is done
			return err
		},
	}
	root.PersistentFlags().String("log-level", "info", "debug, info, warn or error")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exitCode{2, err} })
	root.AddCommand(demoCommand(), serveCommand(), checkCommand(), initCommand(), userCommand(), priceCommand(), prepareCommand(), releaseCommand(), boundsCommand(), budgetCommand(), ledgerCommand(), queryCommand(), mcpCommand(), loginCommand(), schemaCommand(), versionCommand(), manualCommand())
	strictUsage(root)
	return root
}

// strictUsage makes wrong arguments of a command and of all below it end with exit code 2, and a command that only
// holds others refuse names that it does not hold.
func strictUsage(cmd *cobra.Command) {
	for _, below := range cmd.Commands() {
		strictUsage(below)
	}
	check := cmd.Args
	if cmd.HasSubCommands() {
		check = known
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return exitCode{2, fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
		}
		return nil
	}
}

// known refuses every argument: a name that cobra has not taken for a command below.
func known(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("unknown command %q; did you mean %s", args[0], strings.Join(near, ", "))
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// fromEnvironment sets each flag that the command line left alone from DPPROXY_<NAME>.
func fromEnvironment(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := "DPPROXY_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value, ok := os.LookupEnv(name); ok && !f.Changed && err == nil {
			if e := flags.Set(f.Name, value); e != nil {
				err = exitCode{2, fmt.Errorf("%s: %w", name, e)}
			}
		}
	})
	return err
}

// logLevel returns the level that --log-level names.
func logLevel(cmd *cobra.Command) (level slog.Level, err error) {
	name, err := cmd.Flags().GetString("log-level")
	if err == nil && level.UnmarshalText([]byte(name)) != nil {
		err = exitCode{2, fmt.Errorf("--log-level is %q, must be debug, info, warn or error", name)}
	}
	return level, err
}

// logger writes to standard error at the level of --log-level, which has been checked.
func logger(cmd *cobra.Command) *slog.Logger {
	level, _ := logLevel(cmd)
	return slog.New(request.Handler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
}

// version, commit and committed are what a release build sets (scripts/dist). Without it Go's own stamp says the
// commit, where there is one.
var version, commit, committed = "0.2.0", "", ""

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Tell the version, the commit that it was built from, and the versions of the engines in it",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return tellVersion(cmd.OutOrStdout()) },
	}
}

func tellVersion(out io.Writer) error {
	duck, err := duckdb.EngineVersion()
	if err != nil {
		return err
	}
	lite, err := sqlite.Version()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "dpproxy %s\ncommit: %s\nbuilt with: %s, %s/%s\n", version, builtFrom(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	fmt.Fprintf(out, "DuckDB: %s (embedded databases, files, snapshots, sandbox)\nPostgreSQL: %s (grammar)\nSQLite: %s (ledger)\n", duck, parse.GrammarVersion(), lite)
	return nil
}

// builtFrom names the commit, its day, and whether files were changed after it.
func builtFrom() string {
	at, day, changed := commit, committed, false
	if info, ok := debug.ReadBuildInfo(); ok && at == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				at = s.Value
			case "vcs.time":
				if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
					day = t.Format(time.DateOnly)
				}
			case "vcs.modified":
				changed = s.Value == "true"
			}
		}
	}
	if at == "" {
		return "unknown: built without a stamp"
	}
	if day != "" {
		at += " of " + day
	}
	if changed {
		at += ", with changes"
	}
	return at
}

// manualCommand writes what a package holds beside the program: a manual page of each command, and what shells
// complete. It is for scripts/dist, and not listed.
func manualCommand() *cobra.Command {
	return &cobra.Command{
		Use: "manual DIRECTORY", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return writeManual(cmd.Root(), args[0]) },
	}
}

// manualDay is the day on the pages: that of the release, where the build says it, so that two builds write the same.
func manualDay() *time.Time {
	day := time.Now()
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		day = time.Unix(seconds, 0).UTC()
	}
	return &day
}

func writeManual(root *cobra.Command, directory string) error {
	pages, completions := filepath.Join(directory, "man"), filepath.Join(directory, "completions")
	for _, d := range []string{pages, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	root.DisableAutoGenTag = true // no day of the build at the foot
	header := &doc.GenManHeader{Section: "1", Source: "dpproxy " + version, Manual: "dpproxy", Date: manualDay()}
	if err := doc.GenManTree(root, header, pages); err != nil {
		return err
	}
	for name, write := range map[string]func(string) error{
		"dpproxy.bash": func(f string) error { return root.GenBashCompletionFileV2(f, true) },
		"_dpproxy":     root.GenZshCompletionFile,
		"dpproxy.fish": func(f string) error { return root.GenFishCompletionFile(f, true) },
	} {
		if err := write(filepath.Join(completions, name)); err != nil {
			return fmt.Errorf("completions: %w", err)
		}
	}
	return nil
}

func serveCommand() *cobra.Command {
	var path string
	var trust ledger.Options
	cmd := &cobra.Command{
		Use:   "serve --policy policy.yaml",
		Short: "Run the proxy",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := logger(cmd)
			return service.Run(cmd.Context(), path, trust, log, func(address string) {
				log.Info("listening", "address", address)
				notify("READY=1")
			})
		},
	}
	policyFlag(cmd, &path)
	rollbackFlags(cmd, &trust)
	return cmd
}

// policyFlag adds --policy, which a command that uses it cannot do without.
func policyFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "policy", "policy.yaml", "the policy file")
}

// notify tells the supervisor that started this process, by the socket that systemd names, how far it is. Without one
// it does nothing, and a supervisor that is gone is no reason to stop serving.
func notify(state string) {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state)) // as above
}
