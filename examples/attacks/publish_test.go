package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// publish writes the figures into README.md, between its marks, and draws them.
func publish(t *testing.T, reached map[string][]outcome) {
	t.Helper()
	table := "| attack | " + strings.Join(targets, " | ") + " |\n| --- | --- | --- | --- |\n"
	for _, a := range attacks {
		table += "| " + a.name
		for i, o := range reached[a.name] {
			table += fmt.Sprintf(" | %.1f %%", 100*o.mean())
			if i == 2 && len(o.scores) > 1 {
				table += fmt.Sprintf(" (at most %.1f %% in %d runs)", 100*o.most(), len(o.scores))
			}
		}
		table += " |\n"
	}
	table += "\nWhat the attacker heard, in the last column:\n\n| attack | questions | answered | the first refusal |\n| --- | --- | --- | --- |\n"
	for _, a := range attacks {
		o := reached[a.name][2]
		table += fmt.Sprintf("| %s | %d | %d | %s |\n", a.name, o.asked/len(o.scores), o.answered/len(o.scores), o.why)
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	const from, to = "<!-- figures -->\n", "<!-- end of figures -->\n"
	before, rest, ok := strings.Cut(string(text), from)
	_, after, okToo := strings.Cut(rest, to)
	if !ok || !okToo {
		t.Fatal("README.md has no place for the figures")
	}
	if err := os.WriteFile("README.md", []byte(before+from+table+to+after), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("attacks.svg", []byte(plot(reached)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// plot draws a bar for each attack and target; the lines are guessing, and what ε = 1 allows.
func plot(reached map[string][]outcome) string {
	const left, top, high, wide = 60.0, 60.0, 300.0, 130.0
	colours := []string{"#b2182b", "#ef8a62", "#2166ac"}
	at := func(share float64) float64 { return top + high*(1-share) }
	var b strings.Builder
	width := left + wide*float64(len(attacks)) + 20
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="13">`+"\n", width, top+high+40)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	for i, name := range targets {
		x := left + 230*float64(i)
		fmt.Fprintf(&b, `<rect x="%g" y="14" width="14" height="14" fill="%s"/><text x="%g" y="26">%s</text>`+"\n", x, colours[i], x+20, name)
	}
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="end">%.0f %%</text>`+"\n", left-8, at(share)+4, 100*share)
	}
	for i, a := range attacks {
		x := left + wide*float64(i) + 12
		for j, o := range reached[a.name] {
			fmt.Fprintf(&b, `<rect x="%g" y="%.1f" width="32" height="%.1f" fill="%s"/>`, x+35*float64(j), at(o.mean()), high*o.mean(), colours[j])
			fmt.Fprintf(&b, `<text x="%g" y="%.1f" text-anchor="middle" font-size="11">%.0f</text>`+"\n", x+35*float64(j)+16, at(o.mean())-4, 100*o.mean())
		}
		fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">%s</text>`+"\n", x+51, top+high+20, a.name)
	}
	for share, name := range map[float64]string{0.5: "guessing", most: "what ε = 1 allows: e/(1+e)"} {
		fmt.Fprintf(&b, `<line x1="%g" x2="%g" y1="%.1f" y2="%.1f" stroke="black" stroke-dasharray="5 4"/>`, left, width-20, at(share), at(share))
		fmt.Fprintf(&b, `<text x="%g" y="%.1f" text-anchor="end" stroke="white" stroke-width="4" paint-order="stroke">%s</text>`+"\n", width-22, at(share)-5, name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
