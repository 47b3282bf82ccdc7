#!/usr/bin/env bash
# diffprivlib 0.6.6 (PyPI): a histogram with weights has the noise of one without.
#
# Expected: at epsilon 1 the noise of a bin grows with the largest weight, or weights are refused: a row moves its bin
# by its weight.
# Seen: with every weight 1,000 the noise of each bin has deviation 1.4, as without weights; epsilon 1 is charged, 1,000
# is what it costs. What a bin's weights add up to is cut down to an integer before the noise: 100 rows of weight 0.019
# count 1, not 1.9.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  diffprivlib==0.6.6 scikit-learn==1.5.2 numpy==2.4.6

PYTHONPATH="$dir/lib" python3 - <<'PY'
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from diffprivlib import BudgetAccountant, tools

rows = np.r_[np.full(100, 0.5), np.full(100, 1.5)]
draw = np.random.RandomState(1)

def bins(weight, epsilon):
    accountant = BudgetAccountant()
    weights = None if weight is None else np.full(200, float(weight))
    found = [tools.histogram(rows, epsilon=epsilon, bins=2, range=(0, 2), weights=weights, random_state=draw,
                             accountant=accountant)[0] for _ in range(500)]
    return np.mean(found), np.std(found), accountant.total()[0] / 500

seen = {(weight, epsilon): bins(weight, epsilon) for weight, epsilon in ((None, 1), (1000, 1), (0.019, 20))}
for (weight, epsilon), (mean, deviation, charged) in seen.items():
    print(f"weight {weight}, epsilon {epsilon}: mean {mean:.3f}, deviation {deviation:.3f}, charged {charged:.3g}")
# weight None: mean 100, deviation 1.4; weight 1000: mean 100000, deviation 1.4; weight 0.019: mean 1
same = all(abs(seen[weight, 1][1] - 1.36) < 0.2 for weight in (None, 1000)) and abs(seen[1000, 1][2] - 1) < 1e-9
cut = abs(seen[0.019, 20][0] - 1) < 0.05
sys.exit(0 if same and cut else "changed")
PY
