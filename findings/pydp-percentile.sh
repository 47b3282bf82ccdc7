#!/usr/bin/env bash
# PyDP (python-dp) 1.1.5 (PyPI): a percentile of integers is 0, and a maximum without bounds is not near the data.
#
# Expected: over a thousand times 50 every percentile, and the maximum, is about 50, as the median is.
# Seen: Percentile with dtype int answers 0.0 for each percentile, below the declared lower bound too; with dtype
# float it is 50. Max without bounds answers millions or negative numbers where Median without bounds answers 50; with
# bounds it is 50.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  python-dp==1.1.5

PYTHONPATH="$dir/lib" python3 - <<'EOF'
import sys
from pydp.algorithms import laplacian as dp

ints, floats = [50] * 1000, [50.0] * 1000
of_ints = dict(epsilon=1.0, lower_bound=20, upper_bound=80, dtype="int")
of_reals = dict(epsilon=1.0, lower_bound=0.0, upper_bound=100.0, dtype="float")
percentiles = [dp.Percentile(percentile=p, **of_ints).quick_result(ints) for p in (0.1, 0.5, 0.9)]
of_floats = dp.Percentile(percentile=0.5, **of_reals).quick_result(floats)
medians = [dp.Median(epsilon=1.0, dtype="int").quick_result(ints) for _ in range(5)]
unbounded = [dp.Max(epsilon=1.0, dtype="int").quick_result(ints) for _ in range(20)]
bounded = [dp.Max(epsilon=1.0, lower_bound=0, upper_bound=100, dtype="int").quick_result(ints) for _ in range(5)]
print("percentiles of integers in 20..80:", percentiles)  # [0.0, 0.0, 0.0]
print("median of floats by Percentile:", of_floats)       # 50.0
print("Median without bounds:", medians)                  # [50, 50, 50, 50, 50]
print("Max without bounds:", unbounded)                   # 5435, 141511, 1787075, 5957, -2311731, ...
print("Max with bounds:", bounded)                        # 50 or next to it
same = percentiles == [0.0] * 3 and abs(of_floats - 50) < 1 and all(abs(x - 50) < 3 for x in medians + bounded)
same = same and sum(abs(x - 50) > 100 for x in unbounded) >= 10
sys.exit(0 if same else "changed")
EOF
