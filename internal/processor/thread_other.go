//go:build !linux

package processor

import "time"

// Elsewhere the clock replaces processor time.

func threadTime() time.Duration { return 0 }

func threadPath() string { return "" }
