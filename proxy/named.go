package proxy

import (
	"context"
	"fmt"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
)

// PREPARE and EXECUTE as statements. What PREPARE names, the extended protocol finds too, and the other way round.

func (c *session) prepareNamed(ctx context.Context, k *command) error {
	if c.statements[k.name] != nil {
		return pgerror.New("42P05", fmt.Sprintf("prepared statement %q already exists", k.name))
	}
	if err := c.mayPrepare(); err != nil {
		return err
	}
	stmt := &prepared{read: c.reading(), command: &command{Statement: *k.Inner}, given: k.ParamTypes}
	if err := c.infer(ctx, stmt); err != nil {
		return err
	}
	return c.keepStatement(k.name, stmt, true)
}

// executeNamed answers a prepared SELECT.
func (c *session) executeNamed(ctx context.Context, k *command, params []policy.Value) (pipeline.Result, error) {
	stmt, arguments, err := c.named(ctx, &k.Statement, params)
	if err != nil {
		return pipeline.Result{}, err
	}
	return c.selectRows(ctx, stmt, arguments)
}

// explainNamed explains a prepared SELECT with its arguments.
func (c *session) explainNamed(ctx context.Context, k *command, params []policy.Value) (pipeline.Result, error) {
	stmt, arguments, err := c.named(ctx, &k.Explain.Statement, params)
	if err != nil {
		return pipeline.Result{}, err
	}
	whole, explain := k.Statement, *k.Explain
	explain.Statement, whole.Explain = stmt, &explain
	return c.ask(ctx, whole, arguments)
}

// named finds what EXECUTE runs, and computes its arguments. They are constants, so that is free.
func (c *session) named(ctx context.Context, k *parse.Statement, params []policy.Value) (parse.Statement, []policy.Value, error) {
	none := parse.Statement{}
	stmt := c.statements[k.Prepared]
	if stmt == nil {
		return none, nil, missingStatement(k.Prepared)
	}
	if stmt.command == nil || stmt.command.Kind != parse.KindSelect {
		return none, nil, pgerror.New("DP002", "EXECUTE runs a prepared SELECT only").WithHint("Send the statement itself.")
	}
	holds, err := c.holds(stmt)
	if err == nil && !holds {
		err = c.inferAgain(ctx, stmt)
	}
	if err != nil {
		return none, nil, err
	}
	if k.ArgumentCount != len(stmt.params) {
		f := pgerror.New("42601", fmt.Sprintf("wrong number of parameters for prepared statement %q", k.Prepared))
		f.Detail = fmt.Sprintf("Expected %d parameters but got %d.", len(stmt.params), k.ArgumentCount)
		return none, nil, f
	}
	stmt.ran(len(stmt.params))
	if len(stmt.params) == 0 {
		return stmt.command.Statement, nil, nil
	}
	computed, err := c.ask(ctx, k.Arguments(stmt.params), params)
	if err != nil {
		return none, nil, err
	}
	rows := computed.Rows.Value().Data
	if len(rows) != 1 {
		return none, nil, pgerror.New("DP002", "an argument of EXECUTE is a set of rows").WithHint("Give each parameter one value.")
	}
	return stmt.command.Statement, rows[0], nil
}
