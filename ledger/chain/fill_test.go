package chain

import (
	"encoding/hex"
	"reflect"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// filler gives every field of a value a number of its own, whatever fields there are, two elements to each list, and
// true to each bool. What it cannot fill is a fault: whoever adds such a field says here how.
type filler struct {
	t    *testing.T
	next int64
}

func (f *filler) fill(v reflect.Value) {
	f.next++
	switch own := v.Addr().Interface().(type) {
	case *privacy.Epsilon:
		*own = privacy.MicroEpsilon(f.next)
		return
	case *privacy.Rho:
		*own = privacy.PicoRho(f.next)
		return
	case *privacy.Delta:
		*own = privacy.AttoDelta(f.next)
		return
	case *[]ranges.Description: // are made of themselves: these have no factors
		*own = make([]ranges.Description, 2)
		for i := range *own {
			d := reflect.ValueOf(&(*own)[i]).Elem()
			for k := range d.NumField() {
				if d.Type().Field(k).Name != "Factors" {
					f.fill(d.Field(k))
				}
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		v.SetInt(f.next)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(f.next))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	default:
		f.t.Fatalf("a field of type %s is not filled", v.Type())
	}
}

// filled are the kinds of Specs with every field filled, by their number, and the SHA-256 of their bytes: what is
// written today is read by whatever comes later. What a kind always has is not written: one counter, and of alarms one
// cell.
var filled = map[int64]struct {
	kind            mechanisms.Kind
	counters, cells int
	hash            string
}{
	specCounts:    {&mechanisms.Counts{}, 211, 212, "510c045c85aca06386ff2f3e432a3ecb27be595df63a21384f9eff60fbe47897"},
	specChoice:    {&mechanisms.Choice{}, 211, 212, "8e87547821135429e9884851a3ea58b1ae4f095451a402343612e81d22107087"},
	specAlarm:     {&mechanisms.Alarm{}, 1, 1, "ce24de62a0f19bc92dd0b513f65c039893538f1ce31d45b2dd7c979700e92899"},
	specOnline:    {&mechanisms.Online{}, 1, 212, "c33c194794358267a2557ed92e42993c6da762c83c095e0b83606a3aa3281f8a"},
	specSynthetic: {&mechanisms.Synthetic{}, 1, 212, "5bb2224f6b5232469499d2c9b729ccc0bee89708e3570b20799e54eff3ced3c8"},
}

// TestSpecsKeepEveryField: every field of every kind is written and read, also one that somebody adds, and the bytes
// are those that they have always been.
func TestSpecsKeepEveryField(t *testing.T) {
	if len(filled) != int(specSynthetic) {
		t.Fatalf("%d kinds are filled, there are %d", len(filled), specSynthetic)
	}
	for number, k := range filled {
		f := filler{t: t}
		f.fill(reflect.ValueOf(k.kind).Elem())
		s := mechanisms.Spec{Counters: k.counters, Cells: k.cells, Kind: k.kind}
		if n := reflect.TypeOf(s).NumField(); n != 3 {
			t.Fatalf("a Spec has %d fields, of which 3 are filled here", n)
		}
		var e Encoder
		e.Spec(s)
		if hash := e.Hash(); hex.EncodeToString(hash[:]) != k.hash {
			t.Errorf("kind %d: the bytes have the hash %x, want %s", number, hash, k.hash)
		}
		d := Decoder{b: e.b}
		if kind := d.Int(); kind != number {
			t.Errorf("%T is written as kind %d, want %d", k.kind, kind, number)
		}
		d = Decoder{b: e.b}
		if got := d.Spec(); d.End() != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("read %+v (%v), want %+v", got.Kind, d.End(), s.Kind)
		}
	}
}
