#!/usr/bin/env bash
# psqlpy 0.13.1 (PyPI): numbers and times are other values in Python, without a word.
#
# Expected: what Python cannot hold, or the driver not carry over, is an error, as for numeric from 2^96 on, NaN and
# infinite times; a numeric of any length fits a Decimal.
# Seen: reading and writing, numeric is cut to some 28 digits, rounded: 1e-30 is 0, and of twenty digits behind the
# point nine are left where twenty stand before it. oid 4294967295 is -1, time 24:00 is 00:00, the other end of the
# day, and a year is 360 days, five less than twelve months of any calendar.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  psqlpy==0.13.1 pgserver==0.1.4

PYTHONPATH="$dir/lib" XDG_RUNTIME_DIR="$dir" DATA="$dir/data" python3 - <<'EOF'
import asyncio, os, sys
from datetime import time, timedelta
from decimal import Decimal
from urllib.parse import quote
import pgserver, psqlpy

error = "error"
want = {
    "numeric '1.10'": Decimal("1.10"),
    "numeric '1e-28'": Decimal("1e-28"),
    "numeric '1e-30'": Decimal("0e-28"),
    "numeric '12345678901234567890.12345678901234567890'": Decimal("12345678901234567890.123456789"),
    "2 / numeric(60, 40) '3'": Decimal("0.6666666666666666666666666667"),
    "numeric '79228162514264337593543950335'": Decimal(2**96 - 1),
    "numeric '79228162514264337593543950336'": error,
    "numeric 'NaN'": error,
    "timestamp 'infinity'": error,
    "oid '4294967295'": -1,
    "time '23:59:59.999999'": time(23, 59, 59, 999999),
    "time '24:00'": time(0, 0),
    "interval '1 month'": timedelta(days=30),
    "interval '1 year'": timedelta(days=360),
}
written = Decimal("0.1234567890123456789012345678901234567890")

async def ask(uri):
    connection = await psqlpy.ConnectionPool(dsn=uri, max_db_pool_size=2).connection()
    seen = {}
    for value in want:
        try:
            seen[value] = (await connection.execute(f"SELECT {value} AS x")).result()[0]["x"]
        except psqlpy.exceptions.RustToPyValueMappingError:
            seen[value] = error
    back = await connection.execute("SELECT ($1::numeric)::text AS x", [written])
    return seen, back.result()[0]["x"]

server = pgserver.get_server(os.environ["DATA"])  # PostgreSQL 16.2, on a socket in that folder
try:
    seen, stored = asyncio.run(ask(f"postgresql://postgres@{quote(os.environ['DATA'], safe='')}/postgres"))
finally:
    server.cleanup()
for value, got in seen.items():
    print(f"{value}: {got}")
print(f"{written} written: {stored}")
same = seen == want and stored == "0.1234567890123456789012345679"
sys.exit(0 if same else "changed: " + repr(want))
EOF
