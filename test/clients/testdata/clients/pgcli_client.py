"""pgcli itself, command by command as with -c, and what it reads to complete names, against a running proxy."""
import os
import subprocess
import sys
import tempfile

import pgcli
from pgcli.completion_refresher import CompletionRefresher
from pgcli.pgcompleter import PGCompleter
from pgcli.pgexecute import PGExecute
from pgspecial.main import PGSpecial
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

home = tempfile.TemporaryDirectory()
environment = dict(os.environ, HOME=home.name, XDG_CONFIG_HOME=home.name, COLUMNS="200")


def check(what, ok):
    assert ok, what
    print("ok", what)


def ask(command):
    program = os.path.join(os.path.dirname(sys.executable), "pgcli")
    r = subprocess.run([program, "-w", "--less-chatty", "--pgclirc", os.path.join(home.name, "rc"), "-c", command], env=environment, text=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return r.stdout


def answered(command, *words):
    text = ask(command)
    check("%s: %s" % (command, text.strip().splitlines()[1][:60]), all(w in text for w in words) and "cannot be" not in text and "rror" not in text.split("\n")[0])


SPENT = "SELECT 'spent ' || spent FROM dp.budget WHERE user_name = current_user"


def spent():
    return next(line for line in ask(SPENT).splitlines() if "| spent" in line)


print("version", pgcli.__version__)
before = spent()
print("did connects")
answered(r"\d", "people", "visits", "regions", "table")
answered(r"\d people", "Modifiers", "age", "integer", "hired", "date")
answered(r"\d+ people", "Description", "years; 0 to 109")
answered(r"\d dp.budget", "user_name", "text")
answered(r"\dt peo*", "people", "SELECT 1")
answered(r"\dt+", "private table: each person is protected")
answered(r"\dn+", "public", "Description")
answered(r"\du", "analyst")
answered(r"\l+", "demo", "UTF8")
answered(r"\df+ a*", "aclitemin")
for command in r"\dv \dm \di \ds \df \dT \dT+ \dx \db \dp \dD \ddp \dE \dF".split():
    answered(command)

executor = PGExecute(os.environ["PGDATABASE"], os.environ["PGUSER"], os.environ["PGPASSWORD"], os.environ["PGHOST"], os.environ["PGPORT"])
done = []
CompletionRefresher()._bg_refresh(executor, PGSpecial(), [done.append], None, {"casing_file": "/dev/null"})
completer = done[0]
assert isinstance(completer, PGCompleter)


def completions(text):
    return {c.text for c in completer.get_completions(Document(text, len(text)), CompleteEvent())}


check("completes tables", {"people", "visits", "regions"} <= completions("SELECT * FROM "))
check("completes columns", {"sex", "hired", "education"} <= completions("SELECT * FROM people WHERE "))
check("browsing is free", spent() == before)
print("did browses")
text = ask("SELECT sex, count(*) FROM people GROUP BY sex ORDER BY 1")
check("rows and the price", "| Female |" in text and ("cost ε" in text or "free: " in text))
answered(r"EXPLAIN SELECT count(*) FROM people", "QUERY PLAN")
text = ask("SELECT * FROM visits LIMIT 10")
check("a refusal with its hint", "rows of private table visits cannot be read" in text and "Ask for aggregates" in text)
print("did queries")
