package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/backend/duckdb"
	"github.com/dpproxy/dpproxy/ledger/sqlite"
	"github.com/dpproxy/dpproxy/planner/parse"
)

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
