#!/usr/bin/env bash
# sqlglot 30.30.0 (PyPI): statements from PostgreSQL to DuckDB that run there and answer otherwise.
#
# Expected: 7 / 2 becomes 7 // 2, since sqlglot knows that PostgreSQL's division of integers is one; what has no
# counterpart is an error with unsupported_level RAISE.
# Seen: with RAISE too, 7 / 2 and sum(n) / count(*) become divisions of doubles, WITH TIES is dropped, a pattern of
# SIMILAR TO is read as a regular expression, substring counts from the end before its first character, halves of
# doubles round away from zero, and to_char's Day is the number of the day with 'ay' behind it.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  sqlglot==30.30.0 duckdb==1.5.5 'psycopg[binary]==3.3.9' pgserver==0.1.4

PYTHONPATH="$dir/lib" XDG_RUNTIME_DIR="$dir" DATA="$dir/data" python3 - <<'EOF'
import os, sys
import duckdb, pgserver, psycopg, sqlglot

rows = "(VALUES (1), (2), (2)) AS t(n)"
want = {
    "SELECT 7 / 2": ([(3,)], [(3.5,)]),
    f"SELECT sum(n) / count(*) FROM {rows}": ([(1,)], [(5 / 3,)]),
    f"SELECT n FROM {rows} ORDER BY n DESC FETCH FIRST 1 ROW WITH TIES": ([(2,), (2,)], [(2,)]),
    "SELECT 'abc' SIMILAR TO 'a%'": ([(True,)], [(False,)]),
    "SELECT substring('hello' FROM -1 FOR 4)": ([("he",)], [("o",)]),
    "SELECT round(2.5::float8)": ([(2.0,)], [(3.0,)]),
    "SELECT to_char(date '2024-01-05', 'Day')": ([("Friday   ",)], [("5ay",)]),
}
server = pgserver.get_server(os.environ["DATA"])  # PostgreSQL 16.2, on a socket in that folder
same = True
try:
    with psycopg.connect(server.get_uri()) as postgres:
        for query, answers in want.items():
            other = sqlglot.transpile(
                query, read="postgres", write="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE)[0]
            seen = postgres.execute(query).fetchall(), duckdb.sql(other).fetchall()
            print(f"{query}: {seen[0]}\n    {other}: {seen[1]}")
            same &= seen == answers
finally:
    server.cleanup()
sys.exit(0 if same else "changed")
EOF
