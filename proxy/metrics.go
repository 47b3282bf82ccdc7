package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// Metrics count what happens. Nothing in them depends on private rows: no sizes, no durations, no answers.
type Metrics struct {
	registry    *prometheus.Registry
	connections prometheus.Gauge
	logins      *prometheus.CounterVec
	statements  *prometheus.CounterVec
	errors      *prometheus.CounterVec
	refusals    *prometheus.CounterVec
	charges     *prometheus.CounterVec
}

// NewMetrics makes a set of counters with a registry of their own.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "dpproxy", Name: name, Help: help}, labels)
	}
	m := &Metrics{
		registry:    prometheus.NewRegistry(),
		connections: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "dpproxy", Name: "connections", Help: "Sessions now."}),
		logins:      counter("logins_total", "Logins by outcome.", "outcome"),
		statements:  counter("statements_total", "Statements by kind.", "kind"),
		errors:      counter("errors_total", "Errors sent to clients by SQLSTATE.", "sqlstate"),
		refusals:    counter("refusals_total", "Refusals by catalogue id.", "id"),
		charges:     counter("charges_total", "Charges by dataset and kind.", "dataset", "kind"),
	}
	m.registry.MustRegister(m.connections, m.logins, m.statements, m.errors, m.refusals, m.charges)
	return m
}

// Charged counts a charge.
func (m *Metrics) Charged(dataset, kind string) { m.charges.WithLabelValues(dataset, kind).Inc() }

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
	name := kindNames[kind]
	if name == "" {
		name = "other"
	}
	m.statements.WithLabelValues(name).Inc()
}

// admin serves /metrics and /healthz to the operator.
type admin struct{ server *http.Server }

const adminTimeout = 10 * time.Second

func newAdmin(m *Metrics, healthy func() bool) *admin {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if !healthy() {
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n")) // a client that is gone needs no answer
	})
	return &admin{&http.Server{Handler: mux, ReadTimeout: adminTimeout, WriteTimeout: adminTimeout, MaxHeaderBytes: 1 << 14}}
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
