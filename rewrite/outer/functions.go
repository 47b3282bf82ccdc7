package outer

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// Functions that tell of the session, the server or the cluster are answered from the session's parameters, or as if
// there were nothing to tell.
//
//	SELECT version(), pg_total_relation_size('people')
//	⇒ SELECT $1::pg_catalog.text AS version, CASE WHEN 'people' IS NOT NULL THEN 0::bigint END AS pg_total_relation_size

// replacedFunction is what a function of the session or the cluster becomes in a PostgreSQL sandbox. In its text "%1",
// "%2" are arguments, "%last" the last one, "$name" what the session gives, as text.
type replacedFunction struct {
	least, most int
	sql         string
	reads       string // the overlaid relation that it looks into
	user        int    // with so many arguments, the first names a user, who is the analyst
}

// replacedValues are the keywords that mean a session parameter.
var replacedValues = map[pg.SQLValueFunctionOp]string{
	pg.SQLValueFunctionOp_SVFOP_CURRENT_USER: "user", pg.SQLValueFunctionOp_SVFOP_USER: "user",
	pg.SQLValueFunctionOp_SVFOP_SESSION_USER: "user", pg.SQLValueFunctionOp_SVFOP_CURRENT_ROLE: "user",
	pg.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG: "database",
}

// A setting is looked up among the session's own; asking PostgreSQL for one that does not exist raises its error.
const settingOf = `(SELECT CASE WHEN pg_catalog.count(*) > 0 THEN pg_catalog.max("dp setting".setting) WHEN "%1" IS NULL OR %lenient THEN NULL
	ELSE pg_catalog.current_setting('dpproxy.unknown') END FROM "pg_catalog.pg_settings" AS "dp setting"
	WHERE pg_catalog.lower("dp setting".name) = pg_catalog.lower("%1"))`

// OidDatabases is pg_database's own number.
const OidDatabases = 1262

// sharedComment is shobj_description(%1, %2): of what the cluster's databases share, databases alone have comments.
const sharedComment = `(SELECT pg_catalog.max("dp comment".description)
	FROM "pg_catalog.pg_shdescription" AS "dp comment"
	WHERE "dp comment".objoid = CAST("%1" AS pg_catalog.oid) AND "%2" = 'pg_database')`

// sharedCatalogs are the oids of the relations whose objects are the cluster's.
const sharedCatalogs = "(1213, 1260, 1261, 1262, 1396, 2396, 2964, 3592, 6000, 6100, 6243)"

var replacedFunctions = func() map[string]replacedFunction {
	name := func(param string) replacedFunction {
		return replacedFunction{0, 0, `CAST("$` + param + `" AS pg_catalog.name)`, "", 0}
	}
	m := map[string]replacedFunction{
		"current_database": name("database"), "current_catalog": name("database"),
		"current_user": name("user"), "session_user": name("user"), "current_role": name("user"), "user": name("user"),
		"pg_client_encoding": name("client_encoding"),
		"version":            {0, 0, `"$version"`, "", 0},
		"pg_backend_pid":     {0, 0, `CAST("$pid" AS pg_catalog.int4)`, "", 0},
		"pg_jit_available":   {0, 0, `false`, "", 0},
		"pg_is_in_recovery":  {0, 0, `false`, "", 0},
		"pg_get_userbyid": {1, 1, `CAST(CASE WHEN CAST("%1" AS pg_catalog.oid) IS NULL THEN NULL WHEN CAST("%1" AS pg_catalog.oid) = 10 THEN '` + pgcatalog.OwnerName + `'
			WHEN CAST("%1" AS pg_catalog.oid) = CAST("$useroid" AS pg_catalog.oid) THEN "$user"
			ELSE 'unknown (OID=' || CAST(CAST("%1" AS pg_catalog.oid) AS pg_catalog.text) || ')' END AS pg_catalog.name)`, "", 0},
		"pg_has_role":            {2, 3, `(CASE WHEN "%last" IS NOT NULL THEN false END)`, "", 0},
		"shobj_description":      {2, 2, sharedComment, "pg_catalog.pg_shdescription", 0},
		"pg_tablespace_location": {1, 1, `CAST('' AS pg_catalog.text)`, "", 0},
		"acldefault":             {2, 2, `CAST(NULL AS pg_catalog.aclitem[])`, "", 0},
		"makeaclitem":            {4, 4, `CAST(NULL AS pg_catalog.aclitem)`, "", 0},
		// No regrole: a literal beside one is read as one, and would name roles.
		"to_regrole":               {1, 1, `CAST(NULL AS pg_catalog.oid)`, "", 0},
		"has_database_privilege":   {2, 3, `("%last" ~* 'connect')`, "", 0},
		"has_tablespace_privilege": {2, 3, `(CASE WHEN "%last" IS NOT NULL THEN false END)`, "", 0},
		"pg_describe_object": {3, 3, `(CASE WHEN CAST("%1" AS pg_catalog.oid) NOT IN ` + sharedCatalogs + `
			THEN pg_catalog.pg_describe_object("%1", "%2", "%3") END)`, "", 0},
		"pg_identify_object": {3, 3, `pg_catalog.pg_identify_object(CASE WHEN CAST("%1" AS pg_catalog.oid)
			NOT IN ` + sharedCatalogs + ` THEN CAST("%1" AS pg_catalog.oid) END, "%2", "%3")`, "", 0},
		// It would make a value of any type.
		"array_in": {3, 3, `(CASE WHEN false THEN pg_catalog.array_in("%1", "%2", "%3") END)`, "", 0},
	}
	for n := range strings.FieldsSeq(`pg_table_size pg_relation_size pg_total_relation_size pg_indexes_size pg_database_size pg_tablespace_size`) {
		m[n] = replacedFunction{1, 2, `(CASE WHEN "%1" IS NOT NULL THEN CAST(0 AS pg_catalog.int8) END)`, "", 0}
	}
	m["current_setting"] = replacedFunction{1, 2, settingOf, "pg_catalog.pg_settings", 0}
	for n := range strings.FieldsSeq(`has_any_column_privilege has_foreign_data_wrapper_privilege has_function_privilege has_language_privilege
		has_schema_privilege has_sequence_privilege has_server_privilege has_table_privilege has_type_privilege has_parameter_privilege`) {
		m[n] = replacedFunction{2, 3, "", "", 3}
	}
	m["has_column_privilege"] = replacedFunction{3, 4, "", "", 4}
	return m
}()

// ageOf is age(%1): a transaction's is that of a frozen one, as its distance from now counts those of the whole server.
const ageOf = `(CASE WHEN pg_catalog.pg_typeof("%1") = CAST('xid' AS pg_catalog.regtype) AND "%1" IS NOT NULL
	THEN '2147483647' ELSE pg_catalog.age("%1") END)`

// call replaces a call. One with a number of arguments that no such function has is left for PostgreSQL to refuse.
func (t *writer) call(f replacedFunction, call *pg.FuncCall) *pg.Node {
	args := call.GetArgs()
	if len(args) < f.least || len(args) > f.most || call.GetOver() != nil || call.GetAggFilter() != nil || call.GetFuncVariadic() ||
		slices.ContainsFunc(args, func(a *pg.Node) bool { return a.GetNamedArgExpr() != nil }) {
		cannot("this call of " + lastName(call.GetFuncname()) + "()")
	}
	if f.sql == "" { // the analyst's rights are those of the role that asks
		if len(args) == f.user {
			call.Args = args[1:]
		}
		return &pg.Node{Node: &pg.Node_FuncCall{FuncCall: call}}
	}
	if f.reads != "" {
		t.reads(f.reads)
	}
	lenient := "false"
	if len(args) > 1 {
		lenient = `"%2"`
	}
	return t.expand(strings.ReplaceAll(f.sql, "%lenient", lenient), args)
}

// mostCopied bounds the bytes of arguments that a statement's templates copy. A template may have an argument more than
// once, and that of a call within a call is copied with each: three times a level, twenty levels deep, in 250 bytes.
const mostCopied = 1 << 20

func (t *writer) copied(arg *pg.Node) *pg.Node {
	if t.bytes += proto.Size(arg); t.bytes > mostCopied {
		cannot("such calls within one another")
	}
	return proto.Clone(arg).(*pg.Node)
}

// expand parses a template and puts arguments and session parameters into it.
func (t *writer) expand(template string, args []*pg.Node) *pg.Node {
	tree, err := pg.Parse("SELECT " + template)
	if err != nil {
		panic("outer: template: " + err.Error())
	}
	out := tree.GetStmts()[0].GetStmt().GetSelectStmt().GetTargetList()[0].GetResTarget().GetVal()
	eachNode(out.ProtoReflect(), func(n *pg.Node) {
		c := n.GetColumnRef()
		if c == nil || len(c.GetFields()) != 1 {
			return
		}
		switch name := lastName(c.GetFields()); {
		case name == "%last":
			n.Node = t.copied(args[len(args)-1]).Node
		case strings.HasPrefix(name, "%"):
			n.Node = t.copied(args[name[1]-'1']).Node
		case strings.HasPrefix(name, "$"):
			n.Node = t.param(name[1:]).Node
		}
	})
	return out
}

// param is the reference to a session parameter, a text.
func (t *writer) param(name string) *pg.Node {
	ref := &pg.Node{Node: &pg.Node_ParamRef{ParamRef: &pg.ParamRef{Number: int32(t.place(name)), Location: -1}}}
	return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: ref, Location: -1, TypeName: &pg.TypeName{
		Names: []*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode("text")}, Typemod: -1, Location: -1}}}}
}

// A function that tells nothing (package pgcatalog) is one that PostgreSQL only binds: it finds the signature and the
// types, and never calls it, as what is constantly false is left out of every plan. A function whose rows are a
// relation's reads that one.
//
//	SELECT s.name, pg_stat_get_live_tuples(16384) FROM pg_show_all_settings() AS s, pg_lock_status() AS l
//	⇒ SELECT s.name, CASE WHEN false THEN pg_stat_get_live_tuples(16384) END AS pg_stat_get_live_tuples FROM
//	  "pg_catalog.pg_settings" s, LATERAL (SELECT * FROM pg_lock_status() l WHERE false) l

// sets replaces the functions in FROM that have rows of the sandbox's own, or none.
func (t *writer) sets(n *pg.Node) {
	r := n.GetRangeFunction()
	if r == nil || len(r.GetFunctions()) != 1 {
		return
	}
	items := r.GetFunctions()[0].GetList().GetItems()
	if len(items) == 0 {
		return
	}
	name, call := "", items[0].GetFuncCall()
	if name, _ = ast.ColumnName(items[0]); r.Alias == nil {
		r.Alias = &pg.Alias{Aliasname: name}
	}
	if call == nil {
		return
	}
	if rel := pgcatalog.RowsOf(name); rel != "" && len(call.GetArgs()) == 0 && !r.GetOrdinality() && len(r.GetColdeflist()) == 0 {
		n.Node = &pg.Node_RangeVar{RangeVar: &pg.RangeVar{Schemaname: "pg_catalog", Relname: rel, Inh: true, Relpersistence: "p", Alias: r.Alias}}
		return
	}
	for _, f := range pgcatalog.Silent(name) {
		if f.Rows && len(f.Args) == len(call.GetArgs()) {
			t.bound[call] = true
			n.Node = lateral("SELECT * FROM f() WHERE false", r.Alias, func(s *pg.SelectStmt) {
				s.FromClause = []*pg.Node{{Node: &pg.Node_RangeFunction{RangeFunction: r}}}
			})
			return
		}
	}
}

// lateral is a sub-query in FROM, changed from a template.
func lateral(template string, alias *pg.Alias, change func(*pg.SelectStmt)) *pg.Node_RangeSubselect {
	tree, err := pg.Parse(template)
	if err != nil {
		panic("outer: template: " + err.Error())
	}
	query := tree.GetStmts()[0].GetStmt()
	change(query.GetSelectStmt())
	return &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{Lateral: true, Subquery: query, Alias: &pg.Alias{Aliasname: alias.GetAliasname()}}}
}

// silent replaces a call by one that is never made, or by a constant of its type.
func (t *writer) silent(n *pg.Node, call *pg.FuncCall) {
	if t.bound[call] {
		return
	}
	template := "CASE WHEN false THEN NULL END"
	if text, ok := pgcatalog.Constant(lastName(call.GetFuncname())); ok {
		template = "CASE WHEN false THEN NULL ELSE '" + text + "' END" // of the function's type
	}
	n.Node = t.expand(template, nil).Node
	n.GetCaseExpr().GetArgs()[0].GetCaseWhen().Result = &pg.Node{Node: &pg.Node_FuncCall{FuncCall: proto.Clone(call).(*pg.FuncCall)}}
}

// oneRow writes an expression in FROM that PostgreSQL's grammar would not have there, as what a function has become.
func (t *writer) oneRow(n *pg.Node, r *pg.RangeFunction) {
	items := r.GetFunctions()[0].GetList().GetItems()
	if len(r.GetFunctions()) != 1 || r.GetOrdinality() || len(r.GetColdeflist()) > 0 || items[0].GetAConst() != nil {
		cannot("this function in FROM")
	}
	column := r.GetAlias().GetAliasname()
	if names := r.GetAlias().GetColnames(); len(names) == 1 {
		column = names[0].GetString_().GetSval()
	}
	n.Node = lateral("SELECT NULL", r.GetAlias(), func(s *pg.SelectStmt) {
		target := s.GetTargetList()[0].GetResTarget()
		target.Name, target.Val = column, items[0]
	})
}

// A choice among chars that was made below the leaf, coalesce(store, 'x'), comes out of it without the blanks at its
// end, whose number is not known. Comparisons, texts and aggregates of chars do not see them; these do.

// ragged reports whether a leaf has a column that is a choice among chars.
func ragged(l *plans.Leaf) bool {
	return slices.ContainsFunc(l.Keys, func(k plans.KeyColumn) bool { return k.Type == policy.Bpchar && k.Typmod < 4 }) ||
		slices.ContainsFunc(l.Counts, func(c plans.CountColumn) bool { return c.Type == policy.Bpchar && c.Typmod < 4 })
}

// blankReaders are the functions that take a char with the blanks at its end; array_ and json ones do, too.
var blankReaders = strings.Fields("concat concat_ws format quote_literal quote_nullable octet_length to_json to_jsonb row_to_json pg_column_size hashbpchar hashbpcharextended " +
	"bpcharlike bpcharnlike bpchariclike bpcharicnlike bpcharregexeq bpcharregexne bpcharicregexeq bpcharicregexne bpcharoctetlen")

// looksAtBlanks reports whether any part of a tree may see the blanks at the end of a char.
func looksAtBlanks(tree *pg.Node) (looks bool) {
	ast.Each(tree.ProtoReflect(), func(m protoreflect.Message) {
		switch v := m.Interface().(type) {
		case *pg.FuncCall:
			name := lastName(v.GetFuncname())
			looks = looks || slices.Contains(blankReaders, name) || strings.Contains(name, "array") || strings.Contains(name, "json")
		case *pg.A_Expr:
			kind := v.GetKind()
			looks = looks || kind == pg.A_Expr_Kind_AEXPR_LIKE || kind == pg.A_Expr_Kind_AEXPR_ILIKE || kind == pg.A_Expr_Kind_AEXPR_SIMILAR ||
				strings.Contains(lastName(v.GetName()), "~")
		case *pg.A_ArrayExpr, *pg.RowExpr:
			looks = true
		}
	})
	return looks
}
