package proxy

import (
	"context"

	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/sandbox"
)

// namesFor reads what is needed to write named objects of columns in binary: the sandbox gives their names alone.
// Catalogs hold what the policy says and nothing of the private data, so this is free.
func (c *session) namesFor(ctx context.Context, columns []sandbox.Column, formats []int16) (encoding.ObjectNames, error) {
	var names encoding.ObjectNames
	for i, column := range columns {
		t := column.Type
		if element, ok := encoding.ElementOf(t); ok {
			t = element
		}
		text := encoding.NamesQuery(t)
		if text == "" || encoding.Format(formats, i) != 1 || names[t] != nil {
			continue
		}
		if names == nil {
			names = encoding.ObjectNames{}
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
