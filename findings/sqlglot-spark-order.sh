#!/usr/bin/env bash
# sqlglot 30.30.0 (PyPI): percentiles and lists from PostgreSQL to Spark lose their order.
#
# Expected: percentile_cont(0.9) WITHIN GROUP (ORDER BY x DESC), which Spark has since 3.3, stays as it is.
# Seen: it is PERCENTILE_APPROX(x, 0.9), the other end of the data, and the nearest value in place of one between two;
# the order within array_agg is dropped; timestamp AT TIME ZONE, to UTC in PostgreSQL, is from_utc_timestamp, the
# other way. Without a word, with unsupported_level RAISE too. From Spark to Spark percentile_cont becomes the same.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" sqlglot==30.30.0

PYTHONPATH="$dir/lib" python3 - <<'EOF'
import sys
import sqlglot

want = {
    "SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY x DESC) FROM t": "SELECT PERCENTILE_APPROX(x, 0.9) FROM t",
    "SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY x DESC) FROM t": "SELECT PERCENTILE_APPROX(x, 0.9) FROM t",
    "SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY x) FROM t": "SELECT PERCENTILE_APPROX(x, 0.9) FROM t",
    "SELECT array_agg(x ORDER BY x DESC) FROM t": "SELECT COLLECT_LIST(x) FROM t",
    "SELECT timestamp '2024-01-01 00:00' AT TIME ZONE 'America/New_York'":  # 05:00 UTC in PostgreSQL, 19:00 in Spark
        "SELECT FROM_UTC_TIMESTAMP(CAST('2024-01-01 00:00' AS TIMESTAMP), 'America/New_York')",
}
same = True
for query, answer in want.items():
    seen = sqlglot.transpile(query, read="postgres", write="spark", unsupported_level=sqlglot.ErrorLevel.RAISE)[0]
    print(f"{query}\n    {seen}")
    same &= seen == answer
again = "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x DESC) FROM t"
seen = sqlglot.transpile(again, read="spark", write="spark")[0]
print(f"Spark to Spark: {again}\n    {seen}")
same &= seen == "SELECT PERCENTILE_APPROX(x, 0.9) FROM t"
sys.exit(0 if same else "changed")
EOF
