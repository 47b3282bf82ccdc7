#!/usr/bin/env bash
# MCP Toolbox for Databases 1.15.0 (toolbox-server of PyPI), postgres-execute-sql: values reach the model as others.
#
# Expected: a value is shown as PostgreSQL writes it, or as JSON that means the same, as bigint, numeric of any length,
# money, time with time zone and uuid are; what JSON lacks is a text, as numeric's NaN is.
# Seen: infinite dates and timestamps are the numbers 1 and -1. Of a range the kinds of its ends are 105, 101 and 85,
# the bytes of the letters i, e and U. Arrays of two dimensions lose one: {{1,2},{3,4}} is [1,2,3,4]. macaddr and the
# digits of bit strings are base64 and "char" is a number; time and interval are the driver's fields. A row with an
# infinite float8, or with a year before 1, is the text of an error in the place of the row, in an answer that is none.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  toolbox-server==1.15.0 pgserver==0.1.4

PYTHONPATH="$dir/lib" XDG_RUNTIME_DIR="$dir" DIR="$dir" python3 - <<'EOF'
import json, os, subprocess, sys
import pgserver

want = {
    "bigint '9007199254740993'": "9007199254740993",
    "numeric '1.10'": "1.10",
    "numeric 'NaN'": '"NaN"',
    "money '1.10'": '"$1.10"',
    "timetz '12:00+05:30'": '"12:00:00+05:30"',
    "date '2024-01-01'": '"2024-01-01T00:00:00Z"',
    "date 'infinity'": "1",
    "timestamp '-infinity'": "-1",
    "int4range(1, 5)": '{"Lower":1,"Upper":5,"LowerType":105,"UpperType":101,"Valid":true}',
    "int8range(1, NULL)": '{"Lower":1,"Upper":null,"LowerType":105,"UpperType":85,"Valid":true}',
    "ARRAY[[1, 2], [3, 4]]": "[1,2,3,4]",
    "macaddr '08:00:2b:01:02:03'": '"CAArAQID"',
    "B'101'": '{"Bytes":"oA==","Len":3,"Valid":true}',
    "'a'::\"char\"": "97",
    "time '24:00'": '{"Microseconds":86400000000,"Valid":true}',
    "interval '1 day'": '{"Microseconds":0,"Days":1,"Months":0,"Valid":true}',
    "float8 'infinity'": "fail to marshal",
    "date '0044-03-15 BC'": "fail to marshal",
}
folder = os.environ["DIR"]
source = {"kind": "source", "name": "here", "type": "postgres", "host": "localhost", "port": "5432",
          "database": "postgres", "user": "postgres", "password": "none", "queryParams": {"host": folder + "/data"}}
tool = {"kind": "tool", "name": "ask", "type": "postgres-execute-sql", "source": "here", "description": "runs SQL"}
with open(folder + "/tools.yaml", "w") as file:
    file.write(json.dumps(source) + "\n---\n" + json.dumps(tool))
program = [folder + "/lib/toolbox_server/bin/toolbox", "--config", folder + "/tools.yaml",
           "--stdio", "--disable-version-check", "--log-level", "ERROR"]

def say(toolbox, method, number=None, **params):
    toolbox.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}
                                   | ({} if number is None else {"id": number})) + "\n")
    toolbox.stdin.flush()
    return None if number is None else json.loads(toolbox.stdout.readline())["result"]

def ask(toolbox, value):
    answer = say(toolbox, "tools/call", 2, name="ask", arguments={"sql": f"SELECT {value} AS x"})
    assert not answer.get("isError"), answer
    text = answer["content"][0]["text"]
    return text.removeprefix('{"x":').removesuffix("}") if text[0] == "{" else text

server = pgserver.get_server(folder + "/data")  # PostgreSQL 16.2, on a socket in that folder
try:
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as toolbox:
        say(toolbox, "initialize", 1, protocolVersion="2025-06-18", capabilities={},
            clientInfo={"name": "finding", "version": "1"})
        say(toolbox, "notifications/initialized")
        seen = {value: ask(toolbox, value) for value in want}
        toolbox.stdin.close()
finally:
    server.cleanup()
for value, got in seen.items():
    print(f"{value}: {got}")
same = all(seen[value].startswith(shown) for value, shown in want.items())
sys.exit(0 if same else "changed: " + repr(want))
EOF
