#!/usr/bin/env bash
# smartnoise-sql 1.0.10 (PyPI): what epsilon=1.0 costs, and where its counts lie.
#
# Expected: one answer of one column costs the epsilon of the reader; noisy counts lie about the true one.
# Seen: by default COUNT and SUM cost 2, AVG 3, VAR and STDDEV 4; with censor_dims False 1, 1, 2, 3 and 3. Counts of
# 1,000 rows lie some 0.4 below on average.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  smartnoise-sql==1.0.10

PYTHONPATH="$dir/lib" python3 - <<'EOF'
import statistics, sys, warnings
warnings.simplefilter("ignore")
import pandas, snsql

frame = pandas.DataFrame({"id": range(1000), "age": [50] * 1000})

def reader(**options):
    table = {"max_ids": 1, "row_privacy": False, "rows": 1000,
             "id": {"type": "int", "private_id": True}, "age": {"type": "int", "lower": 0, "upper": 100}}
    metadata = {"": {"dp": {"t": table | options}}}
    return snsql.from_df(frame, privacy=snsql.Privacy(epsilon=1.0, delta=1e-6), metadata=metadata)

costs = {}
for options in ({}, {"censor_dims": False}):
    for what in ("COUNT(*)", "SUM(age)", "AVG(age)", "VAR(age)", "STDDEV(age)"):
        costs[str(options), what] = float(reader(**options).get_privacy_cost(f"SELECT {what} AS x FROM dp.t")[0])
for key, value in costs.items():
    print(*key, value)  # 2, 2, 3, 4, 4 by default; 1, 1, 2, 3, 3 with censor_dims False
asked = reader(censor_dims=False)
counts = [asked.execute("SELECT COUNT(*) AS x FROM dp.t")[1][0] for _ in range(400)]
mean = statistics.mean(counts)
print("mean of 400 counts of 1000:", mean)  # 999.66, standard error 0.07
same = [round(x, 6) for x in costs.values()] == [2, 2, 3, 4, 4, 1, 1, 2, 3, 3] and 999.2 < mean < 999.9
sys.exit(0 if same else "changed")
EOF
