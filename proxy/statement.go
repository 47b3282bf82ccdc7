package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/proxy/settings"
	"github.com/dpproxy/dpproxy/sandbox"
)

// check brings the session up to the policy in force, and refuses what cannot run in the state of the transaction.
func (c *session) check(kind parse.StatementKind) error {
	if err := c.refresh(); err != nil {
		return err
	}
	return c.may(kind)
}

// may refuses what cannot run in the state of the transaction.
func (c *replies) may(kind parse.StatementKind) error {
	switch kind {
	case parse.KindCommit, parse.KindRollback, parse.KindRollbackTo:
		return nil
	}
	if c.tx.failed {
		return pgerror.New("25P02", "current transaction is aborted, commands ignored until end of transaction block")
	}
	return nil
}

// perform runs one command, under the policy that it was read, or bound, under. The result has rows if the command
// returns rows, and its tag in any case.
func (c *session) perform(ctx context.Context, k *command, params []policy.Value) (pipeline.Result, error) {
	if err := c.may(k.Kind); err != nil {
		return pipeline.Result{}, err
	}
	c.pace.awaitGrid()
	c.enter()
	c.server.metrics.ran(k.Kind)
	switch k.Kind {
	case parse.KindCopy:
		return c.copyRows(ctx, k, params)
	case parse.KindDeclare:
		return c.declare(ctx, k, params)
	case parse.KindFetch:
		return c.fetchCursor(ctx, k)
	case parse.KindPrepare:
		return pipeline.Result{Tag: "PREPARE"}, c.prepareNamed(ctx, k)
	case parse.KindExecute:
		return c.executeNamed(ctx, k, params)
	case parse.KindExplain:
		if k.Explain.Statement.Kind == parse.KindExecute {
			return c.explainNamed(ctx, k, params)
		}
	}
	if !k.own() {
		return c.selectRows(ctx, k.Statement, params)
	}
	if k.Kind == parse.KindShow {
		return c.show(k)
	}
	tag, err := c.control(k)
	return pipeline.Result{Tag: tag}, err
}

// selectRows has the pipeline answer a statement, and sets what it sets.
func (c *session) selectRows(ctx context.Context, stmt parse.Statement, params []policy.Value) (pipeline.Result, error) {
	assigned, f := c.assigned(stmt, params)
	if f != nil {
		return pipeline.Result{}, f
	}
	result, err := c.ask(ctx, stmt, params)
	if errors.Is(err, pipeline.ErrUnknownName) {
		err = settings.Unknown(stmt.Name, pipeline.Budget)
	}
	if err == nil && !result.Rows.Valid() {
		err = encoding.ErrMismatch // nothing was released: there is nothing to show
	}
	if err != nil {
		return result, err
	}
	return c.act(ctx, stmt, assigned, result)
}

// assigned are the variables that a SELECT sets, checked before anything is charged.
func (c *session) assigned(stmt parse.Statement, params []policy.Value) ([]parse.Assignment, *pgerror.Failure) {
	var list []parse.Assignment
	for _, a := range stmt.Assignments {
		if a.Param > 0 && a.Param <= len(params) {
			value, ok := params[a.Param-1].(string)
			a.Value, a.Reset = value, !ok // NULL
		}
		if f := c.assignable(a); f != nil && !a.Each {
			return nil, f
		}
		list = append(list, a)
	}
	return list, nil
}

// assignable returns why a SELECT cannot set a variable, or nil if it can.
func (c *session) assignable(a parse.Assignment) (f *pgerror.Failure) {
	switch {
	case a.Name == "":
		return pgerror.New("22004", "SET requires parameter name")
	case a.Reset:
		_, f = settings.Resettable(a.Name)
		return f
	}
	if _, _, f = c.settings.Check(a.Name, a.Value); f != nil {
		return f
	}
	return c.lasting(a.Name, a.Local)
}

// control runs a command that returns no rows.
func (c *session) control(k *command) (tag string, err error) {
	switch k.Kind {
	case parse.KindSet:
		return "SET", c.assign(k)
	case parse.KindReset:
		if k.name == "" {
			c.settings.ResetAll()
			return "RESET", nil
		}
		return "RESET", asError(c.settings.Reset(k.name, false))
	case parse.KindDiscard:
		return c.discard(k.name)
	case parse.KindDeallocate:
		return c.deallocate(k.name)
	case parse.KindBegin:
		tag = "BEGIN"
		if strings.HasPrefix(strings.ToLower(k.Text), "start") {
			tag = "START TRANSACTION"
		}
		return tag, c.begin(k.modes)
	case parse.KindCommit:
		if k.chain && !c.tx.block {
			return "", outsideBlock("COMMIT AND CHAIN")
		}
		modes := c.modes(k)
		tag = c.commit()
		return tag, c.chain(k, modes)
	case parse.KindRollback:
		if k.chain && !c.tx.block {
			return "", outsideBlock("ROLLBACK AND CHAIN")
		}
		modes := c.modes(k)
		c.rollback()
		return "ROLLBACK", c.chain(k, modes)
	case parse.KindSavepoint:
		return "SAVEPOINT", c.savepoint(k.name)
	case parse.KindReleaseSavepoint:
		return "RELEASE", c.releaseSavepoint(k.name)
	case parse.KindRollbackTo:
		return "ROLLBACK", c.rollbackTo(k.name)
	case parse.KindClose:
		return c.closeCursor(k.Name)
	case parse.KindNothing:
		if k.Name == "LOCK TABLE" && !c.tx.block && !c.several {
			return "", outsideBlock(k.Name)
		}
		return k.Name, nil
	}
	if k.refusal != nil {
		return "", k.refusal
	}
	return "", pgerror.New("0A000", "this statement is not available")
}

// modes are those of the transaction that AND CHAIN ends.
func (c *replies) modes(k *command) [][2]string {
	if !k.chain {
		return nil
	}
	return c.settings.Modes()
}

// chain begins the next transaction of AND CHAIN, with the modes of the last.
func (c *replies) chain(k *command, modes [][2]string) error {
	if !k.chain {
		return nil
	}
	return c.tx.chained(c.settings, modes)
}

func (c *session) assign(k *command) error {
	if k.local && !c.tx.block && !c.several {
		what := "SET LOCAL"
		if k.name == "transaction" {
			what = "SET TRANSACTION"
		}
		c.notify(warning("25P01", what+" can only be used in transaction blocks"))
	}
	if f := c.lasting(k.name, k.local); f != nil && !k.standard {
		return f
	}
	if len(k.modes) > 0 {
		for _, pair := range k.modes {
			if f := c.settings.Set(pair[0], pair[1], k.local); f != nil {
				return f
			}
		}
		return nil
	}
	if k.standard {
		return asError(c.settings.Reset(k.name, k.local))
	}
	return asError(c.settings.Set(k.name, k.value, k.local))
}

// lasting refuses SET dp.epsilon = … where it would end with itself.
func (c *session) lasting(name string, local bool) *pgerror.Failure {
	if c.tx.block || c.several {
		return nil
	}
	return vanishing(c.settings, name, local)
}

// vanishing refuses SET dp.epsilon = … outside a block, for a user whose settings end with the transaction. A quiet
// no-op would let the next statement cost what nobody asked for.
func vanishing(s *settings.Settings, name string, local bool) *pgerror.Failure {
	if local || !s.Scoped(name) {
		return nil
	}
	f := pgerror.New("25P01", fmt.Sprintf("%s can only be set in a transaction block: the policy ends it with the transaction (settings_scope)", strings.ToLower(name)))
	f.Hint = fmt.Sprintf("BEGIN; SET %s = …; SELECT …; COMMIT, or give it at connection start, or in the user's settings in the policy.", strings.ToLower(name))
	return f
}

// asError keeps a nil *Failure from becoming an error that is not nil.
func asError(f *pgerror.Failure) error {
	if f == nil {
		return nil
	}
	return f
}

func (c *session) discard(what string) (string, error) {
	switch strings.ToLower(what) {
	case "", "all":
		switch {
		case c.tx.block || c.several:
			return "", pgerror.New("25001", "DISCARD ALL cannot run inside a transaction block")
		case c.tx.piped:
			return "", pgerror.New("25001", "DISCARD ALL cannot be executed within a pipeline")
		}
		c.dropStatements()
		c.closePortals()
		c.settings.ResetAll()
		c.last.Store(nil)
		return "DISCARD ALL", nil
	case "temp", "temporary":
		return "DISCARD TEMP", nil
	}
	return "DISCARD " + strings.ToUpper(what), nil // plans and sequences: there are none
}

// deallocate drops statements, those of the extended protocol as well.
func (c *objects) deallocate(name string) (string, error) {
	if name == "" {
		c.dropStatements()
		return "DEALLOCATE ALL", nil
	}
	if c.statements[name] == nil {
		return "", missingStatement(name)
	}
	c.dropStatement(name)
	return "DEALLOCATE", nil
}

func missingStatement(name string) *pgerror.Failure {
	if name == "" {
		return pgerror.New("26000", "unnamed prepared statement does not exist")
	}
	return pgerror.New("26000", fmt.Sprintf("prepared statement %q does not exist", name))
}

// show answers SHOW of a variable, or of all.
func (c *replies) show(k *command) (pipeline.Result, error) {
	columns := showColumns(k)
	var data [][]policy.Value
	if k.name == "" {
		for _, line := range c.settings.All() {
			data = append(data, []policy.Value{line[0], line[1], line[2]})
		}
	} else {
		value, f := c.settings.Show(k.name)
		if f != nil {
			return pipeline.Result{}, f
		}
		data = [][]policy.Value{{value}}
	}
	return pipeline.Result{Columns: columns, Rows: privacy.Published(sandbox.Rows{Columns: columns, Data: data}), Tag: "SHOW"}, nil
}

func showColumns(k *command) []sandbox.Column {
	names := []string{"name", "setting", "description"}
	if k.name != "" {
		names = []string{settings.Spelled(k.name)}
	}
	columns := make([]sandbox.Column, len(names))
	for i, n := range names {
		columns[i] = sandbox.Column{Name: n, Type: policy.Text, Typmod: -1}
	}
	return columns
}
