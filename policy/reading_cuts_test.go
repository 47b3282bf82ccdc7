package policy

import "testing"

// TestCuts: a reading that depends on the whole of a text is distinguished from one that depends on its beginning.
func TestCuts(t *testing.T) {
	like := func(pattern string) Reading { return Reading{{Word: Like, Text: pattern}} }
	for _, c := range []struct {
		reading Reading
		want    bool
	}{
		{nil, false},
		{Reading{{Word: Left, Length: 2}}, false},
		{Reading{{Word: Cut, From: 5, Length: 3}, {Word: Length}}, false},
		{Reading{{Word: Lower}, {Word: Left, Length: 2}}, false},
		{Reading{{Word: Lower}}, false},
		{Reading{{Word: Upper}, {Word: Like, Text: "%A"}}, true},
		{like("late%"), false},
		{like("l_te"), false},
		{like(`late\%`), false},
		{like("%late%"), true},
		{like("%"), false},
		{like("a%b"), true},
		{Reading{{Word: Right, Length: 1}}, true},
		{Reading{{Word: Length}}, true},
		{Reading{{Word: Position, Text: "x"}}, true},
		{Reading{{Word: Field, Text: ",", From: 1}}, true},
		{Reading{{Word: TrimRight}}, true},
	} {
		if got := c.reading.Cuts(); got != c.want {
			t.Errorf("%s: %t", c.reading.Of("x"), got)
		}
	}
}
