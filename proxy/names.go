package proxy

import (
	"context"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// nameTables list the objects of each type that is written as a name in text and as an oid in binary.
var nameTables = map[policy.Type]string{
	oidRegclass: "SELECT oid, oid::pg_catalog.regclass::text FROM pg_catalog.pg_class",
	oidRegtype:  "SELECT oid, oid::pg_catalog.regtype::text FROM pg_catalog.pg_type",
	oidRegproc:  "SELECT oid, oid::pg_catalog.regproc::text FROM pg_catalog.pg_proc",
	oidRegNS:    "SELECT oid, oid::pg_catalog.regnamespace::text FROM pg_catalog.pg_namespace",
	oidRegRole:  "SELECT oid, oid::pg_catalog.regrole::text FROM pg_catalog.pg_roles",
}

// objectNames are the oids of catalog objects by type and name.
type objectNames map[policy.Type]map[string]int64

// oid is the number of a named object.
func (n objectNames) oid(t policy.Type, name string) (int64, bool) {
	if name == "-" && nameTables[t] != "" {
		return 0, true // how the absence of an object is written
	}
	oid, ok := n[t][name]
	return oid, ok
}

// namesFor reads what is needed to write named objects of columns in binary: the sandbox gives their names alone. Catalogs
// hold what the policy says and nothing of the private data, so this is free.
func (c *session) namesFor(ctx context.Context, columns []sandbox.Column, formats []int16) (objectNames, error) {
	var names objectNames
	for i, column := range columns {
		t := column.Type
		if element, ok := elements[t]; ok {
			t = element
		}
		text := nameTables[t]
		if text == "" || format(formats, i) != 1 || names[t] != nil {
			continue
		}
		if names == nil {
			names = objectNames{}
		}
		commands, refusal := c.server.parse(text)
		if refusal != nil {
			return nil, refusal
		}
		result, err := c.ask(ctx, commands[0].Statement, nil)
		if err != nil {
			return nil, err
		}
		names[t] = map[string]int64{}
		for _, row := range result.Rows.Value().Data {
			oid, isNumber := row[0].(int64)
			if name, isText := row[1].(string); isNumber && isText {
				names[t][name] = oid
			}
		}
	}
	return names, nil
}
