#!/usr/bin/env bash
# diffprivlib 0.6.6 (PyPI): quantiles of data with many equal values are noise over the whole range.
#
# Expected: the median of 1,000 times 50 lies near 50 at epsilon 1, much nearer than at 0.1; that of 90 % zeros is 0.
# Seen: for 1,000 times 50 with bounds 0 and 100 each quantile is uniform over 0 to 100, at both: the mechanism weighs
# gaps between neighbouring values by their lengths, and between equal values there is none. Of 90 % zeros the median
# is 1 or 2, and up to 12. The more rows agree, the worse is the answer; a little jitter mends it.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  diffprivlib==0.6.6 scikit-learn==1.5.2 numpy==2.4.6

PYTHONPATH="$dir/lib" python3 - <<'EOF'
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from diffprivlib import tools

draw = np.random.RandomState(1)

def medians(values, epsilon, bounds=(0, 100)):
    found = [tools.median(values, epsilon=epsilon, bounds=bounds, random_state=draw) for _ in range(300)]
    return np.round(np.percentile(found, [0, 25, 50, 75, 100]), 2)

same = np.full(1000, 50.0)
apart = same + draw.uniform(-0.5, 0.5, 1000)
zeros = np.r_[np.zeros(900), np.arange(100)]
seen = {
    "1000 times 50, epsilon 1": medians(same, 1),
    "1000 times 50, epsilon 0.1": medians(same, 0.1),
    "about 50, all different": medians(apart, 1),
    "90 % zeros": medians(zeros, 1),
}
for name, value in seen.items():
    print(f"{name}: quartiles of 300 medians {value}")
# 1000 times 50, epsilon 1 and 0.1: about [0 25 50 75 100]
# about 50, all different: within 0.1 of 50
# 90 % zeros: [0 0.6 1.4 2.9 12]
spread = all(abs(v[1] - 25) < 10 and abs(v[3] - 75) < 10 for v in list(seen.values())[:2])
near = np.all(np.abs(seen["about 50, all different"] - 50) < 0.5)
off = seen["90 % zeros"][2] > 0.3
sys.exit(0 if spread and near and off else "changed")
EOF
