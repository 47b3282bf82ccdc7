package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manualCommand writes what a package brings along beside the program: a manual page of each command, and what shells
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
