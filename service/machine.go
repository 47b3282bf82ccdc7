package service

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/admission"
)

// A process that takes all memory is killed by the system, and every analyst's work with it. So serve keeps itself and
// its children to server.limits.memory: each session of its own sandbox to what it needs anyway and one statement's
// memory, which the system enforces; itself to the rest, which the collector and the admission of statements keep.

// sessionAtRest is what a session of the sandbox takes before its first query.
const sessionAtRest = 32 << 20

// leastProcess is the least memory that a proxy does anything useful in.
const leastProcess = 256 << 20

// bound keeps the process to its share of the memory, as a policy says.
func (s *Service) bound(p *policy.Policy, workers *admission.Workers) {
	sessions := 0
	if p.Sandbox.URL == "" { // else they are another server's
		sessions = s.Engine.Slots()
	}
	whole, own := shares(p.Server.Limits, sessions, machineMemory())
	if own < leastProcess {
		s.log.Warn("server.limits.memory leaves little for the proxy itself beside its sandbox's sessions", "memory", policy.SizeText(whole), "proxy", policy.SizeText(own))
		own = leastProcess
	}
	s.own.Store(own)
	if !workers.Bound(own) {
		return
	}
	s.log.Info("memory", "limit", whole>>20, "proxy", own>>20, "unit", "MiB")
}

// shares are what the process and its sandbox's sessions may take together, and the process alone.
func shares(l policy.Limits, sessions int, machine int64) (whole, own int64) {
	if whole = l.Memory; whole == 0 {
		whole = machine / 4 * 3
	}
	return whole, whole - int64(sessions)*(sessionAtRest+l.StatementMemory)
}

// machineMemory is what the machine has, or less where a control group of the process says so.
func machineMemory() int64 {
	most := int64(math.MaxInt64)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if fields := bytes.Fields(text); len(fields) > 1 {
			if kib, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				most = kib << 10
			}
		}
	}
	group, err := os.ReadFile("/proc/self/cgroup")
	_, path, ok := bytes.Cut(bytes.TrimSpace(group), []byte("::"))
	if err != nil || !ok {
		return most
	}
	for at := filepath.Clean("/" + string(path)); ; at = filepath.Dir(at) { // a limit of any group above holds as well
		text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", at, "memory.max"))
		if n, bad := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && bad == nil {
			most = min(most, n)
		}
		if at == "/" {
			return most
		}
	}
}
