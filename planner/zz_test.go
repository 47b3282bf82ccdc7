package planner
import ("testing";"fmt";"time")
func TestZZ(t *testing.T){
 c := testContext(t, testPolicy(t))
 for _, sql := range []string{"SELECT sum(CASE WHEN (COALESCE(age, 0) = 0 AND date_trunc('year', hired) = '2011-01-01') THEN 0 ELSE 1 END), count(*) FROM people",
 "SELECT count(*) FILTER (WHERE income > 999.5), count(DISTINCT kids) FILTER (WHERE age > kids) FROM people WHERE (age > kids * 5 OR (hired BETWEEN '2010-05-05' AND '2015-01-01' AND score < 2.5)) GROUP BY active",
 "SELECT sum(CASE WHEN extract(hour FROM seen) < 12 THEN (age > 40)::int WHEN age BETWEEN 20 AND 39 THEN 1 WHEN 1 > 2 THEN 1 ELSE 0 END), count(*) FROM people"} {
 s,_ := Parse(sql)
 c.Work = NewWork(t.Context(), Limits{Steps:1<<50,Bytes:1<<50})
 b := time.Now()
 p, r := Build(s[0], nil, c)
 fmt.Println(time.Since(b), c.Work.Taken(), r)
 if p != nil { for _, m := range p.Measures { fmt.Println(m.Kind, m.Name, len(m.Counters), m.Where, m.Counters, m.Sums, len(m.Grain)) } 
 for _, l := range p.Leaves { for _, cc := range l.Counts { fmt.Printf("%+v\n", cc.Runs) } } }
 }
}
