package catalog

import (
	"testing"
	"time"
)

func TestSpanText(t *testing.T) {
	for span, want := range map[time.Duration]string{
		time.Minute: "1 minute", 30 * time.Minute: "30 minutes", time.Hour: "1 hour", 90 * time.Minute: "90 minutes",
		6 * time.Hour: "6 hours", 24 * time.Hour: "1 day", 7 * 24 * time.Hour: "7 days", 90 * time.Second: "1m30s",
	} {
		if got := spanText(span.Microseconds()); got != want {
			t.Errorf("%s: %q, want %q", span, got, want)
		}
	}
}
