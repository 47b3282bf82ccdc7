#!/usr/bin/env bash
# DuckDB 1.5.5 (PyPI): text that is not a date becomes one.
#
# Expected: TRY_CAST is NULL for a date with something behind it, as it is for an integer, a decimal and a timestamp;
# and a year BC, as PostgreSQL writes it, is read as one or not at all.
# Seen: casts to DATE and TIME stop where they have enough and take whatever follows: '2025-03-02xyz' is 2 March,
# '2025-03-01 BC' is in our era, '2025-03-02 25:99' is a day. DuckDB's own form of a year BC, '(BC)', is understood.
# read_csv does the same for a declared DATE, while its sniffer does not take such a column for dates, and with
# dateformat the cell is an error.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  duckdb==1.5.5

PYTHONPATH="$dir/lib" python3 - "$dir/days.csv" <<'EOF'
import sys
import duckdb

path = sys.argv[1]
with open(path, "w") as file:
    file.write("d\n2025-03-02xyz\n2025-03-01 BC\n2025-03-03\n")
cases = [  # with what was seen
    ("SELECT TRY_CAST('2025-03-02xyz' AS DATE)::VARCHAR", [("2025-03-02",)]),
    ("SELECT CAST('2025-03-02 25:99' AS DATE)::VARCHAR", [("2025-03-02",)]),
    ("SELECT TRY_CAST('2025-03-01 BC' AS DATE)::VARCHAR", [("2025-03-01",)]),
    ("SELECT TRY_CAST('2025-03-01 (BC)' AS DATE)::VARCHAR", [("2025-03-01 (BC)",)]),
    ("SELECT TRY_CAST('12:00:00xyz' AS TIME)::VARCHAR", [("12:00:00",)]),
    ("SELECT TRY_CAST('2025-03-02xyz' AS TIMESTAMP)", [(None,)]),
    ("SELECT TRY_CAST('12xyz' AS INTEGER)", [(None,)]),
    ("SELECT TRY_CAST('1.10xyz' AS DECIMAL(5,2))", [(None,)]),
    (f"SELECT d::VARCHAR FROM read_csv('{path}', header = true, columns = {{'d': 'DATE'}})",
     [("2025-03-02",), ("2025-03-01",), ("2025-03-03",)]),
    (f"SELECT DISTINCT typeof(d) FROM read_csv('{path}')", [("VARCHAR",)]),
]
changed = False
for query, want in cases:
    rows = duckdb.sql(query).fetchall()
    print(f"{query.replace(path, 'days.csv')}\n  {rows}")
    changed |= rows != want
sys.exit("changed" if changed else 0)
EOF
