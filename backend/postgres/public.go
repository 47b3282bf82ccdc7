package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// ReadPublic: see Backend. A copy may take long: it has a connection of its own.
func (b *DB) ReadPublic(ctx context.Context, t *policy.Table) (privacy.Released[[][]policy.Value], error) {
	return inspect.CopyTable(t, dialect.PostgreSQL, func(sql string, add func([]*string) error) error {
		conn, err := pgx.ConnectConfig(ctx, b.aside.Config().ConnConfig)
		if err != nil {
			return inWords(err)
		}
		defer conn.Close(context.WithoutCancel(ctx))
		return inWords(transactionOn(ctx, conn, execute.DefaultDeadline, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, sql)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				texts, into := inspect.TextRow(len(rows.FieldDescriptions()))
				if err := rows.Scan(into...); err != nil {
					return errors.Join(execute.ErrResult, err)
				}
				if err := add(texts); err != nil {
					return err
				}
			}
			return rows.Err()
		}, b.cluster.settings(execute.DefaultDeadline)...))
	})
}
