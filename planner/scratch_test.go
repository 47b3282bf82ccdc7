package planner
import ("testing";"fmt";"os";"strings";"github.com/dpproxy/dpproxy/planner/parse")
func TestScratch(t *testing.T){
 data,_ := os.ReadFile("/tmp/subq.sql")
 c := testContext(t, testPolicy(t)); c.Public = regionRows{}
 for _, q := range strings.Split(strings.TrimSpace(string(data)),"\n") {
  s, r := parse.Parse(q); if r!=nil { fmt.Println(q,"PARSE",r); continue}
  p, r := Build(s[0], nil, c)
  if r != nil { fmt.Println("--", q, "\n   REFUSED", r.ID, r.Message, "@",r.Position); continue }
  fmt.Println("--", q, "\n   cost", p.Cost, "inner", len(p.Inner), "measures", len(p.Measures))
  for _, m := range p.Measures { fmt.Println("     ", m.Kind, m.Name, m.Cost, m.Spec.Cells, m.Contribution()) }
  for _, n := range p.Notes { fmt.Println("      note:", n) }
 }
}
