"""smartnoise-sql, a person's rows as the unit: rows beyond max_ids are left out by its reservoir, keys of few persons
are censored, unless there is a fifth argument."""
import sys

import snsql

from ask import EPSILON, main

DELTA, ROWS, CENSORED = 1e-6, 1000, len(sys.argv) < 6


def prepare(q, rows):
    low, high = q.columns["amount"]
    table = {"max_ids": ROWS, "sample_max_ids": True, "censor_dims": CENSORED, "row_privacy": False, "rows": len(rows),
             "person": {"type": "int", "private_id": True}, "region": {"type": "string"},
             "amount": {"type": "int", "lower": low, "upper": high}}
    sql = q.sql.replace("FROM spend", "FROM dp.spend")
    metadata = {"": {"dp": {"spend": table}}}
    reader = snsql.from_df(rows, privacy=snsql.Privacy(epsilon=EPSILON, delta=DELTA), metadata=metadata)
    reader.privacy.epsilon = EPSILON * EPSILON / reader.get_privacy_cost(sql)[0]  # so that the whole costs ε

    return lambda: q.in_order(reader.execute(sql)[1:])


censored = "on" if CENSORED else "off"
main("smartnoise-sql", f"max_ids 1000, sample_max_ids on, censor_dims {censored}, δ 10⁻⁶", "one person", prepare)
