"""pgAdmin 4 against a running proxy. Its own server, with a SQLite and a home that are thrown away, is walked through its HTTP interface:
every node of the tree and every tab of each, dashboards, Search Objects, the query tool, View Data, an ERD. Then a headless Chromium
does what a person would, and leaves screenshots in CLIENTS_EVIDENCE. CLIENTS_STATEMENTS names a file for the statements it sent."""
import html
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import psycopg
import requests

home = tempfile.mkdtemp(prefix="pgadmin")
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
url = "http://127.0.0.1:%d" % port
log = os.path.join(home, "server.log")
EMAIL, PASSWORD = "ada@example.org", "thrown away"

# pgAdmin's configuration is a module; what names a folder is pointed to the home, and statements are logged (level 25).
LAUNCHER = """
import builtins, os, runpy, sys
builtins.SERVER_MODE = True
home, port, package = sys.argv[1:]
sys.path.insert(0, package)
os.chdir(package)
import config
for name, value in list(vars(config).items()):
    if isinstance(value, str) and value.startswith(("/var/lib/pgadmin", "/var/log/pgadmin")):
        setattr(config, name, home + value)
        os.makedirs(os.path.dirname(home + value), exist_ok=True)
config.DEFAULT_SERVER_PORT, config.UPGRADE_CHECK_ENABLED, config.FILE_LOG_LEVEL, config.CONSOLE_LOG_LEVEL = int(port), False, 25, 40
sys.argv = ["pgAdmin4.py"]
runpy.run_path("pgAdmin4.py", run_name="__main__")
"""


def check(what, ok):
    assert ok, what
    print("ok", what, flush=True)


def did(aspect):
    print("did", aspect, flush=True)


def spent():
    """Every balance, as the administrator sees them."""
    with psycopg.connect("", user=os.environ["PGPOOR"], password=os.environ["PGPOOR"]) as c:
        return c.execute("SELECT user_name, spent FROM dp.budget ORDER BY 1").fetchall()


def package():
    import importlib.util
    return list(importlib.util.find_spec("pgadmin4").submodule_search_locations)[0]


class Api:
    """pgAdmin's HTTP interface, as its pages use it."""

    def __init__(self):
        self.http = requests.Session()
        self.faults, self.tabs = [], 0
        page = self.http.get(url + "/login", timeout=60).text
        token = re.search(r'"?csrfToken"?: ?"([^"]+)"|name="csrf_token"[^>]*value="([^"]+)"', html.unescape(page))
        token = token[1] or token[2]
        r = self.http.post(url + "/authenticate/login", data={"email": EMAIL, "password": PASSWORD, "csrf_token": token, "internal_button": "Login"}, timeout=60)
        assert r.ok, r.text[:1000]
        script = self.http.get(url + "/browser/js/utils.js", timeout=60).text
        self.http.headers["X-pgA-CSRFToken"] = re.search(r"pgAdmin\['csrf_token'\] = '([^']+)'", script)[1]

    def call(self, verb, path, body=None, may_fail=False):
        r = self.http.request(verb, url + path, json=body, timeout=180)
        try:
            answer = r.json()
        except ValueError:
            answer = {"text": r.text}
        if r.status_code >= 400 and not may_fail:
            raise AssertionError("%s %s: %d %s" % (verb, path, r.status_code, r.text[:3000]))
        return answer

    def tab(self, kind, aspect, ids, ends=""):
        """One tab of a node; nothing where pgAdmin has none."""
        r = self.http.get("%s/browser/%s/%s/%s%s" % (url, kind, aspect, "/".join(map(str, ids)), ends), timeout=180)
        if r.status_code in (404, 405) and "errormsg" not in r.text or r.status_code == 406 and "Unimplemented method" in r.text:
            return None
        self.tabs += 1
        if r.status_code >= 400:
            self.faults.append("%s %s %s: %d %s" % (kind, aspect, ids, r.status_code, r.text[:600]))
            return None
        try:
            return r.json()
        except ValueError:
            return r.text


class Walk:
    """The tree: a node's children are collections or nodes, a collection's are nodes."""

    def __init__(self, api, sample):
        self.api, self.sample, self.seen = api, sample, {}

    def node(self, kind, ids, label, narrow=False):
        self.seen.setdefault(kind, []).append(label)
        for aspect in ("obj", "sql", "stats", "dependency", "dependent"):
            got = self.api.tab(kind, aspect, ids)
        if kind == "database":
            self.database = ids[-1]
        if kind == "table" and label == "people":
            self.people = ids[-1]
        for child in self.listed(self.api.tab(kind, "children", ids)):
            if child["_type"].startswith("coll-"):
                self.collection(child["_type"][len("coll-"):], ids, narrow or kind == "catalog")
            else:
                self.node(child["_type"], ids + [child["_id"]], child["label"], narrow)

    def collection(self, kind, ids, narrow):
        self.seen.setdefault("coll-" + kind, []).append("")
        for aspect in ("obj", "stats"):
            self.api.tab(kind, aspect, ids, "/")
        nodes = self.listed(self.api.tab(kind, "nodes", ids, "/"))
        for node in nodes[:self.sample] if narrow else nodes:
            if kind == "database" and node["label"] != os.environ["PGDATABASE"]:
                continue
            self.node(node["_type"], ids + [node["_id"]], node["label"], narrow)

    def listed(self, answer):
        if not isinstance(answer, dict):
            return []
        data = answer.get("data", answer)
        return [n for n in (data if isinstance(data, list) else [data]) if isinstance(n, dict) and "_type" in n]


def register(api, name, first=""):
    """Register → Server; what each of its connections sends first stands among the advanced parameters."""
    params = [{"name": "sslmode", "value": os.environ.get("PGSSLMODE", "prefer"), "keyword": "sslmode"},
              {"name": "connect_timeout", "value": 30, "keyword": "connect_timeout"}]
    got = api.call("post", "/browser/server/obj/1/", {
        "name": name, "gid": 1, "post_connection_sql": first, "host": os.environ["PGHOST"], "port": int(os.environ["PGPORT"]), "db": os.environ["PGDATABASE"],
        "username": os.environ["PGUSER"], "password": os.environ["PGPASSWORD"], "save_password": True, "connect_now": False, "comment": "", "connection_params": params})
    return int(got["node"]["_id"])


def sent():
    """pgAdmin's log: the statements that it sent, and what it made of the answers."""
    names = [os.path.join(d, f) for d, _, files in os.walk(home) for f in files if f.startswith("pgadmin4.log")]
    return "".join(open(n, errors="replace").read() for n in names)


def tools(api, sid, db):
    """Dashboards, Search Objects and what an ERD begins with: catalogs, which cost nothing."""
    charts = "session_stats,tps_stats,ti_stats,to_stats,bio_stats"
    for path in ("dashboard_stats/%d?chart_names=" + charts, "dashboard_stats/%d/{0}?chart_names=".format(db) + charts, "activity/%d", "activity/%d/{0}".format(db),
                 "locks/%d", "locks/%d/{0}".format(db), "prepared/%d", "prepared/%d/{0}".format(db), "config/%d", "replication_stats/%d", "replication_slots/%d",
                 "check_extension/system_statistics/%d"):
        got = api.call("get", "/dashboard/" + path % sid)
        check("dashboard %s: %.60s" % (path.split("?")[0] % sid, got), got is not None)
    found = api.call("get", "/search_objects/search/%d/%d?text=people&type=all" % (sid, db))["data"]
    check("Search Objects: %s" % sorted({o["type"] for o in found}), "table" in {o["type"] for o in found})
    kinds = api.call("get", "/search_objects/types/%d/%d" % (sid, db))["data"]
    for kind in kinds:
        api.call("get", "/search_objects/search/%d/%d?text=e&type=%s" % (sid, db, kind))
    check("Search Objects of %d kinds" % len(kinds), kinds)
    api.call("post", "/erd/initialize/7/1/%d/%d" % (sid, db), {})
    got = api.call("get", "/erd/prequisite/7/1/%d/%d" % (sid, db))["data"]
    check("an ERD's %d types, schemas %s" % (len(got["col_types"]), [s["name"] for s in got["schemas"]]), got["schemas"])
    api.call("get", "/schema_diff/initialize/8")
    got = api.call("get", "/schema_diff/schemas/%d/%d" % (sid, db))["data"]
    check("Schema Diff: %s" % [s["label"] for s in got], got)


def polled(api, number):
    """The answer that a tab waits for."""
    for _ in range(600):
        got = api.call("get", "/sqleditor/poll/%d" % number, may_fail=True)
        if (got.get("data") or {}).get("status") != "Busy":
            return got
        time.sleep(0.1)
    raise AssertionError("no answer")


class Query:
    """A tab of the query tool."""

    def __init__(self, api, sid, db, number):
        self.api, self.number = api, number
        api.call("post", "/sqleditor/initialize/sqleditor/%d/1/%d/%d" % (number, sid, db), {"dbname": os.environ["PGDATABASE"]})

    def ask(self, sql, **plan):
        body = {"sql": sql, "explain_plan": plan or None}
        got = self.api.call("post", "/sqleditor/query_tool/start/%d" % self.number, body)
        assert got["data"]["status"] is not False, got
        return polled(self.api, self.number)


def ask(api, sid, db):
    query = Query(api, sid, db, 4001)
    got = query.ask("SELECT sex, count(*) AS n FROM people GROUP BY sex ORDER BY sex")["data"]
    check("the query tool: %s of %s, %r" % (got["result"], [c["name"] for c in got["colinfo"]], got["additional_messages"]),
          got["rows_affected"] >= 2 and "error ±" in got["additional_messages"])
    got = query.ask("SELECT * FROM visits")
    check("a refusal: %s" % got["errormsg"], "private table" in got["errormsg"] and "HINT" in got["errormsg"])
    got = query.ask("SELECT count(*) FROM people WHERE age > 41 AND income < 41414", format="json", analyze=False, verbose=True, costs=True, buffers=False, timing=False)
    plan = json.loads(got["data"]["result"][0][0])[0]
    check("Explain: %s" % sorted(plan["Plan"]), "ε" in plan["Plan"]["Cost"] and plan["Plan"]["Plans"][0]["Node Type"] == "Aggregate")
    api.call("get", "/sqleditor/status/4001")
    api.call("post", "/sqleditor/autocomplete/4001", ["SELECT * FROM pe", "SELECT * FROM pe"])
    query.ask("BEGIN")
    query.ask("ROLLBACK")
    got = api.call("get", "/sqleditor/new_connection_database/1/%d" % sid)
    api.call("get", "/sqleditor/new_connection_user/1/%d" % sid)
    api.call("get", "/sqleditor/new_connection_role/1/%d" % sid)
    api.call("delete", "/sqleditor/close/4001")
    did("queries")


def view(api, sid, db, table, number):
    """View/Edit Data → All Rows."""
    api.call("post", "/sqleditor/initialize/viewdata/%d/3/table/1/%d/%d/%d" % (number, sid, db, table), {"dbname": os.environ["PGDATABASE"]})
    got = api.call("get", "/sqleditor/view_data/start/%d" % number)["data"]
    if got["status"] is False:
        return got["result"], None
    got = polled(api, number)
    return got["errormsg"], got["data"]


def views(api, sid, db, table):
    refused, _ = view(api, sid, db, table, 4002)
    check("View Data: %s" % refused, "private table" in refused and "HINT" in refused)
    probing = register(api, "probing", "SET dp.probes = empty")
    api.call("post", "/browser/server/connect/1/%d" % probing, {"password": os.environ["PGPASSWORD"]})
    api.call("post", "/browser/database/connect/1/%d/%d" % (probing, db))
    fault, got = view(api, probing, db, table, 4003)
    check("View Data under dp.probes: columns %s, rows %s" % ([c["name"] for c in got["colinfo"]], got["result"]), not fault and got["colinfo"] and (not got["result"] or isinstance(got["result"], str)))  # rows are a list


class Browser:
    """A headless Chromium before pgAdmin's pages."""

    def __init__(self):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        from selenium.webdriver.common.by import By
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys
        self.By, self.Keys, self.chain = By, Keys, ActionChains
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1500,1300"):
            options.add_argument(flag)
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_page_load_timeout(120)
        self.shots = 0

    def all(self, css):
        return [e for e in self.driver.find_elements(self.By.CSS_SELECTOR, css) if e.is_displayed()]

    def until(self, what, find, seconds=30):
        end, last = time.time() + seconds, None
        while time.time() < end:
            try:
                last = find()
                if last:
                    return last
            except Exception as e:  # a page is drawn anew beneath us
                last = e
            time.sleep(0.3)
        raise AssertionError("%s was not seen: %r" % (what, last))

    def text(self, words, css="body"):
        return self.until(words, lambda: [e for e in self.all(css) if words in e.text])

    def shot(self, name):
        self.shots += 1
        self.driver.save_screenshot(os.path.join(os.environ.get("CLIENTS_EVIDENCE", home), "pgadmin-%s-%02d-%s.png" % (
            os.environ.get("CLIENTS_SIDE", "demo"), self.shots, name)))

    def click(self, label):
        """Clicks what has this title, label or text."""
        def find():
            for e in self.driver.find_elements(self.By.XPATH, "//*[@aria-label=%r or @title=%r or @data-label=%r or (self::button or @role='menuitem' or @role='tab' or contains(@class, 'dock-tab-btn')) and normalize-space(.)=%r]" % ((label,) * 4)):
                if e.is_displayed():
                    e.click()
                    return True
        self.until(label, find)

    def tab(self, label, *words):
        """Opens a tab that shows one of these words, again where a slow page took no notice."""
        clicked = 0
        def opened():
            nonlocal clicked
            if time.time() > clicked + 15:
                clicked = time.time()
                self.click(label)
            return any(w in e.text for w in words for e in self.all("body"))
        self.until(words[0], opened, 90)

    def found(self, label):
        """Nodes of the tree; a collection's label ends in how many it has."""
        return [e for e in self.all("span.file-name") if re.sub(r" \(\d+\)$", "", e.text.strip()) == label]

    def open(self, label, following):
        """Opens a node of the tree, again where a slow page took no notice; what is open already would be closed."""
        clicked = 0
        def opened():
            nonlocal clicked
            if self.found(following):
                return True
            nodes = self.found(label)
            if nodes and time.time() > clicked + 10:
                clicked = time.time()
                self.chain(self.driver).double_click(nodes[0]).perform()
        self.until(following, opened, 90)

    def node(self, *path):
        """Opens the tree down to a node and clicks it."""
        for label, following in zip(path, path[1:]):
            self.open(label, following)
        self.until(path[-1], lambda: self.found(path[-1]))[0].click()

    def tool(self, button):
        """Opens a tool from the tree's buttons, which a node that was just chosen enables, and steps into its tab, a document of its own."""
        frames = lambda: [f for f in self.driver.find_elements(self.By.TAG_NAME, "iframe") if f.is_displayed()]
        before = frames()
        def opened():
            now = [f for f in frames() if f not in before]
            if now:
                self.driver.switch_to.frame(now[-1])
                return True
            buttons = [e for e in self.all("button[data-label=%r]" % button) if e.is_enabled()]
            if buttons and time.time() > self.clicked + 8:
                self.clicked = time.time()
                buttons[0].click()
        self.clicked = 0
        time.sleep(1)
        self.until(button, opened)
        self.until(button, lambda: self.all("button"))

    def write(self, sql):
        editor = self.until("an editor", lambda: self.all(".cm-content[contenteditable=true]"))[0]
        editor.click()
        editor.send_keys(self.Keys.CONTROL + "a")
        editor.send_keys(self.Keys.DELETE)
        editor.send_keys(sql)
        editor.send_keys(self.Keys.ESCAPE)

    def unharmed(self, what):
        faults = [e.text for e in self.all("[role=alert], .MuiAlert-root, .notistack-SnackbarContainer") if e.text]
        check("screen %s, alerts %s" % (what, faults), not faults)


def look(browser):
    """What a person sees: each screen is named by what must stand on it."""
    browser.driver.get(url + "/login")
    fields = browser.until("log in", lambda: len(browser.all("input")) >= 2 and browser.all("input"))
    fields[0].send_keys(EMAIL)
    fields[1].send_keys(PASSWORD)
    browser.click("Login")
    browser.until("the tree", lambda: browser.all("span.file-name"))
    browser.open("Servers", "proxy")
    browser.chain(browser.driver).double_click(browser.found("proxy")[0]).perform()
    password = browser.until("a password", lambda: browser.all("input[type=password]"))
    password[0].send_keys(os.environ["PGPASSWORD"])
    browser.click("OK")
    browser.until("databases", lambda: browser.found("Databases"))
    browser.node("proxy", "Databases", os.environ["PGDATABASE"], "Schemas", "public", "Tables", "people", "Columns")
    browser.open("Columns", "income")
    browser.shot("tree")
    browser.node("people")
    # A table depends on its schema where the sandbox says so; keys of other tables depend on it.
    for tab, *words in (("Properties", "Comment"), ("SQL", "CREATE TABLE"), ("Statistics", "Value"),
                        ("Dependencies", "Restriction", "No dependency information"), ("Dependents", "Foreign key")):
        browser.tab(tab, *words)
        time.sleep(2)
        browser.shot(tab.lower())
        browser.unharmed(tab)
    browser.node("proxy")
    browser.click("Dashboard")
    for tab, words in (("Activity", "Server sessions"), ("State", os.environ["PGUSER"]), ("Configuration", "application_name")):
        browser.tab(tab, words)
        time.sleep(2)
        browser.shot("dashboard-" + tab.lower())
        browser.unharmed(tab)
    browser.node("people")
    browser.tool("Query Tool")
    browser.write("SELECT education, count(*) AS n, round(avg(income)) AS income FROM people GROUP BY education ORDER BY n DESC")
    browser.click("Execute script")
    browser.text("Query complete")
    time.sleep(2)
    browser.shot("query")
    browser.click("Messages")
    browser.text("n ±")
    browser.shot("notice")
    browser.write("SELECT * FROM people WHERE age > 90")
    browser.click("Execute script")
    browser.text("rows of private table people cannot be read")
    browser.shot("refusal")
    browser.write("SELECT sex, count(*) FROM people WHERE age > 41 GROUP BY sex")
    browser.click("Explain")
    browser.text("Aggregate")
    browser.shot("explain")
    browser.click("Analysis")
    browser.text("Node")
    browser.shot("explain-analysis")


def main():
    env = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    env.update(HOME=home, PGADMIN_SETUP_EMAIL=EMAIL, PGADMIN_SETUP_PASSWORD=PASSWORD, PYTHONWARNINGS="ignore")
    if os.environ.get("PGSSLROOTCERT"):  # where libpq looks for it
        os.mkdir(os.path.join(home, ".postgresql"))
        shutil.copy(os.environ["PGSSLROOTCERT"], os.path.join(home, ".postgresql", "root.crt"))
    with open(log, "w") as out:
        server = subprocess.Popen([sys.executable, "-c", LAUNCHER, home, str(port), package()], env=env, stdout=out, stderr=out)
    try:
        for _ in range(240):
            try:
                if requests.get(url + "/misc/ping", timeout=30).ok:
                    break
            except requests.RequestException:
                assert server.poll() is None, "pgAdmin did not start"
                time.sleep(0.5)
        print("version pgadmin4", __import__("importlib.metadata", fromlist=["version"]).version("pgadmin4"))
        before = spent()
        api = Api()
        sid = register(api, "proxy")
        api.call("post", "/browser/server/connect/1/%d" % sid, {"password": os.environ["PGPASSWORD"]})
        did("connects")
        walk = Walk(api, 1)
        walk.node("server", [1, sid], "proxy")
        tools(api, sid, walk.database)
        seen = {kind: len(labels) for kind, labels in walk.seen.items() if not kind.startswith("coll-")}
        check("%d tabs of %s" % (api.tabs, seen), {"server", "database", "schema", "table", "column", "view", "role", "type", "function", "tablespace"} <= set(seen))
        assert not api.faults, "\n".join(api.faults)
        check("the walk leaves every balance unchanged", spent() == before)
        did("browses")
        ask(api, sid, walk.database)
        paid = spent()
        views(api, sid, walk.database, walk.people)
        check("rows that were not shown cost nothing", spent() == paid)
        browser = Browser()
        try:
            look(browser)
        except BaseException:
            browser.shot("failed")
            raise
        finally:
            browser.driver.quit()
    except BaseException:
        print(open(log).read()[-1500:], file=sys.stderr)
        raise
    finally:
        if os.environ.get("CLIENTS_STATEMENTS"):
            open(os.environ["CLIENTS_STATEMENTS"], "w").write(sent())
        server.terminate()
        server.wait()
        if not os.environ.get("CLIENTS_KEEP"):
            shutil.rmtree(home)


main()
