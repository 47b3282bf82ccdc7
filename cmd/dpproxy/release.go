package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/workload"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/service"
)

// releasing is what the command line asks of `dpproxy release`.
type releasing struct {
	pricing
	names []string
	trust ledger.Options
}

func releaseCommand() *cobra.Command {
	var o releasing
	cmd := &cobra.Command{
		Use:   "release --policy policy.yaml --user NAME [--epsilon E report.sql…]",
		Short: "Build releases ahead of time: those that the policy declares, or those that answer whole reports",
		Long: `Without files: builds the releases that the policy declares, and charges each named user for each what its first use
would charge her.

With files: reads reports and dashboards, plans all of their statements together, finds the releases that answer them with
the least expected error for --epsilon, buys these, and charges each named user that once and the dataset's cap once. From
then on the statements are free for them through the proxy. Which releases these are depends on the policy, the public tables and the files
alone. What each user pays buys her the same numbers: name only users who may know of each other's reports.

The embedded ledger serves one program at a time: stop the proxy first; a ledger in PostgreSQL serves both. A file named - is standard input.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return release(cmd.Context(), o, args, cmd.InOrStdin(), cmd.OutOrStdout(), logger(cmd))
		},
	}
	policyFlag(cmd, &o.path)
	rollbackFlags(cmd, &o.trust)
	flags := cmd.Flags()
	flags.StringArrayVar(&o.users, "user", nil, "who pays and may use what is built; may be repeated")
	flags.StringVar(&o.dataset, "dataset", "", "the dataset; needed where they have budgets in several")
	flags.StringArrayVar(&o.names, "name", nil, "without files: build this declared release; may be repeated (default: all)")
	flags.StringVar(&o.epsilon, "epsilon", "", "with files: what the releases cost each user together (under zcdp it buys e²/2 of ρ)")
	flags.StringVar(&o.dialect, "dialect", "", "the SQL of the files: postgres or mysql (default: the first user's setting)")
	flags.StringArrayVar(&o.set, "set", nil, "a setting of the session, such as dp.confidence=0.99; may be repeated")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func release(ctx context.Context, o releasing, files []string, in io.Reader, out io.Writer, log *slog.Logger) error {
	if len(o.users) == 0 {
		return exitCode{2, errors.New("--user is missing: who pays?")}
	}
	if len(files) > 0 && o.epsilon == "" {
		return exitCode{2, errors.New("--epsilon is missing: what may the releases cost together?")}
	}
	if len(files) == 0 && o.epsilon != "" {
		return exitCode{2, errors.New("--epsilon is for reports: the policy says what its own releases cost")}
	}
	scripts := make([]pricedScript, len(files))
	for i, name := range files {
		var err error
		if scripts[i], err = readScript(name, in); err != nil {
			return err
		}
	}
	p, err := service.ReadPolicy(o.path)
	if err != nil {
		return err
	}
	d, err := o.datasetOfAll(p)
	if err != nil {
		return err
	}
	if len(files) > 0 { // what is wrong with the reports is said before anything is opened
		if err := o.plan(ctx, p, d, scripts, log, nil, nil); err != nil {
			return err
		}
	}
	opened, err := service.Open(ctx, o.path, o.trust, log)
	if err != nil {
		return err
	}
	defer opened.Close()
	answers := pipeline.NewAnswerer(opened.Backend, opened.Ledger, opened.Engine, rand.Reader, log, proxy.NewMetrics())
	answers.UsePublic(&opened.Public)
	defer answers.Drain()
	b := &builder{o: o, service: opened, answers: answers, out: out}
	b.policy = opened.Policy()
	if b.dataset, err = o.datasetOfAll(b.policy); err != nil {
		return err
	}
	if len(files) == 0 {
		return b.declared(ctx)
	}
	return o.plan(ctx, b.policy, b.dataset, scripts, log, &opened.Public, func(r *batchReport) error { return b.reports(ctx, r) })
}

// manyStatements is the number from which on it is said what takes seconds.
const manyStatements = 100

// plan plans the reports and passes them on; without a receiver it only reports what is wrong, as far as that is known
// without public tables.
func (o releasing) plan(ctx context.Context, p *policy.Policy, d *policy.Dataset, scripts []pricedScript, log *slog.Logger, public *pipeline.PublicRows, then func(*batchReport) error) error {
	epsilon, err := privacy.ParseEpsilon(o.epsilon)
	if err != nil {
		return exitCode{2, fmt.Errorf("--epsilon: %w", err)}
	}
	if epsilon.Micro() == 0 {
		return exitCode{2, errors.New("--epsilon is 0, must be greater")}
	}
	o.user, o.fresh, o.dataset = o.users[0], true, d.ID
	pricer, err := o.pricer(ctx, p, log)
	if err != nil {
		return err
	}
	if public != nil {
		pricer.Public = public
	}
	number := 0
	for i := range scripts {
		if scripts[i].statements, err = pricer.Script(ctx, scripts[i].text); err != nil {
			return err
		}
		number += len(scripts[i].statements)
	}
	if number >= manyStatements {
		log.Info("planning the statements together", "statements", number, "buying", then != nil)
	}
	batch, err := pricer.Batch(epsilon)
	if err != nil {
		return err
	}
	r := newBatchReport(batch, scripts, d, o.users)
	unread := then == nil && slices.ContainsFunc(d.Tables, func(t *policy.Table) bool { return t.Public })
	if r.Answered == 0 && !unread {
		return exitCode{3, errors.New("no statement of the reports counts anything that could be released: dpproxy price says why")}
	}
	if then == nil {
		return nil
	}
	return then(r)
}

// builder buys releases in an opened service.
type builder struct {
	o       releasing
	service *service.Service
	answers *pipeline.Answerer
	policy  *policy.Policy
	dataset *policy.Dataset
	out     io.Writer
}

// declared builds the releases of the policy, each by itself: one that a budget does not hold leaves the others.
func (b *builder) declared(ctx context.Context) error {
	built, failed, known := 0, 0, []string{}
	for _, t := range b.dataset.Tables {
		for _, r := range t.All() {
			if r.Kind == policy.OnlineRelease && len(b.o.names) == 0 {
				continue // its first question opens it
			}
			if known = append(known, r.Name); len(b.o.names) > 0 && !slices.Contains(b.o.names, r.Name) {
				continue
			}
			plan, err := declaredPlan(b.dataset, r)
			if err != nil {
				return fmt.Errorf("release %s: %w", r.Name, err)
			}
			fmt.Fprintf(b.out, "%s: %s over %s; %s\n", r.Name, r.Kind, t.Name, pipeline.MechanismText(plan.Measures[0]))
			for _, user := range b.o.users {
				if b.buyDeclared(ctx, user, r.Name) {
					built++
				} else {
					failed++
				}
			}
		}
	}
	for _, name := range b.o.names {
		if !slices.Contains(known, name) {
			return exitCode{2, fmt.Errorf("there is no release %s in dataset %s", name, b.dataset.ID)}
		}
	}
	if built+failed == 0 {
		fmt.Fprintf(b.out, "dataset %s declares no releases\n", b.dataset.ID)
	}
	if failed > 0 {
		return exitCode{code: 3}
	}
	return nil
}

// declaredPlan is a plan that buys a release which the policy declares.
func declaredPlan(d *policy.Dataset, r *policy.Release) (*plans.Plan, error) {
	m, err := choose.DeclaredMeasure(r)
	if err != nil {
		return nil, err
	}
	return (&workload.Batch{Dataset: d, Measures: []*plans.Measure{m}, Cost: m.Cost}).Plan(), nil
}

// buyDeclared buys a declared release for one user, at her level of trust.
func (b *builder) buyDeclared(ctx context.Context, user, name string) bool {
	d := b.policy.For(user).Dataset(b.dataset.ID)
	for _, t := range d.Tables {
		for _, r := range t.All() {
			if r.Name != name {
				continue
			}
			if plan, err := declaredPlan(d, r); err == nil {
				return b.buy(ctx, user, plan)
			}
		}
	}
	fmt.Fprintf(b.out, "    %s: does not have it at level %s\n", user, d.Level.Name)
	return false
}

// buy buys a plan for one user, and says what it cost.
func (b *builder) buy(ctx context.Context, user string, plan *plans.Plan) bool {
	charged, err := b.answers.Purchase(ctx, b.policy, user, plan)
	var f *pgerror.Failure
	switch {
	case errors.As(err, &f):
		fmt.Fprintf(b.out, "    %s: %s. %s\n", user, f.Message, f.Detail)
	case err != nil:
		fmt.Fprintf(b.out, "    %s: %v\n", user, err)
	case charged.IsZero():
		fmt.Fprintf(b.out, "    %s: has paid for it already\n", user)
	default:
		fmt.Fprintf(b.out, "    %s: charged %s\n", user, charged)
	}
	return err == nil
}

// reports buys what answers the reports. All budgets are looked at first: a release that one of the users cannot pay
// for should not be chosen for all.
func (b *builder) reports(ctx context.Context, r *batchReport) error {
	plan := r.batch.Plan()
	for _, user := range b.o.users {
		balance, err := b.service.Ledger.Balance(ctx, user, b.dataset.ID)
		if err != nil {
			return fmt.Errorf("ledger: %w", err)
		}
		if !balance.Holds(plan.Charge()) {
			return exitCode{3, fmt.Errorf("the budget of %s does not hold it: it costs %s, and %s of %s is spent; nothing was charged", user, r.batch.Cost, balance.Spent, balance.Limit)}
		}
	}
	failed := false
	said := b.out
	if b.o.json {
		b.out = io.Discard
	}
	if !b.o.json {
		if err := r.writeText(b.out); err != nil {
			return err
		}
	}
	for _, user := range b.o.users {
		failed = !b.buy(ctx, user, plan) || failed
	}
	if b.o.json {
		if err := asJSON(r, said); err != nil {
			return err
		}
	}
	if failed {
		return exitCode{code: 3}
	}
	return nil
}
