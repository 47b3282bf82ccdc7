"""LangChain's and LlamaIndex' SQLDatabase over psycopg2 against a running proxy: what a model is shown of the tables,
questions, and a refusal."""
import importlib.metadata
import os
import sys
import warnings

from sqlalchemy import create_engine

warnings.simplefilter("ignore")
os.environ["PGUSER"] = os.environ["PGASSISTANT"]
ENGINE = create_engine("postgresql+psycopg2://")


def check(what, ok):
    assert ok, what
    print("ok", what)


def langchain():
    from langchain_community.utilities import SQLDatabase
    database = SQLDatabase(ENGINE, view_support=True)
    print("version", importlib.metadata.version("langchain-community"))
    shown = database.get_table_info(get_col_comments=True)
    return database.get_usable_table_names(), shown, database.run_no_throw


def llamaindex():
    from llama_index.core import SQLDatabase
    database = SQLDatabase(ENGINE, view_support=True)
    print("version", importlib.metadata.version("llama-index-core"))
    names = database.get_usable_table_names()
    shown = "\n".join(database.get_single_table_info(name) for name in names)
    check("tables' comments are shown", "EXPLAIN says what a question costs" in shown)

    def ask(sql):
        try:
            return database.run_sql(sql)[0]
        except NotImplementedError as refused:
            return str(refused)
    return names, shown, ask


def spent():
    with ENGINE.connect() as connection:
        return connection.exec_driver_sql("SELECT spent FROM dp.budget WHERE user_name = current_user").scalar()


before = spent()
print("did connects")
names, shown, ask = {"langchain": langchain, "llamaindex": llamaindex}[sys.argv[1]]()
check("tables", {"people", "visits", "regions"} <= set(names))
check("columns' comments are shown", "one of Female, Male" in shown and "0 to 109" in shown)
check("browsing is free, sample rows of tables too", spent() == before)
print("did browses")
bound = 30 + int(os.environ["CLIENTS_RUN"]) % 40
check("groups", ask(f"SELECT region, count(*) AS n FROM people WHERE age > {bound} GROUP BY region").count("(") >= 5)
check("what it cost", "Decimal" in ask("SELECT cost, remaining, error FROM dp.last"))
after = spent()
check("a refusal has its hint", "Ask for aggregates" in ask("SELECT * FROM people LIMIT 5"))
check("and costs nothing", spent() == after)
print("did queries")
