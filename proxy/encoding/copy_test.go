package encoding

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// copied is what COPY writes of a table with these options.
func copied(t *testing.T, options string) string {
	t.Helper()
	statements, refusal := parse.Parse("copy (select 1) to stdout " + options)
	if refusal != nil {
		t.Fatal(refusal)
	}
	if statements[0].Kind == parse.KindOther {
		return "!" + parse.Refuse(statements[0]).SQLState
	}
	columns := []sandbox.Column{{Name: "a", Type: policy.Text, Typmod: -1}, {Name: `b"x`, Type: policy.Int8, Typmod: -1}}
	w := NewCopyWriter(statements[0].Copy, NewEncoder(columns, nil, Style{}, nil), columns)
	w.Begin()
	rows := privacy.Published(sandbox.Rows{Data: [][]policy.Value{{"plain", int64(-1)}, {"tab\tnew\nback\\ quote\" comma, semi; it's", nil}, {"", int64(0)}, {`\N`, int64(1)}}})
	for i := range rows.Value().Data {
		if err := w.Row(rows, i); err != nil {
			t.Fatal(err)
		}
	}
	w.End()
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
