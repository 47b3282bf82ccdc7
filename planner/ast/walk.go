package ast

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// SameTree tells that two trees are equal but for the places in the text that they came from.
func SameTree(a, b *pg.Node) bool {
	x, y := proto.Clone(a), proto.Clone(b)
	placeless(x.ProtoReflect())
	placeless(y.ProtoReflect())
	return proto.Equal(x, y)
}

// placeless clears the locations of a tree.
func placeless(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case strings.HasSuffix(string(field.Name()), "location"):
			m.Clear(field)
		case field.IsList() && field.Message() != nil:
			for i := range v.List().Len() {
				placeless(v.List().Get(i).Message())
			}
		case !field.IsList() && field.Message() != nil:
			placeless(v.Message())
		}
		return true
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
