"""ibis' PostgreSQL backend, whose expressions are run as SQL, against a running proxy."""
import os

import ibis
from ibis import _


def check(what, ok):
    assert ok, what
    print("ok", what)


def refused(what, ask, words):
    try:
        ask()
    except Exception as e:
        check("%s: %s" % (what, str(e).splitlines()[0]), words in str(e) and "HINT" in str(e))
    else:
        raise AssertionError(what + " was answered")


con = ibis.postgres.connect(host=os.environ["PGHOST"], port=int(os.environ["PGPORT"]), user=os.environ["PGUSER"], password=os.environ["PGPASSWORD"],
                            database=os.environ["PGDATABASE"], sslmode=os.environ["PGSSLMODE"], sslrootcert=os.environ["PGSSLROOTCERT"])


def spent():
    with con.raw_sql("SELECT coalesce(max(spent), 0) FROM dp.budget WHERE user_name = current_user") as c:
        return c.fetchone()


print("version", ibis.__version__)
before = spent()
print("did connects")
check("tables", set(con.list_tables()) == {"people", "visits", "regions", "bids", "likes", "prices"})
check("names", "public" in con.list_databases() and con.list_catalogs() == [os.environ["PGDATABASE"]] and con.current_database == "public")
people, regions = con.table("people"), con.table("regions")
check("schema", str(people.schema()["age"]) == "int32" and str(people.schema()["hired"]) == "date" and str(people.schema()["sex"]) == "!string")
check("values of a column", len(people.select("region").distinct().execute()) >= 5)
check("browsing is free", spent() == before)
print("did browses")

check("count", people.count().execute() != 0)
frame = people.group_by("sex").agg(n=_.count(), income=_.income.mean()).order_by(ibis.desc("n")).execute()
check("group_by %s" % frame.values.tolist(), len(frame) == 2 and frame.n[0] >= frame.n[1])
frame = people.filter(_.age > 30, _.region.isin(["north", "south"]), _.hired < ibis.date("2024-01-01")).agg(n=_.count(), total=_.income.sum(), most=_.income.max()).execute()
check("filter", len(frame) == 1 and frame.n[0] != 0)
print("did parameters")
check("year", len(people.group_by(y=_.hired.year()).agg(n=_.count()).order_by("y").execute()) > 3)
check("cases", set(people.group_by(band=ibis.cases((people.age < 30, "young"), else_="old")).agg(n=_.count()).execute().band) == {"old", "young"})
check("bins", len(people.group_by(d=(_.age // 10) * 10).agg(n=_.count()).execute()) >= 11)
check("std, median, quantile", people.income.std().execute() >= 0 and people.income.median().execute() is not None and people.income.quantile(0.9).execute() is not None)
check("value_counts and nunique", len(people.region.value_counts().execute()) == 5 and people.region.nunique().execute() >= 1)
check("having and a window", len(people.group_by("region").having(_.count() > 10).agg(n=_.count()).mutate(share=_.n / _.n.sum()).execute()) >= 1)
check("a join with a public table", len(people.join(regions, people.region == regions.code).group_by("name").agg(n=_.count()).execute()) == 5)
check("Arrow", people.group_by("sex").agg(n=_.count()).to_pyarrow().num_rows == 2)
check("rows of a public table", len(regions.order_by("code").limit(3).execute()) == 3)
check("SQL with its schema", con.sql("SELECT sex, count(*) AS n FROM people GROUP BY sex", schema={"sex": "string", "n": "int64"}).execute().shape == (2, 2))
refused("head", lambda: people.head().execute(), "rows of private table people cannot be read")
refused("SQL without a schema, which ibis learns from a view", lambda: con.sql("SELECT count(*) AS n FROM people"), "CREATE is not permitted")
check("the connection stays", people.count().execute() != 0)
print("did queries")
