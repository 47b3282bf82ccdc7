package proxy

import (
	"context"
	"fmt"
	"strings"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/settings"
)

// What a statement of a priced script does to those behind it, as in a session: settings and their transactions,
// prepared statements.

// asked is the SELECT that a statement holds, or is.
func (k *command) asked() parse.Statement {
	if k.Inner != nil {
		return *k.Inner
	}
	return k.Statement
}

// control does what a statement that asks nothing does to those behind it.
func (p *Pricer) control(k *command) error {
	s := p.session()
	switch k.Kind {
	case parse.KindSet:
		return p.set(k)
	case parse.KindReset:
		if k.name != "" {
			return asError(s.Reset(k.name, false))
		}
		s.ResetAll()
	case parse.KindDiscard:
		return p.discard(k.name)
	case parse.KindBegin:
		return p.tx.begin(s, k.modes)
	case parse.KindCommit, parse.KindRollback:
		return p.finish(k)
	case parse.KindSavepoint:
		if !p.tx.block {
			return outsideBlock("SAVEPOINT")
		}
		p.tx.savepoints = append(p.tx.savepoints, savepoint{name: k.name, state: s.State()})
	case parse.KindReleaseSavepoint:
		at, err := p.tx.find(k.name, "RELEASE SAVEPOINT")
		if err != nil {
			return err
		}
		p.tx.savepoints = p.tx.savepoints[:at]
	case parse.KindRollbackTo:
		at, err := p.tx.find(k.name, "ROLLBACK TO SAVEPOINT")
		if err != nil {
			return err
		}
		p.tx.savepoints = p.tx.savepoints[:at+1]
		s.Restore(p.tx.savepoints[at].state)
	case parse.KindPrepare:
		return p.prepare(k)
	case parse.KindDeallocate:
		if k.name == "" {
			clear(p.prepared)
		}
		delete(p.prepared, k.name)
	}
	return nil
}

func (p *Pricer) finish(k *command) error {
	s, commit, modes := p.session(), k.Kind == parse.KindCommit, [][2]string(nil)
	if k.chain {
		if modes = s.Modes(); !p.tx.block {
			return outsideBlock(map[bool]string{true: "COMMIT", false: "ROLLBACK"}[commit] + " AND CHAIN")
		}
	}
	p.tx.end(s, commit)
	if k.chain {
		return p.tx.chained(s, modes)
	}
	return nil
}

func (p *Pricer) set(k *command) error {
	s := p.session()
	for _, pair := range k.modes {
		if f := s.Set(pair[0], pair[1], k.local); f != nil {
			return f
		}
	}
	switch {
	case len(k.modes) > 0:
		return nil
	case k.standard:
		return asError(s.Reset(k.name, k.local))
	}
	if f := p.lasting(k.name, k.local); f != nil {
		return f
	}
	return asError(s.Set(k.name, k.value, k.local))
}

// lasting refuses a setting that would end with itself.
func (p *Pricer) lasting(name string, local bool) *pgerror.Failure {
	if p.tx.block {
		return nil
	}
	return vanishing(p.session(), name, local)
}

func (p *Pricer) discard(what string) error {
	switch strings.ToLower(what) {
	case "", "all":
		if p.tx.block {
			return pgerror.New("25001", "DISCARD ALL cannot run inside a transaction block")
		}
		clear(p.prepared)
		p.session().ResetAll()
	}
	return nil
}

func (p *Pricer) prepare(k *command) error {
	if _, there := p.prepared[k.name]; there {
		return pgerror.New("42P05", fmt.Sprintf("prepared statement %q already exists", k.name))
	}
	if p.prepared == nil {
		p.prepared = map[string]parse.Statement{}
	}
	p.prepared[k.name] = *k.Inner
	return nil
}

// execute prices EXECUTE of what the script has prepared. Arguments are values, which a session computes when it runs.
func (p *Pricer) execute(ctx context.Context, out Priced, k *command) Priced {
	stmt, ok := p.prepared[k.name]
	switch {
	case !ok:
		return out.refused(missingStatement(k.name))
	case k.ArgumentCount > 0:
		out.Status, out.Notes = PricedSession, []string{"EXECUTE with arguments is not priced: write the statement with its values"}
		return out
	}
	return p.query(ctx, out, stmt)
}

// assignable checks what set_config sets, before the statement is planned.
func (p *Pricer) assignable(a parse.Assignment) *pgerror.Failure {
	switch {
	case a.Each: // rows give it
		return nil
	case a.Name == "":
		return pgerror.New("22004", "SET requires parameter name")
	case a.Reset:
		_, f := settings.Resettable(a.Name)
		return f
	}
	if _, _, f := p.session().Check(a.Name, a.Value); f != nil {
		return f
	}
	return p.lasting(a.Name, a.Local)
}

func (p *Pricer) assign(a parse.Assignment) error {
	if a.Each {
		return nil
	}
	if a.Reset {
		return asError(p.session().Reset(a.Name, a.Local))
	}
	return asError(p.session().Set(a.Name, a.Value, a.Local))
}
