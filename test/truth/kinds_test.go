package truth

import "strconv"

// kinds is a schema of few rows and of columns of every type that a policy knows, each of few values, so that whatever
// is written over them is constant within a cell: texts with blanks at their ends, chars of several lengths, numerics
// of several scales, whole numbers at the end of their type, moments about a change of a clock. People have no such
// tables; tools and their statements meet each of these.
func kinds(seed uint64) *schema {
	d := newDice(seed, 5)
	thing := &table{name: "thing", named: "thing_id", bound: 1, keys: []string{"PRIMARY KEY (thing_id)"}, columns: []column{
		{name: "thing_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "c5", stored: "char(5)", declared: "char(5)", rules: "domain: {values: [ab, abc, abcde, a c]}", kind: textKind, values: []string{"'ab'", "'ab '", "'abcde'", "'a c'", "'zz'"}},
		{name: "c2", stored: "char(2)", declared: "char(2)", rules: "domain: {values: [ab, x, '10']}", kind: textKind, values: []string{"'ab'", "'x '", "'10'"}},
		{name: "v", stored: "varchar(6)", declared: "varchar(6)", rules: "domain: {values: [ab, 'ab ', ' x', '10']}", kind: textKind, values: []string{"'ab'", "'ab '", "' x'", "'10'"}},
		{name: "t", stored: "text", declared: "text", rules: "domain: {values: [ab, 'ab ', Ab, a_c, '12', '%', 'true', '2024-03-01']}", kind: textKind, values: []string{"'ab'", "'ab '", "'12'", "'a_c'"}},
		{name: "mood", stored: "mood", declared: "enum", rules: "domain: {values: [happy, ok, sad]}", truth: "mood::text", kind: textKind, values: []string{"'ok'", "'sad'", "'happy'"}},
		{name: "b", stored: "boolean", declared: "boolean", kind: boolKind},
		{name: "i2", stored: "smallint", declared: "smallint", rules: "domain: {min: -3, max: 3}", kind: wholeKind, values: []string{"-3", "0", "2"}},
		{name: "i4", stored: "integer", declared: "integer", rules: "domain: {min: -2, max: 9}", kind: wholeKind, values: []string{"-2", "1", "5"}},
		{name: "i8", stored: "bigint", declared: "bigint", rules: "domain: {min: 9223372036854775800, max: 9223372036854775807}", kind: keyKind},
		{name: "n", stored: "numeric(4,1)", declared: "numeric(4,1)", rules: "domain: {min: -1.5, max: 2.5, step: 0.1}", kind: moneyKind, values: []string{"-1.5", "0", "0.50", "2.5"}},
		{name: "m", stored: "numeric(6,3)", declared: "numeric(6,3)", rules: "domain: {min: 0, max: 0.02, step: 0.001}", kind: moneyKind, values: []string{"0", "0.005", "0.0190"}},
		{name: "r", stored: "real", declared: "real", rules: "domain: {min: -1, max: 1, step: 0.25}", kind: realKind, values: []string{"-1", "0.25", "0.75"}},
		{name: "f", stored: "double precision", declared: "double precision", rules: "domain: {min: -2, max: 2, step: 0.5}", kind: realKind, values: []string{"-2", "0", "1.5"}},
		{name: "d", stored: "date", declared: "date", rules: "domain: {min: 2024-02-27, max: 2024-03-04}", kind: dateKind, values: []string{"'2024-02-29'", "'2024-03-01'", "'2024-03-04'"}},
		{name: "ts", stored: "timestamp", declared: "timestamp", rules: "domain: {min: 2024-03-31 00:00, max: 2024-03-31 06:00, step: 30 minutes}", kind: timeKind, step: "floor(extract(epoch FROM %s) / 1800)", values: []string{"'2024-03-31'", "'2024-03-31 02:30'", "'2024-03-31 05:00:00'"}},
		{name: "tz", stored: "timestamptz", declared: "timestamptz", rules: "domain: {min: 2024-03-30 22:00, max: 2024-03-31 06:00, step: 30 minutes}", kind: zonedKind, step: "floor(extract(epoch FROM %s) / 1800)", values: []string{"'2024-03-31 00:30:00+00'", "'2024-03-31T01:00Z'", "'2024-03-31 05:00+02'"}},
		{name: "u", stored: "uuid", declared: "uuid", rules: "domain: {values: [00000000-0000-0000-0000-00000000000a, 10000000-0000-0000-0000-000000000000, ffffffff-ffff-ffff-ffff-ffffffffffff]}", kind: keyKind},
		{name: "code", stored: "integer", declared: "integer",
			rules: "domain: {values: [8532, 8507, 0, -7, 2000000001]}",
			truth: "CASE WHEN code IN (8532, 8507, 0, -7, 2000000001) THEN code END",
			kind:  wholeKind, values: []string{"8507", "8532", "0", "9000", "-7"}},
	}}
	event := &table{name: "event", named: "thing_id", unit: "event.thing_id = thing.thing_id", bound: 4, kept: "t.thing_id IS NOT NULL", columns: []column{
		{name: "event_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "thing_id", stored: "integer", declared: "integer", rules: "keys: join", kind: keyKind},
		{name: "c3", stored: "char(3)", declared: "char(3)", rules: "domain: {values: [ab, abc, x]}", kind: textKind, values: []string{"'ab'", "'x'", "'ab  '"}},
		{name: "v8", stored: "varchar(8)", declared: "varchar(8)", rules: "domain: {values: [ab, 'ab ', abc, x]}", kind: textKind, values: []string{"'ab'", "'ab '", "'x'"}},
		{name: "i4", stored: "integer", declared: "integer", rules: "domain: {min: 0, max: 5}", kind: wholeKind, values: []string{"0", "1", "5"}},
		{name: "n", stored: "numeric(6,2)", declared: "numeric(6,2)", rules: "domain: {min: -1, max: 1, step: 0.01}", kind: moneyKind, values: []string{"-1", "0.25", "0.50"}},
		{name: "d", stored: "date", declared: "date", rules: "domain: {min: 2024-02-27, max: 2024-03-04}", kind: dateKind, values: []string{"'2024-02-29'", "'2024-03-01'"}},
		{name: "yes", stored: "boolean", declared: "boolean", kind: boolKind},
		{name: "concept_id", stored: "integer", declared: "integer",
			rules: "domain: {keys_of: concept.concept_id, where: \"title <> 'none'\"}",
			truth: "CASE WHEN concept_id IN (8507, 8532, 77) THEN concept_id END", kind: wholeKind,
			values: []string{"8507", "8532", "77", "0"}},
		{name: "campaign", stored: "bigint", declared: "bigint", rules: "keys: discover", kind: keyKind},
	}}
	sort := &table{name: "sort", public: true, columns: []column{
		{name: "code", stored: "varchar(8)", declared: "varchar(8)", kind: textKind, values: []string{"'ab'", "'ab '"}},
		{name: "label", stored: "text", declared: "text", kind: textKind, values: []string{"'one'", "'two'"}},
		{name: "tag", stored: "char(3)", declared: "char(3)", kind: textKind, values: []string{"'ab'", "'x '", "'ab  '"}},
		{name: "small", stored: "smallint", declared: "smallint", kind: wholeKind, values: []string{"1", "2"}},
		{name: "big", stored: "bigint", declared: "bigint", kind: keyKind},
		{name: "amount", stored: "numeric(8,2)", declared: "numeric(8,2)", kind: moneyKind, values: []string{"0.5", "10"}},
		{name: "rate", stored: "numeric(20,6)", declared: "numeric(20,6)", kind: keyKind},
		{name: "r", stored: "real", declared: "real", kind: keyKind},
		{name: "f", stored: "double precision", declared: "double precision", kind: keyKind},
		{name: "day", stored: "date", declared: "date", kind: dateKind, values: []string{"'2024-02-29'", "'2024-03-01'"}},
		{name: "ts", stored: "timestamp", declared: "timestamp", kind: keyKind},
		{name: "tz", stored: "timestamptz", declared: "timestamptz", kind: keyKind},
		{name: "u", stored: "uuid", declared: "uuid", kind: keyKind},
		{name: "yes", stored: "boolean", declared: "boolean", kind: boolKind},
	}, rows: [][]string{
		{"ab", "one", "ab", "1", "9223372036854775807", "0.50", "1.50", "0.1", "0.1", "2024-02-29", "2024-03-31 02:30:00", "2024-03-31 00:30:00+00", "00000000-0000-0000-0000-00000000000a", "t"},
		{"abc ", "two", "abc", "2", "-9223372036854775808", "10.00", "0.000001", "3.4e+38", "1e-300", "2024-03-01", "2024-03-31 01:00:00.5", "2024-03-31 01:00:00+00", "10000000-0000-0000-0000-000000000000", "f"},
		{"a c", "two ", "a c", "-3", "0", "-1.25", "12345678901234.567891", "-0.25", "1e+22", "2000-01-01", "1999-12-31 23:59:59.999999", "2024-10-27 00:30:00+00", "ffffffff-ffff-ffff-ffff-ffffffffffff", null},
		{"x  ", "O'Hara, \"x\"", "x", "0", "12", "0.10", "-0.0", "1", "-1.5", "0044-03-15", "2024-02-29 00:00:00", "1890-01-01 12:00:00+00", null, "t"},
		{"10", "", null, null, null, null, null, null, null, null, null, null, null, null},
	}}
	ids := []string{"00000000-0000-0000-0000-00000000000a", "10000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", null}
	events := 0
	for id := 1; id <= 160; id++ {
		or := func(text string) string {
			if d.chance(9) {
				return null
			}
			return text
		}
		tenths := func(low, high, places int) string {
			text := strconv.FormatFloat(float64(low+d.IntN(high-low+1))/[]float64{1, 10, 100, 1000}[places], 'f', places, 64)
			return or(text)
		}
		who := strconv.Itoa(id)
		thing.rows = append(thing.rows, []string{who, or(d.one("ab", "ab", "abc", "abcde", "a c")), or(d.one("ab", "x", "10")), or(d.one("ab", "ab ", " x", "10")),
			or(d.one("ab", "ab ", "Ab", "a_c", "12", "%", "true", "2024-03-01")), or(d.one("sad", "ok", "happy")), or(d.one("t", "f")), tenths(-3, 3, 0), tenths(-2, 9, 0),
			or("922337203685477580" + strconv.Itoa(d.IntN(8))), tenths(-15, 25, 1), tenths(0, 20, 3), or(quarters(d.IntN(9) - 4)), or(quarters(2*d.IntN(9) - 8)), or(day("2024-02-27", d.IntN(7))),
			or(moment("2024-03-31 00:00:00", 60*d.IntN(360))), or(moment("2024-03-30 22:00:00", 60*d.IntN(480)) + "+00"), ids[d.IntN(4)],
			or(d.one("8507", "8507", "8532", "0", "-7", "2000000001", "42"))})
		for range d.few(0, 4) {
			events++
			of := who
			if d.chance(20) {
				of = null
			}
			event.rows = append(event.rows, []string{strconv.Itoa(events), of, or(d.one("ab", "abc", "x")), or(d.one("ab", "ab ", "abc", "x")), tenths(0, 5, 0), tenths(-100, 100, 2), or(day("2024-02-27", d.IntN(7))), or(d.one("t", "f")),
				or(d.one("8507", "8532", "77", "0")), or(d.one("-5", "12", "70000000000"))})
		}
	}
	concept := &table{name: "concept", public: true, keys: []string{"PRIMARY KEY (concept_id)"}, columns: []column{
		{name: "concept_id", stored: "bigint", declared: "bigint", kind: wholeKind, values: []string{"8507", "8532"}},
		{name: "title", stored: "text", declared: "text", kind: textKind, values: []string{"'male'", "'none'"}},
	}, rows: [][]string{{"8507", "male"}, {"8532", "female"}, {"0", "none"}, {"77", "unused"}}}
	return &schema{name: "kinds", unit: "thing.thing_id", tables: []*table{thing, event, sort, concept},
		before: []string{"CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')"},
		edges: []edge{
			{"event", "thing", [][2]string{{"thing_id", "thing_id"}}, true},
			{"event", "sort", [][2]string{{"v8", "code"}}, false},
			{"thing", "sort", [][2]string{{"c5", "code"}}, false},
			{"thing", "sort", [][2]string{{"v", "tag"}}, false},
			{"thing", "sort", [][2]string{{"i2", "small"}}, false},
			{"thing", "concept", [][2]string{{"code", "concept_id"}}, true},
			{"event", "concept", [][2]string{{"concept_id", "concept_id"}}, true},
		}}
}
