#!/usr/bin/env bash
# @bytebase/dbhub 1.4.0 (npm), PostgreSQL, execute_sql with max_rows: what a statement's own limit becomes.
#
# Expected: max_rows: 5 bounds the rows that are handed on; a statement with a smaller limit of its own is answered as
# without max_rows, as LIMIT 3 is.
# Seen: the number behind LIMIT is replaced where it is larger, also where it begins an expression: LIMIT 100 / 50 asks
# for no rows instead of two, and says that all is well; LIMIT 100 - 98 becomes negative. Behind any other limit a second
# one is written: FETCH FIRST 3 ROWS ONLY, LIMIT (3), LIMIT ALL and LIMIT NULL are syntax errors near "LIMIT".
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$dir/node" @bytebase/dbhub@1.4.0 > /dev/null
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" pgserver==0.1.4

PYTHONPATH="$dir/lib" XDG_RUNTIME_DIR="$dir" DIR="$dir" python3 - <<'EOF'
import json, os, socket, subprocess, sys
import pgserver

error = 'syntax error at or near "LIMIT"'
want = {
    "LIMIT 3": [1, 2, 3],
    "LIMIT 100": [1, 2, 3, 4, 5],
    "OFFSET 10": [11, 12, 13, 14, 15],
    "LIMIT 100 / 50": [],
    "LIMIT 100 - 98": "LIMIT must not be negative",
    "FETCH FIRST 3 ROWS ONLY": error,
    "OFFSET 1 ROW FETCH NEXT ROW ONLY": error,
    "LIMIT (3)": error,
    "LIMIT ALL": error,
    "LIMIT NULL": error,
}
folder = os.environ["DIR"]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
with open(folder + "/dbhub.toml", "w") as file:
    file.write(f'''[[sources]]
id = "here"
dsn = "postgres://postgres:none@127.0.0.1:{port}/postgres?sslmode=disable"
[[tools]]
name = "execute_sql"
source = "here"
max_rows = 5
''')
program = ["node", folder + "/node/node_modules/@bytebase/dbhub/dist/index.js", "--transport", "stdio",
           "--config", folder + "/dbhub.toml"]

def say(dbhub, method, number=None, **params):
    dbhub.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}
                                 | ({} if number is None else {"id": number})) + "\n")
    dbhub.stdin.flush()
    return None if number is None else json.loads(dbhub.stdout.readline())["result"]

def ask(dbhub, limit):
    sql = "SELECT n FROM generate_series(1, 2000) AS n ORDER BY n " + limit
    answer = json.loads(say(dbhub, "tools/call", 2, name="execute_sql", arguments={"sql": sql})["content"][0]["text"])
    return [row["n"] for row in answer["data"]["statements"][0]["rows"]] if answer["success"] else answer["error"]

server = pgserver.get_server(folder + "/data")  # PostgreSQL 16.2; dbhub wants an address
try:
    pgserver.pg_ctl(["-w", "-o", f"-h 127.0.0.1 -p {port} -k {folder}/data", "restart"],
                    pgdata=server.pgdata, user=server.system_user)
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) as dbhub:
        say(dbhub, "initialize", 1, protocolVersion="2025-06-18", capabilities={},
            clientInfo={"name": "finding", "version": "1"})
        say(dbhub, "notifications/initialized")
        seen = {limit: ask(dbhub, limit) for limit in want}
        dbhub.stdin.close()
finally:
    server.cleanup()
for limit, got in seen.items():
    print(f"{limit}: {got}")
sys.exit(0 if seen == want else "changed: " + repr(want))
EOF
