package engines

import (
	"testing"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/backendtest"
)

// TestQueriesArePlannedBeforeTheCharge: what the database would not run is found without a row being read.
func TestQueriesArePlannedBeforeTheCharge(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, h *backendtest.House) {
		good, grouped := backendtest.Render(t, backendtest.Measure(t, h.Policy, "people"), h), backendtest.Render(t, backendtest.Measure(t, h.Policy, "visits", "clinic", "minutes"), h)
		if err := h.Ready(t.Context(), good, grouped); err != nil {
			t.Fatal(err)
		}
		missing := *h.Policy.Datasets[0].Tables[0]
		missing.Source.Name = "nobody"
		m := backendtest.Measure(t, h.Policy, "people")
		m.Table = &missing
		if err := h.Ready(t.Context(), good, backendtest.Render(t, m, h), good); err != backend.ErrUnplanned {
			t.Errorf("a table that is not there: %v", err)
		}
		if err := h.Ready(t.Context(), good); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
