package scalar

import "testing"

func TestTemplateUnit(t *testing.T) {
	for format, want := range map[string]string{
		"YYYY-MM-DD": "day", `YYYY-"W"IW`: "day", "FMDay": "day", "HH24": "hour", "Dy hh12 pm": "hour", "HH24:MI": "minute", "SSSS": "second", "MI:SS": "second",
		"HH24:MI:SS.MS": "", "HH24 OF": "", "tz": "", "US": "", `"MS"`: "day", "": "day", "TMMonth": "",
	} {
		if got := TemplateUnit(format); got != want {
			t.Errorf("to_char under %q cannot change within %q, want %q", format, got, want)
		}
	}
}
