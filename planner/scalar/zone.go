package scalar

import (
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the same zones on every machine
)

var loadedZones sync.Map // name -> *time.Location; only names that exist, so it stays small

// zoneNamed finds a time zone by its full name, or UTC and GMT. Abbreviations are refused: PostgreSQL's are fixed
// offsets, which differ from the zones of the same name.
func zoneNamed(name string) (*time.Location, error) {
	switch asciiUpper(name) {
	case "UTC", "GMT", "Z", "ZULU":
		return time.UTC, nil
	}
	if zone, ok := loadedZones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	if !strings.Contains(name, "/") {
		return nil, unsupported("this time zone")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, unsupported("this time zone")
	}
	loadedZones.Store(name, zone)
	return zone, nil
}

// asciiUpper and asciiLower change ASCII letters only.
func asciiUpper(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 32
		}
		return r
	}, s)
}

func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 32
		}
		return r
	}, s)
}
