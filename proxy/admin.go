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

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/proxy/login"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// Metrics count what happens. Nothing in them depends on private rows: no sizes, no durations, no answers. One number
// does by rule 5 alone, which wants an operator to hear of it: how many paid queries failed, a deadline's too.
type Metrics struct {
	registry    *prometheus.Registry
	connections prometheus.Gauge
	logins      *prometheus.CounterVec
	statements  *prometheus.CounterVec
	ofKind      sync.Map // of these, by parse.StatementKind
	errors      *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	charges     *prometheus.CounterVec
	reloads     *prometheus.CounterVec
	sound       *prometheus.GaugeVec
	snapshot    prometheus.Gauge
	certificate prometheus.Gauge
}

// NewMetrics makes a set of counters with a registry of their own.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "dpproxy", Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: "dpproxy", Name: name, Help: help}
	}
	m := &Metrics{
		registry:    prometheus.NewRegistry(),
		connections: prometheus.NewGauge(gauge("connections", "Sessions now.")),
		logins:      counter("logins_total", "Logins by outcome.", "outcome"),
		statements:  counter("statements_total", "Statements by kind.", "kind"),
		errors:      counter("errors_total", "Errors sent to clients by SQLSTATE.", "sqlstate"),
		refusals:    counter("refusals_total", "Refusals by catalogue id.", "id"),
		charges:     counter("charges_total", "Charges by dataset and kind.", "dataset", "kind"),
		reloads:     counter("policy_reloads_total", "Changes of the policy file by outcome: ok, or failed, which leaves the old one in force.", "outcome"),
		sound:       prometheus.NewGaugeVec(gauge("ready", "What a question needs: 1 where it answers, 0 where it does not."), []string{"part"}),
		snapshot:    prometheus.NewGauge(gauge("snapshot_timestamp_seconds", "The moment of the snapshot in force, in seconds since 1970; 0: the database is read live.")),
	}
	m.certificate = prometheus.NewGauge(gauge("certificate_expiry_timestamp_seconds", "When the server's certificate expires, in seconds since 1970; 0: there is no TLS."))
	m.registry.MustRegister(m.certificate, m.connections, m.logins, m.statements, m.errors, m.refusals, m.charges, m.reloads, m.sound, m.snapshot)
	return m
}

// Observed is what a look at a running proxy finds.
type Observed struct {
	PaidFaults  map[string]int64 // paid queries that failed, by dataset
	Missed      int64            // copies that were due and not made
	Copies      bool             // there are copies
	PolicySince time.Time        // when the policy came into force here
	Ledger      time.Time        // the ledger's own time
	Memory      map[string]int64 // bytes that may be taken at most: by the proxy itself, by a child of its sandbox
}

// Observe shows at each scrape what a look finds.
func (m *Metrics) Observe(look func() Observed) { m.registry.MustRegister(observer(look)) }

// observer is a look as Prometheus collects it.
type observer func() Observed

var (
	described = func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("dpproxy_"+name, help, labels, nil)
	}
	paidFaults  = described("paid_faults_total", "Paid queries that failed, so that noise alone was answered, by dataset.", "dataset")
	missed      = described("snapshots_missed_total", "Snapshots that were due and not made.")
	policySince = described("policy_timestamp_seconds", "When the policy in force came into force here, in seconds since 1970.")
	ledgerTime  = described("ledger_timestamp_seconds", "The ledger's own time, which never goes back, in seconds since 1970: ahead of the clock, windows stand still.")
	memoryLimit = described("memory_limit_bytes", "What may be taken at most, by the proxy itself and by each child of its sandbox.", "of")
)

// Describe: see prometheus.Collector, as Collect is.
func (o observer) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{paidFaults, missed, policySince, ledgerTime, memoryLimit} {
		out <- d
	}
}

func (o observer) Collect(out chan<- prometheus.Metric) {
	seen := o()
	for dataset, n := range seen.PaidFaults {
		out <- prometheus.MustNewConstMetric(paidFaults, prometheus.CounterValue, float64(n), dataset)
	}
	if seen.Copies {
		out <- prometheus.MustNewConstMetric(missed, prometheus.CounterValue, float64(seen.Missed))
	}
	out <- prometheus.MustNewConstMetric(policySince, prometheus.GaugeValue, seconds(seen.PolicySince))
	out <- prometheus.MustNewConstMetric(ledgerTime, prometheus.GaugeValue, seconds(seen.Ledger))
	for of, bytes := range seen.Memory {
		out <- prometheus.MustNewConstMetric(memoryLimit, prometheus.GaugeValue, float64(bytes), of)
	}
}

// seconds since 1970, as Prometheus counts.
func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// Charged counts a charge.
func (m *Metrics) Charged(dataset, kind string) { m.charges.WithLabelValues(dataset, kind).Inc() }

// Reloaded counts a change of the policy file.
func (m *Metrics) Reloaded(err error) {
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	m.reloads.WithLabelValues(outcome).Inc()
}

// looked takes in what a look at the parts found.
func (m *Metrics) looked(parts []Part) {
	for _, p := range parts {
		value := 1.0
		if p.Err != nil {
			value = 0
		}
		m.sound.WithLabelValues(p.Name).Set(value)
		if !p.AsOf.IsZero() {
			m.snapshot.Set(float64(p.AsOf.Unix()))
		}
	}
}

func (m *Metrics) failed(err error, f *pgerror.Failure) {
	m.errors.WithLabelValues(f.SQLState).Inc()
	var refusal *refuse.Refusal
	if errors.As(err, &refusal) {
		m.refusals.WithLabelValues(refusal.ID).Inc()
	}
}

// kindNames label statements.
var kindNames = map[parse.StatementKind]string{
	parse.KindSelect: "select", parse.KindExplain: "explain", parse.KindSet: "set", parse.KindShow: "show",
	parse.KindReset: "reset", parse.KindDiscard: "discard", parse.KindDeallocate: "deallocate",
	parse.KindBegin: "begin", parse.KindCommit: "commit", parse.KindRollback: "rollback",
	parse.KindSavepoint: "savepoint", parse.KindReleaseSavepoint: "release", parse.KindRollbackTo: "rollback-to",
	parse.KindCopy: "copy", parse.KindDeclare: "declare", parse.KindFetch: "fetch", parse.KindClose: "close",
	parse.KindPrepare: "prepare", parse.KindExecute: "execute",
}

func (m *Metrics) ran(kind parse.StatementKind) {
	counter, ok := m.ofKind.Load(kind)
	if !ok {
		name := kindNames[kind]
		if name == "" {
			name = "other"
		}
		counter, _ = m.ofKind.LoadOrStore(kind, m.statements.WithLabelValues(name))
	}
	counter.(prometheus.Counter).Inc()
}

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

// say writes "ok", or what is wrong. What is wrong aside is listed below either.
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
