"""ibis over psycopg 3, with pandas and polars where it is installed, against a running proxy."""
import os
import warnings

import ibis
from ibis import _
from ibis.common.exceptions import TableNotFound
from psycopg.errors import InsufficientPrivilege

warnings.simplefilter("ignore")


def check(what, ok):
    assert ok, what
    print("ok", what)


def refused(what, ask, words):
    try:
        got = ask()
    except InsufficientPrivilege as e:
        check("%s: %s" % (what, e.diag.message_primary), words in str(e) and e.diag.message_hint)
    else:
        raise AssertionError("%s answered %s" % (what, got))


def spent():
    return c.raw_sql("SELECT spent FROM dp.budget WHERE user_name = current_user").fetchall()


print("version", ibis.__version__)
c = ibis.postgres.connect(host=os.environ["PGHOST"], port=int(os.environ["PGPORT"]), user=os.environ["PGUSER"], password=os.environ["PGPASSWORD"],
                          database=os.environ["PGDATABASE"], sslmode=os.environ["PGSSLMODE"], sslrootcert=os.environ["PGSSLROOTCERT"])
check("server %s" % c.version, c.version.startswith("15"))
check("where", c.current_catalog == os.environ["PGDATABASE"] and c.current_database == "public")
print("did connects")
before = spent()

check("tables", {"people", "visits", "regions"} <= set(c.list_tables()) and c.list_tables(like="^peo") == ["people"])
check("catalogs and databases", os.environ["PGDATABASE"] in c.list_catalogs() and "public" in c.list_databases())
people = c.table("people")
schema = people.schema()
check("schema %s" % schema, schema["age"].is_integer() and schema["hired"].is_date() and schema["sex"].is_string())
for name in c.list_tables():
    check("columns of %s" % name, len(c.table(name).columns) > 0)
check("a schema that is named", c.table("people", database="public").columns == people.columns)
ASK = "SELECT sex, count(*) AS n FROM people GROUP BY sex"
refused("a statement whose columns are asked by a view", lambda: c.sql(ASK), "CREATE is not permitted")
try:
    c.table("nobody")
except TableNotFound:
    print("ok a table that is not there")
else:
    raise AssertionError("a table that is not there")
check("browsing is free", spent() == before)
print("did browses")

check("count", isinstance(people.count().execute(), int))
adults = people.filter(_.age >= 30)
frame = adults.group_by("sex").agg(n=_.count(), income=_.income.mean(), over=_.income.sum()).order_by(ibis.desc("n")).execute()
check("group_by\n%s" % frame, len(frame) == 2 and frame["n"][0] >= frame["n"][1])
check("filtered aggregates", people.aggregate(women=_.count(where=_.sex == "Female"), all=_.count()).execute()["women"][0] > 0)
check("value_counts", len(people.region.value_counts().execute()) > 2)
c.raw_sql("SET dp.epsilon = 1")
check("deviations", people.income.std().execute() > 0)
check("median", people.age.median().execute() > 0)
c.raw_sql("RESET dp.epsilon")
check("years", len(people.group_by(year=_.hired.truncate("Y")).agg(n=_.count()).execute()) > 3)
check("years as numbers", len(people.group_by(year=_.hired.year()).agg(n=_.count()).execute()) > 3)
check("bins", len(people.mutate(decade=_.age // 10 * 10).group_by("decade").agg(n=_.count()).execute()) > 5)
bands = people.mutate(band=ibis.cases((_.age < 30, "young"), else_="old")).group_by("band").agg(n=_.count()).execute()
check("cases\n%s" % bands, set(bands["band"]) == {"young", "old"})
check("having", len(people.group_by("region").having(_.count() > 10).agg(n=_.count()).execute()) > 0)
share = people.group_by("sex").agg(n=_.count()).mutate(share=_.n / _.n.sum()).execute()
check("a share, over a window\n%s" % share, 0.99 < share["share"].sum() < 1.01)
regions = c.table("regions")
joined = people.join(regions, people.region == regions.code).group_by("name").agg(n=_.count()).execute()
check("a join\n%s" % joined, len(joined) > 2)
check("isin, between, notnull, like", isinstance(
    people.filter(_.region.isin(["north", "south"]), _.age.between(20, 40), _.hired.notnull(), _.sex.like("F%")).count().execute(), int))
check("distinct", len(people.select("region").distinct().execute()) > 2)
check("a table that is public", len(regions.execute()) > 2)
check("arrow", people.group_by("sex").agg(n=_.count()).to_pyarrow().num_rows == 2)
check("batches", sum(len(b) for b in people.group_by("age").agg(n=_.count()).to_pyarrow_batches(chunk_size=20)) > 100)
try:
    import polars
except ImportError:
    pass
else:
    check("polars %s" % polars.__version__, people.group_by("sex").agg(n=_.count()).to_polars().height == 2)
check("a statement", len(c.sql(ASK, schema={"sex": "string", "n": "int64"}).filter(_.n > 10).execute()) == 2)
check("a statement as it is", len(c.raw_sql(ASK).fetchall()) == 2)
print("did queries")
age = ibis.param("int64")
check("a parameter", people.filter(_.age >= age).count().execute(params={age: 90}) < people.filter(_.age >= age).count().execute(params={age: 20}))
print("did parameters")

refused("rows", lambda: people.limit(5).execute(), "rows of private table people cannot be read")
refused("a preview", lambda: people.head().execute(), "rows of private table people cannot be read")
refused("a table of its own", lambda: c.create_table("mine", schema={"a": "int64"}), "CREATE is not permitted")
check("the connection stays", isinstance(people.count().execute(), int))
