package proxy

import (
	"context"
	"fmt"

	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
)

// PREPARE and EXECUTE as statements. What PREPARE names, the extended protocol finds too, and the other way round.

func (c *session) prepareNamed(ctx context.Context, k *command) error {
	if c.statements[k.name] != nil {
		return failure("42P05", fmt.Sprintf("prepared statement %q already exists", k.name))
	}
	if err := c.mayPrepare(); err != nil {
		return err
	}
	stmt := &prepared{command: &command{Statement: *k.Inner}, given: k.ParamTypes}
	if err := c.infer(ctx, stmt); err != nil {
		return err
	}
	c.statements[k.name] = stmt
	return nil
}

// executeNamed answers a prepared SELECT. Its arguments are constants: they are computed first, which is free.
func (c *session) executeNamed(ctx context.Context, k *command, params []policy.Value) (Result, error) {
	stmt := c.statements[k.name]
	if stmt == nil {
		return Result{}, missingStatement(k.name)
	}
	if stmt.command == nil || stmt.command.Kind != planner.KindSelect {
		return Result{}, failure("DP002", "EXECUTE runs a prepared SELECT only").withHint("Send the statement itself.")
	}
	if err := c.renew(ctx, stmt); err != nil {
		return Result{}, err
	}
	if k.ArgumentCount != len(stmt.params) {
		f := failure("42601", fmt.Sprintf("wrong number of parameters for prepared statement %q", k.name))
		f.Detail = fmt.Sprintf("Expected %d parameters but got %d.", len(stmt.params), k.ArgumentCount)
		return Result{}, f
	}
	var arguments []policy.Value
	if len(stmt.params) > 0 {
		computed, err := c.ask(ctx, k.Arguments(stmt.params), params)
		if err != nil {
			return Result{}, err
		}
		arguments = computed.Rows.Value().Data[0]
	}
	return c.selectRows(ctx, stmt.command.Statement, arguments)
}
