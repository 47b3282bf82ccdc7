package proxy

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
)

var (
	fieldPattern = regexp.MustCompile(`oid=(\d+)`)
	digits       = regexp.MustCompile(`\d+`)
)

// lesson follows one recorded connection and gathers, for each statement, how the server answered it.
type lesson struct {
	fixtures   map[string]fixture
	statements map[string]string // SQL by prepared statement
	portals    map[string]string // SQL by portal
	fetched    map[string]int    // rows by portal so far
	replies    []recorded
}

// take returns the next reply if it is of one of these kinds.
func (l *lesson) take(kinds ...string) (recorded, bool) {
	if len(l.replies) > 0 && slices.Contains(kinds, l.replies[0].kind) {
		m := l.replies[0]
		l.replies = l.replies[1:]
		return m, true
	}
	return recorded{}, false
}

func (l *lesson) change(sql string, f func(*fixture)) {
	key := normal(sql)
	x := l.fixtures[key]
	f(&x)
	l.fixtures[key] = x
}

// failed learns an error: of Parse, or of Execute.
func (l *lesson) failed(sql string, parsing bool) bool {
	m, ok := l.take("ErrorResponse")
	if !ok {
		return false
	}
	var e struct{ C, M string }
	if json.Unmarshal([]byte(m.rest), &e) == nil && e.C != "25P02" {
		l.change(sql, func(x *fixture) {
			if parsing {
				x.refusal = &refuse.Refusal{ID: "recorded", SQLState: e.C, Message: e.M}
			} else {
				x.answer = func(context.Context, *pipeline.Session, []policy.Value) ([][]policy.Value, error) {
					return nil, pgerror.New(e.C, e.M)
				}
			}
		})
	}
	return true
}

func (l *lesson) columns(sql string) (described bool) {
	m, ok := l.take("RowDescription", "NoData")
	if !ok || m.kind == "NoData" {
		return ok
	}
	l.change(sql, func(x *fixture) {
		x.columns = nil
		for i, oid := range fieldPattern.FindAllStringSubmatch(m.rest, -1) {
			n, _ := strconv.Atoi(oid[1])
			x.columns = append(x.columns, column(fmt.Sprint("c", i), policy.Type(n)))
		}
	})
	return true
}

// rows learns how many rows an Execute or a simple statement brought.
func (l *lesson) rows(sql, portal string, most int) {
	for {
		if _, ok := l.take("DataRow"); !ok {
			break
		}
	}
	m, _ := l.take("CommandComplete", "PortalSuspended", "EmptyQueryResponse")
	words := strings.Fields(strings.Trim(m.rest, `"`) + " -")
	n, err := strconv.Atoi(words[max(len(words)-2, 0)])
	if m.kind == "PortalSuspended" {
		n = most
	} else if err != nil {
		n = 1
	}
	l.fetched[portal] += n
	total := l.fetched[portal]
	l.change(sql, func(x *fixture) {
		for len(x.rows) < total || len(x.rows) > 0 && len(x.rows[0]) != len(x.columns) {
			x.rows = append(x.rows[:min(len(x.rows), total-1)], nil)
			for i := range x.rows {
				x.rows[i] = make([]policy.Value, len(x.columns))
			}
		}
	})
}

// learn reads what one message was answered with. Nothing is expected of messages behind an error, up to Sync.
func (l *lesson) learn(m recorded, skipping bool) (failing bool) {
	v, _ := fieldsOf(m)
	kind, name, _ := strings.Cut(strings.Trim(m.rest, `"`), ":")
	switch {
	case m.kind == "Sync":
		l.take("ReadyForQuery")
		return false
	case skipping || m.kind == "Flush":
		return skipping
	case m.kind == "Query":
		return l.learnQuery(m)
	case m.kind == "Parse":
		l.statements[v.Name] = l.asked(v.SQL)
		l.change(l.asked(v.SQL), func(x *fixture) {
			for _, oid := range v.OIDs {
				x.params = append(x.params, encoding.WireType(policy.Type(oid)))
			}
		})
		l.take("ParseComplete")
		return l.failed(l.asked(v.SQL), true)
	case m.kind == "Bind":
		l.portals[v.Portal], l.fetched[v.Portal] = l.statements[v.Stmt], 0
		l.take("BindComplete")
		l.change(l.statements[v.Stmt], func(x *fixture) {
			for len(x.params) < len(v.Vals) {
				x.params = append(x.params, policy.Text)
			}
			x.params = x.params[:len(v.Vals)]
		})
		return l.failed(l.statements[v.Stmt], false)
	case m.kind == "Describe" && kind == "S":
		if p, ok := l.take("ParameterDescription"); ok {
			l.change(l.statements[name], func(x *fixture) {
				x.params = nil
				for _, oid := range digits.FindAllString(p.rest, -1) {
					n, _ := strconv.Atoi(oid)
					x.params = append(x.params, policy.Type(n))
				}
			})
		}
		return !l.columns(l.statements[name]) && l.failed(l.statements[name], true)
	case m.kind == "Describe":
		return !l.columns(l.portals[name]) && l.failed(l.portals[name], false)
	case m.kind == "Execute":
		if l.failed(l.portals[v.Portal], false) {
			return true
		}
		if m, ok := l.take("CommandComplete"); !ok || strings.Trim(m.rest, `"`) != "DECLARE CURSOR" {
			if ok {
				l.replies = slices.Insert(l.replies, 0, m)
			}
			l.rows(l.portals[v.Portal], v.Portal, int(v.Max))
		}
	case m.kind == "Close":
		l.take("CloseComplete")
	}
	return l.failed("", true)
}

// asked is the SELECT that a statement holds, or that its cursor was declared for.
func (l *lesson) asked(sql string) string {
	commands, _ := lenientParse(sql)
	if len(commands) != 1 {
		return sql
	}
	switch k := commands[0]; {
	case k.Kind == parse.KindDeclare:
		l.portals[k.Cursor.Name], l.fetched[k.Cursor.Name] = k.Inner.Text, 0
		return k.Inner.Text
	case k.Kind == parse.KindFetch:
		return l.portals[k.Fetch.Name]
	case k.Inner != nil:
		return k.Inner.Text
	}
	return sql
}

// declared takes what DECLARE is answered with.
func (l *lesson) declared() bool {
	_, ok := l.take("CommandComplete")
	return ok
}

// copied learns the rows of a COPY.
func (l *lesson) copied(sql string) bool {
	m, ok := l.take("CopyOutResponse")
	if !ok {
		return false
	}
	raw, err := hex.DecodeString(strings.Trim(m.rest, `"`))
	if err != nil || len(raw) < 3 {
		return false
	}
	l.change(sql, func(x *fixture) {
		for x.columns = nil; len(x.columns) < int(raw[2]); {
			x.columns = append(x.columns, column("c", policy.Text))
		}
	})
	for ok {
		_, ok = l.take("CopyData", "CopyDone")
	}
	l.rows(sql, "simple", 0)
	return true
}

func (l *lesson) learnQuery(m recorded) bool {
	text, _ := sqlOf(m)
	commands, _ := lenientParse(text)
	for _, k := range commands {
		text, portal := l.asked(k.Text), "simple"
		if l.failed(text, true) {
			break
		}
		l.columns(text)
		if l.fetched["simple"] = 0; k.Kind == parse.KindFetch {
			portal = k.Fetch.Name
		}
		if l.copied(text) || k.Kind == parse.KindDeclare && l.declared() {
			continue
		}
		if len(l.replies) > 0 && l.replies[0].kind != "ReadyForQuery" && !l.failed(text, true) {
			l.rows(text, portal, 0)
		}
	}
	for len(l.replies) > 0 && l.replies[0].kind != "ReadyForQuery" {
		l.replies = l.replies[1:]
	}
	l.take("ReadyForQuery")
	return false
}

func learned(exchanges []exchange) map[string]fixture {
	l := &lesson{fixtures: map[string]fixture{}, statements: map[string]string{}, portals: map[string]string{}, fetched: map[string]int{}}
	var sent []recorded
	for _, x := range exchanges {
		if !skipped(x) {
			sent, l.replies = append(sent, x.sent...), append(l.replies, x.replies...)
		}
	}
	skipping := false
	for _, m := range sent {
		skipping = l.learn(m, skipping)
	}
	return l.fixtures
}
