"""Servers of the Model Context Protocol that are made for any PostgreSQL, against a running proxy: browsing, which is
free and shows how to ask, questions, and a refusal, which has its hint by the user's dp.hints = message."""
import asyncio
import importlib.metadata
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

ENV = dict(os.environ, PGUSER=os.environ["PGASSISTANT"], NODE_EXTRA_CA_CERTS=os.environ["PGSSLROOTCERT"])
URL = "postgres://%(PGUSER)s:%(PGPASSWORD)s@%(PGHOST)s:%(PGPORT)s/%(PGDATABASE)s" % ENV
CERTIFICATE = ENV["PGSSLROOTCERT"]
HOW_TO_ASK = "EXPLAIN says what a question costs"


def check(what, ok):
    assert ok, what
    print("ok", what)


def node(package, *arguments):
    """The command of an npm package's server, and the package's version."""
    folder = Path(os.environ["NODE_PATH"], package)
    described = json.loads((folder / "package.json").read_text())
    return ["node", str(folder / next(iter(described["bin"].values()))), *arguments], described["version"]


def toolbox(folder):
    """MCP Toolbox for Databases, which is a program within its PyPI package."""
    import toolbox_server
    settings = Path(folder, "tools.yaml")
    source = {"kind": "source", "name": "demo", "type": "postgres", "host": ENV["PGHOST"], "port": ENV["PGPORT"],
              "database": ENV["PGDATABASE"], "user": ENV["PGUSER"], "password": ENV["PGPASSWORD"],
              "queryParams": {"sslmode": "verify-full", "sslrootcert": CERTIFICATE}}
    tools = [{"kind": "tool", "name": name, "type": "postgres-" + name.replace("_", "-"), "source": "demo",
              "description": name} for name in ("execute_sql", "list_tables", "list_schemas", "list_views",
                                                "database_overview", "list_indexes")]
    settings.write_text("\n---\n".join(json.dumps(document) for document in [source, *tools]))
    program = Path(toolbox_server.__file__).parent / "bin" / "toolbox"
    command = [str(program), "--config", str(settings), "--stdio", "--disable-version-check"]
    return command, importlib.metadata.version("toolbox-server")


def dbhub(folder):
    return node("@bytebase/dbhub", "--transport", "stdio", "--dsn",
                URL + "?sslmode=verify-full&sslrootcert=" + quote(CERTIFICATE, safe=""))


def server_postgres(folder):
    return node("@modelcontextprotocol/server-postgres",
                URL + "?sslmode=verify-full&sslrootcert=" + quote(CERTIFICATE, safe=""))


# Of each: its command, its tool for SQL, what it is asked to browse, whether comments of tables are shown there.
SERVERS = {
    "toolbox": (toolbox, "execute_sql", [
        ("list_tables", {}), ("list_tables", {"table_names": "people,visits"}), ("list_schemas", {}),
        ("list_views", {}), ("list_indexes", {}), ("database_overview", {})], True),
    "dbhub": (dbhub, "execute_sql", [
        ("search_objects", {"object_type": kind, "detail_level": "full"})
        for kind in ("schema", "table", "view", "column", "index", "function", "procedure")], True),
    "server-postgres": (server_postgres, "query", [], False),
}


async def main():
    make, ask, browsing, commented = SERVERS[sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        command, version = make(folder)
        program = StdioServerParameters(command=command[0], args=command[1:], env=ENV)
        async with stdio_client(program) as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            print("did connects")
            await drive(session, ask, browsing, commented)
    print("version", version)


async def drive(session, ask, browsing, commented):
    async def use(tool, arguments, error=False):
        try:
            answer = await session.call_tool(tool, arguments)
        except MCPError as refused:  # server-postgres answers so
            assert error, refused
            return refused.message
        text = "\n".join(c.text for c in answer.content)
        assert bool(answer.is_error) == error, text
        return text

    async def sql(text, error=False):
        return await use(ask, {"sql": text}, error)

    async def spent():
        return re.search(r'"spent": ?"?([0-9.]+)', await sql(
            "SELECT spent FROM dp.budget WHERE user_name = current_user"))[1]

    before = await spent()
    seen = "".join([await use(tool, arguments) for tool, arguments in browsing])
    seen += str(await session.list_tools())
    try:
        for resource in (await session.list_resources()).resources:
            seen += str(await session.read_resource(resource.uri))
    except MCPError as none:  # a server need not have resources
        assert "not found" in str(none).lower(), none
    check("tables and columns are seen", all(n in seen for n in ("people", "visits", "income")) or not browsing)
    check("so is how to ask", not commented or HOW_TO_ASK in seen)
    check("EXPLAIN", "Error of count" in await sql("EXPLAIN SELECT count(*) FROM people WHERE age > 77"))
    check("browsing is free", await spent() == before)
    print("did browses")
    bound = 30 + int(ENV["CLIENTS_RUN"]) % 40
    answer = await sql(f"SELECT region, count(*) AS n FROM people WHERE age > {bound} GROUP BY region ORDER BY 2 DESC")
    check("groups with intervals", all(n in answer for n in ("north", "n_low", "n_high")))
    check("what it cost", re.search(r'"cost": ?"?0', await sql("SELECT cost, remaining, error FROM dp.last")))
    check("a join", "Northern" in await sql(
        "SELECT r.name, avg(p.income) AS a FROM people p JOIN regions r ON r.code = p.region GROUP BY 1"))
    after = await spent()
    refused = await sql("SELECT * FROM people LIMIT 5", error=True)
    check("a refusal has its hint", "Ask for aggregates" in refused)
    check("and costs nothing", await spent() == after)
    print("did queries")


asyncio.run(main())
