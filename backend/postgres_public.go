package backend

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// ReadPublic is described at Backend. A copy may take long: it has a connection of its own.
func (b *Postgres) ReadPublic(ctx context.Context, t *policy.Table) (privacy.Released[[][]policy.Value], error) {
	return copyTable(t, dialect.PostgreSQL, func(sql string, add func([]*string) error) error {
		conn, err := pgx.ConnectConfig(ctx, b.aside.Config().ConnConfig)
		if err != nil {
			return inWords(err)
		}
		defer conn.Close(context.WithoutCancel(ctx))
		return inWords(transactionOn(ctx, conn, defaultDeadline, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, sql)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				texts, into := textRow(len(rows.FieldDescriptions()))
				if err := rows.Scan(into...); err != nil {
					return errors.Join(errResult, err)
				}
				if err := add(texts); err != nil {
					return err
				}
			}
			return rows.Err()
		}, b.cluster.settings(defaultDeadline)...))
	})
}
