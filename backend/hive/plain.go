package hive

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"

	"github.com/apache/thrift/lib/go/thrift"
)

// The bytes by which a SASL message of Thrift says what it is.
const (
	saslStart    = 1
	saslOK       = 2
	saslComplete = 5
)

// maxSASL bounds what a server says while it authenticates.
const maxSASL = 1 << 16

// plain logs in by SASL's PLAIN (RFC 4616), which authentication NONE, LDAP and CUSTOM of a server want: the password
// as it is.
func plain(conn net.Conn, user, password string) error {
	message := func(kind byte, body string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body))), body...)
	}
	first := append(message(saslStart, "PLAIN"), message(saslOK, "\x00"+user+"\x00"+password)...)
	if _, err := conn.Write(first); err != nil {
		return err
	}
	var head [5]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length > maxSASL {
		return ErrProtocol
	}
	if _, err := io.CopyN(io.Discard, conn, int64(length)); err != nil {
		return err
	}
	if head[0] != saslComplete {
		return Fault{"28000"}
	}
	return nil
}

// framed is the transport after PLAIN: each message with its length before it.
type framed struct {
	conn    net.Conn
	written bytes.Buffer
	left    io.LimitedReader // of the frame that is being read
}

var _ thrift.TTransport = (*framed)(nil)

func (f *framed) Read(into []byte) (int, error) {
	if f.left.N == 0 {
		var head [4]byte
		if _, err := io.ReadFull(f.conn, head[:]); err != nil {
			return 0, thrift.NewTTransportExceptionFromError(err)
		}
		f.left = io.LimitedReader{R: f.conn, N: int64(binary.BigEndian.Uint32(head[:]))}
	}
	n, err := f.left.Read(into)
	return n, thrift.NewTTransportExceptionFromError(err)
}

func (f *framed) Write(text []byte) (int, error) { return f.written.Write(text) }

func (f *framed) Flush(context.Context) error {
	message := append(binary.BigEndian.AppendUint32(nil, uint32(f.written.Len())), f.written.Bytes()...)
	f.written.Reset()
	_, err := f.conn.Write(message)
	return thrift.NewTTransportExceptionFromError(err)
}

func (f *framed) RemainingBytes() uint64 { return ^uint64(0) }
func (f *framed) Open() error            { return nil }
func (f *framed) IsOpen() bool           { return true }
func (f *framed) Close() error           { return f.conn.Close() }
