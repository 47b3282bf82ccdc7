// Package online answers counting queries that arrive one by one, and charges only for those that its public
// hypothesis about the rows gets wrong: private multiplicative weights and the median mechanism over a sparse vector
// (Session), and the median mechanism as first published (Basic). A plain noisy histogram of the same cells is mostly
// the wiser purchase: docs/mechanisms/online.md says where.
package online
