package sealed

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestASealedValueDoesNotPrint: by no verb of fmt, no encoder and no logger, alone or within something else.
func TestASealedValueDoesNotPrint(t *testing.T) {
	const secret = 7319207
	s := Seal(secret)
	type outer struct {
		Inner Sensitive[int]
		inner Sensitive[int]
	}
	log := &strings.Builder{}
	for _, v := range []any{s, &s, outer{s, s}, &outer{s, s}, []Sensitive[int]{s}, map[string]Sensitive[int]{"a": s}} {
		texts := []string{}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%q", "%p", "%T"} {
			texts = append(texts, fmt.Sprintf(verb, v))
		}
		encoded, err := json.Marshal(v)
		texts = append(texts, string(encoded), fmt.Sprint(err))
		slog.New(slog.NewJSONHandler(log, nil)).Info("value", "v", v)
		slog.New(slog.NewTextHandler(log, nil)).Info("value", "v", v)
		for _, text := range append(texts, log.String()) {
			if strings.Contains(text, fmt.Sprint(secret)) || strings.Contains(text, fmt.Sprintf("%x", secret)) {
				t.Errorf("%T shows in %s", v, text)
			}
		}
	}
	if Open(s) != secret {
		t.Error("opened to something else")
	}
}

func TestZeroValuesAreRefused(t *testing.T) {
	if (Sensitive[int]{}).Valid() || (Released[int]{}).Valid() || !Seal(0).Valid() || !Release(0).Valid() {
		t.Error("validity")
	}
	for name, f := range map[string]func(){"open": func() { Open(Sensitive[int]{}) }, "value": func() { Released[int]{}.Value() }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of the zero value did not panic", name)
				}
			}()
			f()
		}()
	}
}
