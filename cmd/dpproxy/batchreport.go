package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/workload"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
)

// batchReport says how reports are answered as a whole, beside asking one by one; `dpproxy release` prints it for what
// it buys, `dpproxy price` for what it would.
type batchReport struct {
	Users      []string         `json:"users"` // each of whom pays the cost once; the dataset's cap is charged once
	Unit       string           `json:"unit"`
	Cost       string           `json:"cost"`
	OneByOne   string           `json:"one_by_one_at_the_same_error"`
	Saving     float64          `json:"saving"` // times
	Answered   int              `json:"answered"`
	Releases   []batchRelease   `json:"releases"`
	Strategies []batchStrategy  `json:"strategies"`
	Statements []batchStatement `json:"statements"`
	Columns    []batchColumn    `json:"discretised_columns,omitempty"`

	batch *workload.Batch
}

// batchColumn says what a finer and a coarser step of a discretised column would cost and gain.
type batchColumn struct {
	Table  string      `json:"table"`
	Column string      `json:"column"`
	Steps  []batchStep `json:"steps"`
}

type batchStep struct {
	Step     string  `json:"step"`
	Declared bool    `json:"declared,omitempty"`
	Cells    int     `json:"cells,omitempty"`
	RMSE     float64 `json:"rmse_of_ranges,omitempty"`
	Rounding string  `json:"worst_rounding,omitempty"`
	Rows     float64 `json:"worst_rounding_in_expected_rows,omitempty"`
	Not      string  `json:"not,omitempty"`
}

// batch is what the statements would cost together: as much as they cost one by one, unless something else is asked;
// nil where there is nothing to buy.
func (o pricing) batch(p *proxy.Pricer, scripts []pricedScript) (*batchReport, error) {
	if o.epsilon == "" && p.Spent().IsZero() {
		return nil, nil
	}
	epsilon, err := p.Spend()
	if o.epsilon != "" {
		epsilon, err = privacy.ParseEpsilon(o.epsilon)
	}
	if err != nil {
		return nil, exitCode{2, fmt.Errorf("--epsilon: %w", err)}
	}
	if epsilon.Micro() == 0 {
		return nil, exitCode{2, errors.New("--epsilon is 0, must be greater")}
	}
	batch, err := p.Batch(epsilon)
	if err != nil {
		return nil, err
	}
	if b := newBatchReport(batch, scripts, p.Dataset, o.users); b.Answered > 0 {
		return b, nil
	}
	return nil, nil
}

type batchRelease struct {
	Name      string `json:"name"`
	Table     string `json:"table"`
	Kind      string `json:"kind"`
	Cells     int    `json:"cells"`
	Cost      string `json:"cost"`
	Mechanism string `json:"mechanism"`
	Why       string `json:"why"`

	words string
}

type batchStrategy struct {
	Name   string  `json:"name"`
	Error  float64 `json:"relative_error"`
	Chosen bool    `json:"chosen,omitempty"`
}

type batchStatement struct {
	File      string  `json:"file"`
	Line      int     `json:"line"`
	Text      string  `json:"text"`
	Refusal   string  `json:"refusal,omitempty"`
	Releases  []int   `json:"releases,omitempty"` // from 1
	Values    int     `json:"values,omitempty"`
	RMSE      float64 `json:"rmse,omitempty"`
	HalfWidth int64   `json:"half_width,omitempty"`
	ByClamp   float64 `json:"rmse_by_clamp,omitempty"` // of units' totals: times their clamp, which is chosen from what is released
	Sums      bool    `json:"sums,omitempty"`
	Alone     string  `json:"alone_at_the_same_error,omitempty"`
	Free      string  `json:"alone_answered_by,omitempty"`

	words string
}

func newBatchReport(b *workload.Batch, scripts []pricedScript, d *policy.Dataset, users []string) *batchReport {
	cost, unit := proxy.Amount(b.Cost, d.Accountant)
	alone, _ := proxy.Amount(b.OneByOne, d.Accountant)
	r := &batchReport{Unit: unit, Cost: cost, OneByOne: alone, Users: users, batch: b, Releases: []batchRelease{}, Statements: []batchStatement{}}
	if !b.Cost.IsZero() {
		r.Saving = float64(b.OneByOne.Epsilon.Micro()+b.OneByOne.Rho.Pico()) / float64(b.Cost.Epsilon.Micro()+b.Cost.Rho.Pico()) // one of the two is zero
	}
	for _, m := range b.Measures {
		own, _ := proxy.Amount(m.Cost, d.Accountant)
		r.Releases = append(r.Releases, batchRelease{Name: m.Name, Table: m.Table.Name, Kind: m.Kind, Cells: m.Spec.Cells, Cost: own, Mechanism: pipeline.MechanismText(m), Why: m.Why, words: m.Cost.String()})
	}
	for _, s := range b.Strategies {
		r.Strategies = append(r.Strategies, batchStrategy(s))
	}
	for _, script := range scripts {
		for _, one := range script.statements {
			if one.Select == 0 {
				continue
			}
			r.Statements = append(r.Statements, r.statement(script, one, b.Statements[one.Select-1], d.Accountant))
		}
	}
	for _, c := range b.Columns {
		column := batchColumn{Table: c.Table.Name, Column: c.Name}
		for _, s := range workload.StepChoices(c, b.Cost) {
			column.Steps = append(column.Steps, batchStep(s))
		}
		r.Columns = append(r.Columns, column)
	}
	return r
}

func (r *batchReport) statement(script pricedScript, one proxy.Priced, s workload.BatchStatement, a privacy.Accountant) batchStatement {
	out := batchStatement{File: script.name, Line: proxy.Line(script.text, one.From), Text: one.Text, Values: s.Values, RMSE: s.RMSE, HalfWidth: s.HalfWidth, ByClamp: s.ByClamp, Sums: s.Sums}
	switch {
	case s.Refusal != nil:
		out.Refusal = s.Refusal.Message
		return out
	case len(s.Measures) == 0:
		return out
	}
	r.Answered++
	for _, m := range s.Measures {
		out.Releases = append(out.Releases, m+1)
	}
	out.Alone, _ = proxy.Amount(s.Alone, a)
	out.Free, out.words = s.From, s.Alone.String()
	return out
}

func (r *batchReport) writeText(out io.Writer) error {
	var b strings.Builder
	b.WriteString("As a batch:\n")
	for i, m := range r.Releases {
		fmt.Fprintf(&b, "  release %d: %s (%s); %s\n    %s\n    %s\n", i+1, m.Name, m.Kind, m.words, m.Mechanism, m.Why)
	}
	if len(r.Strategies) > 0 {
		b.WriteString("  Mean squared error of the statements' values at this cost, each statement's in proportion to asking it alone:\n")
	}
	for _, s := range r.Strategies {
		mark := ""
		if s.Chosen {
			mark = "  <- taken"
		}
		fmt.Fprintf(&b, "    %8.3f  %s%s\n", s.Error, s.Name, mark)
	}
	b.WriteString("  By statement:\n")
	for _, s := range r.Statements {
		fmt.Fprintf(&b, "    %s:%d: %s\n", s.File, s.Line, quoted(s.Text))
		fmt.Fprintf(&b, "      %s\n", s.text())
	}
	fmt.Fprintf(&b, "  The batch costs %s; one by one the same errors cost %s, %.3g times as much. %s\n", r.batch.Cost, r.batch.OneByOne, r.Saving, r.saved())
	if len(r.Columns) > 0 {
		fmt.Fprintf(&b, "  Steps of discretised columns: the error of ranges over one, by a range release for %s, and how far at worst a bound between two steps\n  moves where it snaps (offgrid: snap), with the rows that this takes from one side to the other if the expected ones are spread evenly:\n", r.batch.Cost)
	}
	for _, c := range r.Columns {
		fmt.Fprintf(&b, "    %s.%s\n", c.Table, c.Column)
		for _, s := range c.Steps {
			b.WriteString("      " + s.text() + "\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (s batchStep) text() string {
	text := "steps of " + s.Step
	if s.Declared {
		text += " (declared)"
	}
	if s.Cells == 0 {
		return s.Step + ": " + s.Not
	}
	if text += fmt.Sprintf(": %d cells", s.Cells); s.Not != "" {
		return text + ", " + s.Not
	}
	text += fmt.Sprintf(", RMSE %s rows; a bound moves by %s", figure(s.RMSE), s.Rounding)
	if s.Rows > 0 {
		text += fmt.Sprintf(", about %s rows", figure(s.Rows))
	}
	return text
}

// text says how a statement is answered.
func (s batchStatement) text() string {
	switch {
	case s.Refusal != "":
		return "not part of the batch: " + s.Refusal
	case len(s.Releases) == 0:
		return "asks for nothing that is counted"
	}
	text := "from release " + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Releases), " ", ", "), "[]")
	if s.Values > 0 {
		text += fmt.Sprintf("; RMSE %.4g over %d value%s, at most ±%d", s.RMSE, s.Values, ending(s.Values), s.HalfWidth)
		if s.Sums {
			text += ", and sums"
		}
	}
	if s.ByClamp > 0 {
		text += fmt.Sprintf("; RMSE about %.4g × its clamp", s.ByClamp)
	}
	if s.Free != "" && s.words == (privacy.Cost{}).String() {
		return text + "; one by one free, by " + s.Free
	}
	return text + "; one by one as exact: " + s.words
}

// saved says what the batch saves.
func (r *batchReport) saved() string {
	alone, cost, text := r.batch.OneByOne, r.batch.Cost, "It saves nothing."
	if cost.Fits(alone) {
		text = "It saves " + privacy.Cost{Epsilon: privacy.MicroEpsilon(alone.Epsilon.Micro() - cost.Epsilon.Micro()), Rho: privacy.PicoRho(alone.Rho.Pico() - cost.Rho.Pico())}.String() + "."
	}
	if len(r.Users) > 1 {
		text += fmt.Sprintf("\n  Each of %s pays it once, the dataset's cap once for all of them.", strings.Join(r.Users, ", "))
	}
	return text
}

// figure is a number for reading: four digits, and no exponent.
func figure(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

// quoted is a statement on one line, cut.
func quoted(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > longestQuoted {
		line = append(line[:longestQuoted-2], []rune(" …")...)
	}
	return string(line)
}
