//go:build !linux

package cluster

import (
	"syscall"
	"time"

	"github.com/dpproxy/dpproxy/internal/daemon"
)

func attributes(owner *syscall.Credential, _ bool) *syscall.SysProcAttr {
	return daemon.Attr(owner, syscall.SIGQUIT)
}

// End does nothing: this system does not tell whose process one is.
func (s *Server) End(uint32, time.Duration) {}
