#!/usr/bin/env bash
# datafusion 55.0.0 (PyPI): questions in SQL whose answers are wrong, without an error.
#
# Expected: answers as SQL and PostgreSQL have them, or errors, as 1 / 0, abs of the least bigint and products of
# decimals that are too long give.
# Seen: sums of bigint and decimal overflow to negative numbers; EXCEPT ALL and INTERSECT ALL go by whether a row is
# there, not by how often; percentile_cont is short by up to a millionth of the gap between two rows; two days between
# timestamps are not more than INTERVAL '1 day', nor 40 days more than a month; means of decimals are cut off.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  datafusion==55.0.0 pyarrow==26.0.1

PYTHONPATH="$dir/lib" python3 - <<'EOF'
import sys
from decimal import Decimal
from datafusion import SessionContext

rows = "FROM (VALUES (1), (1), (2)) v(x)"
nines = "cast('90000000000000000000000000000000000000' AS decimal(38, 0))"
days = "(VALUES (timestamp '2024-01-01 00:00:00', timestamp '2024-01-03 00:00:00')) v(a, b)"
cents = "(VALUES (cast(1 AS decimal(10, 2))), (cast(1 AS decimal(10, 2))), (cast(0 AS decimal(10, 2)))) v(x)"
want = {  # the answer, and PostgreSQL's
    "SELECT 9223372036854775807 + 1": (-2**63, "error"),
    "SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) v(x)": (-2**63, "2^63"),
    f"SELECT sum(x) FROM (VALUES ({nines}), ({nines})) v(x)": (Decimal(18 * 10**37 - 2**128), "1.8e38"),
    f"SELECT x {rows} EXCEPT ALL SELECT 1": ([2], "1, 2"),
    f"SELECT x {rows} INTERSECT ALL SELECT 1": ([1, 1], "1"),
    "SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY x DESC) FROM (VALUES (1.0), (2.0), (11.0)) v(x)":
        (1.199999, "1.2"),
    "SELECT percentile_cont(0.1234567) WITHIN GROUP (ORDER BY x) FROM (VALUES (0.0), (1e9)) v(x)":
        (123456000.0, "123456700"),
    f"SELECT b - a > interval '1 day' FROM {days}": (False, "true"),
    f"SELECT b > a + interval '1 day' FROM {days}": (True, "true"),
    "SELECT interval '40 days' > interval '1 month'": (False, "true"),
    f"SELECT avg(x) FROM {cents}": (Decimal("0.666666"), "0.66666666666666666667"),
}
context = SessionContext()
same = True
for query, (answer, postgres) in want.items():
    seen = [next(iter(row.values())) for row in context.sql(query).to_pylist()]
    print(f"{query}: {', '.join(map(str, seen))}; PostgreSQL: {postgres}")
    same &= seen == (answer if isinstance(answer, list) else [answer])
sys.exit(0 if same else "changed: " + repr(want))
EOF
