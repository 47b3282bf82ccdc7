package main

import (
	"net"
	"os"
)

// notify tells the supervisor that started this process, by the socket that systemd names, how far it is. Without one
// it does nothing, and a supervisor that is gone is no reason to stop serving.
func notify(state string) {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state)) // as above
}
