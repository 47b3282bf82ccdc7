package processor

import (
	"strconv"
	"syscall"
	"time"
)

// ofThread is RUSAGE_THREAD.
const ofThread = 1

// threadTime is the processor time of the calling thread.
func threadTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(ofThread, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// threadPath is where others read it.
func threadPath() string { return "/proc/self/task/" + strconv.Itoa(syscall.Gettid()) + "/stat" }
