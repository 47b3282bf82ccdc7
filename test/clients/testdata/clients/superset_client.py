"""Apache Superset against a running proxy: a database, its tables, a dataset, twenty charts and a dashboard, made by its REST API and
looked at in a headless Chromium. SUPERSET_TEMPLATE is a migrated metadata database; a screenshot goes to CLIENTS_EVIDENCE."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

import psycopg2
import requests

host = tempfile.mkdtemp(prefix="superset")
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
url = "http://127.0.0.1:%d" % port
env = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
env.update(SUPERSET_HOME=host, SUPERSET_CONFIG_PATH=os.path.join(host, "superset_config.py"), FLASK_APP="superset")


def check(what, ok):
    assert ok, what
    print("ok", what, flush=True)


def did(aspect):
    print("did", aspect, flush=True)


def spent():
    """Every balance, as the administrator sees them."""
    with psycopg2.connect("", user=os.environ["PGPOOR"], password=os.environ["PGPOOR"]) as c, c.cursor() as cur:
        cur.execute("SELECT user_name, spent FROM dp.budget ORDER BY 1")
        return cur.fetchall()


class Api:
    def __init__(self):
        self.http = requests.Session()
        token = self.call("post", "security/login", {"username": "admin", "password": "admin", "provider": "db"})["access_token"]
        self.http.headers["Authorization"] = "Bearer " + token

    def call(self, verb, path, body=None, fails=False, full=False):
        r = self.http.request(verb, url + ("" if full else "/api/v1/") + path, json=body, timeout=120)
        if fails != (r.status_code >= 400):
            raise AssertionError("%s %s: %d %s" % (verb, path, r.status_code, r.text[:2000]))
        return r.json()


def uri():
    more = "sslmode=%s" % os.environ.get("PGSSLMODE", "prefer")
    if os.environ.get("PGSSLROOTCERT"):
        more += "&sslrootcert=" + urllib.parse.quote(os.environ["PGSSLROOTCERT"])
    return "postgresql+psycopg2://%s:%s@%s:%s/%s?%s" % tuple([os.environ[k] for k in ("PGUSER", "PGPASSWORD", "PGHOST", "PGPORT", "PGDATABASE")] + [more])


def browse(api):
    """What Superset asks while a database and a dataset are set up: no charge."""
    before = spent()
    api.call("post", "database/test_connection/", {"database_name": "people", "sqlalchemy_uri": uri()})
    db = api.call("post", "database/", {"database_name": "people", "sqlalchemy_uri": uri(), "expose_in_sqllab": True,
                                        "extra": json.dumps({"allows_virtual_table_explore": True})})["id"]
    did("connects")
    schemas = api.call("get", "database/%d/schemas/" % db)["result"]
    tables = [t["value"] for t in api.call("get", "database/%d/tables/?q=(schema_name:public,force:!t)" % db)["result"]]
    check("schemas %s, tables %s" % (schemas, tables), "public" in schemas and {"people", "visits", "regions"} <= set(tables))
    for table in tables:
        columns = api.call("get", "database/%d/table_metadata/?name=%s&schema=public" % (db, table))["columns"]
        check("%s: %s" % (table, ["%(name)s %(type)s" % c for c in columns]), columns)
    dataset = api.call("post", "dataset/", {"database": db, "schema": "public", "table_name": "people"})["id"]
    api.call("put", "dataset/%d/refresh" % dataset)
    got = api.call("get", "dataset/%d" % dataset)["result"]
    check("main time column %s" % got["main_dttm_col"], got["main_dttm_col"] == "hired")
    check("a full sync leaves every balance unchanged", spent() == before)
    did("browses")
    return db, dataset


def sql(api, db, text, fails=False):
    return api.call("post", "sqllab/execute/", {"database_id": db, "sql": text, "runAsync": False, "schema": "public", "queryLimit": 1000,
                                                "client_id": str(time.time_ns())[-11:]}, fails=fails)


def ask(api, db):
    got = sql(api, db, "SELECT sex, count(*) AS n FROM people GROUP BY sex ORDER BY sex")["data"]
    check("SQL Lab %s" % got, len(got) >= 2)
    refused = sql(api, db, "SELECT * FROM visits", fails=True)["errors"][0]["message"]
    check("refusal %s" % refused, "private table" in refused and "HINT" in refused)
    plan = sql(api, db, "EXPLAIN SELECT count(*) FROM people WHERE age > 41")["data"]
    check("a plan of %d lines" % len(plan), any("Cost" in str(line) for line in plan))
    did("queries")


METRIC = {"expressionType": "SQL", "sqlExpression": "COUNT(*)", "label": "people"}
INCOME = {"expressionType": "SQL", "sqlExpression": "AVG(income)", "label": "average income"}


def chart(api, dataset, **query):
    body = dict({"filters": [], "extras": {"having": "", "where": ""}, "columns": [], "metrics": [METRIC], "orderby": [], "row_limit": 1000,
                 "order_desc": True, "annotation_layers": []}, **query)
    got = api.call("post", "chart/data", {"datasource": {"id": dataset, "type": "table"}, "force": True, "queries": [body], "form_data": {},
                                          "result_format": "json", "result_type": "full"})["result"][0]
    assert not got["error"], got["error"]
    return got["data"]


def filtered(api, dataset):
    """What a dashboard's filters make of its questions."""
    before = spent()
    regions = chart(api, dataset, columns=["region"], metrics=[])
    check("values to choose from %s" % regions, len(regions) >= 5 and spent() == before)
    month = {"columnType": "BASE_AXIS", "sqlExpression": "hired", "label": "hired", "expressionType": "SQL", "timeGrain": "P1M"}
    for query in (dict(columns=[month], granularity="hired", time_range="2024-01-01 : 2025-01-01"),
                  dict(columns=["sex"], filters=[{"col": "region", "op": "IN", "val": ["north", "south"]}, {"col": "age", "op": ">=", "val": 30},
                                                 {"col": "education", "op": "NOT IN", "val": ["none"]}, {"col": "sex", "op": "IS NOT NULL"}]),
                  dict(columns=["region"], extras={"having": "(COUNT(*) > 10)", "where": "(age > 20)"}, orderby=[[METRIC, False]], row_limit=3)):
        check("%d rows" % len(chart(api, dataset, **query)), chart(api, dataset, **query))
    did("parameters")


def bound(end):
    return {"expressionType": "SQL", "sqlExpression": "dp.%s(AVG(income))" % end, "label": end}


YEARS = {"x_axis": "hired", "time_grain_sqla": "P1Y", "row_limit": 1000}
DECADE = {"expressionType": "SQL", "sqlExpression": "age / 10 * 10", "label": "decade"}
# Names, kinds and settings as Superset's own forms save them.
CHARTS = [
    ("Everybody", "big_number_total", {"metric": METRIC, "subheader": "people"}),
    ("Hired, with its trend", "big_number", dict(YEARS, metric=METRIC, show_trend_line=True, aggregation="sum")),
    ("Hired, by year", "echarts_timeseries_line", dict(YEARS, metrics=[METRIC], groupby=["sex"])),
    ("Hired, by quarter", "echarts_area", dict(YEARS, time_grain_sqla="P3M", metrics=[METRIC], groupby=["sex"], stack="Stack")),
    ("Income and its error", "echarts_timeseries_line", dict(YEARS, metrics=[INCOME, bound("low"), bound("high")], groupby=[], y_axis_bounds=[None, None], truncateYAxis=True)),
    ("Hired in two regions", "echarts_timeseries_step", dict(YEARS, metrics=[METRIC], groupby=["region"], adhoc_filters=[
        {"expressionType": "SIMPLE", "clause": "WHERE", "subject": "region", "operator": "IN", "operatorId": "IN", "comparator": ["north", "south"]}])),
    ("People and income", "mixed_timeseries", dict(YEARS, metrics=[METRIC], groupby=[], metrics_b=[INCOME], groupby_b=[], row_limit_b=1000, seriesType="bar", yAxisIndexB=1)),
    ("By decade", "echarts_timeseries_bar", {"x_axis": DECADE, "metrics": [METRIC], "groupby": [], "row_limit": 100, "xAxisForceCategorical": True}),
    ("By sex", "pie", {"groupby": ["sex"], "metric": METRIC, "row_limit": 100}),
    ("By education", "echarts_timeseries_bar", {"x_axis": "education", "metrics": [METRIC], "groupby": ["sex"], "row_limit": 100, "stack": "Stack"}),
    ("Income, a table", "table", {"query_mode": "aggregate", "groupby": ["education"], "metrics": [METRIC, INCOME, bound("low"), bound("high")], "row_limit": 100, "order_desc": True}),
    ("Region and sex", "pivot_table_v2", {"groupbyRows": ["region"], "groupbyColumns": ["sex"], "metrics": [METRIC], "aggregateFunction": "Sum",
                                          "rowTotals": True, "colTotals": True, "row_limit": 1000}),
    ("Income over regions", "box_plot", {"columns": ["region"], "groupby": ["sex"], "metrics": [INCOME], "whiskerOptions": "Min/max (no outliers)", "row_limit": 1000}),
    ("Region by education", "heatmap_v2", {"x_axis": "region", "groupby": "education", "metric": METRIC, "row_limit": 1000, "linear_color_scheme": "superset_seq_1", "normalize_across": "heatmap"}),
    ("A tree of regions", "treemap_v2", {"groupby": ["region", "sex"], "metric": METRIC, "row_limit": 100}),
    ("Rings", "sunburst_v2", {"columns": ["sex", "education"], "metric": METRIC, "row_limit": 100, "linear_color_scheme": "superset_seq_1"}),
    ("Regions on a radar", "radar", {"groupby": ["sex"], "metrics": [METRIC, INCOME], "row_limit": 10}),
    ("A funnel", "funnel", {"groupby": ["education"], "metric": METRIC, "row_limit": 10}),
    ("Income against people", "bubble_v2", {"entity": "region", "x": METRIC, "y": INCOME, "size": METRIC, "row_limit": 100, "max_bubble_size": "25"}),
    ("Ages, row by row", "histogram_v2", {"column": "age", "groupby": [], "bins": 10, "row_limit": 1000}),
]
# What reads rows is refused, in words that can be read where the chart would stand.
REFUSED = {"Ages, row by row": "private table people"}
ACROSS = 4


def native(number, kind, name, column, dataset):
    return {"id": "NATIVE_FILTER-%d" % number, "name": name, "filterType": kind, "type": "NATIVE_FILTER", "targets": [{"datasetId": dataset, "column": {"name": column}}],
            "controlValues": {"enableEmptyFilter": False}, "defaultDataMask": {"extraFormData": {}, "filterState": {}}, "cascadeParentIds": [],
            "scope": {"rootPath": ["ROOT_ID"], "excluded": []}, "description": ""}


def dashboard(api, dataset):
    ids = []
    for name, kind, params in CHARTS:
        params = dict({"adhoc_filters": []}, **params, viz_type=kind, datasource="%d__table" % dataset)
        ids.append(api.call("post", "chart/", {"slice_name": name, "viz_type": kind, "datasource_id": dataset, "datasource_type": "table",
                                               "params": json.dumps(params)})["id"])
    rows = ["ROW-%d" % row for row in range((len(CHARTS) + ACROSS - 1) // ACROSS)]
    layout = {"DASHBOARD_VERSION_KEY": "v2", "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
              "GRID_ID": {"type": "GRID", "id": "GRID_ID", "children": rows, "parents": ["ROOT_ID"]},
              "HEADER_ID": {"type": "HEADER", "id": "HEADER_ID", "meta": {"text": "People"}}}
    for row, name in enumerate(rows):
        layout[name] = {"type": "ROW", "id": name, "children": [], "parents": ["ROOT_ID", "GRID_ID"], "meta": {"background": "BACKGROUND_TRANSPARENT"}}
        for i in range(ACROSS * row, min(ACROSS * row + ACROSS, len(CHARTS))):
            chart = "CHART-%d" % i
            layout[name]["children"].append(chart)
            layout[chart] = {"type": "CHART", "id": chart, "children": [], "parents": ["ROOT_ID", "GRID_ID", name],
                             "meta": {"chartId": ids[i], "width": 12 // ACROSS, "height": 40, "sliceName": CHARTS[i][0]}}
    filters = [native(1, "filter_select", "Region", "region", dataset), native(2, "filter_range", "Age", "age", dataset)]
    made = api.call("post", "dashboard/", {"dashboard_title": "People", "published": True, "position_json": json.dumps(layout), "json_metadata": json.dumps(
        {"refresh_frequency": 0, "native_filter_configuration": filters, "cross_filters_enabled": True})})["id"]
    for i in ids:
        api.call("put", "chart/%d" % i, {"dashboards": [made]})
    return made, ids


def crossed(api, dataset):
    """What a click on a slice of one chart asks of the others. An average of few rows may be clamped to an end of its column, which is an end of its interval then."""
    for column, value in (("sex", "Female"), ("region", "north")):
        rows = chart(api, dataset, columns=["education"], metrics=[METRIC, INCOME, bound("low"), bound("high")], filters=[{"col": column, "op": "IN", "val": [value]}])
        check("of %s: %s" % (value, rows), len(rows) >= 3 and all(r["low"] is None or r["low"] <= r["average income"] <= r["high"] > r["low"] for r in rows))


def look(number, ids, picture):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=2000,2250"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        browser.set_page_load_timeout(120)
        browser.get(url + "/login/")
        end = time.time() + 60
        while time.time() < end and not browser.find_elements(By.CSS_SELECTOR, "input[type=password]"):
            time.sleep(0.5)
        fields = browser.find_elements(By.CSS_SELECTOR, "form input:not([type=hidden])")
        fields[0].send_keys("admin")
        browser.find_element(By.CSS_SELECTOR, "input[type=password]").send_keys("admin")
        browser.find_element(By.CSS_SELECTOR, "button[type=submit], input[type=submit]").click()
        time.sleep(3)
        browser.get(url + "/superset/dashboard/%d/?standalone=1" % number)
        end, drawn, refused = time.time() + 240, {}, {}
        passes = 0 # since something stands for each: what is drawn while it is asked for may be refused yet
        while time.time() < end and passes < 5:
            time.sleep(1)
            passes = passes + 1 if len(drawn) + len(refused) == len(CHARTS) else 0
            for i, (name, _, _) in zip(ids, CHARTS):
                for holder in browser.find_elements(By.CSS_SELECTOR, "#chart-id-%d, [data-test-chart-id='%d']" % (i, i))[:1]:
                    browser.execute_script("arguments[0].scrollIntoView()", holder)
                    alerts = [e.text for e in holder.find_elements(By.CSS_SELECTOR, "[role=alert], .ant-alert-error") if e.text]
                    if alerts:
                        refused[name] = alerts[0]
                        drawn.pop(name, None) # what turned while it waited
                    elif holder.find_elements(By.CSS_SELECTOR, "svg:not([role=img]), canvas, table, .header-line") and name not in drawn:
                        drawn[name] = True
        browser.execute_script("window.scrollTo(0, 0)")
        time.sleep(4)
        browser.save_screenshot(picture)
        for name, text in refused.items(): # the words stand behind "See more"
            more = browser.find_elements(By.XPATH, "//*[contains(text(), 'See more')]")
            if more and REFUSED.get(name, "") not in text:
                browser.execute_script("arguments[0].click()", more[0])
                time.sleep(1)
                refused[name] = browser.find_element(By.TAG_NAME, "body").text
        return drawn, refused
    finally:
        browser.quit()


def main():
    shutil.copy(os.environ["SUPERSET_TEMPLATE"], os.path.join(host, "superset.db"))
    with open(env["SUPERSET_CONFIG_PATH"], "w") as f:
        f.write("SECRET_KEY = %r\nSQLALCHEMY_DATABASE_URI = 'sqlite:///%s/superset.db'\n" % (os.environ["SUPERSET_SECRET"], host) +
                "WTF_CSRF_ENABLED = False\nTALISMAN_ENABLED = False\nRATELIMIT_ENABLED = False\n")
    log = open(os.path.join(host, "log"), "w")
    server = subprocess.Popen([sys.executable, "-m", "gunicorn", "-w", "1", "-k", "gthread", "--threads", "8", "--timeout", "120", "-b", "127.0.0.1:%d" % port,
                               "superset.app:create_app()"], env=env, stdout=log, stderr=log)
    try:
        for _ in range(240):
            try:
                if requests.get(url + "/health", timeout=30).ok:
                    break
            except requests.RequestException:
                time.sleep(0.5)
        api = Api()
        print("version apache-superset", __import__("importlib.metadata", fromlist=["version"]).version("apache-superset"))
        db, dataset = browse(api)
        ask(api, db)
        filtered(api, dataset)
        made, ids = dashboard(api, dataset)
        picture = os.path.join(os.environ.get("CLIENTS_EVIDENCE", host), "superset-%s.png" % os.environ.get("CLIENTS_SIDE", "demo"))
        before = spent()

        def looked():
            drawn, refused = look(made, ids, picture)
            wrong = {name: text for name, text in refused.items() if REFUSED.get(name, "\0") not in text}
            check("%d charts drawn, %s refused, wrongly %s, missing %s" % (len(drawn), sorted(refused), wrong, {c[0] for c in CHARTS} - set(drawn) - set(refused)),
                  not wrong and set(refused) == set(REFUSED) and len(drawn) + len(refused) == len(CHARTS))

        looked()
        paid = spent()
        print("balances %s, after the dashboard %s" % (before, paid))
        looked()
        check("looked at again it costs nothing", spent() == paid)
        crossed(api, dataset)
        did("charts")
    except BaseException:
        log.flush()
        print(open(log.name).read()[-6000:], file=sys.stderr)
        raise
    finally:
        server.terminate()
        server.wait()
        if not os.environ.get("CLIENTS_KEEP"):
            shutil.rmtree(host)


main()
