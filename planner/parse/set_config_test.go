package parse

import (
	"reflect"
	"testing"
)

// TestAssignments: set_config with constants among the columns of a SELECT without tables is a SET; any other is none.
func TestAssignments(t *testing.T) {
	for _, c := range []struct {
		sql  string
		want []Assignment
	}{
		{"SELECT current_setting('jit') AS cur, set_config('jit', 'off', false) AS new", []Assignment{{Name: "jit", Value: "off", Column: 1}}},
		{"/* x */ select  pg_catalog.SET_CONFIG ( 'jit','off', true )", []Assignment{{Name: "jit", Value: "off", Local: true}}},
		{"SELECT set_config('jit'::text, $1, 'f')", []Assignment{{Name: "jit", Param: 1}}},
		{"SELECT set_config('a.b', 'c', false), set_config('d.e', $2::text, 't')", []Assignment{{Name: "a.b", Value: "c"}, {Name: "d.e", Param: 2, Local: true, Column: 1}}},
		{"SELECT set_config('jit', 'off', false) FROM people", nil},
		{"SELECT set_config('jit', 'off', false) WHERE true", nil},
		{"SELECT set_config('jit', 'off', false) FROM pg_show_all_settings() WHERE name = 'jit'", []Assignment{{Name: "jit", Value: "off"}}},
		{"SELECT set_config('jit', 'off', false) FROM pg_catalog.pg_settings s WHERE s.name = 'jit'", []Assignment{{Name: "jit", Value: "off"}}},
		{"SELECT set_config('jit', 'off', false) FROM public.pg_settings", nil},
		{"SELECT set_config('jit', 'off', false) FROM pg_settings, people", nil},
		{"SELECT set_config('jit', 'off', false) FROM pg_settings WHERE (SELECT count(*) > 3 FROM people)", nil},
		{"SELECT set_config('jit', 'off', false), count(*) FROM pg_settings", nil},
		{"SELECT upper(set_config('jit', 'off', false))", nil},
		{"SELECT set_config('jit', upper('off'), false)", []Assignment{{Each: true}}},
		{"SELECT name, set_config(name, setting, true) FROM pg_settings WHERE name LIKE 'vacuum%'", []Assignment{{Each: true, Local: true, Column: 1}}},
		{"SELECT set_config('jit', (SELECT count(*) FROM people)::text, false)", nil},
		{"SELECT set_config('jit', NULL, false)", []Assignment{{Name: "jit", Reset: true}}},
		{"SELECT set_config('jit', NULL::text, NULL)", []Assignment{{Name: "jit", Reset: true}}},
		{"SELECT set_config(NULL, 'off', false)", []Assignment{{Value: "off"}}},
		{"SELECT set_config('jit', 'off')", nil},
		{"SELECT other.set_config('jit', 'off', false)", nil},
		{"SELECT (SELECT set_config('jit', 'off', false))", nil},
		{"SELECT set_config('jit', 'off', false) UNION SELECT 'x'", nil},
	} {
		statements, refusal := Parse(c.sql)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if got := statements[0].Assignments; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.sql, got, c.want)
		}
	}
}
