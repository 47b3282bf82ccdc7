package pipeline

import (
	"errors"
	"testing"
)

// TestShowOfUnknownNames: SHOW of a name that is neither a setting nor the budget is distinguished, whatever the name.
func TestShowOfUnknownNames(t *testing.T) {
	for _, name := range []string{"dp.epsilom", "dp.budgt", ""} {
		if _, err := (&Answerer{}).answerShow(t.Context(), &Session{}, name); !errors.Is(err, ErrUnknownName) {
			t.Errorf("SHOW %s: %v", name, err)
		}
	}
}
