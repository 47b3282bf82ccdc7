package proxy

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

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
	reloads     *prometheus.CounterVec
	sound       *prometheus.GaugeVec
	snapshot    prometheus.Gauge
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
	m.registry.MustRegister(m.connections, m.logins, m.statements, m.errors, m.refusals, m.charges, m.reloads, m.sound, m.snapshot)
	return m
}

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
	name := kindNames[kind]
	if name == "" {
		name = "other"
	}
	m.statements.WithLabelValues(name).Inc()
}
