// libpq drives a running proxy with github.com/lib/pq, in text and with its binary parameters.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/lib/pq"
)

func check(what string, ok bool) {
	if !ok {
		fmt.Println("not ok", what)
		os.Exit(1)
	}
	fmt.Println("ok", what)
}

func fails(code string, err error) {
	var refused *pq.Error
	check(fmt.Sprint(code, " ", err), errors.As(err, &refused) && string(refused.Code) == code)
}

func main() {
	fmt.Println("version", os.Getenv("LIBPQ_VERSION"))
	for _, binary := range []string{"no", "yes"} {
		// Its settings come from the environment, as libpq's do.
		db, err := sql.Open("postgres", "binary_parameters="+binary)
		check("opened", err == nil)
		check(fmt.Sprint("ping ", db.PingContext(context.Background())), db.Ping() == nil)
		fmt.Println("did connects")
		before := spent(db)
		check("columns", one(db, "SELECT count(*) FROM information_schema.columns WHERE table_name = $1", "people") == "7")
		rows, err := db.Query("SELECT DISTINCT region FROM people")
		check("values of a column", err == nil && rows.Close() == nil)
		check("browsing is free", spent(db) == before)
		fmt.Println("did browses")
		for _, q := range []struct {
			text string
			args []any
		}{
			{"SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2", []any{30, 40}}, {"SELECT count(*) FROM people WHERE sex = $1", []any{"Female"}},
			{"SELECT count(*) FROM people WHERE hired >= $1", []any{time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}},
			{"SELECT count(*) FROM people WHERE region = ANY($1)", []any{pq.Array([]string{"north", "south"})}},
		} {
			check(q.text+" "+one(db, q.text, q.args...), one(db, q.text, q.args...) == one(db, q.text, q.args...))
		}
		fmt.Println("did parameters")
		_, err = db.Exec("SELECT age FROM people")
		fails("42501", err)
		_, err = db.Exec("SELECT count(*) FROM people WHERE wage > $1", 1)
		fails("42703", err)
		fmt.Println("did queries")
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		var many []string
		for i := range 400 {
			many = append(many, fmt.Sprintf("SELECT count(*) FROM people WHERE hired > DATE '2016-01-01' + %d", i))
		}
		_, err = db.ExecContext(ctx, "SET dp.epsilon = 0.001; "+strings.Join(many, "; "))
		cancel()
		check(fmt.Sprint("cancelled ", err), err != nil)
		check("after a cancel", one(db, "SELECT 1") == "1")
		fmt.Println("did cancels")
		db.Close()
	}
}

func one(db *sql.DB, text string, args ...any) (value string) {
	if err := db.QueryRow(text, args...).Scan(&value); err != nil {
		check(text+": "+err.Error(), false)
	}
	return value
}

func spent(db *sql.DB) string {
	return one(db, "SELECT coalesce(sum(spent), 0) FROM dp.budget WHERE user_name = current_user")
}
