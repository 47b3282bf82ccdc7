package main

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/service"
)

// BenchmarkAnswerFromRelease is the way of one prepared range question that a held release answers, without the wire.
func BenchmarkAnswerFromRelease(b *testing.B) {
	d := demo{dir: b.TempDir(), listen: "127.0.0.1:0", rows: 20000, out: new(discard)}
	if err := d.prepare(b.Context()); err != nil {
		b.Fatal(err)
	}
	h, err := service.Open(b.Context(), d.dir+"/policy.yaml", ledger.Options{}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	answers := pipeline.NewAnswerer(h.Backend, h.Ledger, h.Engine, rand.Reader, slog.New(slog.DiscardHandler), proxy.NewMetrics())
	p := h.Policy()
	data := p.Datasets[0]
	s := &pipeline.Session{User: "analyst", Database: data.ID, Policy: p, Dataset: data}
	s.Settings.Settings = plans.Settings{Release: true, Epsilon: data.Defaults.MaxEpsilon,
		Confidence: data.Defaults.Confidence, SearchPath: []string{"public"}, Zone: time.UTC}
	statements, refusal := parse.Parse(`SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2`)
	if refusal != nil {
		b.Fatal(refusal)
	}
	for i := 0; b.Loop(); i++ {
		from := int64(i % 50)
		r, err := answers.Answer(b.Context(), s, statements[0], []policy.Value{from, from + 1 + int64(i/50%50)})
		if err != nil {
			b.Fatal(err)
		}
		if r.Rows.Value().Data == nil {
			b.Fatal(fmt.Sprint(r))
		}
	}
}

type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }
