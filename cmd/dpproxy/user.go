package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/policy"
)

func userCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "user", Short: "Look after the users of a policy"}
	var path string
	var admin bool
	add := &cobra.Command{
		Use:   "add NAME --policy policy.yaml",
		Short: "Add a user, or change a password; the policy keeps a SCRAM verifier, never the password",
		Long:  `Reads the password from standard input (one line) or from DPPROXY_PASSWORD, and writes a SCRAM-SHA-256 verifier.`,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			password, err := readPassword(cmd.InOrStdin(), cmd.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			verifier, err := policy.Verifier(password, rand.Reader)
			if err != nil {
				return err
			}
			if err := policy.AddUser(path, args[0], verifier, admin); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: user %s written\n", path, args[0])
			return nil
		},
	}
	policyFlag(add, &path)
	add.Flags().BoolVar(&admin, "admin", false, "may see every budget")
	cmd.AddCommand(add)
	return cmd
}

// readPassword takes the password from the environment or from one line of input; it is never an argument, which other
// users of the machine could read.
func readPassword(in io.Reader, prompt io.Writer, user string) (string, error) {
	if p, ok := os.LookupEnv("DPPROXY_PASSWORD"); ok {
		if p == "" {
			return "", errors.New("DPPROXY_PASSWORD is empty")
		}
		return p, nil
	}
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			fmt.Fprintf(prompt, "password of %s (shown as you type): ", user)
		}
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", errors.New("the password is empty")
	}
	return line, nil
}
