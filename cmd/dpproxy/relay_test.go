package main

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

func newFrontend(c net.Conn) *pgproto3.Frontend { return pgproto3.NewFrontend(c, c) }

// relay passes frames between a client and w, each question replaced by sql: a planted fault for the procedures.
func relay(client net.Conn, w *wire, sql string) {
	backend := pgproto3.NewBackend(client, client)
	for {
		if _, err := backend.Receive(); err != nil {
			return
		}
		w.Send(&pgproto3.Query{String: sql})
		if w.Flush() != nil {
			return
		}
		for {
			m, err := w.Receive()
			if err != nil {
				return
			}
			backend.Send(m)
			if _, last := m.(*pgproto3.ReadyForQuery); last {
				break
			}
		}
		if backend.Flush() != nil {
			return
		}
	}
}

// contextWithin ends after a time in which every start-up has either failed or succeeded.
func contextWithin(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 20*time.Second)
}
