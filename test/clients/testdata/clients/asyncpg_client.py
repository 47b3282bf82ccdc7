"""asyncpg against a running proxy: always the extended protocol, binary, with Flush between its messages."""
import asyncio
import datetime
import decimal
import io
import os
import ssl
import uuid

import asyncpg

args = dict(host=os.environ["PGHOST"], port=int(os.environ["PGPORT"]), user=os.environ["PGUSER"],
            password=os.environ["PGPASSWORD"], database=os.environ["PGDATABASE"])
if os.environ.get("PGSSLMODE") == "disable":
    args["ssl"] = False
else:
    args["ssl"] = ssl.create_default_context(cafile=os.environ["PGSSLROOTCERT"])


def check(what, ok):
    assert ok, what
    print("ok", what)


async def fails(code, run, hint=False):
    try:
        await run
    except asyncpg.PostgresError as e:
        assert e.sqlstate == code, (code, e.sqlstate, str(e))
        assert not hint or e.hint, ("no hint", str(e))
        print("ok", code, (e.hint or "")[:60])
        return
    raise AssertionError("no error %s" % code)


VALUES = [
    ("1::smallint", 1), ("2::int", 2), ("3::bigint", 3), ("1.5::float8", 1.5), ("1.5::real", 1.5), ("2.50::numeric(6,2)", decimal.Decimal("2.50")),
    ("'x'::text", "x"), ("'x'::varchar(3)", "x"), ("true", True), ("DATE '2024-02-03'", datetime.date(2024, 2, 3)),
    ("TIMESTAMP '2024-02-03 04:05:06'", datetime.datetime(2024, 2, 3, 4, 5, 6)),
    ("TIMESTAMPTZ '2024-02-03 04:05:06+00'", datetime.datetime(2024, 2, 3, 4, 5, 6, tzinfo=datetime.timezone.utc)),
    ("INTERVAL '1 day 2 hours'", datetime.timedelta(days=1, hours=2)), ("NULL::int", None),
    ("'6f1c2d3e-0000-4000-8000-000000000001'::uuid", uuid.UUID("6f1c2d3e-0000-4000-8000-000000000001")),
    ("ARRAY[1,2]", [1, 2]), ("ARRAY['a','b']", ["a", "b"]), ("'a'::name", "a"), ("26::oid", 26), ("'int4'::regtype", "integer"),
    ("'people'::regclass", "people"),
]


async def main():
    c = await asyncpg.connect(**args)
    told = []
    c.add_log_listener(lambda _, m: told.append(m))
    check("version", c.get_server_version()[0] == 15)
    print("version", asyncpg.__version__)
    print("did connects")
    budget = "SELECT spent FROM dp.budget WHERE user_name = current_user"
    before = await c.fetch(budget)
    rows = await c.fetch("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = $1", "people")
    check("columns", ("age", "integer") in [tuple(r) for r in rows])
    check("no rows of people", [a.name for a in (await c.prepare("SELECT * FROM people LIMIT 0")).get_attributes()][:2] == ["age", "sex"])
    check("values of a column", len(await c.fetch("SELECT DISTINCT region FROM people")) >= 5)
    check("browsing is free", before == await c.fetch(budget))
    print("did browses")
    first = await c.fetchval("SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2", 30, 40)
    check("count %s" % first, isinstance(first, int))
    check("the same again", first == await c.fetchval("SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2", 30, 40))
    check("notice", any("cost" in m.message or "free" in m.message for m in told))
    for sql, params in [
        ("SELECT count(*) FROM people WHERE sex = $1", ("Female",)),
        ("SELECT count(*) FROM people WHERE hired >= $1", (datetime.date(2020, 1, 1),)),
        ("SELECT count(*) FROM visits WHERE visited_at < $1", (datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone.utc),)),
        ("SELECT count(*) FROM people WHERE region = ANY($1)", (["north", "south"],)),
        ("SELECT count(*) FROM people WHERE age = ANY($1)", ([30, 31, 32],)),
        ("SELECT count(*) FROM people WHERE age = ANY($1::int[])", ([30, 31, 32],)),
        ("SELECT count(*) FROM people WHERE sex LIKE $1", ("F%",)),
    ]:
        check(sql, isinstance(await c.fetchval(sql, *params), int))
    print("did parameters")
    for sql, value in VALUES:
        got = await c.fetchval("SELECT " + sql)
        check("%s is %r" % (sql, got), got == value)
    rows = await c.fetch("SELECT sex, region, count(*) AS n, 1.5 AS a FROM people GROUP BY sex, region ORDER BY n DESC")
    check("rows %d" % len(rows), len(rows) >= 10 and isinstance(rows[0]["n"], int))

    s = await c.prepare("SELECT count(*) FROM people WHERE age >= $1")
    check("parameters %s" % [p.name for p in s.get_parameters()], [p.name for p in s.get_parameters()] == ["int4"])
    check("attributes", [(a.name, a.type.name) for a in s.get_attributes()] == [("count", "int8")])
    check("executed again", all([isinstance(await s.fetchval(a), int) for a in (10, 20, 30)]))
    async with c.transaction():
        got = [r["age"] async for r in c.cursor("SELECT age, count(*) FROM people GROUP BY age ORDER BY age", prefetch=25)]
        check("cursor %d" % len(got), got [:110] == list(range(110)))
        cur = await c.cursor("SELECT age, count(*) FROM people GROUP BY age ORDER BY age")
        check("fetch", len(await cur.fetch(7)) == 7 and (await cur.fetchrow())["age"] == 7)
    for options, start in ((dict(format="csv", header=True), b"age,count\n0,"), (dict(format="binary"), b"PGCOPY\n"), ({}, b"0\t")):
        data = io.BytesIO()
        tag = await c.copy_from_query("SELECT age, count(*) FROM people WHERE age >= $1 GROUP BY age ORDER BY age", 0, output=data, **options)
        check("copy_from_query %s %s" % (options, tag), data.getvalue().startswith(start) and tag.startswith("COPY "))
    print("did queries")
    check("executemany", await c.executemany("SELECT count(*) FROM people WHERE age < $1", [(50,), (51,)]) is None)

    await fails("42703", c.fetch("SELECT count(*) FROM people WHERE wage > $1", 1))
    await fails("42P01", c.fetch("SELECT count(*) FROM nobody"))
    await fails("42501", c.fetch("SELECT age FROM people"), hint=True)
    await fails("DP002", c.fetch("SELECT corr(DISTINCT age, income) FROM people"), hint=True)
    before = await c.fetchval("SELECT spent FROM dp.budget WHERE user_name = current_user")
    t = c.transaction(isolation="serializable", readonly=True)
    await t.start()
    await c.fetch("SELECT count(*) FROM people WHERE hired > DATE '2005-01-03' + 10 * %s" % os.environ.get("CLIENTS_RUN", 0))
    try:
        async with c.transaction():
            await c.fetch("SELECT nothing FROM people")
    except asyncpg.UndefinedColumnError:
        pass
    check("savepoint", await c.fetchval("SELECT 1") == 1)
    await t.rollback()
    check("a rollback gives nothing back", before < await c.fetchval("SELECT spent FROM dp.budget WHERE user_name = current_user"))
    check("script", await c.execute("SET dp.epsilon = 0.2; SELECT count(*) FROM people WHERE age < 33") == "SELECT 1")
    try:
        await c.fetch("SELECT count(*) FROM people WHERE age < 34", timeout=0.000001)
    except asyncio.TimeoutError:
        pass
    for wait in (0.2, 0.5, 0.1, 1, 0.05):  # until one falls into the middle
        many = ";".join("SELECT count(*) FROM people WHERE hired < DATE '2017-01-01' + %d" % (i + 1000 * wait) for i in range(400))
        try:
            await c.execute("SET dp.epsilon = 0.001; " + many, timeout=wait)
        except asyncio.TimeoutError:
            print("did cancels")
            break
    check("after a cancel", await c.fetchval("SELECT 2") == 2)
    check("settings", await c.fetchval("SELECT current_setting('jit')") in ("on", "off"))
    types = await c.fetch("SELECT typname, oid, typtype FROM pg_catalog.pg_type WHERE typname = 'int4'")
    check("pg_type", types[0]["oid"] == 23 and types[0]["typtype"] == b"b")
    async with c.transaction():
        cursor = await c.cursor("SELECT age, count(*) FROM people WHERE age > $1 GROUP BY age ORDER BY age", 20)
        check("forward", await cursor.forward(5) == 5 and (await cursor.fetchrow())[0] == 26)
    out = io.BytesIO()
    tag = await c.copy_from_query("SELECT sex, count(*) FROM people WHERE age > $1 GROUP BY sex", 30, output=out, format="csv", header=True)
    check("copy " + tag, out.getvalue().startswith(b"sex,count\n") and tag.startswith("COPY "))
    await c.reset()
    await c.close()

    poor = await asyncpg.connect(**dict(args, user=os.environ["PGPOOR"], password=os.environ["PGPOOR"]))
    await poor.execute("SET dp.epsilon = 1")

    async def spend():
        for age in range(60, 64):
            await poor.fetch("SELECT count(*) FROM people WHERE hired <> $1", datetime.date(2020, 1, age - 50))
    await fails("DP001", spend(), hint=True)
    await poor.close()
    await fails("28P01", asyncpg.connect(**dict(args, password="wrong")))
    async with asyncpg.create_pool(min_size=2, max_size=3, **args) as pool:
        got = await asyncio.gather(*[pool.fetchval("SELECT count(*) FROM people WHERE age > $1", 40 + i % 3) for i in range(9)])
        check("pool", len(got) == 9)


asyncio.run(main())
