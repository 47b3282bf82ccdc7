package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dpproxy/dpproxy/proxy/login"
)

// The operator's pages, on an address of their own without a password: /metrics; /livez, that the process serves;
// /readyz and /healthz, that whatever a question needs answers too: 200 and "ok", or 503 and which part does not.
// Nothing here depends on private rows, or on what anybody asked: that a database is down is seen by every analyst.

// Part is one thing that dpproxy needs: the private database, the ledger, the sandbox; or, aside, what no question
// waits for: the directory that judges log-ins, the place of the next snapshot.
type Part struct {
	Name  string
	Err   error     // nil: it answers
	AsOf  time.Time // of the snapshot in force; zero: none
	Aside bool      // /readyz tells of it and stays 200: another proxy would do no better, and who is logged in is answered
}

// Health looks at all parts, within the context's time.
type Health func(ctx context.Context) []Part

// A look is shared by all who ask within lookAgain, so that probes cost the parts one question in that time, however
// many come, and ends after lookFor.
const (
	lookAgain = time.Second
	lookFor   = 4 * time.Second
)

// watchman remembers the last look.
type watchman struct {
	health  Health
	metrics *Metrics

	mu    sync.Mutex // held while it looks: others wait for what is found
	at    time.Time
	parts []Part
}

func (w *watchman) look() []Part {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.health == nil || time.Since(w.at) < lookAgain {
		return w.parts
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookFor)
	defer cancel()
	w.parts, w.at = w.health(ctx), time.Now()
	w.metrics.looked(w.parts)
	return w.parts
}

// admin serves the pages.
type admin struct{ server *http.Server }

const adminTimeout = 10 * time.Second

func newAdmin(m *Metrics, health Health, draining func() bool, anyHost bool) *admin {
	w := &watchman{health: health, metrics: m}
	mux := http.NewServeMux()
	measured := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	mux.HandleFunc("GET /metrics", func(out http.ResponseWriter, r *http.Request) {
		w.look()
		measured.ServeHTTP(out, r)
	})
	mux.HandleFunc("GET /livez", func(out http.ResponseWriter, _ *http.Request) { say(out, draining(), nil) })
	ready := func(out http.ResponseWriter, _ *http.Request) { say(out, draining(), w.look()) }
	mux.HandleFunc("GET /readyz", ready)
	mux.HandleFunc("GET /healthz", ready)
	named := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if !anyHost && !login.LocalName(r.Host) {
			http.Error(out, "these pages are asked for by another name than this machine's own", http.StatusMisdirectedRequest)
			return
		}
		mux.ServeHTTP(out, r)
	})
	return &admin{&http.Server{Handler: named, ReadTimeout: adminTimeout, WriteTimeout: adminTimeout, MaxHeaderBytes: 1 << 14}}
}

// say writes "ok", or what is wrong. What is wrong aside stands below either.
func say(out http.ResponseWriter, draining bool, parts []Part) {
	var wrong, aside []string
	if draining {
		wrong = append(wrong, "shutting down")
	}
	for _, p := range parts {
		switch line := fmt.Sprintf("%s: %v", p.Name, p.Err); {
		case p.Err == nil:
		case p.Aside:
			aside = append(aside, line)
		default:
			wrong = append(wrong, line)
		}
	}
	if wrong != nil {
		http.Error(out, strings.Join(append(wrong, aside...), "\n"), http.StatusServiceUnavailable)
		return
	}
	_, _ = out.Write([]byte(strings.Join(append([]string{"ok"}, aside...), "\n") + "\n")) // a client that is gone needs no answer
}

func (a *admin) serve(l net.Listener) error {
	if err := a.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (a *admin) stop(ctx context.Context) {
	if err := a.server.Shutdown(ctx); err != nil {
		_ = a.server.Close() // the deadline is over
	}
}
