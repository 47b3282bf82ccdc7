package console

import "sync/atomic"

// books are a ledger's in a test.
type books struct{ revoked atomic.Int64 }

func newBooks() *books { return &books{} }
