"""Django's own ORM and inspectdb, over psycopg 3, against a running proxy."""
import io
import os
import sys
import types
import warnings

import django
from django.conf import settings

warnings.simplefilter("ignore")


def database(**options):
    return {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"], "USER": os.environ["PGUSER"], "PASSWORD": os.environ["PGPASSWORD"],
            "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"],
            "OPTIONS": {"sslmode": os.environ["PGSSLMODE"], "sslrootcert": os.environ["PGSSLROOTCERT"], **options}}


# inspectdb reads a row of each table; under dp.probes there is none. The application has no need of it, and .exists() would be False.
settings.configure(INSTALLED_APPS=[], USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.AutoField",
                   DATABASES={"default": database(), "inspected": database(options="-c dp.probes=empty")})
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection, connections, models  # noqa: E402
from django.db.models import Avg, Case, Count, Q, StdDev, Sum, Value, When  # noqa: E402
from django.db.models.functions import ExtractYear, TruncYear  # noqa: E402
from django.db.utils import DatabaseError  # noqa: E402


def check(what, ok):
    assert ok, what
    print("ok", what)


def refused(what, ask, words):
    try:
        got = ask()
    except DatabaseError as e:
        check("%s: %s" % (what, str(e).splitlines()[0]), words in str(e) and "HINT" in str(e))
    else:
        raise AssertionError("%s answered %s" % (what, got))


def spent():
    with connection.cursor() as c:
        c.execute("SELECT spent FROM dp.budget WHERE user_name = current_user")
        return c.fetchall()


print("version", django.__version__)
before = spent()
check("server", connection.pg_version >= 150000)
print("did connects")

out = io.StringIO()
call_command("inspectdb", database="inspected", stdout=out)
text = out.getvalue()
check("inspectdb", text.count("class ") >= 2 * 6 and "Unable to inspect" not in text)
tables = connection.introspection.table_names()
check("tables %s" % tables, {"people", "visits", "regions"} <= set(tables))
with connections["inspected"].cursor() as c:
    for t in tables:
        check("columns of %s" % t, connection.introspection.get_table_description(c, t) != [])
        keys, relations = connection.introspection.get_constraints(c, t).values(), connection.introspection.get_relations(c, t)
        check("keys of %s" % t, [k["columns"] for k in keys if k["primary_key"]] == ([["person_id"]] if t in ("people", "bids", "likes") else [])
              and set(relations.values()) <= {("person_id", "people")} and connection.introspection.get_sequences(c, t) == [])

# The models are those that inspectdb wrote.
module = types.ModuleType("demo")
sys.modules["demo"] = module
lines = [line for line in text.splitlines() if not line.startswith("#")]
exec("\n".join(lines).replace("        managed = False", "        managed = False\n        app_label = 'demo'"), module.__dict__)
People, Regions = module.People, module.Regions
check("types", isinstance(People._meta.get_field("age"), models.IntegerField) and isinstance(People._meta.get_field("hired"), models.DateField))
check("browsing is free", spent() == before)
print("did browses")

adults = People.objects.filter(age__gte=30)
check("count", isinstance(adults.count(), int))
by_sex = list(adults.values("sex").annotate(n=Count("*"), income=Avg("income")).order_by("-n"))
check("values and annotate %s" % by_sex, len(by_sex) == 2 and by_sex[0]["n"] >= by_sex[1]["n"])
years = list(People.objects.annotate(year=TruncYear("hired")).values("year").annotate(n=Count("*")).order_by("year"))
check("TruncYear %s" % len(years), len(years) > 3)
check("ExtractYear", len(list(People.objects.values(y=ExtractYear("hired")).annotate(n=Count("*")))) > 3)
totals = People.objects.aggregate(n=Count("*"), total=Sum("income"), women=Count("age", filter=Q(sex="Female")), spread=StdDev("income"))
check("aggregate %s" % totals, totals["n"] > totals["women"] > 0)
bands = list(People.objects.annotate(band=Case(When(age__lt=30, then=Value("young")), default=Value("old"))).values("band").annotate(n=Count("*")))
check("Case %s" % bands, {b["band"] for b in bands} == {"young", "old"})
check("having", len(list(People.objects.values("region").annotate(n=Count("*")).filter(n__gt=10))) > 0)
check("in, range, isnull, not", isinstance(People.objects.filter(region__in=["north", "south"], age__range=(20, 40), hired__isnull=False).exclude(sex="Male").count(), int))
check("iterator", len(list(People.objects.values("age").annotate(n=Count("*")).order_by("age").iterator(chunk_size=20))) > 100)
check("distinct", len(list(People.objects.values_list("region", flat=True).distinct())) > 2)
print("did queries")
check("dates", isinstance(People.objects.filter(hired__lt="2020-01-01", sex__startswith="F", education__icontains="e").count(), int))
print("did parameters")

# inspectdb gives a table without a key an id that it does not have; a model is told its key by hand, as for any table without one.
Codes = type("Codes", (models.Model,), {"__module__": "demo", "code": models.TextField(primary_key=True), "name": models.TextField(),
                                        "Meta": type("Meta", (), {"managed": False, "db_table": "regions", "app_label": "demo"})})
check("a public table", Codes.objects.count() == len(Codes.objects.all()) > 2 and Codes.objects.order_by("code").first().name != "")
check("a public table's exists", Codes.objects.exists() and not Codes.objects.filter(code="nowhere").exists())
if os.environ.get("DJANGO_TRY"):
    for what, ask in [("exists", lambda: adults.exists()), ("first", lambda: People.objects.values("age").order_by("age").first()), ("max", lambda: People.objects.aggregate(Max("age")))]:
        try:
            print(what, ask())
        except Exception as e:
            print(what, e)
refused("exists", adults.exists, "rows of private table people cannot be read")
refused("first", People.objects.values("age").first, "rows of private table people cannot be read")
refused("rows", lambda: list(People.objects.values("age")[:5]), "rows of private table people cannot be read")
check("the connection stays", isinstance(People.objects.count(), int))
