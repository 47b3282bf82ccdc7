// Package whole runs whole proxies in a simulation: the wire protocol, sessions, log-in, planner, pipeline and ledger
// as they are, under the simulated clock and on the simulated disk of internal/simulation, over a network that delays
// and cuts, before a private database that is slow, fails, and holds nothing. It has tests only (docs/adr/0035).
package whole
