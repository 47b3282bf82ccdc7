package online_test

import (
	"errors"
	"fmt"
	"log"
	weak "math/rand/v2"

	"github.com/dpproxy/dpproxy/mechanisms/online"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// In production the source is crypto/rand.Reader.
func source() *weak.ChaCha8 {
	return weak.NewChaCha8([32]byte([]byte("32 bytes for the test's generator")[:32]))
}

// In production every step is made durable.
func keep([]byte) error { return nil }

// A session for counting queries over four regions and two sexes, of about 100,000 people.
func Example() {
	plan, err := online.NewPlan(online.Spec{
		Cells: 8, Rows: 100_000, Updates: 20,
		Contribution: privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, Accountant: privacy.Pure,
	}, privacy.Cost{Epsilon: privacy.MicroEpsilon(94_864)}, .01)
	if err != nil {
		log.Fatal(err)
	}
	cost, err := plan.Cost()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("opening it costs", cost)

	people := privacy.Seal([]int64{40_000, 5_000, 5_000, 1_000, 38_000, 5_000, 4_000, 2_000})
	session, err := plan.Open(nil, people, source(), keep)
	if err != nil {
		log.Fatal(err)
	}
	for _, spans := range [][]online.Span{{{From: 0, To: 1}}, {{From: 4, To: 5}}, {{From: 0, To: 1}, {From: 4, To: 5}}, {{From: 0, To: 4}}} {
		q, err := online.Spans(8, spans...)
		if err != nil {
			log.Fatal(err)
		}
		a, err := session.Answer(q)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(spans, a.Value())
	}
	fmt.Println("of 100 answers one is off by more than", plan.Width(.01))
	// Output:
	// opening it costs ε 0.094845
	// [{0 1}] {39777 true 19}
	// [{4 5}] {36268 true 18}
	// [{0 1} {4 5}] {74046 false 18}
	// [{0 4}] {51754 false 18}
	// of 100 answers one is off by more than 4998
}

// After the last hard answer a session answers nothing.
func ExampleStopped() {
	plan, err := online.NewPlan(online.Spec{
		Cells: 2, Rows: 1000, Updates: 1,
		Contribution: privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, Accountant: privacy.Pure,
	}, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)}, .01)
	if err != nil {
		log.Fatal(err)
	}
	session, err := plan.Open(nil, privacy.Seal([]int64{950, 50}), source(), keep)
	if err != nil {
		log.Fatal(err)
	}
	q, err := online.Spans(2, online.Span{From: 0, To: 1})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		a, err := session.Answer(q)
		if stopped := (*online.Stopped)(nil); errors.As(err, &stopped) {
			fmt.Println(stopped)
			continue
		}
		fmt.Printf("%+v\n", a.Value())
	}
	// Output:
	// {Value:949 Hard:true Left:0}
	// the session is stopped: its hard answers are used up
}
