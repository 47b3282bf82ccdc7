"""polars' read_database over psycopg 3, and over a URI by connectorx where that is installed, against a running proxy."""
import os
from urllib.parse import quote

import polars as pl
import psycopg


def check(what, ok):
    assert ok, what
    print("ok", what)


def refused(what, ask, words):
    try:
        ask()
    except Exception as e:
        check("%s: %s" % (what, str(e).splitlines()[0]), words in str(e))
    else:
        raise AssertionError(what + " was answered")


c = psycopg.connect(autocommit=True)


def spent():
    return pl.read_database("SELECT coalesce(max(spent), 0)::text AS spent FROM dp.budget WHERE user_name = current_user", c).item()


before = spent()
print("did connects")
tables = pl.read_database("SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'", c)
check("columns %s" % tables.height, set(tables["table_name"]) == {"people", "visits", "regions", "bids", "likes", "prices"})
empty = pl.read_database("SELECT * FROM people LIMIT 0", c)
check("a table's columns %s" % empty.schema, empty.height == 0 and {"age", "sex", "hired"} <= set(empty.columns))
check("values of a column", pl.read_database("SELECT DISTINCT region FROM people", c).height >= 5)
check("browsing is free", spent() == before)
print("did browses")

frame = pl.read_database("SELECT sex, count(*) AS n, avg(income) AS income FROM people GROUP BY sex ORDER BY sex", c)
check("a frame %s" % frame, frame.height == 2 and frame.schema["n"] == pl.Int64 and frame.schema["sex"] == pl.String and frame.schema["income"].is_decimal())
frame = pl.read_database("SELECT date_trunc('year', hired)::date AS year, count(*) AS n FROM people GROUP BY 1 ORDER BY 1", c, schema_overrides={"n": pl.Int32})
check("dates, and a type of hers", frame.schema["year"] == pl.Date and frame.schema["n"] == pl.Int32 and frame.height > 3)
parts = list(pl.read_database("SELECT age, count(*) AS n FROM people GROUP BY age ORDER BY age", c, iter_batches=True, batch_size=40))
check("batches of %s rows" % [p.height for p in parts], sum(p.height for p in parts) >= 110 and len(parts) > 1)
check("rows of a public table", pl.read_database("SELECT * FROM regions ORDER BY code LIMIT 3", c).height == 3)
frame = pl.read_database("SELECT region, count(*) AS n FROM people WHERE age >= %s AND sex = %s GROUP BY region", c, execute_options={"params": (30, "Female")})
check("parameters", frame.height >= 5)
print("did parameters")
refused("rows", lambda: pl.read_database("SELECT * FROM people LIMIT 5", c), "rows of private table people cannot be read")
refused("a question without a private form", lambda: pl.read_database("SELECT corr(DISTINCT age, income) FROM people", c), "DISTINCT")
check("the connection stays", pl.read_database("SELECT count(*) AS n FROM people", c).item() > 0)
print("did queries")
version = pl.__version__
try:
    import connectorx
except ImportError:
    pass
else:
    uri = "postgresql://%s:%s@%s:%s/%s?sslmode=require&sslrootcert=%s" % tuple(quote(os.environ[k], safe="") for k in (
        "PGUSER", "PGPASSWORD", "PGHOST", "PGPORT", "PGDATABASE", "PGSSLROOTCERT"))
    ask = "SELECT sex, count(*) AS n FROM people GROUP BY sex"
    first, once = pl.read_database_uri(ask, uri), spent()
    frame = pl.read_database_uri(ask, uri)
    check("what connectorx asks again is free", frame.equals(first) and spent() == once)
    check("by connectorx %s" % frame, frame.height == 2)
    version += ", connectorx " + connectorx.__version__
print("version", version)
