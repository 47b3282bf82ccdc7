package login

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
)

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
