package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// attacks are tried in this order.
var attacks = []struct {
	name string
	run  func(context.Context, *victim) ([]bool, error)
}{
	{"reconstruction", reconstruction},
	{"differencing", differencing},
	{"averaging", averaging},
	{"errors", errorOracle},
	{"timing", timing},
	{"histogram", histogram},
}

// subsets is how many random sets of patients the reconstruction counts: four a secret.
const subsets = 4 * beds

// reconstruction asks how many are ill in each of many random sets of patients. Each count is harmless; together they
// are linear equations in the secrets (Dinur and Nissim, 2003), which least squares solves even where each is a little
// wrong.
func reconstruction(ctx context.Context, v *victim) ([]bool, error) {
	if err := v.spread(ctx, subsets); err != nil {
		return nil, err
	}
	var sets [][]bool
	var counts []float64
	for range subsets {
		set, list := v.coins(), []string(nil)
		for bed, in := range set {
			if in {
				list = append(list, fmt.Sprint(bed+1))
			}
		}
		if n, ok := v.ask(ctx, "SELECT count(*) FROM patients WHERE ill AND bed IN ("+strings.Join(list, ", ")+")"); ok {
			sets, counts = append(sets, set), append(counts, n)
		}
	}
	return solve(sets, counts), nil
}

// differencing asks for everybody, and for everybody but one. What the mean difference is, is what all have in common.
func differencing(ctx context.Context, v *victim) ([]bool, error) {
	if err := v.spread(ctx, beds+1); err != nil {
		return nil, err
	}
	all, ok := v.ask(ctx, "SELECT count(*) FROM patients WHERE ill")
	differences, sum := make([]float64, beds), 0.0
	for i := range differences {
		others, okToo := v.ask(ctx, fmt.Sprintf("SELECT count(*) FROM patients WHERE ill AND bed <> %d", i+1))
		if !ok || !okToo {
			return v.coins(), nil
		}
		differences[i] = all - others
		sum += differences[i]
	}
	guess := make([]bool, beds)
	for i, d := range differences {
		guess[i] = d > sum/beds
	}
	return guess, nil
}

// averaging asks the same about each patient in many words, and takes the mean, in which independent noise would drown.
func averaging(ctx context.Context, v *victim) ([]bool, error) {
	words := []string{"ill AND bed = %d", "bed = %d AND ill", "NOT (NOT ill OR bed <> %d)", "ill AND bed = %d AND true", "ill AND bed = %d AND bed > 0",
		"ill AND bed BETWEEN %[1]d AND %[1]d", "ill AND bed IN (%d)", "ill IS TRUE AND bed = %d", "ill AND bed = %d + 0", "ill AND bed * 2 = 2 * %d"}
	if err := v.spread(ctx, beds); err != nil {
		return nil, err
	}
	guess := v.coins()
	for i := range guess {
		sum, n := 0.0, 0
		for range 2 {
			for _, w := range words {
				if x, ok := v.ask(ctx, "SELECT count(*) FROM patients WHERE "+fmt.Sprintf(w, i+1)); ok {
					sum, n = sum+x, n+1
				}
			}
		}
		if n > 0 {
			guess[i] = sum/float64(n) > 0.5
		}
	}
	return guess, nil
}

// errorOracle divides by zero where a patient is ill: the error is the answer, and carries no noise.
func errorOracle(ctx context.Context, v *victim) ([]bool, error) {
	if err := v.spread(ctx, beds); err != nil {
		return nil, err
	}
	guess := v.coins()
	var failed []int
	for i := range guess {
		if _, ok := v.ask(ctx, fmt.Sprintf("SELECT count(*) FROM patients WHERE CASE WHEN bed = %[1]d AND ill THEN 1 / (bed - %[1]d) ELSE 1 END > 0", i+1)); !ok {
			failed = append(failed, i)
		}
	}
	if len(failed) == 0 || len(failed) == beds { // nothing is learnt from what is always so
		return guess, nil
	}
	for i := range guess {
		guess[i] = slices.Contains(failed, i)
	}
	return guess, nil
}

// timing has the database work hard where a patient is ill, and looks at the clock.
func timing(ctx context.Context, v *victim) ([]bool, error) {
	if err := v.spread(ctx, beds); err != nil {
		return nil, err
	}
	slow := "bed = %d AND ill AND (SELECT count(*) FROM generate_series(1, 200000 + (bed - bed)) g) > 0"
	if _, ok := v.ask(ctx, "SELECT count(*) FROM patients WHERE "+fmt.Sprintf(slow, 1)); !ok { // refused: the plain question, then
		slow = "bed = %d AND ill"
	}
	took := make([]time.Duration, beds)
	for round := range 5 { // the least of five: a busy machine delays some
		for _, i := range v.r.Perm(beds) {
			begun := time.Now()
			v.ask(ctx, "SELECT count(*) FROM patients WHERE "+fmt.Sprintf(slow, i+1))
			if d := time.Since(begun); round == 0 || d < took[i] {
				took[i] = d
			}
		}
	}
	return divided(took), nil
}

// divided calls slow what took longer than the geometric middle of the fastest and the slowest, but for a few of each.
func divided(took []time.Duration) []bool {
	sorted := slices.Sorted(slices.Values(took))
	fast, slow := float64(sorted[len(sorted)/20]), float64(sorted[len(sorted)*19/20])
	guess := make([]bool, len(took))
	for i, d := range took {
		guess[i] = float64(d) > math.Sqrt(fast*slow)
	}
	return guess
}

// histogram spends the whole budget on the one question that tells most of everybody: how many are ill, and how many
// not, in each bed. It is not refused and not repelled: it shows how much a budget of ε tells.
func histogram(ctx context.Context, v *victim) ([]bool, error) {
	if err := v.spread(ctx, 1); err != nil {
		return nil, err
	}
	v.asked++
	rows, err := v.conn.Query(ctx, "SELECT bed, ill, count(*) FROM patients GROUP BY bed, ill")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	more := make([]float64, beds) // how many more are ill than not
	for rows.Next() {
		var bed *int
		var ill *bool
		var n float64
		if err := rows.Scan(&bed, &ill, &n); err != nil {
			return nil, err
		}
		switch {
		case bed == nil || ill == nil:
		case *ill:
			more[*bed-1] += n
		default:
			more[*bed-1] -= n
		}
	}
	v.answered++
	guess := v.coins()
	for i, n := range more {
		if n != 0 {
			guess[i] = n > 0
		}
	}
	return guess, rows.Err()
}
