#!/usr/bin/env bash
# pipeline-dp 0.3.1 (PyPI): what SUM adds up depends on the other metrics that are asked.
#
# Expected: with a bound of 30 on a person's sum, 50 rows of 4 add 30, whatever is asked beside the sum.
# Seen: 30 alone and beside PRIVACY_ID_COUNT; 8 beside COUNT, where two of the person's rows are sampled first, by
# max_contributions_per_partition, which the sum alone does not look at. The sum's noise is as large as for 30 in
# both.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" pipeline-dp==0.3.1

PYTHONPATH="$dir/lib" python3 - <<'EOF'
import statistics, sys, warnings
warnings.simplefilter("ignore")
import pipeline_dp
from pipeline_dp import Metrics

rows = [("person", "part", 4.0)] * 50

def release(metrics, epsilon):
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon * len(metrics), total_delta=1e-6)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        metrics=metrics, noise_kind=pipeline_dp.NoiseKind.LAPLACE, max_partitions_contributed=1,
        max_contributions_per_partition=2, min_sum_per_partition=0, max_sum_per_partition=30)
    columns = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2])
    result = engine.aggregate(rows, params, columns, public_partitions=["part"])
    accountant.compute_budgets()
    return dict(result)["part"].sum

asked = {"alone": [], "beside PRIVACY_ID_COUNT": [Metrics.PRIVACY_ID_COUNT], "beside COUNT": [Metrics.COUNT]}
seen = {}
for name, others in asked.items():
    metrics = [Metrics.SUM] + others
    spread = statistics.stdev(release(metrics, 1.0) for _ in range(400))  # Laplace of scale 30: 42.4
    seen[name] = round(release(metrics, 1e6), 2)
    print(f"SUM {name}: {seen[name]}, deviation of its noise at epsilon 1: {spread:.1f}")
    if not 34 < spread < 51:
        sys.exit("changed")
sys.exit(0 if list(seen.values()) == [30, 30, 8] else "changed")
EOF
