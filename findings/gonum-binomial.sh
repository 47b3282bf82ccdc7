#!/usr/bin/env bash
# gonum.org/v1/gonum v0.17.0 (Go module): the distribution function of a binomial with many trials.
#
# Expected: at the mean of a fair coin it is a little above one half, to many digits, for any number of trials.
# Seen: it drifts with the number of trials, from 10^8 on grossly, and is negative at 10^9, without an error.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > main.go <<'EOF'
package main

import (
	"fmt"
	"math"
	"os"

	"gonum.org/v1/gonum/stat/distuv"
)

func main() {
	values := map[float64]float64{}
	for _, n := range []float64{1e6, 1e7, 1e8, 1e9} {
		values[n] = distuv.Binomial{N: n, P: 0.5}.CDF(n / 2)
		fmt.Printf("%.0e trials: %v, about %v expected\n", n, values[n], 0.5+1/math.Sqrt(2*math.Pi*n))
	}
	if math.Abs(values[1e6]-0.5004) > 1e-3 || math.Abs(values[1e8]-0.5) < 0.01 || values[1e9] >= 0 {
		fmt.Println("changed")
		os.Exit(1)
	}
}
EOF
go mod init finding 2>/dev/null
go get gonum.org/v1/gonum@v0.17.0 2>/dev/null
go run .
