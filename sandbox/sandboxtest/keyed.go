package sandboxtest

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// keyedText is a policy whose tables have keys of all kinds: listed and not, of one column and of two, found through
// another table.
//
//go:embed keyed.yaml
var keyedText string

// KeyedSQL makes the tables of the policy Keyed on a server, as their owner would.
var KeyedSQL = []string{
	"CREATE SCHEMA sales",
	"CREATE TABLE public.users (id integer PRIMARY KEY, age integer)",
	"CREATE TABLE public.orders (status text, order_no bigint PRIMARY KEY, user_id integer NOT NULL)",
	"ALTER TABLE public.orders ADD FOREIGN KEY (user_id) REFERENCES public.users NOT VALID",
	"CREATE TABLE sales.lines (order_no bigint NOT NULL REFERENCES public.orders, line_no smallint, qty integer, UNIQUE (line_no, order_no))",
	"CREATE TABLE public.cards (kind varchar(9) NOT NULL, holder integer PRIMARY KEY)",
	"ALTER TABLE public.cards ADD FOREIGN KEY (holder) REFERENCES public.users NOT VALID",
}

// Keyed is a policy of the dataset census, whose tables are joined by keys; changes are pairs of what is in its text
// and what shall be.
func Keyed(t testing.TB, changes ...string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(strings.NewReplacer(changes...).Replace(keyedText)), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}
