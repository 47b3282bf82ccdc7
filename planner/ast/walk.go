package ast

import (
	"cmp"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/refuse"
)

// SameTree tells that two trees are equal but for the places in the text that they came from.
func SameTree(a, b *pg.Node) bool {
	x, y := proto.Clone(a), proto.Clone(b)
	placeless(x.ProtoReflect())
	placeless(y.ProtoReflect())
	return proto.Equal(x, y)
}

func placeless(m protoreflect.Message) {
	Each(m, func(m protoreflect.Message) {
		m.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			if strings.HasSuffix(string(field.Name()), "location") {
				m.Clear(field)
			}
			return true
		})
	})
}

// PlaceAt gives every node of a tree one place.
func PlaceAt(m protoreflect.Message, pos int32) {
	Each(m, func(m protoreflect.Message) {
		if field := m.Descriptor().Fields().ByName("location"); field != nil && field.Kind() == protoreflect.Int32Kind {
			m.Set(field, protoreflect.ValueOfInt32(pos))
		}
	})
}

// Each visits a tree, from the top.
func Each(m protoreflect.Message, visit func(protoreflect.Message)) {
	visit(m)
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsList() && field.Message() != nil:
			for i := range v.List().Len() {
				Each(v.List().Get(i).Message(), visit)
			}
		case !field.IsList() && field.Message() != nil:
			Each(v.Message(), visit)
		}
		return true
	})
}

// IsSubLink tells a sub-query of an expression.
func IsSubLink(n *pg.Node) bool { return n.GetSubLink() != nil }

// Copied is a node made anew, without places in the text: part makes its parts. Names and numbers of the grammar's own
// are copied.
func Copied(n *pg.Node, part func(*pg.Node) (*pg.Node, *refuse.Refusal)) (*pg.Node, *refuse.Refusal) {
	out, refusal := copied(n.ProtoReflect(), part)
	if refusal != nil {
		return nil, refusal
	}
	return out.Interface().(*pg.Node), nil
}

// CopiedList is a list of nodes made anew.
func CopiedList(list []*pg.Node, part func(*pg.Node) (*pg.Node, *refuse.Refusal)) ([]*pg.Node, *refuse.Refusal) {
	var out []*pg.Node
	for _, n := range list {
		made, refusal := partOf(n, part)
		if refusal != nil {
			return nil, refusal
		}
		out = append(out, cmp.Or(made, &pg.Node{})) // the empty node of DISTINCT
	}
	return out, nil
}

func partOf(n *pg.Node, part func(*pg.Node) (*pg.Node, *refuse.Refusal)) (*pg.Node, *refuse.Refusal) {
	switch n.GetNode().(type) {
	case *pg.Node_String_, *pg.Node_Integer, *pg.Node_AStar:
		return Copied(n, part)
	}
	return part(n)
}

func copied(m protoreflect.Message, part func(*pg.Node) (*pg.Node, *refuse.Refusal)) (protoreflect.Message, *refuse.Refusal) {
	out, fields := m.New(), m.Descriptor().Fields()
	for i := range fields.Len() { // in their order, which is that of the text
		field := fields.Get(i)
		switch {
		case field.Name() == "location":
			out.Set(field, protoreflect.ValueOfInt32(-1))
		case !m.Has(field):
		case field.IsList():
			for k := range m.Get(field).List().Len() {
				made, refusal := CopiedList([]*pg.Node{m.Get(field).List().Get(k).Message().Interface().(*pg.Node)}, part)
				if refusal != nil {
					return nil, refusal
				}
				out.Mutable(field).List().Append(protoreflect.ValueOfMessage(made[0].ProtoReflect()))
			}
		case field.Message() == nil:
			out.Set(field, m.Get(field))
		default:
			of := m.Get(field).Message()
			if n, ok := of.Interface().(*pg.Node); ok {
				made, refusal := partOf(n, part)
				if refusal != nil {
					return nil, refusal
				}
				if made != nil {
					out.Set(field, protoreflect.ValueOfMessage(made.ProtoReflect()))
				}
				continue
			}
			made, refusal := copied(of, part)
			if refusal != nil {
				return nil, refusal
			}
			out.Set(field, protoreflect.ValueOfMessage(made))
		}
	}
	return out, nil
}
