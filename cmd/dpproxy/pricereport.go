package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/proxy"
)

// pricedReport is what `dpproxy price` prints, in text and JSON alike.
type pricedReport struct {
	User       string            `json:"user"`
	Dataset    string            `json:"dataset"`
	Accountant string            `json:"accountant"`
	Each       bool              `json:"each,omitempty"`
	Budget     string            `json:"budget"`
	Left       string            `json:"left"`
	Unit       string            `json:"unit"` // of the amounts: epsilon or rho
	Statements []pricedStatement `json:"statements"`
	Total      pricedTotal       `json:"total"`
	Batch      *batchReport      `json:"batch,omitempty"`

	limit privacy.Cost
}

type pricedStatement struct {
	File    string             `json:"file"`
	Line    int                `json:"line"`
	Text    string             `json:"text"`
	ReadAs  string             `json:"read_as,omitempty"`
	Status  proxy.PricedStatus `json:"status"`
	Cost    string             `json:"cost,omitempty"` // of what is answered: 0 is free
	Share   float64            `json:"share,omitempty"`
	Error   string             `json:"error,omitempty"`
	Leaves  []pricedLeaf       `json:"leaves,omitempty"`
	Notes   []string           `json:"notes,omitempty"`
	Refusal *pricedRefusal     `json:"refusal,omitempty"`

	words string // the cost in words
}

type pricedLeaf struct {
	SQL       string   `json:"sql,omitempty"`
	Table     string   `json:"table,omitempty"`
	Kind      string   `json:"kind"`
	Source    string   `json:"answered_from"`
	Mechanism string   `json:"mechanism,omitempty"`
	Cost      string   `json:"cost"`
	Errors    []string `json:"expected_error,omitempty"`
}

type pricedRefusal struct {
	ID       string `json:"id,omitempty"`
	SQLState string `json:"sqlstate"`
	Reason   string `json:"reason"`
	Detail   string `json:"detail,omitempty"`
	Hint     string `json:"hint,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
}

type pricedTotal struct {
	Statements int     `json:"statements"` // that ask something
	Answered   int     `json:"answered"`
	Free       int     `json:"free"` // of the answered
	Refused    int     `json:"refused"`
	OverBudget int     `json:"over_budget"`
	Cost       string  `json:"cost"`
	Share      float64 `json:"share_of_budget"`

	words string
}

func priceReport(o pricing, p *proxy.Pricer, scripts []pricedScript) *pricedReport {
	_, unit := proxy.Amount(p.Balance.Limit, p.Dataset.Accountant)
	r := &pricedReport{User: o.user, Dataset: p.Dataset.ID, Accountant: p.Dataset.Accountant.String(), Each: o.each,
		Budget: p.Balance.Limit.String(), Left: p.Left().String(), Unit: unit, Statements: []pricedStatement{}, limit: p.Balance.Limit}
	for _, s := range scripts {
		for _, one := range s.statements {
			r.add(s, one, p)
		}
	}
	r.Total.Cost, _ = proxy.Amount(p.Spent(), p.Dataset.Accountant)
	r.Total.Share = p.Share()
	r.Total.words = costWords(p.Spent())
	return r
}

func costWords(c privacy.Cost) string {
	if c.IsZero() {
		return "free"
	}
	return c.String()
}

func (r *pricedReport) add(s pricedScript, one proxy.Priced, p *proxy.Pricer) {
	out := pricedStatement{File: s.name, Line: proxy.Line(s.text, one.From), Text: one.Text, ReadAs: one.ReadAs, Status: one.Status, Error: one.Error, Notes: one.Notes}
	switch one.Status {
	case proxy.PricedAnswered:
		r.Total.Answered++
		if one.Cost.IsZero() {
			r.Total.Free++
		}
	case proxy.PricedRefused:
		r.Total.Refused++
	case proxy.PricedDear:
		r.Total.OverBudget++
	}
	if one.Status != proxy.PricedSession {
		r.Total.Statements++
	}
	if one.Status == proxy.PricedAnswered || one.Status == proxy.PricedDear {
		out.Cost, _ = proxy.Amount(one.Cost, p.Dataset.Accountant)
		out.Share, out.words = p.Balance.Share(accounting.Price(one.Cost)), costWords(one.Cost)
	}
	for _, l := range one.Leaves {
		out.Leaves = append(out.Leaves, pricedLeaf(l))
	}
	if f := one.Failure; f != nil {
		out.Refusal = &pricedRefusal{ID: one.RefusalID, SQLState: f.SQLState, Reason: f.Message, Detail: f.Detail, Hint: f.Hint}
		out.Refusal.Line, out.Refusal.Column = f.Place(s.text)
	}
	r.Statements = append(r.Statements, out)
}

// asJSON prints reports for programs.
func asJSON(report any, out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(report)
}

// longestQuoted is how much of a statement the text form repeats.
const longestQuoted = 100

func (r *pricedReport) writeText(out io.Writer) error {
	var b strings.Builder
	for _, s := range r.Statements {
		if s.Status != proxy.PricedSession {
			s.write(&b)
		}
	}
	t := r.Total
	if t.Statements == 0 {
		b.WriteString("No statement asks anything.\n")
	}
	fmt.Fprintf(&b, "%d statement%s: %d answered (%d of them free), %d refused, %d over budget.\n", t.Statements, ending(t.Statements), t.Answered, t.Free, t.Refused, t.OverBudget)
	together := "together"
	if r.Each {
		together = "each by itself, added up"
	}
	fmt.Fprintf(&b, "Cost %s: %s, %s %% of %s's budget %s in dataset %s, of which %s is left. Nothing was charged.\n",
		together, t.words, privacy.Percent(t.Share, 3), r.User, r.Budget, r.Dataset, r.Left)
	if t.Answered > 0 && t.Free == t.Answered && r.Batch == nil {
		b.WriteString("As a batch there is nothing to gain: what is answered is free.\n")
	}
	if _, err := io.WriteString(out, b.String()); err != nil || r.Batch == nil {
		return err
	}
	return r.Batch.writeText(out)
}

func (s pricedStatement) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s:%d: %s\n", s.File, s.Line, quoted(s.Text))
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(b, "    %s: %s\n", name, text)
		}
	}
	line("read as", s.ReadAs)
	cost := string(s.Status)
	if s.words != "" {
		cost += ", " + s.words
	}
	if s.Share > 0 {
		cost += fmt.Sprintf(" (%s %% of the budget)", privacy.Percent(s.Share, 3))
	}
	if s.Error != "" {
		cost += "; " + s.Error
	}
	fmt.Fprintf(b, "    %s\n", cost)
	for _, l := range s.Leaves {
		over := l.Kind
		if l.Table != "" {
			over += " over " + l.Table
		}
		over += ", from " + l.Source
		if l.Mechanism != "" {
			over += ", by " + l.Mechanism
		}
		fmt.Fprintf(b, "    - %s\n", over)
	}
	for _, n := range s.Notes {
		line("note", n)
	}
	if f := s.Refusal; f != nil {
		id := f.SQLState
		if f.ID != "" {
			id += " " + f.ID
		}
		if f.Line > 0 {
			id += fmt.Sprintf(", line %d column %d", f.Line, f.Column)
		}
		line(id, f.Reason)
		line("hint", f.Hint)
	}
	b.WriteByte('\n')
}

func ending(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
