package kit

import (
	"context"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/service"
)

// Unwired asks without the wire and returns the whole numbers of the answer's last column.
func Unwired(ctx context.Context, h *service.Service, answers *pipeline.Answerer, user, statement string, epsilon int64) ([]int64, error) {
	r, err := UnwiredResult(ctx, h, answers, user, statement, epsilon)
	if err != nil {
		return nil, err
	}
	var counts []int64
	for _, row := range r.Rows.Value().Data {
		counts = append(counts, row[len(row)-1].(int64))
	}
	return counts, nil
}

// UnwiredResult is the whole of such an answer, its notices too.
func UnwiredResult(ctx context.Context, h *service.Service, answers *pipeline.Answerer, user, statement string, epsilon int64) (pipeline.Result, error) {
	p := h.Policy()
	data := p.Datasets[0]
	s := &pipeline.Session{User: user, Database: data.ID, Policy: p, Dataset: data}
	s.Settings.Settings = plans.Settings{Epsilon: privacy.MicroEpsilon(epsilon * 1e6), Confidence: data.Defaults.Confidence, SearchPath: []string{"public"}, Zone: time.UTC}
	statements, refusal := parse.Parse(statement)
	if refusal != nil {
		return pipeline.Result{}, refusal
	}
	return answers.Answer(ctx, s, statements[0], nil)
}
