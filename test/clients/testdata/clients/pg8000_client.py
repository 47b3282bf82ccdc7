"""pg8000, and SQLAlchemy over it, against a running proxy: parameters in the extended protocol, prepared statements, notices, errors, reflection."""
import datetime
import os
import ssl

import pg8000
import pg8000.dbapi
import pg8000.native


def check(what, ok):
    assert ok, what
    print("ok", what)


secure = None if os.environ["PGSSLMODE"] == "disable" else ssl.create_default_context(cafile=os.environ["PGSSLROOTCERT"])
at = {"host": os.environ["PGHOST"], "port": int(os.environ["PGPORT"]), "database": os.environ["PGDATABASE"], "user": os.environ["PGUSER"],
      "password": os.environ["PGPASSWORD"], "ssl_context": secure}
print("version", pg8000.__version__)
c = pg8000.native.Connection(**at)
spent = lambda: c.run("SELECT spent FROM dp.budget WHERE user_name = current_user")
before = spent()
print("did connects")

columns = dict(c.run("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = :t", t="people"))
check("columns", columns["age"] == "integer" and columns["hired"] == "date")
check("a boolean over catalogs", c.run("SELECT relname FROM pg_class WHERE relname = :n AND relhasrules = :b", n="regions", b=False) == [["regions"]])
check("a boolean over a public table", c.run("SELECT count(*) FROM regions WHERE (area_km2 > :a) = :b", a=1, b=True) == [[5]])
check("browsing is free", spent() == before)
print("did browses")

check("numbers and texts", c.run("SELECT count(*) FROM people WHERE age >= :a AND sex = :s", a=30, s="Female")[0][0] > 0)
check("notices", any(b"cost" in n.get(b"M", b"") or b"free" in n.get(b"M", b"") for n in c.notices))
check("a boolean", c.run("SELECT count(*) FROM people WHERE (age >= 30) = :b", b=True)[0][0] > 0)
check("a date", c.run("SELECT count(*) FROM people WHERE hired < :d", d=datetime.date(2024, 1, 1))[0][0] > 0)
check("a moment", c.run("SELECT count(*) FROM visits WHERE visited_at < :d", d=datetime.datetime(2025, 1, 1))[0][0] > 0)
check("a list", c.run("SELECT count(*) FROM people WHERE region = ANY(:r)", r=["north", "south"])[0][0] > 0)
check("NULL", c.run("SELECT :x::int IS NULL", x=None) == [[True]])
s = c.prepare("SELECT count(*) FROM people WHERE age > :a")
check("prepared", s.run(a=20)[0][0] > s.run(a=60)[0][0] > 0)
s.close()
print("did parameters")
for sql, state in ("SELECT count(*) FROM nobody", "42P01"), ("SELECT age FROM people", "42501"), ("SELECT count(*) FROM people WHERE wage > 1", "42703"):
    try:
        c.run(sql)
    except pg8000.exceptions.DatabaseError as e:
        check(state, e.args[0]["C"] == state)
    else:
        raise AssertionError(sql)
c.close()

d = pg8000.dbapi.connect(**at)
cursor = d.cursor()
cursor.execute("SELECT age, count(*) FROM people WHERE age < %s GROUP BY age ORDER BY age", (10,))
check("rows", [r[0] for r in cursor.fetchall()] == list(range(10)) and [x[0] for x in cursor.description] == ["age", "count"])
d.rollback()
d.close()
print("did queries")

try:
    from sqlalchemy import MetaData, create_engine, func, select, text
except ImportError:
    pass
else:
    with create_engine("postgresql+pg8000://", creator=lambda: pg8000.dbapi.connect(**at)).connect() as c:
        m = MetaData()
        m.reflect(c)
        check("reflected by SQLAlchemy", {"people", "visits", "regions"} <= set(m.tables) and str(m.tables["people"].c.hired.type) == "DATE")
        check("counted by SQLAlchemy", c.execute(select(func.count()).select_from(m.tables["people"]).where(m.tables["people"].c.age > 30)).scalar() > 0)
        check("a boolean of SQLAlchemy's", c.execute(text("SELECT count(*) FROM regions WHERE (area_km2 > :a) = :b"), {"a": 1, "b": True}).scalar() == 5)
