package proxy

import (
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/settings"
)

// command is a statement with what a session must know to run it itself.
type command struct {
	parse.Statement
	// name is the variable of SET, SHOW and RESET, the savepoint, the prepared statement of PREPARE, EXECUTE and
	// DEALLOCATE, the cursor of CLOSE, or what DISCARD drops. It is empty for ALL.
	name     string
	value    string // of SET
	standard bool   // SET … TO DEFAULT
	local    bool   // SET LOCAL
	// modes are the variables that BEGIN, SET TRANSACTION or SET SESSION CHARACTERISTICS sets.
	modes   [][2]string
	chain   bool            // COMMIT or ROLLBACK AND CHAIN
	refusal *refuse.Refusal // set for a statement that is never possible here
}

// own reports whether the session runs the command itself, without the pipeline.
func (k *command) own() bool {
	switch k.Kind {
	case parse.KindSelect, parse.KindExplain:
		return false
	case parse.KindShow:
		return settings.Shows(k.name)
	}
	return true
}

// parseCommands reads the text of a message in PostgreSQL's SQL.
func parseCommands(text string) ([]command, *refuse.Refusal) {
	return parseCommandsAs(text, parse.PostgreSQL, nil)
}

// parseCommandsAs reads it in a dialect.
func parseCommandsAs(text string, dialect parse.Dialect, d *policy.Dataset) ([]command, *refuse.Refusal) {
	statements, refusal := parse.ParseAs(text, dialect, d)
	if refusal != nil {
		return nil, refusal
	}
	commands := make([]command, len(statements))
	for i, s := range statements {
		commands[i] = commandOf(s)
	}
	return commands, nil
}

func commandOf(s parse.Statement) command {
	k := command{Statement: s, local: s.Local, standard: s.Default, chain: s.Chain, name: s.Name}
	switch s.Kind {
	case parse.KindSet:
		switch {
		case s.Name == "transaction":
			k.local, k.modes = true, pairs("", s.Values)
		case s.Name == "session characteristics":
			k.modes = pairs("default_", s.Values)
		default:
			k.value = settings.Written(s)
		}
	case parse.KindBegin:
		k.modes = pairs("", s.Values)
	case parse.KindShow, parse.KindReset, parse.KindDiscard:
		if s.Name == "all" {
			k.name = ""
		}
	case parse.KindDeallocate, parse.KindPrepare, parse.KindExecute:
		k.name = s.Prepared
	case parse.KindSavepoint, parse.KindReleaseSavepoint, parse.KindRollbackTo:
		k.name = s.Savepoint
	case parse.KindOther:
		k.refusal = parse.Refuse(s)
	}
	return k
}

// pairs reads a list of names and values.
func pairs(prefix string, list []string) [][2]string {
	var out [][2]string
	for ; len(list) >= 2; list = list[2:] {
		out = append(out, [2]string{prefix + list[0], list[1]})
	}
	return out
}
