#!/usr/bin/env bash
# langchain-community 0.4.2 (PyPI), SQLDatabase over PostgreSQL: columns are lost, without a word.
#
# Expected: run() hands on as many values as the statement has columns, which PostgreSQL often gives one name, as
# SQLAlchemy's rows and LlamaIndex' SQLDatabase do; get_table_info() shows every column of a table.
# Seen: of columns with one name the last value alone is left, in the place of the first: SELECT min(a), min(b) has one
# number, that of b, and SELECT count(*), 7 AS x, count(*) FILTER (...) has the filtered count first. Columns of composite
# types, of point and of types of extensions are no part of the table that a model is shown. A text of JSON in a
# statement, '{"a":1}', is an error: it would want a parameter named 1.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  langchain-community==0.4.2 SQLAlchemy==2.0.36 psycopg2-binary==2.9.13 pgserver==0.1.4

PYTHONPATH="$dir/lib" XDG_RUNTIME_DIR="$dir" DATA="$dir/data" python3 -W ignore - <<'EOF'
import os, sys
import pgserver
from langchain_community.utilities import SQLDatabase
from sqlalchemy import create_engine

want = {
    "SELECT min(a) AS x, min(b) AS y FROM t": "[(1, 20)]",
    "SELECT min(a), min(b) FROM t": "[(20,)]",
    "SELECT count(*), 7 AS x, count(*) FILTER (WHERE a > 1) FROM t": "[(1, 7)]",
    "SELECT t.*, u.* FROM t JOIN u USING (a)": "[(1, 50, 'x')]",
    """SELECT '{"a": 1}'::jsonb ->> 'a' AS x""": "[('1',)]",
    """SELECT '{"a":1}'::jsonb ->> 'a' AS x""": "A value is required for bind parameter '1'",
}
server = pgserver.get_server(os.environ["DATA"])  # PostgreSQL 16.2, on a socket in that folder
try:
    engine = create_engine("postgresql+psycopg2://", connect_args={"host": os.environ["DATA"], "user": "postgres"})
    with engine.begin() as connection:
        for sql in ("CREATE TABLE t (a int, b int)", "INSERT INTO t VALUES (1, 20), (2, 30)",
                    "CREATE TABLE u (a int, b int, c text)", "INSERT INTO u VALUES (1, 50, 'x')",
                    "CREATE TYPE pair AS (x int, y int)", "CREATE TABLE places (id int, at point, size pair)"):
            connection.exec_driver_sql(sql)
    database = SQLDatabase(engine, sample_rows_in_table_info=0)
    seen = {}
    for sql, shown in want.items():
        seen[sql] = database.run_no_throw(sql)
    table = " ".join(database.get_table_info(["places"]).split())
    engine.dispose()
finally:
    server.cleanup()
for sql, got in seen.items():
    print(f"{sql}: {got}")
print("CREATE TABLE places (id int, at point, size pair):", table)
same = all(shown in seen[sql] for sql, shown in want.items()) and table == "CREATE TABLE places ( id INTEGER )"
sys.exit(0 if same else "changed: " + repr(want))
EOF
