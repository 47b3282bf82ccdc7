package proxy

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5/pgconn"
	v5 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// The two public collections of scripts of messages (CockroachDB's pgtest and Materialize's) share one form: a block is
// a directive with arguments, its lines, "----", and what is expected, up to an empty line. "send" sends a message a
// line; "until" and "receive" wait for one message a line. The two write messages as JSON of their own.

// scriptBlock is one directive.
type scriptBlock struct {
	line      int
	directive string
	args      map[string][]string
	input     []string
	expected  []string
}

func readScript(text string) (blocks []scriptBlock) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		b := scriptBlock{line: i + 1, args: map[string][]string{}}
		parts := strings.Fields(line)
		if b.directive = parts[0]; b.directive == "subtest" {
			continue // a name, without lines
		}
		for _, arg := range parts[1:] {
			name, value, _ := strings.Cut(arg, "=")
			b.args[name] = strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("(), ", r) })
		}
		for i++; i < len(lines) && lines[i] != "----"; i++ {
			b.input = append(b.input, lines[i])
		}
		i++
		until := ""
		if i < len(lines) && lines[i] == "----" { // what is expected holds empty lines
			until = "----"
			i++
		}
		for ; i < len(lines) && lines[i] != until; i++ {
			b.expected = append(b.expected, lines[i])
		}
		if until != "" {
			i++
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// argument finds the first of several names in the JSON of a message.
func argument[T any](args map[string]any, names ...string) (out T) {
	for _, n := range names {
		if v, ok := args[n].(T); ok {
			return v
		}
	}
	return out
}

func codesOf(list []any) (out []int16) {
	for _, v := range list {
		n, _ := v.(float64)
		out = append(out, int16(n))
	}
	return out
}

// objectKind is 'S' or 'P', written as a letter or as its number.
func objectKind(args map[string]any) byte {
	if n := argument[float64](args, "ObjectType"); n != 0 {
		return byte(n)
	}
	if s := argument[string](args, "ObjectType", "variant"); s != "" {
		return s[0]
	}
	return 'S'
}

// scriptMessage reads a line of "send".
func scriptMessage(line string) (pgproto3.FrontendMessage, error) {
	kind, rest, _ := strings.Cut(line, " ")
	var value any
	if rest != "" {
		if err := json.Unmarshal([]byte(rest), &value); err != nil {
			return nil, err
		}
	}
	args, _ := value.(map[string]any)
	text, _ := value.(string)
	name := argument[string](args, "Name", "name")
	switch kind {
	case "Query":
		return &pgproto3.Query{String: argument[string](args, "String", "query")}, nil
	case "Parse":
		m := &pgproto3.Parse{Name: name, Query: argument[string](args, "Query", "query")}
		for _, oid := range argument[[]any](args, "ParameterOIDs") {
			n, _ := oid.(float64)
			m.ParameterOIDs = append(m.ParameterOIDs, uint32(n))
		}
		return m, nil
	case "Bind":
		return scriptBind(args), nil
	case "Describe":
		return &pgproto3.Describe{ObjectType: objectKind(args), Name: name}, nil
	case "Close":
		return &pgproto3.Close{ObjectType: objectKind(args), Name: name}, nil
	case "Execute":
		return &pgproto3.Execute{Portal: argument[string](args, "Portal", "portal"), MaxRows: uint32(argument[float64](args, "MaxRows", "max_rows"))}, nil
	case "Sync":
		return &pgproto3.Sync{}, nil
	case "Flush":
		return &pgproto3.Flush{}, nil
	case "CopyData":
		if s, ok := args["Data"].(string); ok {
			text = s
		}
		if s, ok := args["BinaryData"].(string); ok {
			raw, err := hex.DecodeString(s)
			return &pgproto3.CopyData{Data: raw}, err
		}
		return &pgproto3.CopyData{Data: []byte(text)}, nil
	case "CopyDone":
		return &pgproto3.CopyDone{}, nil
	case "CopyFail":
		return &pgproto3.CopyFail{Message: text}, nil
	}
	return nil, fmt.Errorf("unknown message %q", kind)
}

func scriptBind(args map[string]any) *pgproto3.Bind {
	m := &pgproto3.Bind{DestinationPortal: argument[string](args, "DestinationPortal", "portal"),
		PreparedStatement:    argument[string](args, "PreparedStatement", "statement"),
		ParameterFormatCodes: codesOf(argument[[]any](args, "ParameterFormatCodes", "param_formats")),
		ResultFormatCodes:    codesOf(argument[[]any](args, "ResultFormatCodes", "result_formats"))}
	for _, v := range argument[[]any](args, "Parameters", "values") {
		switch v := v.(type) {
		case string:
			m.Parameters = append(m.Parameters, []byte(v))
		case map[string]any:
			raw := []byte(argument[string](v, "text"))
			if s, ok := v["binary"].(string); ok {
				raw, _ = hex.DecodeString(s)
			}
			m.Parameters = append(m.Parameters, raw)
		default:
			m.Parameters = append(m.Parameters, nil)
		}
	}
	for _, v := range argument[[]any](args, "binary_values") {
		raw := []byte{}
		for _, b := range v.([]any) {
			raw = append(raw, byte(b.(float64)))
		}
		m.Parameters = append(m.Parameters, raw)
	}
	return m
}

// scriptPlayer plays one file to one server.
type scriptPlayer struct {
	url      string
	crdb     bool // the file is CockroachDB's
	conns    map[string]*scriptConn
	expected []bool   // by block: as the file expects
	played   []string // by block: all that came, for the comparison of two servers
}

type scriptConn struct {
	net.Conn
	front *pgproto3.Frontend
}

func (p *scriptPlayer) conn(name string) (*scriptConn, error) {
	if c := p.conns[name]; c != nil {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, p.url)
	if err != nil {
		return nil, err
	}
	raw, err := conn.Hijack()
	if err != nil {
		return nil, err
	}
	// Where the log-in was slow, pgconn has begun to read ahead and would take the first frames: one answer ends that.
	raw.Frontend.SendSync(&v5.Sync{})
	if err := raw.Frontend.Flush(); err != nil {
		return nil, err
	}
	if _, err := raw.Frontend.Receive(); err != nil {
		return nil, err
	}
	c := &scriptConn{raw.Conn, pgproto3.NewFrontend(pgproto3.NewChunkReader(raw.Conn), raw.Conn)}
	p.conns[name] = c
	return c, nil
}

// play plays a file up to its end, or to where a server says nothing any more.
func (p *scriptPlayer) play(blocks []scriptBlock) error {
	defer func() {
		for _, c := range p.conns {
			_ = c.front.Send(&pgproto3.Terminate{})
			_ = c.Close()
		}
	}()
	for _, b := range blocks {
		_, skipped := b.args["crdb_only"]
		if b.directive == "only" {
			if _, skip := b.args["crdb"]; skip {
				return nil
			}
			continue
		}
		if skipped || !slices.Contains([]string{"send", "until", "receive"}, b.directive) {
			continue
		}
		c, err := p.conn(strings.Join(b.args["conn"], ""))
		if err == nil && b.directive == "send" {
			err = c.sendAll(b.input)
		} else if err == nil {
			err = p.wait(c, b)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", b.line, err)
		}
	}
	return nil
}

func (c *scriptConn) sendAll(lines []string) error {
	var flight []byte
	for _, line := range lines {
		m, err := scriptMessage(line)
		if err != nil {
			return err
		}
		if flight, err = m.Encode(flight); err != nil {
			return err
		}
	}
	_, err := c.Write(flight)
	return err
}

// wait plays "until" or "receive".
func (p *scriptPlayer) wait(c *scriptConn, b scriptBlock) error {
	var lines, all []string
	if err := c.SetDeadline(time.Now().Add(40 * time.Second)); err != nil {
		return err
	}
	for _, kind := range b.input {
		for {
			m, err := c.front.Receive()
			if err != nil {
				p.expected, p.played = append(p.expected, false), append(p.played, strings.Join(append(all, "nothing"), "\n"))
				return fmt.Errorf("waiting for %s: %w", kind, err)
			}
			came := strings.TrimPrefix(reflect.TypeOf(m).String(), "*pgproto3.")
			if came == "ParameterStatus" && kind != came && !p.wanted(m, b) {
				continue
			}
			all = append(all, wholeMessage(m))
			if slices.Contains(b.args["ignore"], came) || b.directive == "receive" && came != kind {
				continue
			}
			if p.crdb {
				lines = append(lines, crdbLine(m, b.args))
			} else {
				lines = append(lines, materializeLine(m, b.args))
			}
			if came == kind || came == kind+"Response" {
				break
			}
		}
	}
	p.expected = append(p.expected, sameLines(lines, b.expected))
	p.played = append(p.played, strings.Join(all, "\n"))
	return nil
}

// wanted reports whether a block asks for a ParameterStatus.
func (p *scriptPlayer) wanted(m pgproto3.BackendMessage, b scriptBlock) bool {
	return p.crdb || slices.Contains(b.args["parameter_status"], m.(*pgproto3.ParameterStatus).Name)
}

// sameLines compares lines, the JSON in them by its meaning.
func sameLines(got, want []string) bool {
	want = slices.DeleteFunc(slices.Clone(want), func(s string) bool { return s == "" })
	return slices.EqualFunc(got, want, func(a, b string) bool {
		headA, restA, _ := strings.Cut(a, "{")
		headB, restB, _ := strings.Cut(b, "{")
		if headA != headB || restA == "" || restB == "" {
			return a == b
		}
		var x, y map[string]any
		return json.Unmarshal([]byte("{"+restA), &x) == nil && json.Unmarshal([]byte("{"+restB), &y) == nil && reflect.DeepEqual(x, y)
	})
}

// wholeMessage is all of a message that two servers should agree on.
func wholeMessage(m pgproto3.BackendMessage) string {
	switch m := m.(type) {
	case *pgproto3.ErrorResponse:
		return fmt.Sprintf("E %s %s %q at %d", m.Severity, m.Code, m.Message, m.Position)
	case *pgproto3.NoticeResponse:
		return fmt.Sprintf("N %s %s %q", m.Severity, m.Code, m.Message)
	case *pgproto3.RowDescription:
		out := "T"
		for _, f := range m.Fields {
			out += fmt.Sprintf(" %s:%d:%d:%d:%d", f.Name, f.DataTypeOID, f.DataTypeSize, f.TypeModifier, f.Format)
		}
		return out
	}
	return materializeLine(m, nil)
}

// playScripts plays every file to both servers and prints how many do as the files expect.
func playScripts(t *testing.T, db *pgtest.Server, port int) {
	var files []string
	err := filepath.WalkDir(os.Getenv("DPPROXY_SUITES"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".pt") || filepath.Base(filepath.Dir(path)) == "pgtest") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	user := suiteUsers[0]
	whole := map[string]int{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		blocks, players := readScript(string(text)), make([]*scriptPlayer, 2)
		for i, url := range []string{passURL(db.Port, user, "direct_"+user), passURL(port, user, user)} {
			db.Exec(t, []string{"direct_" + user, user}[i], "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
			players[i] = &scriptPlayer{url: url, crdb: !strings.HasSuffix(path, ".pt"), conns: map[string]*scriptConn{}}
			if err := players[i].play(blocks); err != nil {
				fmt.Printf("%s: %s: %v\n", filepath.Base(path), []string{"PostgreSQL", "dpproxy"}[i], err)
			}
		}
		report(filepath.Base(path), players, whole)
	}
	fmt.Println("in all:", whole)
}

// report prints what one file showed.
func report(name string, players []*scriptPlayer, whole map[string]int) {
	counts := map[string]int{}
	direct, proxied := players[0], players[1]
	for i := range direct.played {
		counts["blocks"]++
		if direct.expected[i] {
			counts["PostgreSQL as expected"]++
		}
		if i < len(proxied.played) && proxied.expected[i] {
			counts["dpproxy as expected"]++
		}
		if i < len(proxied.played) && proxied.played[i] == direct.played[i] {
			counts["dpproxy as PostgreSQL"]++
		} else if i < len(proxied.played) && os.Getenv("DPPROXY_SUITES_SHOW") != "" {
			fmt.Printf("--- %s, wait %d\nPostgreSQL:\n%s\ndpproxy:\n%s\n", name, i, direct.played[i], proxied.played[i])
		}
	}
	for k, n := range counts {
		whole[k] += n
		if k != "blocks" && n == counts["blocks"] {
			whole["files: "+k]++
		}
	}
	whole["files"]++
	fmt.Println(name, counts)
}
