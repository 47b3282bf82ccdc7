#!/usr/bin/env bash
# kanel 4.0.4 (npm), PostgreSQL: types that are not those of what node-postgres hands on.
#
# Expected: a column's type is that of its values as pg 8.23.1 reads them, or unknown where nobody says, as numeric is
# string, bigint is string, timestamptz is Date and interval is unknown.
# Seen: time and timetz are Date, and the values are strings such as 12:00:00, of which new Date makes no date either.
# A column of a composite type is an object with its fields, an array of an enumeration an array, and both values are
# strings: (1,2.50) and {ok}. number[] has no room for the null of {1,NULL}. The program that is typed so compiles.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$dir/node" kanel@4.0.4 pg@8.23.1 > /dev/null
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" pgserver==0.1.4
cat > "$dir/values.js" <<'EOF'
const { Client } = require('pg')
const main = async () => {
  const client = new Client({ host: process.env.DATA, user: 'postgres', database: 'postgres' })
  await client.connect()
  const [row] = (await client.query('SELECT * FROM t')).rows
  await client.end()
  const kind = (v) => (v === null ? 'null' : typeof v === 'object' ? v.constructor.name : typeof v)
  const shown = (v) => (Array.isArray(v) ? `[${v.map(kind)}]` : kind(v))
  console.log(JSON.stringify(Object.fromEntries(Object.entries(row).map(([name, v]) => [name, shown(v)]))))
}
main()
EOF

PYTHONPATH="$dir/lib" XDG_RUNTIME_DIR="$dir" DATA="$dir/data" DIR="$dir" python3 - <<'EOF'
import json, os, re, subprocess, sys
import pgserver

want = {  # column: the type of kanel, and what the value is
    "big": ("string", "string"),
    "amount": ("string", "string"),
    "day": ("Date", "Date"),
    "at": ("Date", "Date"),
    "span": ("unknown", "PostgresInterval"),
    "hour": ("Date", "string"),
    "zoned": ("Date", "string"),
    "pairs": ("Pair", "string"),
    "moods": ("Mood[]", "string"),
    "numbers": ("number[]", "[number,null]"),
}
folder, data = os.environ["DIR"], os.environ["DATA"]
server = pgserver.get_server(data)  # PostgreSQL 16.2, on a socket in that folder
try:
    server.psql("""
        CREATE TYPE pair AS (a int, b numeric); CREATE TYPE mood AS ENUM ('sad', 'ok');
        CREATE TABLE t (big bigint, amount numeric, day date, at timestamptz, span interval, hour time, zoned timetz,
            pairs pair, moods mood[], numbers int[]);
        INSERT INTO t VALUES (1, 1.10, '2024-01-01', '2024-01-01', '1 day', '12:00', '12:00+01', '(1,2.50)', '{ok}',
            '{1,NULL}')""")
    with open(folder + "/kanel.js", "w") as file:
        connection = {"host": data, "user": "postgres", "database": "postgres"}
        settings = {"connection": connection, "outputPath": folder + "/types", "schemas": ["public"]}
        file.write("module.exports = " + json.dumps(settings))
    subprocess.run([folder + "/node/node_modules/.bin/kanel", "-c", "kanel.js"], check=True, capture_output=True,
                   cwd=folder)
    values = json.loads(subprocess.run(["node", folder + "/values.js"], check=True, capture_output=True, text=True,
                                       env=dict(os.environ, NODE_PATH=folder + "/node/node_modules")).stdout)
finally:
    server.cleanup()
text = open(folder + "/types/public/T.ts").read()
types = dict(re.findall(r"^  (\w+): (.+?) \| null;", text.split("export interface")[0], re.M))
seen = {name: (types.get(name), values.get(name)) for name in want}
for name, (typed, value) in seen.items():
    print(f"{name}: {typed}; pg hands on {value}")
sys.exit(0 if seen == want else "changed: " + repr(want))
EOF
