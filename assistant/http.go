package assistant

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A session of the streamable HTTP transport ends after so long without a request, and a request has so many bytes.
const (
	idle      = 30 * time.Minute
	maxAsking = 1 << 20
)

// Proved is a user who has proved her name, and what asks of a dataset in it. Key names both, and nobody else knows it:
// a session of the transport stays with the key that opened it.
type Proved struct {
	User, Dataset, Key string
	Dial               func() net.Conn // a session of hers, from the start-up packet on
}

type proved struct{}

// With is a request of a user who has proved her name.
func With(r *http.Request, who *Proved) *http.Request {
	r = r.WithContext(context.WithValue(r.Context(), proved{}, who))
	r.Header = r.Header.Clone()
	r.Header.Set("Authorization", "Bearer "+who.Key)
	return r
}

// Handler serves the streamable HTTP transport to requests that With has made; each session is of a newAssistant.
func Handler(newAssistant func() *Assistant) http.Handler {
	sessions := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		who, _ := r.Context().Value(proved{}).(*Proved)
		if who == nil {
			return nil
		}
		a := newAssistant()
		a.Connect = who.connect
		return a.Server()
	}, &mcp.StreamableHTTPOptions{JSONResponse: true, SessionTimeout: idle, MaxRequestBodyBytes: maxAsking})
	return auth.RequireBearerToken(func(_ context.Context, key string, r *http.Request) (*auth.TokenInfo, error) {
		if who, _ := r.Context().Value(proved{}).(*Proved); who == nil || who.Key != key {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: key, Expiration: time.Now().Add(idle)}, nil
	}, nil)(sessions)
}

// connect opens a session of the wire within the process.
func (p *Proved) connect(
	ctx context.Context, settings map[string]string, notice func(*pgconn.Notice),
) (*pgconn.PgConn, error) {
	config, err := pgconn.ParseConfig("host=127.0.0.1 port=1 user=within dbname=within sslmode=disable")
	if err != nil {
		return nil, err
	}
	// Nothing of what the environment says to clients is for this one.
	config.User, config.Database, config.Password, config.TLSConfig, config.Fallbacks = p.User, p.Dataset, "", nil, nil
	config.ValidateConnect, config.AfterConnect = nil, nil
	config.RuntimeParams = map[string]string{"application_name": "dpproxy mcp", "client_encoding": "UTF8"}
	for name, value := range settings {
		config.RuntimeParams[name] = value
	}
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) { return p.Dial(), nil }
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notice(n) }
	return pgconn.ConnectConfig(ctx, config)
}
