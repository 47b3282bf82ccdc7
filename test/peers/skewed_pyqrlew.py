"""pyqrlew, a person's rows as the unit, over the PostgreSQL at the fourth argument. The fifth is max_multiplicity, where
that is not its default."""
import sys

import pyqrlew
import sqlalchemy

from ask import EPSILON, main

DELTA = 1e-6  # it has no pure ε
own = {"max_multiplicity": float(sys.argv[5]), "max_multiplicity_share": 1.0} if len(sys.argv) > 5 else {}
engine = sqlalchemy.create_engine(sys.argv[4])


def prepare(q, rows):
    dataset = pyqrlew.Dataset.from_database("peers", engine, "public")
    dataset = dataset.with_range("public", "spend", "amount", *map(float, q.columns["amount"]))
    dataset = dataset.with_possible_values("public", "spend", "region", q.columns["region"])
    relation = pyqrlew.Relation.from_query(q.sql.replace("FROM spend", "FROM public.spend"), dataset)
    private = relation.rewrite_with_differential_privacy(
        dataset=dataset, synthetic_data=None, privacy_unit=[("spend", [], "person")],
        epsilon_delta={"epsilon": EPSILON, "delta": DELTA}, **own)
    sql = private.relation().to_query(pyqrlew.Dialect.PostgreSql)

    def once():
        with engine.connect() as c:
            return q.in_order(c.execute(sqlalchemy.text(sql.replace(":", "\\:"))).fetchall())

    return once


main("pyqrlew", "max_multiplicity 1000, its share 1, δ 10⁻⁶" if own else "its defaults, δ 10⁻⁶", "one person", prepare)
