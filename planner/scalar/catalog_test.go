package scalar

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

var update = flag.Bool("update", false, "write files from what the server says")

const oursSQL = "(16,21,23,20,700,701,1700,25,1043,1082,1083,1114,1184,1186,2950)"

// readSQL are types beside them that arguments may have where only the types of parameters are asked for.
const readSQL = "(17,18,19,24,26,114,1042,2205,2206,3802,4089,4096)"

// catalogSQL asks a server for the text of catalog.txt below its comments; $ops, $functions, $told and $named are lists
// of names.
var catalogSQL = []string{`
WITH used AS (
	SELECT unnest(array[oprleft, oprright]) AS t FROM pg_operator WHERE oprname IN ($ops)
	UNION SELECT unnest(proargtypes) FROM pg_proc
		WHERE proname IN ($functions) AND prokind = 'f' AND pronamespace = 11
	UNION SELECT unnest(proargtypes) FROM pg_proc WHERE proname IN ($told) AND pronamespace = 11
	UNION SELECT unnest(array[oprleft, oprright]) FROM pg_operator WHERE oprname IN ($told)
	UNION SELECT oid FROM pg_type WHERE oid IN ` + readSQL + `
	UNION SELECT typarray FROM pg_type WHERE oid IN ` + oursSQL + ` OR oid IN ` + readSQL + `
	UNION SELECT unnest(('{705,' || translate('` + oursSQL + `', '()', '') || '}')::oid[]))
SELECT concat_ws(' ', 'type', t::oid, typcategory, typispreferred::int, typname, format_type(t, NULL))
FROM used JOIN pg_type ON pg_type.oid = t WHERE t <> 0 ORDER BY t::int`, `
SELECT concat_ws(' ', 'cast', castsource::oid, casttarget::oid, castcontext) FROM pg_cast
WHERE castsource IN ` + oursSQL + ` OR castsource IN ` + readSQL + ` ORDER BY castsource::int, casttarget::int`, `
SELECT concat_ws(' ', 'array', oid, typarray) FROM pg_type WHERE oid IN ` + oursSQL + ` OR oid IN ` + readSQL + ` ORDER BY oid::int`, `
WITH signatures AS (
	SELECT 'operator' AS kind, oprname::text AS name, concat_ws('+', nullif(oprleft, 0), oprright) AS args,
		oprresult AS result, false AS spread FROM pg_operator WHERE oprname IN ($ops)
	UNION ALL
	SELECT 'function', proname::text, array_to_string((proargtypes::oid[])[0:n - 1], '+'), prorettype, provariadic <> 0 FROM pg_proc, generate_series(pronargs::int - pronargdefaults, pronargs) AS given(n)
	WHERE proname IN ($functions) AND prokind = 'f' AND NOT proretset AND pronamespace = 11
	UNION ALL
	SELECT 'told', oprname, concat_ws('+', nullif(oprleft, 0), oprright), oprresult, false FROM pg_operator WHERE oprname IN ($told)
	UNION ALL
	SELECT 'told', proname::text, array_to_string((proargtypes::oid[])[0:n - 1], '+'), prorettype, provariadic <> 0 FROM pg_proc, generate_series(pronargs::int - pronargdefaults, pronargs) AS given(n)
	WHERE proname IN ($told) AND pronamespace = 11)
SELECT concat_ws(' ', kind, name, string_agg(args || '=' || result || CASE WHEN spread THEN 'v' ELSE '' END, ' '
	ORDER BY args COLLATE "C"))
FROM signatures GROUP BY kind, name ORDER BY kind COLLATE "C", name COLLATE "C"`, `
SELECT concat_ws(' ', 'named', proname, string_agg(args, ' ' ORDER BY args COLLATE "C")) FROM (
	SELECT proname, pg_proc.oid, string_agg(proargnames[n] || coalesce('=' || pg_get_function_arg_default(pg_proc.oid, n), ''), ',' ORDER BY n) AS args
	FROM pg_proc, generate_series(1, pronargs) AS at(n) WHERE proname IN ($named) AND pronamespace = 11 GROUP BY 1, 2) AS functions
GROUP BY proname ORDER BY proname COLLATE "C"`}

// TestCatalogMatchesServer holds catalog.txt, and what bodies say about depending on the session, against a server.
func TestCatalogMatchesServer(t *testing.T) {
	s := newServer(t)
	var operators, functions, told, named []string
	for name := range loadCatalog().operators {
		operators = append(operators, "'"+name+"'")
	}
	for name := range loadCatalog().functions {
		functions = append(functions, "'"+name+"'")
	}
	for name := range loadCatalog().told {
		if loadCatalog().functions[name] == nil {
			told = append(told, "'"+name+"'")
		}
	}
	for name := range loadCatalog().named {
		named = append(named, "'"+name+"'")
	}
	replace := strings.NewReplacer("$ops", strings.Join(operators, ","), "$functions", strings.Join(functions, ","), "$told", strings.Join(told, ","), "$named", strings.Join(named, ","))
	var got []string
	for _, sql := range catalogSQL {
		got = append(got, s.column(t, replace.Replace(sql))...)
	}
	var have, waiting []string
	comments := map[string][]string{} // by the kind of fact that they precede
	for line := range strings.SplitSeq(strings.TrimSpace(catalogText), "\n") {
		if line[0] == '#' {
			waiting = append(waiting, line)
			continue
		}
		if len(waiting) > 0 {
			comments[kindOf(line)], waiting = waiting, nil
		}
		have = append(have, line)
	}
	if strings.Join(got, "\n") == strings.Join(have, "\n") {
		return
	}
	if *update {
		var text []string
		for _, line := range got {
			text = append(append(text, comments[kindOf(line)]...), line)
			delete(comments, kindOf(line))
		}
		if err := os.WriteFile("catalog.txt", []byte(strings.Join(text, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("catalog.txt is not what the server says: %d lines, the server %d", len(have), len(got))
}

// kindOf is the first word of a fact: type, cast, array, function, operator or told.
func kindOf(line string) string { return line[:strings.IndexByte(line, ' ')] }

func (s *server) column(t *testing.T, sql string) (out []string) {
	results, err := s.conn.Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	for _, row := range results[0].Rows {
		out = append(out, string(row[0]))
	}
	return out
}

// TestVolatility holds the flag that a body depends on the session against pg_proc.
func TestVolatility(t *testing.T) {
	s := newServer(t)
	rows := s.column(t, `
SELECT concat_ws(' ', proname, array_to_string((proargtypes::oid[])[0:n - 1], '+'), provolatile, proisstrict)
	FROM pg_proc, generate_series(pronargs::int - pronargdefaults, pronargs) AS given(n) WHERE prokind = 'f' AND pronamespace = 11
UNION ALL
SELECT concat_ws(' ', oprname, concat_ws('+', nullif(oprleft, 0), oprright), provolatile, proisstrict)
	FROM pg_operator JOIN pg_proc ON pg_proc.oid = oprcode`)
	found := map[string]bool{}
	for _, row := range rows {
		f := strings.Split(row, " ")
		if len(f) == 3 {
			f = []string{f[0], "", f[1], f[2]} // no arguments
		}
		var args []policy.Type
		for arg := range strings.SplitSeq(f[1], "+") {
			if arg != "" {
				args = append(args, oid(arg))
			}
		}
		key := keyOf(f[0], args)
		b, ok := bodies()[key]
		if !ok {
			continue
		}
		found[key] = true
		if f[0] == "||" && slices.ContainsFunc(args, polymorphic) {
			continue // an SQL function that PostgreSQL puts in line
		}
		if b.stable != (f[2] != "i") || b.loose != (f[3] == "f") {
			t.Errorf("%s(%s): stable %v, loose %v; the server says %s, strict %s", f[0], f[1], b.stable, b.loose, f[2], f[3])
		}
	}
	for key := range bodies() {
		if !found[key] {
			t.Errorf("no signature of the server is %q", key)
		}
	}
}
