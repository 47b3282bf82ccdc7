// Package request numbers the statements of sessions, so that all that the log says of one can be found by what its
// client was sent. An example: a count fails inside, the client sees the detail "Request 9f86d081884c7d65-12", and
// each line that the log has of it ends with request=9f86d081884c7d65-12.
//
// A number is a session's, drawn at random when it begins, and how many statements it had by then: a client learns of
// nobody else's work by it, and nothing in it depends on a statement's words or on rows.
package request

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strconv"
)

// ID is the number of a statement. The zero ID is none's.
type ID struct {
	Session   uint64
	Statement uint64
}

// NewSession draws a session's number.
func NewSession() ID {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (Go 1.24)
	return ID{Session: binary.LittleEndian.Uint64(b[:])}
}

// Next is the number of the session's next statement.
func (id ID) Next() ID { return ID{id.Session, id.Statement + 1} }

// Named is the session's part.
func (id ID) Named() string { return fmt.Sprintf("%016x", id.Session) }

func (id ID) String() string { return id.Named() + "-" + strconv.FormatUint(id.Statement, 10) }

// numbered is a context of one statement.
type numbered struct {
	context.Context
	id ID
}

type key struct{}

// Value: see context.Context.
func (n *numbered) Value(k any) any {
	if _, ok := k.(key); ok {
		return n
	}
	return n.Context.Value(k)
}

// With is a context of a statement.
func With(ctx context.Context, id ID) context.Context { return &numbered{ctx, id} }

// Of is the number of the statement that a context belongs to.
func Of(ctx context.Context) (id ID, ok bool) {
	if ctx == nil {
		return id, false
	}
	n, ok := ctx.Value(key{}).(*numbered)
	if !ok {
		return id, false
	}
	return n.id, true
}

// Handler writes what another handler writes, with the number of the statement that a line is of.
func Handler(h slog.Handler) slog.Handler { return handler{h} }

type handler struct{ slog.Handler }

// Handle: see slog.Handler, as the others are.
func (h handler) Handle(ctx context.Context, line slog.Record) error {
	if id, ok := Of(ctx); ok {
		line.AddAttrs(slog.String("request", id.String()))
	}
	return h.Handler.Handle(ctx, line)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
