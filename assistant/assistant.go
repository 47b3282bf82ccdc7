// Package assistant is dpproxy's server of the Model Context Protocol: what an assistant may ask of a dataset, as five
// tools (docs/adr/0232). It is a client of the wire, as psql is: each call is a session of its own, with the user's
// name and password, and says nothing that the wire would not. What a question may cost is the caller's max_cost, which
// the proxy holds; what all questions of an assistant's session may cost is the Limit, which is held here.
//
//	describe  →  tables, columns and domains, what is left of the budget, how to ask
//	price     →  what a statement would cost and err by; nothing is charged
//	ask       →  rows, each number with its interval, what it cost, what is left, and what it does not cover
//	release   →  the same, buying a release of the policy first, so that questions like it are free
//	history   →  what was asked, and what is held and free
package assistant

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Assistant is one assistant's session over one dataset.
type Assistant struct {
	// Connect opens a session of the wire with such settings.
	Connect func(ctx context.Context, settings map[string]string, notice func(*pgconn.Notice)) (*pgconn.PgConn, error)
	Limit   *big.Rat // what all questions together may cost, in the unit of dp.budget; nil means what the budget has
	Version string

	mu    sync.Mutex
	spent big.Rat
}

// Server is what serves an assistant, over whatever transport.
func (a *Assistant) Server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "dpproxy", Title: "dpproxy", Version: a.Version},
		&mcp.ServerOptions{Instructions: howToAsk})
	free, paid := &mcp.ToolAnnotations{ReadOnlyHint: true}, &mcp.ToolAnnotations{DestructiveHint: new(bool)}
	tool := func(name string, hints *mcp.ToolAnnotations, about string) *mcp.Tool {
		return &mcp.Tool{Name: name, Annotations: hints, Description: about}
	}
	mcp.AddTool(s, tool("describe", free, "Lists the tables and columns that may be asked about, with their values, "+
		"the releases of the policy, and what is left of the budget. Costs nothing."), a.describe)
	mcp.AddTool(s, tool("price", free, "Says what a SELECT would cost and how far its answers would be off, and which "+
		"other ways there are, or why it is refused. Costs nothing: use it first."), a.price)
	mcp.AddTool(s, tool("ask", paid, "Answers a SELECT with noisy numbers, each with its interval, and charges the "+
		"budget for good, at most max_cost. What was paid for is free when it is asked again."), a.ask)
	mcp.AddTool(s, tool("release", paid, "Answers a SELECT from a release of the policy and buys that first, at most "+
		"for max_cost, so that questions like it cost nothing after it. price says which release there is and at "+
		"which epsilon."), a.release)
	mcp.AddTool(s, tool("history", free, "Lists what was asked and what it cost, and the releases that are held, of "+
		"which answers are free. Costs nothing."), a.history)
	for _, p := range prompts {
		s.AddPrompt(&mcp.Prompt{Name: p.name, Description: p.about}, p.get)
	}
	s.AddResource(&mcp.Resource{URI: "dpproxy://how-to-ask", Name: "how to ask", MIMEType: "text/plain",
		Description: "What may be asked, in which SQL, and what answers mean."},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
				{URI: "dpproxy://how-to-ask", MIMEType: "text/plain", Text: howToAsk}}}, nil
		})
	return s
}

// Refusal is why a statement was not answered, as the proxy says it. Nothing was charged, but where it says so.
type Refusal struct {
	SQLState string `json:"sqlstate"`
	Message  string `json:"message"`
	Detail   string `json:"detail,omitempty"`
	Hint     string `json:"hint,omitempty" jsonschema:"what to do instead, often a statement that works"`
}

// refused is an error as the refusal that it is, which is an answer, or else as an error.
func refused(err error) (*Refusal, error) {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return nil, err
	}
	return &Refusal{e.Code, e.Message, e.Detail, e.Hint}, nil
}

// Described is what describe answers.
type Described struct {
	HowToAsk string   `json:"how_to_ask"`
	Budget   []Row    `json:"budget" jsonschema:"what is spent and left, by dataset"`
	Tables   []Table  `json:"tables"`
	Releases []Row    `json:"releases" jsonschema:"what the policy declares or is held: paid ones answer for nothing"`
	Limit    string   `json:"session_limit,omitempty" jsonschema:"what this session may still spend"`
	Refusal  *Refusal `json:"refusal,omitempty"`
}

// Row is a row of a catalog by column, NULL as an empty text.
type Row map[string]string

// Table is a table that may be asked about.
type Table struct {
	Name    string   `json:"name"`
	Private bool     `json:"private" jsonschema:"it answers with noisy numbers alone; public tables are free"`
	Unit    string   `json:"unit,omitempty" jsonschema:"whom the budget protects"`
	Rows    string   `json:"expected_rows,omitempty"`
	Columns []Column `json:"columns"`
}

// Column is a column of it.
type Column struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	About string `json:"about" jsonschema:"which values there are and how to ask about them"`
}

type describeInput struct {
	Table string `json:"table,omitempty" jsonschema:"this table alone"`
}

func (a *Assistant) describe(
	ctx context.Context, _ *mcp.CallToolRequest, in describeInput,
) (*mcp.CallToolResult, Described, error) {
	out := Described{HowToAsk: howToAsk, Budget: []Row{}, Tables: []Table{}, Releases: []Row{}, Limit: a.left()}
	c, err := a.open(ctx, nil)
	if err != nil {
		out.Refusal, err = refused(err)
		return nil, out, err
	}
	defer c.close()
	tables, err := c.rows(ctx, `SELECT t.table_schema AS s, t.table_name AS n, t.public AS p, t.unit AS u,
		t.expected_rows AS r, CASE WHEN t.table_schema <> 'public' THEN quote_ident(t.table_schema) || '.' ELSE '' END
		|| quote_ident(t.table_name) AS q FROM dp.tables t ORDER BY 1, 2`)
	if err != nil {
		return nil, out, err
	}
	columns, err := c.rows(ctx, `SELECT d.table_schema AS s, d.table_name AS t, quote_ident(d.column_name) AS n,
		d.data_type AS y, d.domain AS d, pg_catalog.col_description(a.attrelid, a.attnum::int4) AS c
		FROM dp.columns d JOIN pg_catalog.pg_namespace n ON n.nspname = d.table_schema
		JOIN pg_catalog.pg_class r ON r.relnamespace = n.oid AND r.relname = d.table_name
		JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attname = d.column_name ORDER BY 1, 2, a.attnum`)
	if err != nil {
		return nil, out, err
	}
	for _, row := range tables {
		if in.Table != "" && in.Table != row["q"] && in.Table != row["n"] {
			continue
		}
		t := Table{Name: row["q"], Private: row["p"] != "t", Unit: row["u"], Rows: row["r"], Columns: []Column{}}
		for _, c := range columns {
			if c["s"] == row["s"] && c["t"] == row["n"] {
				t.Columns = append(t.Columns, Column{c["n"], c["y"], cmp.Or(c["c"], c["d"])})
			}
		}
		out.Tables = append(out.Tables, t)
	}
	out.Budget, err = c.rows(ctx, "SELECT dataset, accountant, spent, budget, remaining FROM dp.budget")
	if err != nil {
		return nil, out, err
	}
	out.Releases, err = c.rows(ctx, "SELECT name, kind, table_name, cost, paid FROM dp.releases ORDER BY 1")
	return nil, out, err
}

// Priced is what price answers.
type Priced struct {
	Answered bool      `json:"answered" jsonschema:"whether it would be answered; if not, refusal says why"`
	Cost     string    `json:"cost,omitempty" jsonschema:"as max_cost takes it; 0 means it is free"`
	Unit     string    `json:"cost_in_words,omitempty"`
	Left     string    `json:"balance_after,omitempty"`
	Columns  []Expects `json:"columns" jsonschema:"how far each column is expected to be off"`
	Ways     []Way     `json:"other_ways" jsonschema:"other ways to answer it, what they cost and err by"`
	Caveats  []string  `json:"caveats"`
	Refusal  *Refusal  `json:"refusal,omitempty"`
}

// Expects is a column of an answer, and how far it is expected to be off.
type Expects struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Error string `json:"expected_error,omitempty"`
}

// Way is another way to answer a statement.
type Way struct {
	Measure string `json:"of"`
	Cost    string `json:"cost"`
	Error   string `json:"expected_error"`
	Why     string `json:"why" jsonschema:"why it is not taken, or the setting by which it is"`
}

type priceInput struct {
	SQL     string `json:"sql" jsonschema:"one SELECT, in PostgreSQL's SQL"`
	Epsilon string `json:"epsilon,omitempty" jsonschema:"the most that it may cost, where not the policy's default"`
}

func (a *Assistant) price(
	ctx context.Context, _ *mcp.CallToolRequest, in priceInput,
) (*mcp.CallToolResult, Priced, error) {
	out := Priced{Columns: []Expects{}, Ways: []Way{}, Caveats: []string{}}
	settings := map[string]string{}
	if in.Epsilon != "" {
		settings["dp.epsilon"] = in.Epsilon
	}
	c, err := a.open(ctx, settings)
	if err != nil {
		out.Refusal, err = refused(err)
		return nil, out, err
	}
	defer c.close()
	text, err := c.text(ctx, "EXPLAIN (ALTERNATIVES, FORMAT JSON, SQL off) "+in.SQL)
	if err != nil {
		out.Refusal, err = refused(err)
		return nil, out, err
	}
	var explained []struct {
		Plan struct {
			Cost         string
			Total        json.Number `json:"Total Cost"`
			Balance      string      `json:"Balance After"`
			Columns      []pricedColumn
			Alternatives []pricedWay
			Notes        []string
		}
	}
	if err := json.Unmarshal([]byte(text), &explained); err != nil || len(explained) != 1 {
		return nil, out, fmt.Errorf("EXPLAIN cannot be read: %w", err)
	}
	p := explained[0].Plan
	out.Answered, out.Cost, out.Unit, out.Left = true, p.Total.String(), p.Cost, p.Balance
	for _, c := range p.Columns {
		out.Columns = append(out.Columns, Expects(c))
	}
	for _, w := range p.Alternatives {
		if !w.Taken {
			out.Ways = append(out.Ways, Way{w.Measure, w.Cost, w.Error, w.Why})
		}
	}
	out.Caveats = append(out.Caveats, p.Notes...)
	return nil, out, nil
}

type pricedColumn struct {
	Name, Type string
	Error      string `json:"Expected Error"`
}

type pricedWay struct {
	Measure, Cost, Why string
	Error              string `json:"Expected Error"`
	Taken              bool
}
