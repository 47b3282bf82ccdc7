#!/usr/bin/env bash
# DuckDB 1.5.5 and pyarrow 26.0.1 (PyPI): a NaN in a Parquet file is not seen by conditions that the file's statistics decide.
#
# Expected: a query over read_parquet gives what it gives over a table made from the same file. NaN is above every number in
# DuckDB, and the format wants minimum and maximum written without it.
# Seen: statistics of 1 to 3 over the cells 1, NaN, 3 are taken for bounds of all cells: v > 9 finds no row (the table: one),
# v BETWEEN 0 AND 9 finds three (two), and a CASE that admits 0 to 9 alone returns NaN. max(v) is 3 (NaN).
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  duckdb==1.5.5 pyarrow==26.0.1

cd "$dir"
PYTHONPATH="$dir/lib" python3 - <<'EOF'
import sys
import duckdb
import pyarrow
import pyarrow.parquet

pyarrow.parquet.write_table(pyarrow.table({"v": [1.0, float("nan"), 3.0]}), "cells.parquet")
duckdb.sql("CREATE TABLE cells AS SELECT * FROM 'cells.parquet'")
cases = [  # what the file and what the table was seen to answer
    ("SELECT count(*) FROM {} WHERE v > 9", 0, 1),
    ("SELECT count(*) FROM {} WHERE v BETWEEN 0 AND 9", 3, 2),
    ("SELECT max(v)::VARCHAR FROM {}", "3.0", "nan"),
    ("SELECT list(CASE WHEN v >= 0 AND v <= 9 THEN v END)::VARCHAR FROM {}", "[1.0, nan, 3.0]", "[1.0, NULL, 3.0]"),
    ("SELECT count(*) FROM {} WHERE isnan(v)", 1, 1),
]
changed = False
for query, *want in cases:
    seen = [duckdb.sql(query.format(source)).fetchone()[0] for source in ("'cells.parquet'", "cells")]
    print(f"{query.format('cells')}\n  over the file {seen[0]}, over the table {seen[1]}")
    changed |= seen != want
sys.exit(changed)
EOF
