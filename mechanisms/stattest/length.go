package stattest

import "os"

// Length returns how many samples a statistical test takes: full under `make audit` (DPPROXY_AUDIT=full), else short.
func Length(short, full int) int {
	if os.Getenv("DPPROXY_AUDIT") == "full" {
		return full
	}
	return short
}
