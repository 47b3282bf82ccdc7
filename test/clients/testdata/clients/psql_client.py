"""psql against a running proxy: backslash commands, \\gdesc, \\watch, \\copy, FETCH_COUNT, tab completion, Ctrl-C."""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

COMMANDS = r"""\d \d+ \dS \dt+ \dtS \dt+|people \d|people \d+|people \d+|dp.budget \da \dA \dA+ \dAc \dAf \dAo \dAp \db \db+ \dc \dcS \dC \dd \dD \dDS \ddp \dE \det
\des \dew \deu \df \df+ \dfS \dF \dFd \dFp \dFt \dg \dg+ \di \di+ \dl \dL \dL+ \dm \dn \dn+ \dnS \do \doS \dO \dOS \dp \dP \dP+ \drds \dRp \dRs \ds \dT \dT+ \dTS
\du \du+ \dv \dv+ \dvS+ \dv|dp.* \dx \dx+ \dX \dy \dconfig|* \l \l+ \z \conninfo \encoding""".split()


def check(what, ok):
    assert ok, what
    print("ok", what)


def psql(*lines):
    done = subprocess.run(["psql", "-X", "-A", "-v", "VERBOSITY=verbose"], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=120)
    return done.stdout, done.stderr


def spent():
    return psql(r"\t", "SELECT spent FROM dp.budget WHERE user_name = current_user;")[0].split()[-1:]


def terminal(keys, until):
    """Types into psql on a terminal and returns what it shows, up to a pattern."""
    child, fd = pty.fork()
    if child == 0:
        os.environ.update(TERM="dumb", PAGER="", INPUTRC="/dev/null", PSQL_HISTORY="/dev/null")
        os.execvp("psql", ["psql", "-X"])
    shown, sent, end = b"", False, time.time() + 60
    while time.time() < end and not (sent and re.search(until, shown)):
        if select.select([fd], [], [], 0.2)[0]:
            try:
                shown += os.read(fd, 65536)
            except OSError:
                break
        if not sent and b"=> " in shown:
            os.write(fd, keys)
            shown, sent = b"", True
    os.write(fd, b"\x03\x15\\q\n")
    end = time.time() + 5
    while time.time() < end and os.waitpid(child, os.WNOHANG)[0] == 0:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                os.read(fd, 65536)
            except OSError:
                pass
    os.close(fd)
    return shown.decode(errors="replace")


out, err = psql(r"\echo :SERVER_VERSION_NAME", "SELECT 1;")
check("connected %s" % out.split()[:1], "1" in out and not err)
print("version", subprocess.run(["psql", "--version"], capture_output=True, text=True).stdout.split()[2])
print("did connects")

before = spent()
for command in COMMANDS:
    out, err = psql(command.replace("|", " "))
    failed = "ERROR" in err
    check("%s: %d lines" % (command.replace("|", " "), out.count("\n")), not failed)
out, _ = psql(r"\d people")
check("columns", re.search(r"^age\|integer\|", out, re.M) and re.search(r"^hired\|date\|", out, re.M))
out, err = psql(r"\t", r"SELECT sex, count(*) AS n FROM people GROUP BY sex \gdesc")
check("gdesc %s" % out.split(), out.split()[-2:] == ["sex|text", "n|bigint"] and not err)
for typed, completed in [(b"SELECT count(*) FROM peo\t", "people"), (b"\\d vis\t", "visits"), (b"SELECT * FROM dp.bud\t", "dp.budget"), (b"\\dn pub\t", "public")]:
    shown = terminal(typed, completed.encode())
    check("tab completes %s to %s" % (typed.decode().strip(), completed), completed in shown)
check("browsing is free", spent() == before)
print("did browses")

out, err = psql(r"\t", r"\set FETCH_COUNT 7", "SELECT age, count(*) FROM people GROUP BY age ORDER BY age;")
check("FETCH_COUNT", out.count("\n") >= 110 and "ERROR" not in err)
target = os.path.join(tempfile.mkdtemp(), "sexes.csv")
out, err = psql(r"\copy (SELECT sex, count(*) FROM people GROUP BY 1) TO '%s' CSV HEADER" % target)
check("copy %s" % out, open(target).readline() == "sex,count\n")
shutil.rmtree(os.path.dirname(target))
out, err = psql("BEGIN;", "DECLARE c SCROLL CURSOR FOR SELECT age, count(*) FROM people GROUP BY age ORDER BY age;", "FETCH 3 FROM c;",
                "MOVE BACKWARD 1 IN c;", "FETCH RELATIVE 0 FROM c;", "CLOSE c;", "COMMIT;")
check("cursor", "(3 rows)" in out and "MOVE 1" in out and "ERROR" not in err)
out, err = psql("SELECT age FROM people;")
check("refusal %s" % err.split("\n")[0], "42501" in err and "HINT" in err)
shown = terminal(b"SELECT count(*) FROM people \\watch 0.3\n", rb"(?s)(every 0.3s.*){3}")
check("watch", len(re.findall(r"every 0.3s", shown)) >= 3)
print("did queries")

out, err = psql(r"\set s Female", r"\t", "SELECT count(*) FROM people WHERE sex = :'s';", "PREPARE q(int) AS SELECT count(*) FROM people WHERE age > $1;",
                "EXECUTE q(30);", "EXECUTE q(40);")
check("variables and EXECUTE", len([l for l in out.split() if re.fullmatch(r"-?\d+", l)]) == 3 and "ERROR" not in err)
print("did parameters")

for wait in (0.4, 1, 0.2, 2, 0.1):  # until one falls into the middle
    many = " ".join("SELECT count(*) FROM people WHERE hired > DATE '2010-01-01' + %d;" % (i + 1000 * wait) for i in range(400))
    p = subprocess.Popen(["psql", "-X", "-t", "-c", many], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=dict(os.environ, PGOPTIONS="-c dp.epsilon=0.001"))
    time.sleep(wait)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    if "Cancel request sent" in err:
        break
check("Ctrl-C after %d of 400" % len(out.split()), "Cancel request sent" in err and len(out.split()) < 400 and p.returncode != 0)
print("did cancels")
