// Package login is how a client comes in, up to the word that she is who she says: the packets before the protocol's
// own, TLS among them, what a start-up packet says (both in this file), the password exchange (auth.go), and the
// time that guesses of passwords take (brake.go). It knows nothing of sessions, and logs nothing.
//
// An example: psql opens with an SSLRequest; Opening.Next answers S, shakes hands, and returns the start-up packet that
// comes through TLS; ParseStartup finds user, database and the variables in it; Passwords.Exchange asks for the
// password by SCRAM.
package login

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/settings"
)

// ALPN names the protocol in a TLS handshake.
const ALPN = "postgresql"

// ErrSilent ends a connection without a word.
var ErrSilent = errors.New("connection closed without a reply")

// The codes in place of a start-up packet's protocol version.
const (
	codeCancel = 1234<<16 | 5678
	codeSSL    = 1234<<16 | 5679
	codeGSS    = 1234<<16 | 5680
)

const (
	newestMinor      = 2
	maxStartupPacket = 10_000
	maxCancelKey     = 256
	tlsRecord        = 0x16 // first byte of a TLS handshake: the client speaks TLS from the start
)

// Packet is one packet of the start-up phase.
type Packet struct {
	code uint32
	body []byte
}

// readPacket reads one packet, exactly: what follows it stays in the connection, so nothing that was sent in plain can
// be taken for something that came through TLS.
func readPacket(first byte, r io.Reader) (Packet, error) {
	var head [8]byte
	head[0] = first
	if _, err := io.ReadFull(r, head[1:4]); err != nil {
		return Packet{}, ErrSilent
	}
	length := binary.BigEndian.Uint32(head[:4])
	if length < 8 || length > maxStartupPacket {
		return Packet{}, ErrSilent // before anything more is awaited
	}
	if _, err := io.ReadFull(r, head[4:]); err != nil {
		return Packet{}, ErrSilent
	}
	body := make([]byte, length-8)
	if _, err := io.ReadFull(r, body); err != nil {
		return Packet{}, ErrSilent
	}
	return Packet{binary.BigEndian.Uint32(head[4:]), body}, nil
}

// Startup is what a client said of itself before it logged in.
type Startup struct {
	User, Database string
	Minor          uint32      // protocol 3.minor, as it will be spoken
	asked          uint32      // as it was asked for
	unknown        []string    // _pq_. options
	options        string      // command-line options
	settings       [][2]string // variables in the order sent
}

// ParseStartup reads the parameters of a start-up packet of protocol 3.x.
func ParseStartup(p Packet) (Startup, error) {
	if p.code>>16 != 3 {
		return Startup{}, pgerror.New("0A000", fmt.Sprintf(
			"unsupported frontend protocol %d.%d: server supports 3.0 to 3.%d", p.code>>16, p.code&0xFFFF, newestMinor)).Fatal()
	}
	s := Startup{asked: p.code & 0xFFFF}
	s.Minor = min(s.asked, newestMinor)
	if s.Minor == 1 {
		s.Minor = 0 // 3.1 was never in use
	}
	layout := pgerror.New("08P01", "invalid startup packet layout: expected terminator as last byte").Fatal()
	if len(p.body) == 0 || p.body[len(p.body)-1] != 0 {
		return Startup{}, layout
	}
	if !utf8.Valid(p.body) {
		return Startup{}, pgerror.New("22021", `invalid byte sequence for encoding "UTF8" in startup packet`).Fatal()
	}
	rest := string(p.body[:len(p.body)-1])
	for rest != "" {
		name, after, ok := strings.Cut(rest, "\x00")
		if !ok || name == "" {
			return Startup{}, layout
		}
		value, after, ok := strings.Cut(after, "\x00")
		if !ok {
			return Startup{}, layout
		}
		rest = after
		if err := s.take(name, value); err != nil {
			return Startup{}, err
		}
	}
	if s.User == "" {
		return Startup{}, pgerror.New("28000", "no PostgreSQL user name specified in startup packet").Fatal()
	}
	if s.Database == "" {
		s.Database = s.User
	}
	sort.Strings(s.unknown)
	return s, nil
}

func (s *Startup) take(name, value string) error {
	switch {
	case name == "user":
		s.User = value
	case name == "database":
		s.Database = value
	case name == "options":
		s.options = value
	case name == "replication":
		if on, ok := settings.ParseBool(value); !ok || on {
			return pgerror.New("42501", "replication is not available here").Fatal()
		}
	case strings.HasPrefix(name, "_pq_."):
		s.unknown = append(s.unknown, name)
	default:
		s.settings = append(s.settings, [2]string{name, value})
	}
	return nil
}

// Negotiation is the message that tells a client what of its start-up packet is not spoken here, or nil.
func (s *Startup) Negotiation() *pgproto3.NegotiateProtocolVersion {
	if s.asked == s.Minor && len(s.unknown) == 0 {
		return nil
	}
	return &pgproto3.NegotiateProtocolVersion{NewestMinorProtocol: 3<<16 | s.Minor, UnrecognizedOptions: s.unknown}
}

// Variables are the variables that a client asked for, in the order in which they count.
func (s *Startup) Variables() ([][2]string, error) {
	options, err := splitOptions(s.options)
	return append(options, s.settings...), err
}

// splitOptions reads the start-up parameter "options": switches parted by white space, a backslash keeping the next
// character. Only -c name=value and --name=value mean something here.
func splitOptions(text string) ([][2]string, error) {
	words := optionWords(text)
	var out [][2]string
	for i := 0; i < len(words); i++ {
		word, assignment := words[i], ""
		switch {
		case word == "-c":
			if i++; i < len(words) {
				assignment = words[i]
			}
		case strings.HasPrefix(word, "-c"):
			assignment = word[2:]
		case strings.HasPrefix(word, "--"):
			assignment = word[2:]
		default:
			return nil, pgerror.New("42601", "invalid command-line argument for server process").
				WithHint("Options are written -c name=value.").Fatal()
		}
		name, value, ok := strings.Cut(assignment, "=")
		if !ok || name == "" {
			return nil, pgerror.New("42601", "-c requires a name and a value").WithHint("Options are written -c name=value.").Fatal()
		}
		out = append(out, [2]string{strings.ReplaceAll(name, "-", "_"), value})
	}
	return out, nil
}

func optionWords(text string) []string {
	var words []string
	var word strings.Builder
	inside, escaped := false, false
	for _, c := range text {
		switch {
		case escaped:
			word.WriteRune(c)
			inside, escaped = true, false
		case c == '\\':
			escaped = true
		case c == ' ' || c >= '\t' && c <= '\r':
			if inside {
				words = append(words, word.String())
				word.Reset()
			}
			inside = false
		default:
			word.WriteRune(c)
			inside = true
		}
	}
	if inside {
		words = append(words, word.String())
	}
	return words
}

// Opening leads a connection from its first byte to a start-up or cancel packet, through TLS where asked.
type Opening struct {
	Conn     net.Conn    // what the rest goes through
	secure   *tls.Conn   // set once TLS runs
	Config   *tls.Config // nil: no TLS here
	askedSSL bool
	askedGSS bool
}

// Secure reports whether TLS runs.
func (o *Opening) Secure() bool { return o.secure != nil }

// Next returns the packet that opens a session, or a cancel request.
func (o *Opening) Next() (Packet, error) {
	for first := true; ; first = false {
		var b [1]byte
		if _, err := io.ReadFull(o.Conn, b[:]); err != nil {
			return Packet{}, ErrSilent
		}
		if b[0] == tlsRecord && first {
			if err := o.direct(b[0]); err != nil {
				return Packet{}, err
			}
			continue
		}
		p, err := readPacket(b[0], o.Conn)
		if err != nil {
			return Packet{}, err
		}
		switch {
		case p.code == codeSSL && len(p.body) == 0 && !o.askedSSL && o.secure == nil:
			o.askedSSL = true
			err = o.answerSSL()
		case p.code == codeGSS && len(p.body) == 0 && !o.askedGSS && o.secure == nil:
			o.askedGSS = true
			_, err = o.Conn.Write([]byte{'N'})
		default:
			return p, nil
		}
		if err != nil {
			return Packet{}, ErrSilent
		}
	}
}

func (o *Opening) answerSSL() error {
	if o.Config == nil {
		_, err := o.Conn.Write([]byte{'N'})
		return err
	}
	if _, err := o.Conn.Write([]byte{'S'}); err != nil {
		return err
	}
	return o.encrypt(o.Conn)
}

// direct starts TLS on a client that began with it; it must name the protocol, lest another protocol's client be led
// here.
func (o *Opening) direct(first byte) error {
	if o.Config == nil {
		return ErrSilent
	}
	if err := o.encrypt(&prefixed{Conn: o.Conn, prefix: []byte{first}}); err != nil {
		return ErrSilent
	}
	if o.secure.ConnectionState().NegotiatedProtocol != ALPN {
		return ErrSilent
	}
	return nil
}

func (o *Opening) encrypt(conn net.Conn) error {
	secure := tls.Server(conn, o.Config)
	if err := secure.Handshake(); err != nil {
		return err
	}
	o.secure, o.Conn = secure, secure
	return nil
}

// prefixed gives bytes back to a connection.
type prefixed struct {
	net.Conn
	prefix []byte
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.prefix) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.prefix)
	p.prefix = p.prefix[n:]
	return n, nil
}

// Cancels tells a cancel request from what opens a session.
func (p Packet) Cancels() bool { return p.code == codeCancel }

// Cancel reads the body of a cancel request.
func (p Packet) Cancel() (pid uint32, key []byte, err error) {
	if len(p.body) < 8 || len(p.body) > 4+maxCancelKey {
		return 0, nil, errors.New("malformed cancel request")
	}
	return binary.BigEndian.Uint32(p.body), p.body[4:], nil
}
