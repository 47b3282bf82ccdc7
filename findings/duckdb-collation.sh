#!/usr/bin/env bash
# DuckDB 1.5.5 (PyPI): the parts of the engine do not agree on which texts of a collated column are equal.
#
# Expected: under COLLATE NOCASE 'ann' and 'ANN' are equal everywhere, so that UNIQUE takes one of them; a cast to
# VARCHAR takes the collation away; and a catalog says which columns have one.
# Seen: GROUP BY, DISTINCT, UNION, PARTITION BY, =, joins and LIKE go by the collation; UNIQUE and count(DISTINCT) go
# by the bytes. A cast to VARCHAR keeps the collation. The catalogs say VARCHAR, and information_schema NULL: only the
# text of CREATE TABLE in duckdb_tables() has it. The two rows of a unique column join to four.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  duckdb==1.5.5

PYTHONPATH="$dir/lib" python3 - <<'EOF'
import sys
import duckdb

con = duckdb.connect()
con.execute("CREATE TABLE t (a VARCHAR COLLATE NOCASE UNIQUE)")
con.execute("INSERT INTO t VALUES ('ann'), ('ANN')")
cases = [  # with what was seen
    ("SELECT count(*) FROM t", [(2,)]),
    ("SELECT a, count(*) FROM t GROUP BY a", [("ann", 2)]),
    ("SELECT count(DISTINCT a) FROM t", [(2,)]),
    ("SELECT count(*) FROM (SELECT DISTINCT a FROM t)", [(1,)]),
    ("SELECT count(*) FROM (SELECT a FROM t UNION SELECT a FROM t)", [(1,)]),
    ("SELECT a, count(*) OVER (PARTITION BY a) FROM t ORDER BY rowid", [("ann", 2), ("ANN", 2)]),
    ("SELECT count(*) FROM t x JOIN t y ON x.a = y.a", [(4,)]),
    ("SELECT count(*) FROM t x JOIN t y ON CAST(x.a AS VARCHAR) = CAST(y.a AS VARCHAR)", [(4,)]),
    ("SELECT count(*) FROM t WHERE a LIKE 'ann'", [(2,)]),
    ("SELECT data_type FROM duckdb_columns() WHERE table_name = 't'", [("VARCHAR",)]),
    ("SELECT collation_name FROM information_schema.columns WHERE table_name = 't'", [(None,)]),
]
changed = False
for query, want in cases:
    rows = con.execute(query).fetchall()
    print(f"{query}\n  {rows}")
    changed |= rows != want
sys.exit("changed" if changed else 0)
EOF
