package backend

import (
	"context"
	"errors"

	"github.com/dpproxy/dpproxy/backend/mysql"
)

// MySQLCatalog asks a MySQL or MariaDB database of its catalog, for a first policy. No query of it reads a row of a table but
// the keys of one that is to be public.
type MySQLCatalog struct {
	conn     *mysql.Conn
	Database string // that the URL names
	Maria    bool
}

// OpenMySQLCatalog connects. Its error holds nothing of the URL.
func OpenMySQLCatalog(ctx context.Context, url string) (*MySQLCatalog, error) {
	config, _, err := mysql.ParseURL(url)
	if err != nil {
		return nil, err
	}
	c, err := mysql.Connect(ctx, config, mysqlAside)
	if errors.Is(err, mysql.ErrFlavor) {
		return nil, err
	}
	if err != nil {
		return nil, errors.Join(ErrUnavailable, errors.New(mysqlCause(err)))
	}
	return &MySQLCatalog{c, config.DBName, c.Maria()}, nil
}

// Ask runs a query whose values are texts; NULL is the empty one.
func (c *MySQLCatalog) Ask(ctx context.Context, text string, args ...string) ([][]string, error) {
	rows, err := c.conn.Texts(ctx, text, args...)
	if err != nil {
		return nil, errors.New("the catalog cannot be read (" + mysqlCause(err) + ")")
	}
	return rows, nil
}

// Quote quotes a name.
func (c *MySQLCatalog) Quote(name string) string { return mysql.Quote(name) }

// Close ends the connection.
func (c *MySQLCatalog) Close() error { return c.conn.Close() }
