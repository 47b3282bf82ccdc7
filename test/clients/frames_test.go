package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v2 "github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// The same scripts of messages are played to PostgreSQL and to dpproxy, through a codec that is not the proxy's own,
// and the frames that come back are compared: kinds, order, fields, values, tags, SQLSTATEs, transaction states,
// parameters. testdata/frames.txt holds the scripts. A script begins with "# name" and has one message a line:
//
//	Q sql                             Query
//	P name oids sql                   Parse; - is the unnamed one, or no oids
//	B portal stmt pfmt rfmt values    Bind; formats as 0,1 or -, values as one JSON array, "\x…" is binary
//	D S|P name, E portal rows, C S|P name
//	H word                            Flush, and wait for a frame that begins with the word
//	S                                 Sync
//	F argument                        another message: CopyDone, FunctionCall
//
// What is sent up to S or Q goes in one flight; a Q or S that ends with \ is followed by the next line without waiting.
// "# name (noisy)": values are noisy, so they are not compared.

// script is one of the scripts.
type protocolScript struct {
	name  string
	noisy bool
	lines []string
}

func protocolScripts(t *testing.T) []protocolScript {
	t.Helper()
	f, err := os.Open("testdata/frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []protocolScript
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if name, ok := strings.CutPrefix(line, "# "); ok {
			name, noisy := strings.CutSuffix(name, " (noisy)")
			out = append(out, protocolScript{name: name, noisy: noisy})
		} else if line != "" {
			out[len(out)-1].lines = append(out[len(out)-1].lines, line)
		}
	}
	return out
}

// second is a logged-in connection that speaks through the second codec.
type second struct {
	conn  net.Conn
	front *v2.Frontend
	told  []string // the parameters sent at the log-in
	noisy bool
}

func secondCodec(t *testing.T, url string) *second {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := conn.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Conn.Close() })
	// Where the log-in was slow, pgconn has begun to read ahead and would take the first frames: one answer ends that.
	raw.Frontend.SendSync(&pgproto3.Sync{})
	if err := raw.Frontend.Flush(); err != nil {
		t.Fatal(err)
	}
	if m, err := raw.Frontend.Receive(); err != nil {
		t.Fatal(m, err)
	}
	return &second{conn: raw.Conn, told: slices.Sorted(maps.Keys(raw.ParameterStatuses)), front: v2.NewFrontend(v2.NewChunkReader(raw.Conn), raw.Conn)}
}

// play plays a script and returns a line for each message and each frame.
func (s *second) play(t *testing.T, p protocolScript) (out []string) {
	t.Helper()
	s.noisy = p.noisy
	if err := s.conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var flight []byte
	waits := 0
	for _, line := range p.lines {
		out = append(out, "> "+line)
		body, on := strings.CutSuffix(line, ` \`)
		kind, rest, _ := strings.Cut(body, " ")
		var err error
		if flight, err = messageOf(t, kind, rest).Encode(flight); err != nil {
			t.Fatal(err)
		}
		switch {
		case kind == "Q" || kind == "S":
			waits++
		case kind != "H":
			continue
		}
		if on {
			continue
		}
		if _, err := s.conn.Write(flight); err != nil {
			return append(out, "cannot be sent")
		}
		flight = nil
		for until := rest; kind == "H" || waits > 0; {
			frame := s.next()
			out = append(out, frame...)
			if frame == nil {
				continue
			}
			if last := frame[0]; last == "EOF" || kind == "H" && strings.HasPrefix(last, until) {
				break
			} else if strings.HasPrefix(last, "Z") {
				waits--
			}
		}
	}
	return out
}

// words splits the first n words off a line.
func words(text string, n int) []string { return strings.SplitN(text, " ", n) }

func orEmpty(word string) string {
	if word == "-" {
		return ""
	}
	return word
}

func numbersOf(word string) (out []int16) {
	if word == "-" {
		return nil
	}
	for _, part := range strings.Split(word, ",") {
		n, _ := strconv.Atoi(part)
		out = append(out, int16(n))
	}
	return out
}

func messageOf(t *testing.T, kind, rest string) v2.FrontendMessage {
	t.Helper()
	switch kind {
	case "Q":
		return &v2.Query{String: rest}
	case "P":
		w := words(rest, 3)
		m := &v2.Parse{Name: orEmpty(w[0]), Query: w[2]}
		for _, oid := range numbersOf(w[1]) {
			m.ParameterOIDs = append(m.ParameterOIDs, uint32(oid))
		}
		return m
	case "B":
		w := words(rest, 5)
		m := &v2.Bind{DestinationPortal: orEmpty(w[0]), PreparedStatement: orEmpty(w[1]), ParameterFormatCodes: numbersOf(w[2]), ResultFormatCodes: numbersOf(w[3])}
		var values []*string
		if len(w) == 5 && json.Unmarshal([]byte(w[4]), &values) != nil {
			t.Fatalf("values %s", w[4])
		}
		for _, v := range values {
			m.Parameters = append(m.Parameters, parameterOf(v))
		}
		return m
	case "D", "C":
		w := append(words(rest, 2), "")
		if kind == "D" {
			return &v2.Describe{ObjectType: w[0][0], Name: orEmpty(w[1])}
		}
		return &v2.Close{ObjectType: w[0][0], Name: orEmpty(w[1])}
	case "E":
		w := words(rest, 2)
		n, _ := strconv.Atoi(w[1])
		return &v2.Execute{Portal: orEmpty(w[0]), MaxRows: uint32(n)}
	case "H":
		return &v2.Flush{}
	case "S":
		return &v2.Sync{}
	case "F":
		return &v2.CopyDone{}
	}
	t.Fatalf("unknown message %s", kind)
	return nil
}

func parameterOf(v *string) []byte {
	if v == nil {
		return nil
	}
	if hexes, ok := strings.CutPrefix(*v, `\x`); ok {
		var out []byte
		for i := 0; i+1 < len(hexes); i += 2 {
			n, _ := strconv.ParseUint(hexes[i:i+2], 16, 8)
			out = append(out, byte(n))
		}
		return out
	}
	return []byte(*v)
}

// next is the next frame as a line; nil for one that is not compared: what dpproxy tells of costs.
func (s *second) next() []string {
	msg, err := s.front.Receive()
	if err != nil {
		return []string{"EOF"}
	}
	switch m := msg.(type) {
	case *v2.NoticeResponse:
		if m.Code == "00000" {
			return nil
		}
		return []string{"N " + m.Code}
	case *v2.ErrorResponse:
		return []string{"E " + m.Severity + " " + m.Code}
	case *v2.RowDescription:
		line := "T"
		for _, f := range m.Fields {
			line += fmt.Sprintf(" %s:%d:%d:%d:%d", f.Name, f.DataTypeOID, f.DataTypeSize, f.TypeModifier, f.Format)
		}
		return []string{line}
	case *v2.DataRow:
		if s.noisy {
			return []string{fmt.Sprintf("D %d", len(m.Values))}
		}
		return []string{fmt.Sprintf("D %q", m.Values)}
	case *v2.CopyData:
		if s.noisy {
			return []string{"d"}
		}
		return []string{fmt.Sprintf("d %q", m.Data)}
	case *v2.CopyOutResponse:
		return []string{fmt.Sprintf("H %d %v", m.OverallFormat, m.ColumnFormatCodes)}
	case *v2.ParameterDescription:
		return []string{fmt.Sprintf("t %v", m.ParameterOIDs)}
	case *v2.CommandComplete:
		return []string{"C " + string(m.CommandTag)}
	case *v2.ReadyForQuery:
		return []string{"Z " + string(m.TxStatus)}
	case *v2.ParameterStatus:
		return []string{"S " + m.Name + " = " + m.Value}
	}
	return []string{strings.TrimPrefix(fmt.Sprintf("%T", msg), "*pgproto3.")}
}

// TestFrames: see above. The reference is a PostgreSQL with the fixture's table; the proxy is in front of the same one.
func TestFrames(t *testing.T) {
	kit.Beside(t)
	server := pgtest.Shared(t)
	path, database := kit.Postgres(t, server, kit.Budgets{User: "1000", Cap: "1000"}, 0)
	server.Exec(t, "postgres", "ALTER DATABASE "+database+" SET timezone = 'Etc/UTC'")
	reference := server.URLFor("postgres", database)
	scripts := protocolScripts(t)
	if len(scripts) < 110 {
		t.Errorf("%d scripts, not 110", len(scripts))
	}
	playAll(t, scripts, reference, kit.Serve(t, path))
}

// playAll plays the scripts to a PostgreSQL and to a proxy.
func playAll(t *testing.T, scripts []protocolScript, reference string, p *kit.Program) {
	want := append(secondCodec(t, reference).told, "dp.alarms", "dp.confidence", "dp.contribution", "dp.coverage",
		"dp.delta", "dp.dialect", "dp.digits", "dp.epsilon", "dp.error_columns", "dp.hints", "dp.max_cost",
		"dp.max_error", "dp.offgrid", "dp.probes", "dp.release")
	slices.Sort(want) // our own are sent too, for poolers (ADR 73)
	if got := secondCodec(t, p.URL("alice", "lab")).told; !slices.Equal(got, want) {
		t.Errorf("parameters told at the log-in:\ngot  %s\nwant %s", got, want)
	}
	names := map[string]bool{}
	for _, script := range scripts {
		if names[script.name] {
			t.Errorf("two scripts are called %s", script.name)
		}
		names[script.name] = true
		t.Run(script.name, func(t *testing.T) {
			want := secondCodec(t, reference).play(t, script)
			got := secondCodec(t, p.URL("alice", "lab")).play(t, script)
			if !slices.Equal(got, want) {
				t.Error(sideBySide(got, want))
			}
		})
	}
}

// sideBySide shows two lists of lines, and where they differ.
func sideBySide(got, want []string) string {
	var b strings.Builder
	for i := range max(len(got), len(want)) {
		g, w := "", ""
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g == w {
			fmt.Fprintf(&b, "  %s\n", g)
		} else {
			fmt.Fprintf(&b, "- %s\n+ %s\n", g, w)
		}
	}
	return b.String()
}
