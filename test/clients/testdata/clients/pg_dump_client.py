"""pg_dump against a running proxy: the schema, with keys and comments, which is free; rows are refused."""
import os
import subprocess


def check(what, ok):
    assert ok, what
    print("ok", what)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def spent():
    return run("psql", "-XAtc", "SELECT spent FROM dp.budget WHERE user_name = current_user").stdout


os.environ["PGUSER"] = os.environ["PGASSISTANT"]
print("version", run("pg_dump", "--version").stdout.split()[2])
before = spent()
check("an account", before.strip() != "")
print("did connects")
dump = run("pg_dump", "-s")
check("a schema %s" % dump.stderr, dump.returncode == 0)
for part in ("CREATE TABLE public.people", "CREATE VIEW dp.budget", "ADD CONSTRAINT people_pkey PRIMARY KEY",
             "COMMENT ON COLUMN public.people.sex IS 'one of Female, Male"):
    check(part, part in dump.stdout)
for what in ("SCHEMA public", "SCHEMA dp", "TABLE public.people", "VIEW dp.last"):
    line = next(line for line in dump.stdout.splitlines() if line.startswith("COMMENT ON %s IS" % what))
    check("%s says how to ask" % what, "EXPLAIN says what a question costs" in line)
whole = run("pg_dump", "-s", "-C")
check("so does the database", "COMMENT ON DATABASE %s IS 'Private tables" % os.environ["PGDATABASE"] in whole.stdout)
rows = run("pg_dump", "-a", "-t", "people")
check("rows are refused %s" % rows.stderr, rows.returncode != 0 and "cannot be read" in rows.stderr)
check("browsing is free", spent() == before)
print("did browses")
