package answers

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// refusedQuestions are how many of the shop's questions may be refused, each with another statement in its place.
const refusedQuestions = 6

// TestQuestions asks a shop sixty questions of an owner's and an analyst's day, each in plain words with the SQL that a
// model writes for it (examples/shop/questions.sql; the styles are those of Spider and of BIRD, the words and statements
// our own): an answer is PostgreSQL's own up to noise, and of what is refused another statement is answered.
func TestQuestions(t *testing.T) {
	kit.Beside(t)
	rows, _, _ := strings.Cut(script(t, "shop/shop.sql"), "-- The role that dpproxy connects as")
	c := openClinic(t, "shop", strings.NewReplacer("20000", "2000", "60000", "6000").Replace(rows)) // a tenth of it
	answered, refused := map[string]bool{}, map[string]string{}
	for _, q := range questionsOf([]byte(script(t, "shop/questions.sql"))) {
		_, instead := strings.CutPrefix(q.name, "instead ")
		o := c.ask(q)
		t.Logf("%s %v %s", q.id, o.took, o.how)
		switch {
		case o.outcome == "WRONG":
			t.Errorf("%s %s: %s\n%s\n%s", q.id, q.name, o.how, q.sql, c.said)
		case instead && o.outcome == "answered":
			delete(refused, q.id)
		case instead:
			t.Errorf("%s: what is to be asked instead is refused: %s", q.id, o.how)
		case o.outcome == "answered":
			answered[q.id] = true
		default:
			refused[q.id] = o.how
		}
	}
	t.Logf("%d answered", len(answered))
	if len(answered) < 60-refusedQuestions {
		t.Errorf("%d of 60 are answered", len(answered))
	}
	for id, how := range refused {
		t.Errorf("%s is refused, and nothing is said in its place: %s", id, how)
	}
}
