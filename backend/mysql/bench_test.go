package mysql

import (
	"database/sql/driver"
	"testing"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/backend/mariadbtest"
	"github.com/dpproxy/dpproxy/backend/snapshot"
)

// BenchmarkMySQLCopy makes a copy of a million visits and their people in MariaDB, beside reading the same columns and
// nothing else.
func BenchmarkMySQLCopy(b *testing.B) {
	server := mariadbtest.Start(b)
	database := server.Database(b)
	role := server.Role(b, database)
	server.ExecIn(b, database, "CREATE TABLE people (id int PRIMARY KEY, age int)", "INSERT INTO people SELECT seq, seq % 100 FROM seq_1_to_100000",
		"CREATE TABLE visits (visit int PRIMARY KEY, who int, minutes int)", "INSERT INTO visits SELECT seq, seq % 100000 + 1, seq % 60 FROM seq_1_to_1000000")
	h := backendtest.MariaPolicy(b, server.URL(role, database), "{name: person, key: people.id, type: integer}", clinicTables)
	if findings, err := h.Inspect(b.Context(), h.Policy, h.Policy.Datasets[0]); err != nil || inspect.Fatal(findings) {
		b.Fatal(findings, err)
	}
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			err := sourceOf(h).within(b.Context(), privateTables(h), true, func(r *reading) error {
				for _, text := range []string{"SELECT id, age FROM people", "SELECT who, minutes FROM visits"} {
					if err := r.Each(b.Context(), text, nil, func([]driver.Value) error { return nil }); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("copy", func(b *testing.B) {
		s := h.Backend.(*snapshot.Snapshots)
		want, err := s.ExtractionsOf(h.Policy)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			c, err := s.Make(b.Context(), want)
			if err != nil {
				b.Fatal(err)
			}
			c.Superseded = true
			c.Discard(s.Log)
		}
	})
}
