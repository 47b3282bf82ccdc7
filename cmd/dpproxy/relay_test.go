package main

import (
	"context"
	"testing"
	"time"
)

// contextWithin ends after a time in which every start-up has either failed or succeeded.
func contextWithin(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 20*time.Second)
}
