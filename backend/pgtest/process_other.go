//go:build !linux

package pgtest

import "syscall"

func processAttr(owner *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: owner}
}
