package policy

import (
	"encoding/json"

	"github.com/invopop/jsonschema"
)

// Marks in the schema that only the strictness check reads.
const (
	markLater = "x-not-available-yet" // on a key: giving it is refused
	markEnum  = "x-later"             // values that an enumeration will have
)

// Schema is the JSON Schema of the policy file, for editors.
func Schema() []byte {
	text, err := json.MarshalIndent(schema(), "", "  ")
	if err != nil {
		panic("policy: schema: " + err.Error()) // it is made of constants
	}
	return append(text, '\n')
}

func schema() *jsonschema.Schema {
	s := reflected(&fileT{})
	s.Version = jsonschema.Version
	s.Title = "dpproxy policy"
	return s
}

func reflected(v any) *jsonschema.Schema {
	r := jsonschema.Reflector{
		Anonymous: true, DoNotReference: true, ExpandedStruct: true, FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true,
	}
	s := r.Reflect(v)
	s.Version = ""
	return s
}

// JSONSchema says that a decimal is a number.
func (decimal) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "number"} }

// JSONSchema says that an integer is a whole number.
func (integer) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "integer"} }

// JSONSchema says that a scalar is anything that fits on a line.
func (scalar) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
}

// JSONSchema says that the key is refused for now.
func (later) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Not:    &jsonschema.Schema{},
		Title:  "not available yet",
		Extras: map[string]any{markLater: true},
	}
}

// JSONSchema says that a unit is `row` or a mapping.
func (unitT) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Enum: []any{"row"}}, reflected(&keyT{})}}
}

// JSONSchema says that a unique key is a column's name or a list of names.
func (uniqueT) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}}}}
}

// JSONSchema says that extremes are a boolean or the word declared.
func (extremesT) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "boolean"}, {Type: "string", Enum: []any{"declared"}}}}
}

// JSONSchema says that appends is a column's name or a mapping.
func (appendsT) JSONSchema() *jsonschema.Schema {
	type mapping appendsT
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, reflected((*mapping)(nil))}}
}

// JSONSchema says that a domain is a mapping or the word private or any.
func (domainT) JSONSchema() *jsonschema.Schema {
	type mapping domainT
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{reflected(&mapping{}), {Type: "string", Enum: []any{"private", "any"}}}}
}

// JSONSchema says that a release's column is a name or a mapping with a wider step.
func (releaseColumnT) JSONSchema() *jsonschema.Schema {
	type mapping releaseColumnT // without this method
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, reflected(&mapping{})}}
}
