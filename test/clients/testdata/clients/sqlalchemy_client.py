"""SQLAlchemy over psycopg2, of version 2 over psycopg 3 and asyncpg too, and pandas where it is installed, against a running proxy."""
import asyncio
import os
import ssl
import warnings

import sqlalchemy
from sqlalchemy import MetaData, Table, create_engine, func, inspect, select, text

warnings.simplefilter("ignore")


def check(what, ok):
    assert ok, what
    print("ok", what)


e = create_engine("postgresql+psycopg2://")


def spent():
    with e.connect() as c:
        return c.execute(text("SELECT spent FROM dp.budget WHERE user_name = current_user")).fetchall()


before = spent()
print("did connects")
i = inspect(e)
check("schemas", "public" in i.get_schema_names())
check("tables", set(i.get_table_names()) == {"people", "visits", "regions", "bids", "likes", "prices"} and i.get_view_names() == [])
columns = {c["name"]: str(c["type"]) for c in i.get_columns("people")}
check("columns %s" % columns, columns["age"] == "INTEGER" and columns["hired"] == "DATE")
check("keys", i.get_pk_constraint("people")["constrained_columns"] == ["person_id"] and [f["referred_table"] for f in i.get_foreign_keys("visits")] == ["people"]
      and i.get_indexes("people") == [] and i.get_check_constraints("people") == [] and i.get_unique_constraints("people") == [])
check("comment", "private" in i.get_table_comment("people")["text"])
m = MetaData()
m.reflect(e)
check("reflected", set(m.tables) == set(i.get_table_names()))
people = Table("people", MetaData(), autoload_with=e)
check("browsing is free", spent() == before)
print("did browses")
with e.connect() as c:
    rows = c.execute(select(people.c.sex, func.count()).where(people.c.age > 30).group_by(people.c.sex)).fetchall()
    check("rows %s" % rows, len(rows) >= 2)
    check("text", isinstance(c.execute(text("SELECT count(*) FROM people WHERE age > :a"), {"a": 33}).scalar(), int))
    print("did parameters")
    stream = c.execution_options(stream_results=True, max_row_buffer=20).execute(text("SELECT age, count(*) FROM people GROUP BY age ORDER BY age"))
    check("stream_results", [r[0] for r in stream.fetchmany(5)] == [0, 1, 2, 3, 4] and len(stream.fetchall()) >= 105)
print("did queries")
with e.connect().execution_options(stream_results=True, max_row_buffer=20) as c:
    check("streamed", len(c.execute(text("SELECT age, count(*) FROM people GROUP BY age")).fetchall()) >= 110)
try:
    import pandas as pd
except ImportError:
    print("version", sqlalchemy.__version__)
else:
    print("version %s, pandas %s" % (sqlalchemy.__version__, pd.__version__))
    frame = pd.read_sql("SELECT age, count(*) AS n FROM people GROUP BY age ORDER BY age", e)
    check("frame %s" % (frame.shape,), frame.shape[0] >= 110 and list(frame.columns) == ["age", "n"])
    frame = pd.read_sql(text("SELECT sex, count(*) AS n FROM people WHERE age > :a GROUP BY 1").bindparams(a=20), e)
    check("frame with a parameter", len(frame) >= 2)
    check("chunks", sum(len(part) for part in pd.read_sql("SELECT age, count(*) AS n FROM people GROUP BY age", e, chunksize=50)) >= 110)


def reflected(connection):
    m = MetaData()
    m.reflect(connection)
    t = m.tables["people"]
    counted = connection.execute(select(func.count()).select_from(t).where(t.c.age > 30)).scalar()
    wide = connection.execute(text("SELECT count(*) FROM regions WHERE (area_km2 > :a) = :b"), {"a": 1, "b": True}).scalar()
    return set(m.tables) == set(i.get_table_names()) and str(t.c.hired.type) == "DATE" and counted > 0 and wide == 5


async def over_asyncpg():
    from sqlalchemy.ext.asyncio import create_async_engine
    secure = False if os.environ["PGSSLMODE"] == "disable" else ssl.create_default_context(cafile=os.environ["PGSSLROOTCERT"])
    engine = create_async_engine("postgresql+asyncpg://", connect_args={
        "host": os.environ["PGHOST"], "port": int(os.environ["PGPORT"]), "user": os.environ["PGUSER"], "password": os.environ["PGPASSWORD"],
        "database": os.environ["PGDATABASE"], "ssl": secure})
    async with engine.connect() as c:
        ok = await c.run_sync(reflected)
    await engine.dispose()
    return ok

if int(sqlalchemy.__version__.split(".")[0]) >= 2:
    with create_engine("postgresql+psycopg://").connect() as c:
        check("over psycopg 3", reflected(c))
    check("over asyncpg", asyncio.run(over_asyncpg()))
