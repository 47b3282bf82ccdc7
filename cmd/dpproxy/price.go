package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/service"
)

// pricing is what the command line asks of `dpproxy price`.
type pricing struct {
	path, user, dataset, dialect string
	users                        []string
	set                          []string
	each, json, fresh            bool
	epsilon                      string
}

func priceCommand() *cobra.Command {
	var o pricing
	cmd := &cobra.Command{
		Use:   "price --policy policy.yaml --user NAME report.sql…",
		Short: "Say what the statements of existing reports would cost, and why some would be refused",
		Long: `Plans each statement of the files as a session of the user would, and charges nothing. It reads no private row: where
a price depends on the rows of a public table it connects to the database and copies that table. Statements follow
each other as in one session: SET, transactions and PREPARE apply to those behind it, and what one buys is free for the next; --each prices each by itself. A refused statement ends no transaction here, so that all refusals are told. The user's own releases and balance are read from the ledger where there is one.
A file named - is standard input. Behind it: what all statements would cost as a batch
that dpproxy release buys, with which releases and errors, and what the steps of discretised columns cost and gain.
With several users each is priced by herself, and the batch is what all of them would pay for once.
Exits with 0 when every statement is answered within the budget, with 3 when not.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return price(cmd.Context(), o, args, cmd.InOrStdin(), cmd.OutOrStdout(), logger(cmd))
		},
	}
	policyFlag(cmd, &o.path)
	flags := cmd.Flags()
	flags.StringArrayVar(&o.users, "user", nil, "whose settings, history and budget to plan with; may be repeated, for a batch that several pay for")
	flags.StringVar(&o.dataset, "dataset", "", "the dataset; needed where she has budgets in several")
	flags.StringVar(&o.dialect, "dialect", "", "the SQL of the files: "+strings.Join(parse.Dialects, " or ")+" (default: the user's setting)")
	flags.StringArrayVar(&o.set, "set", nil, "a setting of the session, such as dp.epsilon=0.05; may be repeated")
	flags.StringVar(&o.epsilon, "epsilon", "", "what a batch of all statements may cost (default: as much as they cost one by one)")
	flags.BoolVar(&o.each, "each", false, "price each statement by itself")
	flags.BoolVar(&o.fresh, "fresh", false, "leave the ledger alone: no history, the whole budget")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// pricedScript is one file of statements, priced.
type pricedScript struct {
	name, text string
	statements []proxy.Priced
}

func price(ctx context.Context, o pricing, files []string, in io.Reader, out io.Writer, log *slog.Logger) error {
	p, err := service.ReadPolicy(o.path)
	if err != nil {
		return err
	}
	if len(o.users) == 0 {
		return exitCode{2, errors.New("--user is missing: whose budget is it?")}
	}
	d, err := o.datasetOfAll(p)
	if err != nil {
		return err
	}
	o.dataset = d.ID
	scripts := make([]pricedScript, len(files))
	for i, name := range files { // all of them before any work: a wrong name is reported at once
		if scripts[i], err = readScript(name, in); err != nil {
			return err
		}
	}
	engine, err := pricingEngine(ctx, p, log)
	if err != nil {
		return err
	}
	if engine != nil {
		defer engine.Close()
	}
	public := &publicCopies{ctx: ctx, of: p, log: log}
	defer public.Close()
	p = public.lists()
	reports := make([]*pricedReport, len(o.users))
	var first *proxy.Pricer
	for i := len(o.users) - 1; i >= 0; i-- { // the first one's session plans the batch, as that of dpproxy release
		o.user = o.users[i]
		if first, err = o.pricer(ctx, p, log); err != nil {
			return err
		}
		first.Public = public
		if engine != nil {
			first.Engine = engine
		}
		for i := range scripts {
			if scripts[i].statements, err = first.Script(ctx, scripts[i].text); err != nil {
				return err
			}
		}
		reports[i] = priceReport(o, first, scripts)
	}
	if reports[len(reports)-1].Batch, err = o.batch(first, scripts); err != nil {
		return err
	}
	return o.print(reports, out)
}

// print prints what each user would pay. Of several users' reports the last one has the batch.
func (o pricing) print(reports []*pricedReport, out io.Writer) error {
	dear := 0
	for _, r := range reports {
		dear += r.Total.Refused + r.Total.OverBudget
	}
	var err error
	switch {
	case o.json && len(reports) == 1:
		err = asJSON(reports[0], out)
	case o.json:
		err = asJSON(reports, out)
	default:
		for _, r := range reports {
			if err == nil {
				err = r.writeText(out)
			}
		}
	}
	if err == nil && dear > 0 {
		return exitCode{code: 3}
	}
	return err
}

func readScript(name string, in io.Reader) (pricedScript, error) {
	s := pricedScript{name: name}
	var data []byte
	var err error
	if name == "-" {
		s.name = "standard input"
		data, err = io.ReadAll(in)
	} else {
		data, err = os.ReadFile(name)
	}
	s.text = strings.TrimPrefix(string(data), "\ufeff")
	return s, err
}

// pricer makes the session that prices.
func (o pricing) pricer(ctx context.Context, p *policy.Policy, log *slog.Logger) (*proxy.Pricer, error) {
	p = p.For(o.user)
	d, err := o.chosen(p)
	if err != nil {
		return nil, err
	}
	pricer := newPricer(p, d, o.user, log)
	pricer.Each = o.each
	if !o.fresh {
		o.remember(ctx, pricer, log)
	}
	set := o.set
	if o.dialect != "" {
		set = append(slices.Clone(set), "dp.dialect="+o.dialect)
	}
	for _, pair := range set {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, exitCode{2, fmt.Errorf("--set is %q, must be name=value", pair)}
		}
		if err := pricer.Set(strings.TrimSpace(name), strings.TrimSpace(value)); err != nil {
			return nil, exitCode{2, err}
		}
	}
	return pricer, nil
}

// newPricer makes the session of a user who has spent nothing.
func newPricer(p *policy.Policy, d *policy.Dataset, user string, log *slog.Logger) *proxy.Pricer {
	b, _ := d.Budget(user)
	pricer := &proxy.Pricer{Policy: p, Dataset: d, User: user, Now: time.Now(), Log: log, Private: dialect.PostgreSQL,
		Balance: ledger.Balance{User: d.Holder(user), Dataset: d.ID, Limit: b.Cost}}
	if b.Lifetime != nil {
		pricer.Balance.LifeLimit = b.Lifetime.Cost
	}
	switch {
	case p.Backend.Snapshot != nil:
		pricer.Private = dialect.Snapshot
	case strings.HasPrefix(p.Backend.URL, "duckdb"):
		pricer.Private = dialect.DuckDB
	case p.Backend.Spark():
		pricer.Private = dialect.Spark
	}
	return pricer
}

// chosen is the dataset that is priced for.
func (o pricing) chosen(p *policy.Policy) (*policy.Dataset, error) {
	var open []*policy.Dataset
	var names []string
	for _, d := range p.Datasets {
		if _, ok := d.Budget(o.user); ok && (o.dataset == "" || o.dataset == d.ID) {
			open, names = append(open, d), append(names, d.ID)
		}
	}
	if p.User(o.user) == nil {
		return nil, exitCode{2, fmt.Errorf("there is no user %q in %s", o.user, o.path)}
	}
	switch {
	case len(open) == 1:
		return open[0], nil
	case len(open) == 0 && o.dataset != "":
		return nil, exitCode{2, fmt.Errorf("%s has no budget in a dataset %q", o.user, o.dataset)}
	case len(open) == 0:
		return nil, exitCode{2, fmt.Errorf("%s has no budget in any dataset", o.user)}
	}
	return nil, exitCode{2, fmt.Errorf("%s has budgets in %s: name one by --dataset", o.user, strings.Join(names, ", "))}
}

// datasetOfAll is the dataset in which all users have budgets.
func (o pricing) datasetOfAll(p *policy.Policy) (*policy.Dataset, error) {
	var chosen *policy.Dataset
	for _, user := range o.users {
		o.user = user
		d, err := o.chosen(p)
		if err != nil {
			return nil, err
		}
		if chosen != nil && d != chosen {
			return nil, exitCode{2, fmt.Errorf("%s has a budget in %s, %s in %s: name one dataset by --dataset", o.users[0], chosen.ID, user, d.ID)}
		}
		chosen = d
	}
	return chosen, nil
}

// remember reads the user's own releases and balance. A ledger that cannot be read is reported, and priced without.
func (o pricing) remember(ctx context.Context, pricer *proxy.Pricer, log *slog.Logger) {
	l, err := ledger.Open(ctx, pricer.Policy.Ledger.URL, service.LedgerOptions(pricer.Policy, ledger.Options{ReadOnly: true}, slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Info("no ledger is read: priced without a history and with the whole budget", "reason", err)
		return
	}
	defer l.Close()
	pricer.Now = l.Now()
	pricer.Held = slices.Clone(l.Holdings(o.user, pricer.Dataset.ID))
	if b, err := l.Balance(ctx, o.user, pricer.Dataset.ID); err == nil {
		pricer.Balance = b
	}
}

// pricingEngine is the sandbox that outer queries are tried in: one of dpproxy's own, with the columns of public tables
// and none of their rows. A server of the owner's is not asked; nil then.
func pricingEngine(ctx context.Context, p *policy.Policy, log *slog.Logger) (sandbox.Engine, error) {
	if p.Sandbox.URL != "" {
		return nil, nil
	}
	engine, err := service.OpenSandbox(p, log)
	if err == nil {
		err = engine.Catalog(ctx, p)
	}
	for _, d := range p.Datasets {
		var tables []sandbox.Table
		for _, t := range d.Tables {
			if t.Public {
				tables = append(tables, pipeline.PublicTable(t, privacy.Published([][]policy.Value{})))
			}
		}
		if err == nil && len(tables) > 0 {
			err = engine.Load(ctx, d.ID, tables...)
		}
	}
	if err != nil && engine != nil {
		engine.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return engine, nil
}
