"""dbt with its PostgreSQL adapter, run as its command, against a running proxy: a project whose models are ephemeral, since nothing can be made there."""
import json
import os
import subprocess
import sys
import tempfile

DBT = os.path.join(os.path.dirname(sys.executable), "dbt")
PROFILE = """demo:
  target: dev
  outputs:
    dev: {type: postgres, host: "{{ env_var('PGHOST') }}", port: "{{ env_var('PGPORT') | as_number }}", user: "{{ env_var('PGUSER') }}",
          password: "{{ env_var('PGPASSWORD') }}", dbname: "{{ env_var('PGDATABASE') }}", schema: public, threads: 2,
          sslmode: "{{ env_var('PGSSLMODE') }}", sslrootcert: "{{ env_var('PGSSLROOTCERT') }}"}
"""
MODELS = """version: 2
sources:
  - name: demo
    schema: public
    tables:
      - name: people
        columns:
          - name: sex
            data_tests: [{accepted_values: {values: [Female, Male]}}]
      - name: regions
        columns:
          - name: code
            data_tests: [unique, not_null]
models:
  - name: by_region
    config: {materialized: ephemeral}
    columns:
      - name: region
        data_tests: [unique, not_null, {relationships: {to: "source('demo', 'regions')", field: code}}]
  - name: made
    config: {materialized: table}
"""
ASKED = "select region, count(*) as n, avg(income) as income from {{ source('demo', 'people') }} group by region"
SPENT = "select spent from dp.budget where user_name = current_user"


def check(what, ok):
    assert ok, what
    print("ok", what)


home = tempfile.TemporaryDirectory()
for name, text in {"dbt_project.yml": 'name: demo\nversion: "1.0"\nprofile: demo\n', "profiles.yml": PROFILE, "models/models.yml": MODELS,
                   "models/by_region.sql": ASKED, "models/made.sql": "select * from {{ ref('by_region') }}"}.items():
    path = os.path.join(home.name, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def dbt(*words, fails=False):
    done = subprocess.run([DBT, "--quiet", "--no-use-colors", *words], cwd=home.name, capture_output=True, text=True,
                          env={**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DBT_PROFILES_DIR": home.name})
    assert (done.returncode != 0) == fails, "dbt %s: %s" % (words, done.stdout + done.stderr)
    return done.stdout


def show(*words):
    text = dbt("show", "--output", "json", *words)
    return json.loads(text[text.index("{"):])["show"]


def results():
    with open(os.path.join(home.name, "target", "run_results.json")) as f:
        return {r["unique_id"].split(".")[2]: r for r in json.load(f)["results"]}


print("version", subprocess.run([sys.executable, "-c", "from importlib.metadata import version as v; print(v('dbt-core'), 'with dbt-postgres', v('dbt-postgres'))"],
                                capture_output=True, text=True, check=True).stdout.strip())
dbt("debug")
print("did connects")
before = show("--inline", SPENT)
dbt("docs", "generate")
with open(os.path.join(home.name, "target", "catalog.json")) as f:
    people = json.load(f)["sources"]["source.demo.demo.people"]
check("the catalog %s" % people["metadata"], people["columns"]["age"]["type"] == "integer" and "private" in people["metadata"]["comment"]
      and people["columns"]["region"]["comment"])
check("browsing is free", show("--inline", SPENT) == before)
print("did browses")
rows = show("--select", "by_region")
check("a model %s" % rows, len(rows) > 2 and all(r["n"] > 0 for r in rows))
rows = show("--inline", "select sex, count(*) as n from {{ source('demo', 'people') }} group by sex")
check("a statement %s" % rows, {r["sex"] for r in rows} == {"Female", "Male"})
dbt("test", "--exclude", "made")
check("tests %s" % {k: v["status"] for k, v in results().items()}, len(results()) == 6)
print("did queries")
dbt("run", fails=True)
check("a table: %s" % results()["made"]["message"].strip().splitlines(), "is not permitted" in results()["made"]["message"])
