#!/usr/bin/env bash
# dpmm 0.1.9 (PyPI): made-up rows of an integer column whose bounds are above 2³¹.
#
# Expected: values between the bounds that are declared, near the data, or an error.
# Seen: bounds 0 and 5,000,000,000 over values of 3 to 4 billion give none above 705,032,704, most just below it, without
# a word: the upper bound is cast to 32 bits. The same column in thousands comes back as it should.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  dpmm==0.1.9 numpy==1.26.4 pandas==2.1.0

PYTHONPATH="$dir/lib" python3 - <<'PY'
import sys
import numpy as np
import pandas as pd
from dpmm.pipelines import MSTPipeline

draw = np.random.RandomState(1)
seen = {}
for unit in (1, 1000):
    rows = pd.DataFrame({"pay": draw.randint(3_000_000_000, 4_000_000_000, 3000) // unit,
                         "sex": pd.Categorical(draw.choice(["f", "m"], 3000))})
    domain = {"pay": {"lower": 0, "upper": 5_000_000_000 // unit}, "sex": {"categories": ["f", "m"]}}
    pipeline = MSTPipeline(epsilon=10, delta=1e-6, proc_epsilon=1.0)
    pipeline.fit(rows, domain)
    pay = pipeline.generate(1000)["pay"]
    seen[unit] = pay.median(), pay.min(), pay.max()
    print(f"in units of {unit}: true median {rows.pay.median():.0f}, made up {seen[unit][0]:.0f}, "
          f"from {seen[unit][1]} to {seen[unit][2]}")
# in units of 1: true median 3500000000, made up 705 million, the largest 705032696
# in units of 1000: 3500000, made up 3500000
wrong = 700e6 < seen[1][0] and seen[1][2] < 706e6
right = abs(seen[1000][0] - 3.5e6) < 0.2e6
sys.exit(0 if wrong and right else "changed")
PY
