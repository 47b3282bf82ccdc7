//go:build !linux

package daemon

import "syscall"

// Attr has a server run as its owner.
func Attr(owner *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner}
}
