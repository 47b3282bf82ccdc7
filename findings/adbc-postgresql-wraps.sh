#!/usr/bin/env bash
# adbc-driver-postgresql 1.13.0 (PyPI): infinite times, large oids and unsigned integers become other numbers.
#
# Expected: what the other side cannot hold is an error, as the driver does for intervals beyond 64 bits of
# nanoseconds; or infinity is the largest value and -infinity the smallest.
# Seen: reading, timestamp 'infinity' and '-infinity' are one microsecond apart in the year -290278, infinity the
# earlier of the two, and PostgreSQL's latest years lie there too; dates alike. oid 4294967295 is -1. Writing, uint64
# becomes bigint by its bits: 18446744073709551615 is stored as -1.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  adbc-driver-postgresql==1.13.0 adbc-driver-manager==1.13.0 pyarrow==26.0.1 pgserver==0.1.4

PYTHONPATH="$dir/lib" XDG_RUNTIME_DIR="$dir" DATA="$dir/data" python3 - <<'EOF'
import os, sys
import adbc_driver_postgresql.dbapi, pgserver, pyarrow

server = pgserver.get_server(os.environ["DATA"])  # PostgreSQL 16.2, on a socket in that folder
try:
    with adbc_driver_postgresql.dbapi.connect(server.get_uri()) as connection, connection.cursor() as cursor:
        def read(value, kind):
            cursor.execute(f"SELECT {value} AS x")
            return cursor.fetch_arrow_table()["x"].cast(kind).to_pylist()[0]

        seen = {value: read(value, "int64") for value in
                ("timestamp '-infinity'", "timestamp 'infinity'", "timestamp '294276-12-31'",
                 "timestamp '0044-03-15 BC'")}
        seen |= {value: read(value, "int32") for value in
                 ("date '-infinity'", "date 'infinity'", "oid '4294967295'")}
        numbers = pyarrow.array([2**63 - 1, 2**63, 2**64 - 1], pyarrow.uint64())
        cursor.adbc_ingest("numbers", pyarrow.table({"n": numbers}), mode="create")
        cursor.execute("SELECT n, pg_typeof(n)::text FROM numbers")
        seen["uint64 written and read"] = cursor.fetchall()
finally:
    server.cleanup()
for value, got in seen.items():
    print(f"{value}: {got}")
want = [-9222425352054775808, -9222425352054775809, -9222426144109551616, -63517824000000000,
        -2147472691, -2147472692, -1, [(2**63 - 1, "bigint"), (-(2**63), "bigint"), (-1, "bigint")]]
sys.exit(0 if list(seen.values()) == want else "changed: " + repr(want))
EOF
