package login

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// startupPacket writes a start-up packet of any version.
func startupPacket(code uint32, words ...string) []byte {
	body := binary.BigEndian.AppendUint32(nil, code)
	for _, w := range words {
		body = append(append(body, w...), 0)
	}
	if code>>16 <= 3 {
		body = append(body, 0)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)
}

func short(code uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), code)
}

func read(b []byte) (Startup, error) {
	if len(b) == 0 {
		return Startup{}, ErrSilent
	}
	p, err := readPacket(b[0], bytes.NewReader(b[1:]))
	if err != nil {
		return Startup{}, err
	}
	return ParseStartup(p)
}

// fatal tells an error that ends a connection.
func fatal(err error) bool {
	var end *pgerror.Fatal
	return errors.As(err, &end) || errors.Is(err, ErrSilent)
}

func TestStartupPackets(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes []byte
		state string // of the error; "silent"
		check func(s Startup) bool
	}{
		{"3.0", startupPacket(3<<16, "user", "alice", "database", "census", "application_name", "psql"), "",
			func(s Startup) bool {
				return s.User == "alice" && s.Database == "census" && len(s.settings) == 1 && s.Negotiation() == nil
			}},
		{"database is the user", startupPacket(3<<16, "user", "alice"), "", func(s Startup) bool { return s.Database == "alice" }},
		{"3.2", startupPacket(3<<16|2, "user", "a"), "", func(s Startup) bool { return s.Minor == 2 && s.Negotiation() == nil }},
		{"3.1", startupPacket(3<<16|1, "user", "a"), "", func(s Startup) bool { return s.Minor == 0 && s.Negotiation().NewestMinorProtocol == 3<<16 }},
		{"3.9999 with options", startupPacket(3<<16|9999, "user", "a", "_pq_.z", "1", "_pq_.a", ""), "", func(s Startup) bool {
			n := s.Negotiation()
			return s.Minor == 2 && n.NewestMinorProtocol == 3<<16|2 && slices.Equal(n.UnrecognizedOptions, []string{"_pq_.a", "_pq_.z"}) && len(s.settings) == 0
		}},
		{"2.0", startupPacket(2<<16, "user", "a"), "0A000", nil},
		{"4.0", startupPacket(4<<16, "user", "a"), "0A000", nil},
		{"no user", startupPacket(3<<16, "database", "a"), "28000", nil},
		{"replication", startupPacket(3<<16, "user", "a", "replication", "database"), "42501", nil},
		{"no replication", startupPacket(3<<16, "user", "a", "replication", "off"), "", func(s Startup) bool { return true }},
		{"not UTF-8", startupPacket(3<<16, "user", "\xff"), "22021", nil},
		{"odd number of words", startupPacket(3<<16, "user"), "08P01", nil},
		{"empty name", startupPacket(3<<16, "", "x"), "08P01", nil},
		{"no terminator", append(binary.BigEndian.AppendUint32(nil, 12), 0, 3, 0, 0, 'u', 's', 'e', 'r'), "08P01", nil},
		{"no body", short(3 << 16), "08P01", nil},
		{"too short", []byte{0, 0, 0, 4, 0, 0, 0, 0}, "silent", nil},
		{"too long", []byte{0, 0, 0x27, 0x11, 0, 3, 0, 0}, "silent", nil},
		{"negative", []byte{0xff, 0xff, 0xff, 0xff, 0, 3, 0, 0}, "silent", nil},
		{"cut", startupPacket(3<<16, "user", "alice")[:12], "silent", nil},
	} {
		s, err := read(c.bytes)
		switch {
		case c.state == "silent":
			if !errors.Is(err, ErrSilent) {
				t.Errorf("%s: %v", c.name, err)
			}
		case c.state != "":
			if err == nil || pgerror.Describe(err).SQLState != c.state || !fatal(err) {
				t.Errorf("%s: %v, want a fatal %s", c.name, err, c.state)
			}
		case err != nil || !c.check(s):
			t.Errorf("%s: %+v, %v", c.name, s, err)
		}
	}
}

func TestOptionStrings(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"-c dp.epsilon=0.05", "dp.epsilon=0.05"},
		{"-cdp.epsilon=0.05  --search-path=a", "dp.epsilon=0.05 search_path=a"},
		{`-c application_name=a\ b\\c`, `application_name=a b\c`},
		{"-c x=", "x="},
		{"-c=", "!"}, {"-c", "!"}, {"-c x", "!"}, {"-x", "!"}, {"--=", "!"}, {"\\", ""}, {"-c = =", "!"}, {"stray", "!"},
	} {
		pairs, err := splitOptions(c.text)
		var got []string
		for _, p := range pairs {
			got = append(got, p[0]+"="+p[1])
		}
		if s := strings.Join(got, " "); (err != nil) != (c.want == "!") || err == nil && s != c.want {
			t.Errorf("%q: %q, %v", c.text, s, err)
		}
	}
}

// FuzzStartup: any bytes are a silent end, a fatal error, or a start-up whose parts came from the bytes.
func FuzzStartup(f *testing.F) {
	f.Add(startupPacket(3<<16, "user", "alice", "options", "-c a=b"))
	f.Add(startupPacket(3<<16|9999, "user", "alice", "_pq_.x", "y"))
	f.Add(short(codeSSL))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := read(b)
		if err != nil {
			if !fatal(err) {
				t.Fatalf("not fatal: %v", err)
			}
			return
		}
		if s.User == "" || s.Minor > newestMinor || !bytes.Contains(b, []byte(s.User)) {
			t.Fatalf("%+v", s)
		}
		if _, err := splitOptions(s.options); err != nil && !fatal(err) {
			t.Fatal(err)
		}
	})
}
