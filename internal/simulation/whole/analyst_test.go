package whole

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// analyst asks questions over connections to whatever node answers.
type analyst struct {
	w     *world
	name  string
	rng   *rand.Rand
	front *pgproto3.Frontend
	conn  net.Conn
	on    *process
}

// pause lets a moment pass that nobody else shares.
func (a *analyst) pause(most time.Duration) { time.Sleep(time.Duration(1 + a.rng.Int64N(int64(most)))) }

// questions that an analyst asks are the first so many of her own.
func (a *analyst) question(n int) string {
	return fmt.Sprintf("SELECT count(*) FROM people WHERE age >= %d AND income < %d", n%7, 1000*(n+1))
}

// work asks one question after another until all are asked, some of them again.
func (a *analyst) work(asks int) {
	for range asks {
		sql := a.question(a.rng.IntN(12))
		for range 4 {
			a.pause(300 * time.Millisecond)
			if a.ask(sql) {
				break
			}
		}
	}
	a.hangUp()
}

// connect logs in to a node that is up, if there is one. Some sessions give up waiting soon.
func (a *analyst) connect() bool {
	if a.front != nil && !a.on.m.Dead() {
		return true
	}
	a.hangUp()
	p := a.w.process(a.rng.IntN(nodes))
	if p == nil {
		return false
	}
	config := a.w.configs[a.name].Copy()
	config.DialFunc = p.listener.dial
	ctx, cancel := context.WithTimeout(background, 20*time.Second)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		a.w.note("%s cannot log in: %v", a.name, err)
		return false
	}
	raw, err := conn.Hijack()
	if err != nil {
		return false
	}
	a.front, a.conn, a.on = raw.Frontend, raw.Conn, p
	if a.rng.IntN(3) == 0 { // she does not wait long
		if _, _, err := a.simple("SET statement_timeout = 30"); err != nil {
			a.hangUp()
			return false
		}
	}
	return true
}

func (a *analyst) hangUp() {
	if a.conn != nil {
		_ = a.conn.Close() // it may be cut
	}
	a.front, a.conn = nil, nil
}

// ask sends one question. It reports whether an outcome arrived. The network may cut the connection while she waits.
func (a *analyst) ask(sql string) bool {
	if !a.connect() {
		return false
	}
	a.pause(time.Millisecond)
	a.w.sent(a.name)
	if a.rng.IntN(8) == 0 {
		conn, after := a.conn, time.Duration(1+a.rng.Int64N(int64(200*time.Millisecond)))
		timer := time.AfterFunc(after, func() { _ = conn.Close() }) // the cut
		defer timer.Stop()
	}
	value, code, err := a.simple(sql)
	if err != nil || a.on.m.Dead() {
		a.w.lost(a.name)
		a.hangUp()
		return false
	}
	if code != "" {
		a.w.refused(a.name, sql, code)
		return code != "DP003" && code != "57014"
	}
	a.w.seen(a.name, sql, value)
	return true
}

// simple is one simple query: the one cell of its answer, or the code of its error.
func (a *analyst) simple(sql string) (value, code string, err error) {
	a.front.Send(&pgproto3.Query{String: sql})
	if err := a.front.Flush(); err != nil {
		return "", "", err
	}
	for {
		m, err := a.front.Receive()
		if err != nil {
			return "", "", err
		}
		switch m := m.(type) {
		case *pgproto3.DataRow:
			value = string(m.Values[0])
		case *pgproto3.ErrorResponse:
			code = m.Code
		case *pgproto3.ReadyForQuery:
			return value, code, nil
		}
	}
}
