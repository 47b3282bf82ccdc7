package assistant

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// talk is a session of the wire, for one call of a tool.
type talk struct {
	conn    *pgconn.PgConn
	notices []string
}

// open opens a session with settings beside the user's own.
func (a *Assistant) open(ctx context.Context, settings map[string]string) (*talk, error) {
	t := &talk{}
	var err error
	t.conn, err = a.Connect(ctx, settings, func(n *pgconn.Notice) {
		for _, text := range append([]string{n.Message}, strings.Split(n.Detail, "\n")...) {
			if text != "" && !slices.Contains(t.notices, text) {
				t.notices = append(t.notices, text)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (t *talk) close() { _ = t.conn.Close(context.Background()) }

// ask has one statement answered, by the extended protocol, which takes one alone. Of more rows than most it reads the
// first.
func (t *talk) ask(ctx context.Context, sql string, most int) (names []string, rows [][]*string, cut bool, err error) {
	r := t.conn.ExecParams(ctx, sql, nil, nil, nil, nil)
	for _, f := range r.FieldDescriptions() {
		names = append(names, f.Name)
	}
	for r.NextRow() {
		if len(rows) == most {
			cut = true
			continue
		}
		row := make([]*string, len(names))
		for i, v := range r.Values() {
			if v != nil {
				text := string(v)
				row[i] = &text
			}
		}
		rows = append(rows, row)
	}
	_, err = r.Close()
	return names, rows, cut, err
}

// rows are those of a catalog.
func (t *talk) rows(ctx context.Context, sql string) ([]Row, error) {
	names, rows, _, err := t.ask(ctx, sql, 1<<20)
	list := make([]Row, len(rows))
	for i, row := range rows {
		list[i] = Row{}
		for at, v := range row {
			if list[i][names[at]] = ""; v != nil {
				list[i][names[at]] = *v
			}
		}
	}
	return list, err
}

// text is an answer of one column, line by line.
func (t *talk) text(ctx context.Context, sql string) (string, error) {
	_, rows, _, err := t.ask(ctx, sql, 1<<20)
	var b strings.Builder
	for _, row := range rows {
		if len(row) > 0 && row[0] != nil {
			b.WriteString(*row[0] + "\n")
		}
	}
	return b.String(), err
}
