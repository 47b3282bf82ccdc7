package mysql

import (
	"context"
	"errors"

	"github.com/dpproxy/dpproxy/backend"
)

// Catalog asks a MySQL or MariaDB database of its catalog, for a first policy. No query of it reads a row of a table
// but the keys of one that is to be public.
type Catalog struct {
	conn     *Conn
	Database string // that the URL names
	Maria    bool
}

// OpenCatalog connects. Its error holds nothing of the URL.
func OpenCatalog(ctx context.Context, url string) (*Catalog, error) {
	config, _, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	c, err := Connect(ctx, config, mysqlAside)
	if errors.Is(err, ErrFlavor) {
		return nil, err
	}
	if err != nil {
		return nil, errors.Join(backend.ErrUnavailable, errors.New(cause(err)))
	}
	return &Catalog{c, config.DBName, c.Maria()}, nil
}

// Ask runs a query whose values are texts; NULL is the empty one.
func (c *Catalog) Ask(ctx context.Context, text string, args ...string) ([][]string, error) {
	rows, err := c.conn.Texts(ctx, text, args...)
	if err != nil {
		return nil, errors.New("the catalog cannot be read (" + cause(err) + ")")
	}
	return rows, nil
}

// Quote quotes a name.
func (c *Catalog) Quote(name string) string { return Quote(name) }

// Close ends the connection.
func (c *Catalog) Close() error { return c.conn.Close() }
