"""The Model Context Protocol's own Python client and dpproxy mcp: each tool, what it charges, and a session's limit."""
import asyncio
import importlib.metadata
import os

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def check(what, ok):
    assert ok, what
    print("ok", what)


async def main():
    program = StdioServerParameters(command=os.environ["DPPROXY_PROGRAM"], args=["mcp", "--max-cost", "0.2"],
                                    env=dict(os.environ))
    async with stdio_client(program) as (reader, writer), ClientSession(reader, writer) as session:
        async def use(tool, **arguments):
            answer = await session.call_tool(tool, arguments)
            assert not answer.is_error, answer
            return answer.structured_content

        await session.initialize()
        print("did connects")
        check("five tools", {t.name for t in (await session.list_tools()).tools} ==
              {"describe", "price", "ask", "release", "history"})
        check("two prompts", len((await session.list_prompts()).prompts) == 2)
        before = (await use("describe"))["budget"][0]["spent"]
        described = await use("describe", table="people")
        check("a table's columns", {"age", "income"} <= {c["name"] for c in described["tables"][0]["columns"]})
        sql = "SELECT region, count(*), avg(income) FROM people WHERE age >= 67 GROUP BY region"
        priced = await use("price", sql=sql)
        check("a price", priced["answered"] and float(priced["cost"]) <= 0.1)
        check("browsing and pricing are free", (await use("describe"))["budget"][0]["spent"] == before)
        print("did browses")
        answer = await use("ask", sql=sql, max_cost="0.1")
        check("rows with intervals", len(answer["rows"]) == 5 and
              all(float(r[1]["low"]) <= float(r[1]["value"]) <= float(r[1]["high"]) for r in answer["rows"]))
        check("digits that mean something", " ± " in answer["rows"][0][2]["shown"])
        again = await use("ask", sql=sql, max_cost="0")
        values = [[[c["value"] for c in r] for r in a["rows"]] for a in (answer, again)]
        check("asked again it is free", values[0] == values[1] and again["cost"] == "0")
        refused = await use("ask", sql="SELECT * FROM people", max_cost="0.1")
        check("a refusal with its hint", refused["refusal"]["sqlstate"] == "42501" and refused["refusal"]["hint"])
        beyond = await use("ask", sql="SELECT count(*) FROM people WHERE age >= 68", max_cost="1", epsilon="1")
        check("a session's limit", beyond["refusal"]["sqlstate"] == "53400" and beyond["cost"] == "0")
        check("history", len((await use("history"))["held"]) > 0)
        print("did queries")
    print("version", importlib.metadata.version("mcp"))


asyncio.run(main())
