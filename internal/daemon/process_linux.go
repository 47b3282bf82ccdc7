package daemon

import "syscall"

// Attr has a server run as its owner, and stop by a signal of its own when the test binary dies.
func Attr(owner *syscall.Credential, signal syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner, Pdeathsig: signal}
}
