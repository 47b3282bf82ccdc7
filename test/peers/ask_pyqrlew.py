"""The questions by pyqrlew: it rewrites each to SQL that adds Gaussian noise in the database, which is PostgreSQL at the fourth argument."""
import sys

import pyqrlew
import sqlalchemy

from ask import EPSILON, Refused, main

DELTA = 1e-6  # it has no pure ε

database = {}


def opened(q):
    if not database:
        engine = sqlalchemy.create_engine(sys.argv[4])
        dataset = pyqrlew.Dataset.from_database("peers", engine, "public")
        for column, ends in q.columns.items():
            if isinstance(ends[0], str):
                dataset = dataset.with_possible_values("public", "adult", column, ends)
            else:
                dataset = dataset.with_range("public", "adult", column, *map(float, ends))
        database.update(engine=engine, dataset=dataset)
    return database["engine"], database["dataset"]


def prepare(q, rows):
    if q.form in ("quantile", "correlation"):
        raise Refused("no such aggregate")
    engine, dataset = opened(q)
    relation = pyqrlew.Relation.from_query(q.sql.replace("FROM adult", "FROM public.adult"), dataset)
    private = relation.rewrite_with_differential_privacy(
        dataset=dataset, synthetic_data=None, privacy_unit=[("adult", [], "_PRIVACY_UNIT_ROW_")],
        epsilon_delta={"epsilon": EPSILON, "delta": DELTA})
    sql = private.relation().to_query(pyqrlew.Dialect.PostgreSql)

    def once():
        with engine.connect() as c:
            return q.in_order(c.execute(sqlalchemy.text(sql.replace(":", "\\:"))).fetchall())

    return once


main("pyqrlew", "nothing: it reports what was spent", "one row more or less", prepare)
