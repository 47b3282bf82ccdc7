"""SQLAlchemy over psycopg2, and pandas where it is installed, against a running proxy."""
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
check("keys", i.get_pk_constraint("people")["constrained_columns"] == [] and i.get_foreign_keys("visits") == [] and i.get_indexes("people") == []
      and i.get_check_constraints("people") == [] and i.get_unique_constraints("people") == [])
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
