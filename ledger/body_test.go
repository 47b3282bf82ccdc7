package ledger

import (
	"encoding/hex"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/ledger/store"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// What a charge, a save and the terms of a dataset say, every field of them set, and their bytes: what is written today
// is read by whatever comes later.

func digest(of byte) (d Digest) {
	for i := range d {
		d[i] = of
	}
	return d
}

func cost(micro int64) privacy.Cost {
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(micro), Rho: privacy.PicoRho(micro + 1), Delta: privacy.AttoDelta(micro + 2)}
}

// Pieces of the bytes below, as hexadecimal digits.
func digestBytes(of string) string { return strings.Repeat(of, 32) }
func numbers(list ...string) (text string) {
	for _, n := range list {
		text += strings.Repeat("0", 16-len(n)) + n
	}
	return text
}
func textBytes(s string) string {
	return numbers(hex.EncodeToString([]byte{byte(len(s))})) + hex.EncodeToString([]byte(s))
}

// isWhole fails for every field of a struct that is not set: whoever adds one says here what it is written as. Those
// named are known not to be written.
func isWhole(t *testing.T, v any, unwritten ...string) {
	t.Helper()
	s := reflect.ValueOf(v)
	for i := range s.NumField() {
		name := s.Type().Field(i).Name
		if known := slices.Contains(unwritten, name); s.Field(i).IsZero() != known {
			t.Errorf("%T: field %s is not in the bytes below, or is said not to be", v, name)
		}
	}
}

func TestBodiesBytes(t *testing.T) {
	ladder := Ladder{Finest: privacy.MicroEpsilon(0x31), Level: privacy.MicroEpsilon(0x32), From: 0x33}
	ladderBytes := numbers("31", "32", "33")
	charge := chargeBody{statement: digest(0xa1), policy: digest(0xa2), digest: digest(0xa3), kind: "count", name: "people_1", table: "people", cost: cost(0x11),
		capped: true, joins: 0x21, ladder: ladder, pool: cost(0x41), by: "bob"}
	chargeBytes := "01" + digestBytes("a1") + digestBytes("a2") + digestBytes("a3") + textBytes("count") + textBytes("people_1") + textBytes("people") +
		numbers("11", "12", "13") + numbers("1") + numbers("21") + ladderBytes + numbers("41", "42", "43")
	alone := len(chargeBytes) / 2 // where a charge of somebody in no group ends
	chargeBytes += textBytes("bob")
	isWhole(t, charge)
	isWhole(t, ladder)
	if got := hex.EncodeToString(charge.encode()); got != chargeBytes {
		t.Errorf("a charge is %s, want %s", got, chargeBytes)
	}
	if got, err := decodeCharge(charge.encode()); err != nil || !reflect.DeepEqual(got, charge) {
		t.Errorf("read %+v (%v), want %+v", got, err, charge)
	}

	// The Spec of an alarm, which is short: package chain has the bytes of all.
	alarm := &mechanisms.Alarm{Positives: 5, Restarts: 6, Contribution: mechanisms.Contribution{Rows: 7, Groups: 8, PerGroup: 9, Neighbors: 2}, Cost: cost(0xa)}
	save := saveBody{charge: 0x51, at: 0x52, key: store.Key(digest(0xb1)), noisy: digest(0xb2), family: digest(0xb3), of: 0x53,
		item: Item{Digest: digest(0xb4), Kind: "alarms", Name: "people_alarms", Table: "people", Shared: true, Cost: cost(0x61),
			Spec: mechanisms.Spec{Counters: 1, Cells: 1, Kind: alarm}, Described: []byte("described"), Refresh: 0x62, AsOf: 0x64, Ladder: ladder}}
	saveBytes := "01" + numbers("51", "52") + digestBytes("b1") + digestBytes("b2") + digestBytes("b4") + textBytes("alarms") + textBytes("people_alarms") + textBytes("people") +
		numbers("1") + numbers("61", "62", "63") + numbers("3", "5", "6", "7", "8", "9", "2", "a", "b", "c") + textBytes("described") + numbers("62", "64") + ladderBytes +
		digestBytes("b3") + numbers("53")
	isWhole(t, save)
	isWhole(t, save.item, "Levels") // each of them has a save of its own
	if got := hex.EncodeToString(save.encode()); got != saveBytes {
		t.Errorf("a save is %s, want %s", got, saveBytes)
	}
	if got, err := decodeSave(save.encode()); err != nil || !reflect.DeepEqual(got, save) {
		t.Errorf("read %+v (%v), want %+v", got, err, save)
	}

	terms := DatasetTerms{ID: "census", Accountant: 1, Neighbors: 2, Unit: "person", Relations: []string{"public.homes", "public.people"}, Cap: cost(0x71),
		Budgets: map[string]BudgetTerms{"*": {Limit: cost(0x81), Refresh: time.Duration(0x82), Lifetime: cost(0x83)}, "alice": {Limit: cost(0x91), Refresh: time.Duration(0x92), Lifetime: cost(0x93)}},
		Groups:  map[string][]string{"team": {"bob", "eve"}}, Paths: map[string]string{"public.homes": "owner", "public.people": "id"}}
	termsBytes := "01" + textBytes("census") + numbers("1", "2") + textBytes("person") + numbers("2") + textBytes("public.homes") + textBytes("public.people") +
		numbers("71", "72", "73") + numbers("2") + textBytes("*") + numbers("81", "82", "83", "82", "83", "84", "85") + textBytes("alice") +
		numbers("91", "92", "93", "92", "93", "94", "95")
	ungrouped := len(termsBytes) / 2
	termsBytes += numbers("1") + textBytes("team") + numbers("2") + textBytes("bob") + textBytes("eve")
	pathless := len(termsBytes) / 2
	termsBytes += numbers("2") + textBytes("public.homes") + textBytes("owner") + textBytes("public.people") + textBytes("id")
	isWhole(t, terms, "RenamedFrom") // a row of its own says so
	isWhole(t, terms.Budgets["*"])
	if got := hex.EncodeToString(encodeTerms(terms)); got != termsBytes {
		t.Errorf("terms are %s, want %s", got, termsBytes)
	}
	if got, err := decodeTerms(encodeTerms(terms)); err != nil || !reflect.DeepEqual(got, terms) {
		t.Errorf("read %+v (%v), want %+v", got, err, terms)
	}
	for _, wrong := range [][2]string{{"101", "2"}, {"1", "102"}} { // 256 more is no other accountant or relation
		body, err := hex.DecodeString(strings.Replace(termsBytes, numbers("1", "2"), numbers(wrong[0], wrong[1]), 1))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeTerms(body); err == nil {
			t.Errorf("%v are read as %s and %s", wrong, got.Accountant, got.Neighbors)
		}
	}

	for i, body := range []string{chargeBytes, saveBytes, termsBytes} {
		whole, err := hex.DecodeString(body)
		if err != nil {
			t.Fatal(err)
		}
		read := []func([]byte) error{func(b []byte) error { _, err := decodeCharge(b); return err }, func(b []byte) error { _, err := decodeSave(b); return err }, func(b []byte) error { _, err := decodeTerms(b); return err }}[i]
		for cut := range whole {
			if shorter := i == 0 && cut == alone || i == 2 && (cut == ungrouped || cut == pathless); shorter != (read(whole[:cut]) == nil) {
				t.Fatalf("body %d, cut after %d bytes, is read", i, cut)
			}
		}
	}
}
