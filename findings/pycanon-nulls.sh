#!/usr/bin/env bash
# pycanon 1.3.6 (PyPI): the k of a table whose rows have NULLs.
#
# Expected: a row whose quasi-identifier is NULL stands in a group like any other, or is refused; one more
# quasi-identifier splits groups, and no row joins them by it.
# Seen: by one quasi-identifier a row with NULL is in no group: twenty rows in two groups of ten and one NULL are
# 10-anonymous and 2-diverse. By two the same row is a group of one, and so it is with a value for the NULL.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  pycanon==1.3.6

PYTHONPATH="$dir/lib" python3 - <<'PY'
import sys
import numpy, pandas
from pycanon import anonymity

frame = pandas.DataFrame({"age": [30.0] * 10 + [40.0] * 10 + [numpy.nan], "place": ["a"] * 10 + ["b"] * 10 + ["c"],
                          "illness": ["x", "y"] * 10 + ["z"]})
named = frame.fillna({"age": 50.0})
seen = [(anonymity.k_anonymity(rows, by), anonymity.l_diversity(rows, by, ["illness"]))
        for rows in (frame, named) for by in (["age"], ["age", "place"])]
print("k and l by age, with a NULL:", *seen[0])  # 10 2
print("by age and place, with a NULL:", *seen[1])  # 1 1
print("by age, 50 for the NULL:", *seen[2])  # 1 1
print("by age and place, 50 for the NULL:", *seen[3])  # 1 1
sys.exit(0 if seen == [(10, 2), (1, 1), (1, 1), (1, 1)] else "changed")
PY
