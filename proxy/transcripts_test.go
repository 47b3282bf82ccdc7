package proxy

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// exchange is a run of messages of a recorded client, and the run of replies that followed it.
type exchange struct{ sent, replies []recorded }

type recorded struct{ kind, rest string }

// recordings reads the transcripts of real clients against PostgreSQL: by section and connection, after the login.
func recordings(t *testing.T) map[string][]exchange {
	t.Helper()
	f, err := os.Open(material.Path(t, "clients", "transcripts.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, section := map[string][]exchange{}, ""
	ready := map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "##### "); ok {
			section, ready = name, map[string]bool{}
			continue
		}
		word := strings.SplitN(line, " ", 4)
		if _, err := strconv.Atoi(word[0]); err != nil || len(word) < 3 {
			continue
		}
		key, m := section+" #"+word[0], recorded{kind: word[2]}
		if len(word) == 4 {
			m.rest = word[3]
		}
		switch {
		case !ready[key]:
			ready[key] = word[1] == "B" && m.kind == "ReadyForQuery"
			continue
		case m.kind == "EOF":
			continue
		}
		list := all[key]
		if word[1] == "F" {
			if n := len(list); n == 0 || len(list[n-1].replies) > 0 {
				list = append(list, exchange{})
			}
			list[len(list)-1].sent = append(list[len(list)-1].sent, m)
		} else if n := len(list); n > 0 && m.kind != "NoticeResponse" {
			list[n-1].replies = append(list[n-1].replies, m)
		}
		all[key] = list
	}
	return all
}

// never are statements that PostgreSQL answers and that are refused here.
var never = regexp.MustCompile(`(?i)(^|;|")\s*(alter|do|listen)\b|pg_advisory_unlock_all`)

// fields are those of any message.
type fields struct {
	Name, SQL, Portal, Stmt string
	OIDs                    []uint32
	PFmt, RFmt              []int16
	Vals                    []*string
	Max                     uint32
}

var cutParse = regexp.MustCompile(`(?s)^\{"name": "([^"]*)", "oids": (\[[^\]]*\]), "sql": "(.*)$`)

// fieldsOf reads a recorded message; the text of a long Parse was cut short.
func fieldsOf(m recorded) (fields, bool) {
	var v fields
	if !strings.HasPrefix(m.rest, "{") || json.Unmarshal([]byte(m.rest), &v) == nil {
		return v, true
	}
	part := cutParse.FindStringSubmatch(m.rest)
	if part == nil || json.Unmarshal([]byte(part[2]), &v.OIDs) != nil {
		return v, false
	}
	v.Name, v.SQL = part[1], part[3]
	return v, true
}

func sqlOf(m recorded) (string, bool) {
	var text string
	switch m.kind {
	case "Query":
		if json.Unmarshal([]byte(m.rest), &text) != nil {
			text = strings.Trim(m.rest, `"`)
		}
	case "Parse":
		p, ok := fieldsOf(m)
		return p.SQL, ok
	default:
		return "", false
	}
	return text, true
}

func TestRecordedClients(t *testing.T) {
	total := 0
	for name, exchanges := range recordings(t) {
		t.Run(name, func(t *testing.T) { total += replayClient(t, exchanges) })
	}
	t.Logf("%d exchanges", total)
	if total < 440 {
		t.Errorf("%d exchanges replayed, expected at least 440", total)
	}
}

func replayClient(t *testing.T, exchanges []exchange) (done int) {
	b := start(t)
	b.pipeline.fixtures = learned(exchanges)
	b.Server.parse = lenientParse
	r := b.raw(t, "client_min_messages", "error")
	_ = r.conn.SetDeadline(time.Now().Add(40 * time.Second))
	for _, x := range exchanges {
		if skipped(x) {
			continue
		}
		for _, m := range x.sent {
			msg := decoded(m)
			if msg == nil {
				t.Fatalf("cannot read %s %s", m.kind, m.rest)
			}
			r.Send(msg)
		}
		r.flush()
		want := wanted(x.replies, x.sent[0].kind == "Query")
		if got := r.collapsed(len(want)); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%v\ngot  %v\nwant %v", x.sent, got, want)
			return done
		}
		done++
	}
	return done
}

func skipped(x exchange) bool {
	for _, m := range x.sent {
		if sql, ok := sqlOf(m); ok && never.MatchString(sql) || m.kind == "Terminate" || m.kind == "CancelRequest" || m.kind == "FunctionCall" {
			return true
		}
	}
	return len(x.replies) == 0
}

// lenientParse takes what the recording cut short, or what is refused here, for a SELECT.
func lenientParse(text string) ([]command, *refuse.Refusal) {
	commands, refusal := parseCommands(text)
	if refusal != nil {
		return []command{{Statement: parse.Statement{Kind: parse.KindSelect, Text: text}}}, nil
	}
	for i, k := range commands {
		if k.Kind == parse.KindOther {
			commands[i] = command{Statement: parse.Statement{Kind: parse.KindSelect, Text: k.Text}}
		}
	}
	return commands, nil
}

func wanted(replies []recorded, simple bool) []string {
	var out []string
	for _, m := range replies {
		text := strings.Trim(m.rest, `"`)
		short := map[string]string{"ParseComplete": "1", "BindComplete": "2", "CloseComplete": "3", "NoData": "n", "EmptyQueryResponse": "I", "PortalSuspended": "s",
			"DataRow": "D", "CopyOutResponse": "H", "CopyData": "d", "CopyDone": "c", "RowDescription": "T", "ParameterDescription": "t", "ReadyForQuery": "Z(" + text + ")", "CommandComplete": "C(" + strings.SplitN(text, " ", 2)[0] + ")"}[m.kind]
		if m.kind == "ErrorResponse" {
			var e struct{ C string }
			_ = json.Unmarshal([]byte(m.rest), &e)
			short = "E(" + e.C + ")"
		}
		n := len(out)
		if (short == "D" || short == "d") && n > 0 && out[n-1] == short {
			continue
		}
		if simple && m.kind == "ErrorResponse" && n > 0 && out[n-1] == "T" {
			out = out[:n-1] // columns are described here once there is an answer
		}
		out = append(out, short)
	}
	return out
}

// collapsed reads as many messages as wanted; rows in a row count as one.
func (r *raw) collapsed(n int) []string {
	var out []string
	for len(out) < n {
		msg := r.next()
		if msg == nil {
			return append(out, "EOF")
		}
		short := brief(msg)
		switch short[0] {
		case 'T', 't':
			short = short[:1]
		case 'C':
			short = strings.SplitN(strings.TrimSuffix(short, ")"), " ", 2)[0] + ")"
		case 'D', 'd':
			if k := len(out); k > 0 && out[k-1] == short {
				continue
			}
		}
		out = append(out, short)
	}
	return out
}

func decoded(m recorded) pgproto3.FrontendMessage {
	v, ok := fieldsOf(m)
	if !ok {
		return nil
	}
	object := strings.Trim(m.rest, `"`)
	kind, name, _ := strings.Cut(object, ":")
	switch m.kind {
	case "Query":
		text, _ := sqlOf(m)
		return &pgproto3.Query{String: text}
	case "Parse":
		return &pgproto3.Parse{Name: v.Name, Query: v.SQL, ParameterOIDs: v.OIDs}
	case "Bind":
		out := &pgproto3.Bind{DestinationPortal: v.Portal, PreparedStatement: v.Stmt, ParameterFormatCodes: v.PFmt, ResultFormatCodes: v.RFmt}
		for _, s := range v.Vals {
			out.Parameters = append(out.Parameters, value(s))
		}
		return out
	case "Describe":
		return &pgproto3.Describe{ObjectType: kind[0], Name: name}
	case "Close":
		return &pgproto3.Close{ObjectType: kind[0], Name: name}
	case "Execute":
		return &pgproto3.Execute{Portal: v.Portal, MaxRows: v.Max}
	case "Sync":
		return syncs
	case "Flush":
		return flushed
	}
	return nil
}

func value(s *string) []byte {
	if s == nil {
		return nil
	}
	if raw, err := hex.DecodeString(strings.TrimPrefix(*s, `\x`)); err == nil && strings.HasPrefix(*s, `\x`) {
		return raw
	}
	return []byte(*s)
}
