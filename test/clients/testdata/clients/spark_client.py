"""Spark's JDBC source and catalog against a running proxy: schemas, public tables in partitions, counts that Spark pushes down, private rows refused."""
import os

import pyspark
from pyspark.sql import SparkSession


def check(what, ok):
    assert ok, what
    print("ok", what)


def refused(what, frame):
    try:
        frame().collect()
    except Exception as e:
        check(what, "cannot be read" in str(e) and "pushDownAggregate" in str(e))
    else:
        raise AssertionError(what)


url = "jdbc:postgresql://%s:%s/%s?sslmode=%s" % tuple(os.environ[v] for v in ("PGHOST", "PGPORT", "PGDATABASE", "PGSSLMODE"))
if os.environ["PGSSLMODE"] != "disable":
    url += "&sslrootcert=" + os.environ["PGSSLROOTCERT"]
login = {"url": url, "user": os.environ["PGUSER"], "password": os.environ["PGPASSWORD"], "driver": "org.postgresql.Driver"}
build = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1") \
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").config("spark.jars", os.environ["CLIENTS_PGJDBC"]) \
    .config("spark.sql.catalog.pg", "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog")
for name, value in login.items():
    build = build.config("spark.sql.catalog.pg." + name, value)
spark = build.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
print("version", pyspark.__version__)


def read(**options):
    return spark.read.format("jdbc").options(**login, **options).load()


def spent():
    return spark.sql("SELECT spent FROM pg.dp.budget WHERE user_name = 'analyst'").collect()


before = spent()
print("did connects")
tables = {r.tableName for r in spark.sql("SHOW TABLES IN pg.public").collect()}
check("tables %s" % tables, tables == {"people", "visits", "regions", "bids", "likes", "prices"})
types = dict(read(dbtable="people").dtypes)
check("schema %s" % types, types["age"] == "int" and types["hired"] == "date")
check("a public table", read(dbtable="regions").count() == 5)
check("in partitions", read(dbtable="regions", partitionColumn="area_km2", lowerBound=0, upperBound=70000, numPartitions=2).count() == 5)
check("a condition that is pushed down", [r.name for r in read(dbtable="regions").where("area_km2 > 40000").orderBy("area_km2").collect()] == ["Southern coast", "Northern plain"])
check("browsing is free", spent() == before)
print("did browses")

sexes = read(query="SELECT sex, count(*) AS n FROM people WHERE age >= 30 GROUP BY sex").collect()
check("a query's groups", len(sexes) >= 2 and all(r.n > 0 for r in sexes))
check("a boolean", read(query="SELECT count(*) AS n FROM people WHERE (age >= 30) = true").collect()[0].n > 0)
check("counts pushed down", len(spark.sql("SELECT sex, count(*) FROM pg.public.people GROUP BY sex").collect()) >= 2)
check("a mean pushed down", 20 < spark.sql("SELECT avg(age) AS a FROM pg.public.people WHERE sex = 'Female'").collect()[0].a < 60)
check("joined with a public table", len(spark.sql("""SELECT r.name, n FROM pg.public.regions r
    JOIN (SELECT region, count(*) AS n FROM pg.public.people GROUP BY region) p ON p.region = r.code""").collect()) == 5)
# Without the catalog Spark counts the rows that it reads, and none are sent.
refused("rows are refused", lambda: read(dbtable="people").limit(3))
refused("groups of rows are refused", lambda: read(dbtable="people").groupBy("sex").count())
print("did queries")
spark.stop()
