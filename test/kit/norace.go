//go:build !race

package kit

// raced tells that the tests run under the race detector.
const raced = false
