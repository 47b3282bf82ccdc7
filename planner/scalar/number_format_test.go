package scalar

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
)

// numberValues are values by their type, among them those that round up a digit, and what is no number.
var numberValues = []struct {
	typ    policy.Type
	values []string
}{
	{policy.Int2, strings.Fields("0 1 -1 7 42 -999 32767 -32768")},
	{policy.Int4, strings.Fields("0 1 -1 9 11 12 13 -485 1000 3999 4000 99999 -100000 2147483647 -2147483648")},
	{policy.Int8, strings.Fields("0 5 -7 111 3888 123456789012 -4000000000 9223372036854775807 -9223372036854775808")},
	{policy.NumericType, strings.Fields("0 0.00 -0.4 0.5 -0.5 1 -1 9.99 9.995 99.949 0.001 -0.001 1234.5678 -1234.5 1000000 3999.4 3999.5 0.000012345 99999999999999999999.999 -123456789.987654321 123456789012345678901234567890")},
	{policy.Float4, strings.Fields("0 -0 0.5 -0.5 1.5 2.5 -9.99 99.95 1234567.8 1e-3 3.4e38 -1e20 NaN Infinity -Infinity 123.456 3999.5")},
	{policy.Float8, strings.Fields("0 -0 0.5 -0.4 1.5 2.5 9.5 -9.99 99.95 0.125 1234567.8 1e-7 1.7e308 -1e20 NaN Infinity -Infinity 123456789.123456789 3999.5 0.1 999999999999999.9")},
}

var numberTexts = strings.Fields("0 12 -34,338,492 -34,338,492.654,878 0.00001- 5.01- .01 .0 <3.5> 12.5+ +7 1,234.50 -$5 7th 1,2,3 ab 123abc 4.567 é12 + - . 12.34.56 99999999999999999999")

// drawNumberTemplate draws a template: words in any order, some of them as reports have them.
func drawNumberTemplate(rng *rand.Rand) string {
	usual := []string{"FM999,999,990.00", "990.0%", "9.99EEEE", "FM9,999", "S9999.99", "9999PR", "FMRN", "000", "L999D99", "99th", "99V99", "FM0.##", "9G999G999D00MI", "$FM999,990"}
	if rng.IntN(6) == 0 {
		return usual[rng.IntN(len(usual))]
	}
	words := []string{"9", "9", "9", "9", "0", "0", ".", "D", ",", "G", "FM", "S", "MI", "PL", "SG", "PR", "L", "TH", "th", "V", "EEEE", "RN", "rn", "B", "C", "SP", "fm", "pr", "d",
		" ", "%", "$", "x", `"of 9"`, `\"`, `\`, "é", "#", `"a\"b`, "E", "F"}
	var b strings.Builder
	most := 16
	if rng.IntN(3) > 0 {
		most = 5 // of the words from 9 to FM
	}
	for range 1 + rng.IntN(10) {
		if rng.IntN(most) > 2 {
			b.WriteString(words[rng.IntN(11)])
		} else {
			b.WriteString(words[rng.IntN(len(words))])
		}
	}
	if rng.IntN(40) == 0 {
		b.WriteString(strings.Repeat([]string{"9", "0", "9,", "99.", "x"}[rng.IntN(5)], 1+rng.IntN(600)))
	}
	return b.String()
}

// TestNumberTemplatesAgainstServer holds drawn templates over values of each type against a server, and reading by
// them. SCALAR_SEED and SCALAR_COUNT choose others and more.
func TestNumberTemplatesAgainstServer(t *testing.T) {
	s := newServer(t)
	s.exec(t, `CREATE FUNCTION pg_temp.answered(expression text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE answer text; BEGIN
		EXECUTE 'SELECT ' || expression INTO answer; RETURN coalesce(answer, '∅'); EXCEPTION WHEN OTHERS THEN RETURN '!' || left(SQLSTATE, 2); END $$`)
	seed, count := number64(t, "SCALAR_SEED", 20261127), number64(t, "SCALAR_COUNT", 12000)
	rng := rand.New(rand.NewPCG(seed, 2))
	var expressions []string
	for range count {
		of := numberValues[rng.IntN(len(numberValues))]
		template := quoteSQL(drawNumberTemplate(rng))
		if rng.IntN(5) == 0 {
			expressions = append(expressions, "to_number("+quoteSQL(numberTexts[rng.IntN(len(numberTexts))])+", "+template+")")
			continue
		}
		value := of.values[rng.IntN(len(of.values))]
		expressions = append(expressions, "to_char('"+value+"'::"+of.typ.Name()+", "+template+")")
	}
	refused, failed, answered := 0, 0, 0
	for len(expressions) > 0 {
		batch := expressions[:min(1000, len(expressions))]
		expressions = expressions[len(batch):]
		quoted := make([]string, len(batch))
		for i, e := range batch {
			quoted[i] = "(" + quoteSQL(e) + ")"
		}
		want := s.column(t, "SELECT pg_temp.answered(e) FROM (VALUES "+strings.Join(quoted, ", ")+") AS all_of(e)")
		for i, e := range batch {
			got, _, _ := evaluated(s.env, e, s.rows[:1])
			text := got[0].text
			switch {
			case got[0].state == stateUnsupported && !strings.HasPrefix(want[i], "!"):
				refused++
				continue
			case got[0].state != "":
				text = "!" + got[0].state[:2]
			}
			if got[0].state == "" {
				answered++
			}
			if text != want[i] {
				if failed++; failed < 40 {
					t.Errorf("%s\n\tgot  %q %s\n\twant %q", e, text, got[0].message, want[i])
				}
			}
		}
	}
	t.Logf("%d expressions: %d differ, %d refused that the server answers, %d answered", count, failed, refused, answered)
	if refused > int(count)/100 {
		t.Error("more than one in a hundred is refused")
	}
	if answered < int(count)/2 {
		t.Error("less than half have an answer")
	}
}

func quoteSQL(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
