package attacks

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// telling is what spans say: of a statement, of a stage. All of it is public.
var telling = regexp.MustCompile(`^(statement|parse|plan|wait|charge|execute|noise|save|outer)( dpproxy\.dataset=lab| dpproxy\.request=[0-9a-f]{16}-\d+| dpproxy\.table=people| dpproxy\.kind=[a-z]+| db\.response\.status_code=[0-9A-Z]{5})*$`)

// TestSpansHaveNoWords: what goes to a collector is stages, times, numbers of requests, datasets, tables, kinds and
// SQLSTATEs, whatever statements hold; and over two databases of which one lacks a person it is the same but for times
// and numbers. Without `server.spans` nothing goes there.
func TestSpansHaveNoWords(t *testing.T) {
	var mu sync.Mutex
	var bodies [][]byte
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if bodies = append(bodies, text); err != nil {
			t.Error(err)
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100000") // none is lost
	sent := func(without int, on bool) (texts []string) {
		path := kit.DuckDB(t, kit.Budgets{User: "3", Cap: "4"}, without)
		if on {
			kit.Edit(t, path, `listen: "127.0.0.1:0"`, `listen: "127.0.0.1:0", spans: true`)
		}
		p := kit.Serve(t, path)
		w := p.Connect("alice", "lab")
		for range 2 { // the second round finds the budget spent
			for _, sql := range wordsOfClients {
				w.Ask(sql)
			}
			for n := range 20 {
				w.Ask(fmt.Sprintf(`SELECT count(*), sum(income) FROM people AS "Kanarienvogel" WHERE hiv AND age > %d`, n))
			}
		}
		p.Stop(syscall.SIGTERM) // which sends what waits
		mu.Lock()
		defer mu.Unlock()
		for _, body := range bodies {
			if lower := strings.ToLower(string(body)); strings.Contains(lower, strings.ToLower(canary)) {
				t.Errorf("told to the collector: %.400s", body)
			}
			texts = append(texts, spansOf(t, body)...)
		}
		bodies = nil
		return texts
	}
	if texts := sent(0, false); len(texts) > 0 {
		t.Errorf("nobody asked for spans: %v", texts)
	}
	with, without := sent(0, true), sent(7, true)
	for _, stage := range []string{"statement", "parse", "plan", "wait", "charge", "execute", "noise", "save", "outer"} {
		if !slices.ContainsFunc(with, func(s string) bool { return strings.HasPrefix(s, stage) }) {
			t.Errorf("no span of the stage %s", stage)
		}
	}
	told := 0
	for _, s := range append(slices.Clone(with), without...) {
		if !telling.MatchString(s) {
			told++
			t.Errorf("a span says %q", s)
		}
	}
	numbers := regexp.MustCompile(`[0-9a-f]{16}-`) // of a session; which of its statements it is stays
	equal := func(list []string) (all []string) {
		for _, s := range list {
			all = append(all, numbers.ReplaceAllString(s, "-"))
		}
		slices.Sort(all)
		return all
	}
	if a, b := equal(with), equal(without); !slices.Equal(a, b) {
		t.Errorf("over neighbouring databases spans differ: %d, %d\n%v\n%v", len(a), len(b), a, b)
	}
	threats.Reached(t, "T73", "%d spans over two neighbouring databases: %d say more than is public, the rest are equal", len(with)+len(without), told)
}

// spansOf writes each span of a message as its name and what it says.
func spansOf(t *testing.T, body []byte) (texts []string) {
	t.Helper()
	var m struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					Name       string
					Attributes []struct {
						Key   string
						Value struct{ StringValue string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(body, &m); err != nil {
		t.Fatal(err)
	}
	for _, s := range m.ResourceSpans[0].ScopeSpans[0].Spans {
		text := s.Name
		for _, a := range s.Attributes {
			text += " " + a.Key + "=" + a.Value.StringValue
		}
		texts = append(texts, text)
	}
	return texts
}
