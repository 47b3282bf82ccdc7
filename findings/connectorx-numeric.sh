#!/usr/bin/env bash
# connectorx 0.4.6 (PyPI): numeric from PostgreSQL has ten digits behind the point, whatever the column has.
#
# Expected: the digits that the server sends, a text or a double where Arrow has no such decimal.
# Seen: every numeric is decimal128(38, 10). More digits are rounded away without a word: 1e-20 is 0, and a
# numeric(20,15) loses five digits. Fewer are padded: a sum of integers is 6.0000000000. 10^28, within 38 digits,
# fails.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  connectorx==0.4.6 pyarrow==26.0.1 pgserver==0.1.4

PYTHONPATH="$dir/lib" XDG_RUNTIME_DIR="$dir" DATA="$dir/data" RUST_BACKTRACE=0 python3 - <<'EOF'
import os, sys, urllib.parse
import connectorx, pgserver

server = pgserver.get_server(os.environ["DATA"])  # PostgreSQL 16.2, on a socket in that folder

def read(value):
    try:
        table = connectorx.read_sql(uri, f"SELECT {value} AS x", return_type="arrow")
        table = table if hasattr(table, "schema") else table.read_all()
        return f"{table['x'].type} {table['x'].to_pylist()[0]:f}"
    except RuntimeError:
        return "an error"

try:
    uri = f"postgresql://postgres@{urllib.parse.quote(os.environ['DATA'], safe='')}/postgres"
    values = ["1e-20::numeric", "0.123456789012345::numeric(20,15)",
              "(SELECT sum(g) FROM generate_series(1, 3::bigint) g)", "1.10::numeric(10,2)", "1e17::numeric",
              "1e28::numeric"]
    seen = {value: read(value) for value in values}
finally:
    server.cleanup()
for value, got in seen.items():
    print(f"{value}: {got}")
want = ["0.0000000000", "0.1234567890", "6.0000000000", "1.1000000000", "100000000000000000.0000000000"]
want = ["decimal128(38, 10) " + x for x in want] + ["an error"]
sys.exit(0 if list(seen.values()) == want else "changed: " + repr(want))
EOF
