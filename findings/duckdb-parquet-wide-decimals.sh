#!/usr/bin/env bash
# DuckDB 1.5.5 (PyPI), over Parquet files of pyarrow 26.0.1 (PyPI).
#
# Expected: a decimal of more than 38 digits, which DuckDB has no type for, is refused, or becomes the nearest DOUBLE.
# Seen: it becomes a DOUBLE, and for 39 to 55 and for 58 to 74 digits another number: 1.10 in decimal256(50, 2) is
# read as 18454937.6, without an error or a warning. 56, 57, 75 and 76 digits, whose bytes are whole words of eight,
# are read rightly, and pyarrow reads 1.10 everywhere.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  duckdb==1.5.5 pyarrow==26.0.1

PYTHONPATH="$dir/lib" python3 - "$dir/decimals.parquet" <<'EOF'
import decimal, sys
import duckdb, pyarrow, pyarrow.parquet

path, seen = sys.argv[1], {}
for digits in (39, 50, 55, 56, 57, 58, 74, 75, 76):
    column = pyarrow.array([decimal.Decimal("1.10")], type=pyarrow.decimal256(digits, 2))
    pyarrow.parquet.write_table(pyarrow.table({"x": column}), path)
    kind, value = duckdb.sql(f"SELECT typeof(x), x FROM '{path}'").fetchone()
    own = str(pyarrow.parquet.read_table(path)["x"][0])
    seen[digits] = kind, value, own
    print(f"{digits} digits: DuckDB {kind} {value}, pyarrow {own}")
# 39 digits: DuckDB DOUBLE 7.926335344172074e+16, pyarrow 1.10
# 50 digits: DuckDB DOUBLE 18454937.6, pyarrow 1.10
# 55 digits: DuckDB DOUBLE 281.6, pyarrow 1.10
# 56 digits: DuckDB DOUBLE 1.1, pyarrow 1.10
# 57 digits: DuckDB DOUBLE 1.1, pyarrow 1.10
# 58 digits: DuckDB DOUBLE 7.926335344172074e+16, pyarrow 1.10
# 74 digits: DuckDB DOUBLE 281.6, pyarrow 1.10
# 75 digits: DuckDB DOUBLE 1.1, pyarrow 1.10
# 76 digits: DuckDB DOUBLE 1.1, pyarrow 1.10
want = {39: 7.926335344172074e+16, 50: 18454937.6, 55: 281.6, 56: 1.1, 57: 1.1,
        58: 7.926335344172074e+16, 74: 281.6, 75: 1.1, 76: 1.1}
want = {digits: ("DOUBLE", value, "1.10") for digits, value in want.items()}
sys.exit(0 if seen == want else "changed")
EOF
