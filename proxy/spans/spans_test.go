package spans

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/request"
)

// collector keeps what it is sent.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	bodies []message
	heads  []http.Header
}

func newCollector(t *testing.T) *collector {
	c := &collector{status: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		text, _ := io.ReadAll(r.Body) // what is cut short is no message
		var m message
		if err := json.Unmarshal(text, &m); err != nil || r.URL.Path != "/v1/traces" || r.Method != http.MethodPost {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		c.bodies, c.heads = append(c.bodies, m), append(c.heads, r.Header)
		w.WriteHeader(c.status)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) spans() (all []span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.bodies {
		all = append(all, m.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	return all
}

func (c *collector) recorder(t *testing.T, log *slog.Logger) *Recorder {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	r, err := New(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSpans: a statement's stages are below it, with what they may say; what was parsed before it is within it.
func TestSpans(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, y=2")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	r := c.recorder(t, slog.New(slog.DiscardHandler))
	done := r.Clock()
	p := done()
	id := request.NewSession().Next()
	ctx, end := r.Statement(request.With(t.Context(), id), p, "census")
	Begin(context.WithoutCancel(ctx), Execute, Table("people"), Kind("count"))()
	end("DP001")
	r.Close(t.Context())
	all := c.spans()
	if len(all) != 3 {
		t.Fatalf("%d spans: %v", len(all), all)
	}
	texts := map[string]string{}
	var root span
	for _, s := range all {
		var says []string
		for _, a := range s.Attributes {
			says = append(says, a.Key+"="+a.Value.Text)
		}
		if texts[s.Name] = strings.Join(says, " "); s.ParentID == "" {
			root = s
		}
	}
	for _, s := range all {
		begun, err1 := strconv.ParseInt(s.Begun, 10, 64)
		ended, err2 := strconv.ParseInt(s.Ended, 10, 64)
		if s.TraceID != root.TraceID || s.ParentID != "" && s.ParentID != root.SpanID || begun > ended || err1 != nil || err2 != nil || s.Begun < root.Begun || len(s.SpanID) != 16 || len(s.TraceID) != 32 {
			t.Errorf("%+v below %+v", s, root)
		}
	}
	for name, want := range map[string]string{"statement": "dpproxy.dataset=census dpproxy.request=" + id.String() + " db.response.status_code=DP001", "execute": "dpproxy.table=people dpproxy.kind=count", "parse": ""} {
		if got, ok := texts[name]; !ok || got != want {
			t.Errorf("%s says %q, not %q", name, got, want)
		}
	}
	if h := c.heads[0]; h.Get("X-Key") != "a b" || h.Get("Y") != "2" || h.Get("Content-Type") != "application/json" {
		t.Errorf("headers: %v", h)
	}
	if of, _ := json.Marshal(c.bodies[0].ResourceSpans[0].Resource); !strings.Contains(string(of), `"dpproxy"`) || !strings.Contains(string(of), "deployment.environment.name") {
		t.Errorf("resource: %s", of)
	}
}

// TestOff: without a recorder nothing is allocated, and nothing sent.
func TestOff(t *testing.T) {
	var r *Recorder
	ctx := request.With(t.Context(), request.NewSession().Next())
	table := "people"
	if n := testing.AllocsPerRun(100, func() {
		p := r.Clock()()
		of, end := r.Statement(ctx, p, "census")
		Begin(of, Execute, Table(table))()
		Begin(of, Charge)()
		end("")
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	r.Close(ctx)
	t.Setenv("OTEL_SDK_DISABLED", "true")
	if r, err := New(ctx, slog.New(slog.DiscardHandler)); r != nil || err != nil {
		t.Errorf("switched off: %v, %v", r, err)
	}
}

// TestCollectorThatIsAway: it is reported once, until it is back, and holds up nobody.
func TestCollectorThatIsAway(t *testing.T) {
	c, log := newCollector(t), &strings.Builder{}
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "5")
	r := c.recorder(t, slog.New(slog.NewTextHandler(log, nil)))
	ask := func() {
		before := len(c.spans())
		begun := time.Now()
		_, end := r.Statement(t.Context(), Parsed{}, "census")
		end("")
		if took := time.Since(begun); took > time.Second {
			t.Errorf("a statement waited %s", took)
		}
		for wait := time.Now().Add(10 * time.Second); len(c.spans()) == before && time.Now().Before(wait); time.Sleep(5 * time.Millisecond) {
		}
	}
	for _, status := range []int{503, 503, 302, 200, 200} {
		c.mu.Lock()
		c.status = status
		c.mu.Unlock()
		ask()
	}
	r.Close(t.Context())
	if away, back := strings.Count(log.String(), "are lost"), strings.Count(log.String(), "taken again"); away != 1 || back != 1 {
		t.Errorf("told %d and %d times:\n%s", away, back, log)
	}
}

// TestWhereTo: spans go by TLS, or do not leave the machine; what the variables say and dpproxy does not do is an
// error.
func TestWhereTo(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.example.org:4318", "https://"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "https://"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example.org", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://[::1]:4318", ""},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://10.0.0.1/x", "https://"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/json"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", ""},
		{"OTEL_EXPORTER_OTLP_HEADERS", "nothing", "key=value"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "milliseconds"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere.pem", "CERTIFICATE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			_, err := newExporter(slog.New(slog.DiscardHandler))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s=%s: %v", c.name, c.value, err)
			}
		})
	}
}
