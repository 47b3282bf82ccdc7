package ledger

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkFlush is the disk by itself: one page appended and flushed, which no durable charge can be faster than.
func BenchmarkFlush(b *testing.B) {
	var list []float64
	for b.Loop() {
		list = append(list, flushes(b, time.Second))
	}
	b.ReportMetric(slices.Max(list), "flushes/s")
	b.ReportMetric(0, "ns/op")
}

func benchmarkCharge(b *testing.B, goroutines int, o Options) {
	f := fresh(b, o, killed())
	var n atomic.Uint64
	b.SetParallelism((goroutines + 1) / 2) // times GOMAXPROCS, which is 2 on the reference machine
	if goroutines == 1 {
		for b.Loop() {
			benchmarkOne(b, f, "census", n.Add(1))
		}
	} else {
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				benchmarkOne(b, f, "census", n.Add(1))
			}
		})
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "charges/s")
}

func benchmarkOne(b *testing.B, f *keeper, dataset string, n uint64) {
	it := item(1, eps(1))
	binary.BigEndian.PutUint64(it.Digest[:], n)
	r := request("alice", it)
	r.Dataset = dataset
	out, err := f.Charge(ctx, r)
	if err != nil {
		b.Error(err)
		return
	}
	f.Abandon(out[0].Receipt)
}

func BenchmarkCharge1(b *testing.B)          { benchmarkCharge(b, 1, Options{}) }
func BenchmarkCharge16(b *testing.B)         { benchmarkCharge(b, 16, Options{}) }
func BenchmarkPostgresCharge1(b *testing.B)  { benchmarkCharge(b, 1, Options{}) }
func BenchmarkPostgresCharge16(b *testing.B) { benchmarkCharge(b, 16, Options{}) }
func BenchmarkPostgresCharge64(b *testing.B) { benchmarkCharge(b, 64, Options{}) }

// BenchmarkPostgresFollow is what a statement that charges nothing asks of a shared ledger, alone and sixteen at once.
func BenchmarkPostgresFollow(b *testing.B) {
	f := fresh(b, Options{}, killed())
	for b.Loop() {
		follow(b, f)
	}
}

func BenchmarkPostgresFollow16(b *testing.B) {
	f := fresh(b, Options{}, killed())
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			follow(b, f)
		}
	})
}

func BenchmarkHoldings(b *testing.B) {
	f := fresh(b, Options{}, killed())
	for n := range byte(100) {
		buy(b, f, "alice", item(n, eps(1)), 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		f.Holdings("alice", "census")
	}
}

func BenchmarkLoad(b *testing.B) {
	f := fresh(b, Options{}, killed())
	id := buy(b, f, "alice", item(1, eps(1)), make([]int64, 4096)...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Load(ctx, "alice", id); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen is the time to open and compare a ledger, for each row of its chain.
func BenchmarkOpen(b *testing.B) {
	f := fresh(b, Options{}, killed())
	const batch = 4096
	var items []Item
	for n := range uint64(batch) {
		it := item(1, eps(1))
		binary.BigEndian.PutUint64(it.Digest[:], n)
		items = append(items, it)
	}
	for range 8 {
		for _, o := range charge(b, f, request("alice", items...)) {
			f.Abandon(o.Receipt)
		}
	}
	f.Close()
	for b.Loop() {
		open(b, pathOf(f), Options{}).Close()
	}
	b.ReportMetric(float64(b.Elapsed())/float64(time.Microsecond)/float64(b.N)/(8*batch), "µs/row")
}
