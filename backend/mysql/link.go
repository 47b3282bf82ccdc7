// Package mysql reads MySQL and MariaDB: a URL, a connection whose session decides nothing of how a row is read, and
// what the cells of their types are as values of DuckDB's, so that a copy of the rows is made. Of
//
//	mysql://dpproxy:…@db.example.org/shop?ssl-mode=VERIFY_IDENTITY
//
// ParseURL (link.go) makes how to connect, Connect gives the session its settings (settings.go), Each hands out the
// cells of a query, and each Column (cells.go) makes values of them. Which rows are read, of which moment, is package
// backend's.
package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/dpproxy/dpproxy/backend/internal/link"

	client "github.com/go-sql-driver/mysql"
)

// ErrURL says what is wrong with a URL, whose text may hold a password.
var ErrURL = errors.New("the url is not mysql://user:password@host:port/database, with socket, ssl-mode, ssl-ca, ssl-cert and ssl-key as its options")

// Config is how to connect.
type Config = client.Config

// connectTimeout bounds how long a connection is being made.
const connectTimeout = 5 * time.Second

// ErrAnswer says that the server has answered otherwise than a server of MySQL's does.
var ErrAnswer = errors.New("mysql: not an answer of such a server")

// Failed tells the errors of a connection or of its server from all others.
func Failed(err error) bool {
	var server *client.MySQLError
	return errors.As(err, &server) || errors.Is(err, client.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, ErrAnswer)
}

// Code is the number and the SQLSTATE of a server's error, which is none of its texts; false means it is another error.
func Code(err error) (number uint16, state string, ok bool) {
	var server *client.MySQLError
	if !errors.As(err, &server) {
		return 0, "", false
	}
	return server.Number, string(server.SQLState[:]), true
}

// ParseURL reads a URL. The options go by the names of MySQL's own clients. A way over a network is encrypted to the
// right server unless the owner names something weaker; a password is never sent as it is; the server gets no file of
// this machine.
func ParseURL(text string) (config *Config, weak bool, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "mysql" || u.Hostname() == "" || len(u.Path) < 2 {
		return nil, false, ErrURL
	}
	config = client.NewConfig()
	config.User, config.DBName = u.User.Username(), u.Path[1:]
	config.Passwd, _ = u.User.Password()
	config.Net, config.Addr = "tcp", addressOf(u)
	config.ConnectionAttributes = "program_name:dpproxy"
	config.Collation, config.Logger, config.Timeout = "", &client.NopLogger{}, connectTimeout
	options, known := link.Options(u, "socket")
	if !known {
		return nil, false, ErrURL
	}
	local := link.IsLoopback(u.Hostname())
	if socket := options["socket"]; socket != "" {
		config.Net, config.Addr, local = "unix", socket, true
	}
	config.TLS, weak, err = link.TLS(u.Hostname(), local, options)
	return config, weak, err
}

func addressOf(u *url.URL) string {
	if u.Port() == "" {
		return u.Host + ":3306"
	}
	return u.Host
}

// Conn is one connection, used by one goroutine. It is the driver's own, without a pool.
type Conn struct {
	driver.Conn
	flavor flavor
	ID     string // by which the server ends it
}

// safely keeps a server that is not what it says from ending the process.
func safely(do func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = ErrAnswer
		}
	}()
	return do()
}

// Connect connects, finds out which engine it is, and gives the session its settings; statements have the time limit.
func Connect(ctx context.Context, config *Config, limit time.Duration) (c *Conn, err error) {
	err = safely(func() error {
		connector, err := client.NewConnector(config)
		if err != nil {
			return err
		}
		conn, err := connector.Connect(ctx)
		if err != nil {
			return err
		}
		c = &Conn{Conn: conn}
		return c.settle(ctx, limit)
	})
	if err != nil && c != nil {
		c.Close()
		return nil, err
	}
	return c, err
}

// settle is Connect's second half.
func (c *Conn) settle(ctx context.Context, limit time.Duration) error {
	facts, err := c.Texts(ctx, "SELECT version(), connection_id(), @@version_comment")
	if err != nil || len(facts) != 1 {
		return errors.Join(err, ErrAnswer)
	}
	if c.flavor, err = flavorOf(facts[0][0], facts[0][2]); err != nil {
		return err
	}
	if _, err := strconv.ParseUint(facts[0][1], 10, 64); err != nil {
		return ErrAnswer
	}
	c.ID = facts[0][1]
	return c.Exec(ctx, c.flavor.settings(limit)...)
}

// Maria tells MariaDB from MySQL.
func (c *Conn) Maria() bool { return c.flavor.maria }

// Exec runs statements that have no result.
func (c *Conn) Exec(ctx context.Context, texts ...string) error {
	return safely(func() error {
		for _, text := range texts {
			if _, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, text, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// Texts runs a query whose values are texts; NULL is the empty one.
func (c *Conn) Texts(ctx context.Context, text string, args ...string) (rows [][]string, err error) {
	err = c.Each(ctx, text, args, func(values []driver.Value) error {
		row := make([]string, len(values))
		for i, v := range values {
			row[i], _ = cellText(v)
		}
		rows = append(rows, row)
		return nil
	})
	return rows, err
}

// Each runs a query as a prepared statement, so that numbers come in binary, and hands out row after row. What a value
// refers to is gone with the next row.
func (c *Conn) Each(ctx context.Context, text string, args []string, do func([]driver.Value) error) error {
	return safely(func() (err error) {
		statement, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		defer statement.Close()
		named := make([]driver.NamedValue, len(args))
		for i, a := range args {
			named[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
		}
		rows, err := statement.(driver.StmtQueryContext).QueryContext(ctx, named)
		if err != nil {
			return err
		}
		defer func() {
			if closed := rows.Close(); err == nil {
				err = closed
			}
		}()
		values := make([]driver.Value, len(rows.Columns()))
		for {
			switch err := rows.Next(values); {
			case err == io.EOF:
				return nil
			case err != nil:
				return err
			}
			if err := do(values); err != nil {
				return err
			}
		}
	})
}

// cellText is the text of a value of the driver's; false means NULL, or none of its types.
func cellText(v driver.Value) (string, bool) {
	switch v := v.(type) {
	case []byte:
		return string(v), true
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	}
	return "", false
}
