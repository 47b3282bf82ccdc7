package proxy

import (
	"encoding/binary"
	"syscall"
)

// established is TCP_ESTABLISHED: neither side has closed.
const established = 1

// hungUp reports whether the other side of a TCP connection has closed it. The first byte of TCP_INFO is the
// connection's state.
func hungUp(fd int) bool {
	info, err := syscall.GetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_INFO)
	return err == nil && binary.NativeEndian.AppendUint32(nil, uint32(info))[0] != established
}
