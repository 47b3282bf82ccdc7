package proxy

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// TestDeclaredOnce: a cursor's answer is drawn once, however its rows are fetched, and so is that of COPY.
func TestDeclaredOnce(t *testing.T) {
	b := start(t)
	r := b.raw(t)
	r.play("cursor", []step{
		one(query("begin; declare c cursor with hold for select n from ten"), "C(BEGIN) C(DECLARE CURSOR) Z(T)"),
		one(query("fetch 2 c; move absolute 1 c; fetch all c; fetch first c; fetch first c"),
			"T1 D D C(FETCH 2) C(MOVE 1) T1 D D D D D D D D D C(FETCH 9) T1 D C(FETCH 1) T1 D C(FETCH 1) Z(T)"),
		one(query("declare c cursor for select n from ten"), "E(42P03) Z(E)"),
		one(query("declare d cursor for select n from ten"), "E(25P02) Z(E)"),
		one(query("rollback; declare e cursor for select n from ten"), "C(ROLLBACK) C(DECLARE CURSOR) Z(I)"),
	})
	if n := b.pipeline.answers.Load(); n != 2 {
		t.Errorf("%d answers, not 2", n)
	}
	r.play("copy", []step{
		one(query("copy (select n from ten) to stdout (format csv, force_quote (nope))"), "E(42703) Z(I)"),
		one(query("copy (select n from ten) to stdout (format xml)"), "E(22023) Z(I)"),
	})
	if n := b.pipeline.answers.Load(); n != 2 {
		t.Errorf("%d answers, not 2: a refused COPY was answered", n)
	}
	r.play("copy", []step{one(query("copy (select n from ten) to stdout csv"), "H d d d d d d d d d d c C(COPY 10) Z(I)")})
	if n := b.pipeline.answers.Load(); n != 3 {
		t.Errorf("%d answers, not 3", n)
	}
}

// copied is what COPY writes of a table with these options.
func copied(t *testing.T, options string) string {
	t.Helper()
	commands, refusal := parseCommands("copy (select 1) to stdout " + options)
	if refusal != nil {
		t.Fatal(refusal)
	}
	if commands[0].refusal != nil {
		return "!" + commands[0].refusal.SQLState
	}
	columns := []sandbox.Column{column("a", policy.Text), column(`b"x`, policy.Int8)}
	w := newCopyWriter(commands[0].Copy, newEncoder(columns, nil, nil, 1), columns)
	w.begin()
	for _, row := range [][]policy.Value{{"plain", int64(-1)}, {"tab\tnew\nback\\ quote\" comma, semi; it's", nil}, {"", int64(0)}, {`\N`, int64(1)}} {
		if err := w.row(row); err != nil {
			t.Fatal(err)
		}
	}
	w.end()
	var text strings.Builder
	for out := w.out; len(out) > 0; {
		n := int(out[3])<<8 | int(out[4]) + 1
		text.Write(out[5:n])
		out = out[n:]
	}
	return text.String()
}

// TestCopyOptions: what is written with each option, as PostgreSQL 15 writes it, and what is refused.
func TestCopyOptions(t *testing.T) {
	for options, want := range map[string]string{
		"":                          "plain\t-1\ntab\\tnew\\nback\\\\ quote\" comma, semi; it's\t\\N\n\t0\n\\\\N\t1\n",
		"(delimiter ';', null '-')": "plain;-1\ntab\\tnew\\nback\\\\ quote\" comma, semi\\; it's;-\n;0\n\\\\N;1\n",
		"(header)":                  "a\tb\"x\nplain\t-1\ntab\\tnew\\nback\\\\ quote\" comma, semi; it's\t\\N\n\t0\n\\\\N\t1\n",
		"csv":                       "plain,-1\n\"tab\tnew\nback\\ quote\"\" comma, semi; it's\",\n\"\",0\n\\N,1\n",
		"csv header":                "a,\"b\"\"x\"\nplain,-1\n\"tab\tnew\nback\\ quote\"\" comma, semi; it's\",\n\"\",0\n\\N,1\n",
		"(format csv, delimiter E'\\t', null '\\N', quote '''', escape '\\')": "plain\t-1\n'tab\tnew\nback\\\\ quote\" comma, semi; it\\'s'\t\\N\n\t0\n'\\\\N'\t1\n",
		"(format csv, force_quote *)":                                         "\"plain\",\"-1\"\n\"tab\tnew\nback\\ quote\"\" comma, semi; it's\",\n\"\",\"0\"\n\"\\N\",\"1\"\n",
		"csv force quote a":                                                   "\"plain\",-1\n\"tab\tnew\nback\\ quote\"\" comma, semi; it's\",\n\"\",0\n\"\\N\",1\n",
		"(encoding 'utf-8', header off)":                                      "plain\t-1\ntab\\tnew\\nback\\\\ quote\" comma, semi; it's\t\\N\n\t0\n\\\\N\t1\n",
		"(format xml)":                                                        "!22023", "(encoding 'latin1')": "!22023", "(quote '\"')": "!22023", "(force_quote *)": "!22023", "(escape 'x')": "!22023",
		"(delimiter 'ab')": "!22023", "(delimiter 'a')": "!22023", "(delimiter E'\\n')": "!22023", "(null E'\\r')": "!22023", "(null E'\\t')": "!22023",
		"(format csv, delimiter '\"')": "!22023", "(format csv, null 'a\"')": "!22023", "(format csv, quote 'ab')": "!22023", "(freeze)": "!22023",
		"(format csv, force_null (a))": "!22023", "(header match)": "!22023", "(format csv, force_quote 'a')": "!22023",
		"(format binary, delimiter ',')": "!42601", "binary null 'x'": "!42601", "(format binary, header)": "!42601", "(format csv, format csv)": "!42601",
		"(header 3)": "!42601", "(colour 'red')": "!42601",
	} {
		if got := copied(t, options); got != want {
			t.Errorf("%s:\ngot  %q\nwant %q", options, got, want)
		}
	}
}
