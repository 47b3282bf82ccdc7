"""The questions by smartnoise-sql over the rows in memory, its metadata made of the same bounds; each row names its own person."""
import snsql

from ask import EPSILON, Refused, main

DELTA = 1e-6  # for keys that it censors; the questions' groups are all kept

reader = None


def opened(q, rows):
    global reader
    if reader is not None:
        return reader
    rows = rows.copy()
    rows["id"] = range(len(rows))
    columns = {"max_ids": 1, "row_privacy": False, "rows": len(rows), "censor_dims": False, "id": {"type": "int", "private_id": True}}
    for name in rows.columns:
        if name == "id":
            continue
        if rows[name].dtype.kind == "i":
            ends = q.columns.get(name)
            columns[name] = {"type": "int", **({"lower": ends[0], "upper": ends[1]} if ends else {})}
        else:
            columns[name] = {"type": "string"}
    reader = snsql.from_df(rows, privacy=snsql.Privacy(epsilon=EPSILON, delta=DELTA), metadata={"": {"dp": {"adult": columns}}})
    return reader


def prepare(q, rows):
    if q.form in ("quantile", "correlation"):
        raise Refused("no such aggregate")
    r, sql = opened(q, rows), q.sql.replace("FROM adult", "FROM dp.adult")
    # Its ε is each column's of the answer: one that computes a mean, of several, is given so much that the whole costs ε.
    r.privacy.epsilon = EPSILON
    cost = r.get_privacy_cost(sql)[0]
    epsilon = EPSILON * EPSILON / cost if cost else EPSILON

    def once():
        r.privacy.epsilon = epsilon
        return q.in_order(r.execute(sql)[1:])

    return once


main("smartnoise-sql", "counted after the answer, in memory, nothing refused", "one person's rows more or less", prepare)
