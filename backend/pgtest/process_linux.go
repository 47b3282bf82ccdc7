package pgtest

import "syscall"

// processAttr has the server stop by itself when the test binary dies.
func processAttr(owner *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner, Pdeathsig: syscall.SIGINT}
}
