#!/usr/bin/env bash
# sqlglot 30.30.0 (PyPI): statements from Snowflake to PostgreSQL that run there and answer otherwise.
#
# Expected: as with division, COUNT(DISTINCT a, b) and DATEDIFF of months and hours, which it makes over with care, or
# an error with unsupported_level RAISE.
# Seen, with RAISE: DATEDIFF of weeks divides days by 7 where Snowflake counts beginnings of weeks; GREATEST and LEAST
# go by PostgreSQL's rule for NULL; SUBSTR from the end is empty; COUNT_IF over no rows is NULL where Snowflake's is
# 0; halves of doubles are rounded to even. (Snowflake's answers are from its documents.)
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  sqlglot==30.30.0 'psycopg[binary]==3.3.9' pgserver==0.1.4

PYTHONPATH="$dir/lib" XDG_RUNTIME_DIR="$dir" DATA="$dir/data" python3 - <<'EOF'
import os, sys
import pgserver, psycopg, sqlglot

want = {  # the answer in PostgreSQL, and in Snowflake
    "SELECT 7 / 2": (3.5, 3.5),
    "SELECT DATEDIFF(month, '2024-01-31'::date, '2024-02-01'::date)": (1, 1),
    "SELECT DATEDIFF(week, '2024-01-06'::date, '2024-01-08'::date)": (0, 1),
    "SELECT GREATEST(1, NULL)": (1, None),
    "SELECT SUBSTR('hello', -3, 2)": ("", "ll"),
    "SELECT COUNT_IF(x > 1) FROM (SELECT 1 AS x) AS t WHERE x > 1": (None, 0),
    "SELECT ROUND(2.5::float)": (2.0, 3.0),
}
server = pgserver.get_server(os.environ["DATA"])  # PostgreSQL 16.2, on a socket in that folder
same = True
try:
    with psycopg.connect(server.get_uri()) as postgres:
        for query, (answer, before) in want.items():
            other = sqlglot.transpile(
                query, read="snowflake", write="postgres", unsupported_level=sqlglot.ErrorLevel.RAISE)[0]
            seen = postgres.execute(other).fetchone()[0]
            print(f"{query}: {before} in Snowflake\n    {other}: {seen}")
            same &= seen == answer
finally:
    server.cleanup()
sys.exit(0 if same else "changed")
EOF
