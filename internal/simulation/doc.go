// Package simulation runs proxies, their ledger, analysts and a private database in one process, under a simulated
// clock (testing/synctest), on a simulated disk and over a simulated network. A seed decides everything that happens:
// when a process dies, what a power cut leaves of each sector, which flush fails, when a clock is set back, which
// message is lost or comes twice. After each step what analysts have seen is held against what the ledger has charged.
// The same seed runs the same way again (docs/adr/0035).
//
// What is no test is the disk, which internal/simulation/whole has too. `make simulate` runs a hundred thousand seeds,
// `make test` a part of them.
package simulation
