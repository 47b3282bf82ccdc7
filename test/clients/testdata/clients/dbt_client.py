"""dbt's own program with its PostgreSQL adapter, on a project of sources, models and tests, against a running proxy."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from importlib.metadata import version

import psycopg2

FILES = {
    "dbt_project.yml": """
name: demo
profile: demo
model-paths: [models]
flags: {send_anonymous_usage_stats: false}
""",
    "profiles.yml": """
demo:
  target: dev
  outputs:
    dev: {type: postgres, host: "{{ env_var('PGHOST') }}", port: "{{ env_var('PGPORT') | int }}", user: "{{ env_var('PGUSER') }}",
      password: "{{ env_var('PGPASSWORD') }}", dbname: "{{ env_var('PGDATABASE') }}", schema: public, threads: 2,
      sslmode: "{{ env_var('PGSSLMODE') }}", sslrootcert: "{{ env_var('PGSSLROOTCERT') }}"}
""",
    "models/sources.yml": """
sources:
  - name: demo
    schema: public
    tables:
      - name: people
        columns: [{name: income, data_tests: [{not_null: {config: {error_if: "> 1000000", warn_if: "> 1000000"}}}]}]
      - name: visits
        config: {loaded_at_field: visited_at, freshness: {warn_after: {count: 1000000, period: day}}}
      - name: regions
        columns: [{name: code, data_tests: [not_null, unique]}]
""",
    "models/by_sex.sql": "select sex, count(*) as n, avg(income) as income from {{ source('demo', 'people') }} where age >= {{ var('age', 30) }} group by sex",
    "models/men.sql": "{{ config(materialized='ephemeral') }}\nselect region, count(*) as n from {{ source('demo', 'people') }} where sex = 'Male' group by region",
    "models/named.sql": "select r.name, m.n from {{ ref('men') }} m join {{ source('demo', 'regions') }} r on r.code = m.region",
    "models/rows.sql": "select * from {{ source('demo', 'visits') }}",
}
home = tempfile.TemporaryDirectory()
for name, text in FILES.items():
    path = pathlib.Path(home.name, name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
program = os.path.join(os.path.dirname(sys.executable), "dbt")


def check(what, ok):
    assert ok, what
    print("ok", what)


def dbt(*args, fails=False):
    r = subprocess.run([program, "--no-use-colors", *args, "--project-dir", home.name, "--profiles-dir", home.name], cwd=home.name, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=180)
    assert (r.returncode != 0) == fails, r.stdout
    return r.stdout


def shown(model, *args):
    text = dbt("-q", "show", "--select", model, "--output", "json", *args)
    return json.loads(text[text.index("{"):])["show"]


def spent():
    with psycopg2.connect("") as c, c.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(spent), 0) FROM dp.budget WHERE user_name = current_user")
        return cursor.fetchone()


print("version %s with postgres %s" % (version("dbt-core"), version("dbt-postgres")))
before = spent()
check("debug", "All checks passed!" in dbt("debug"))
print("did connects")
check("ls", "source:demo.demo.people" in dbt("ls"))
check("compile", '"demo"."public"."people"' in dbt("compile", "--select", "by_sex"))
dbt("docs", "generate")
sources = json.loads(pathlib.Path(home.name, "target", "catalog.json").read_text())["sources"]
people = sources["source.demo.demo.people"]
check("docs generate: %s" % sorted(sources), set(sources) == {"source.demo.demo." + t for t in ("people", "visits", "regions")}
      and people["columns"]["age"]["type"] == "integer" and "0 to 109" in people["columns"]["age"]["comment"] and "private" in people["metadata"]["comment"])
check("browsing is free", spent() == before)
print("did browses")
rows = shown("by_sex")
check("show: %s" % rows, {r["sex"] for r in rows} == {"Female", "Male"} and rows[0]["n"] > 0)
check("show over an ephemeral model and a public table", len(shown("named")) >= 3)
text = dbt("show", "--select", "rows", fails=True)
check("a refusal with its hint", "rows of private table visits cannot be read" in text and "Ask for aggregates" in text)
print("did queries")
shown("by_sex", "--vars", "{age: 50}")
print("did parameters")
check("source freshness", "PASS freshness of demo.visits" in dbt("source", "freshness"))
check("tests of sources", "PASS=3" in dbt("test", "--select", "source:*"))
text = dbt("run", "--select", "by_sex", fails=True)
check("what writes is refused", "CREATE is not permitted" in text and "The data owner" in text)
