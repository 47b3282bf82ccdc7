package main

import (
	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/service"
)

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
