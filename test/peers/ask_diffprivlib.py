"""The questions by diffprivlib's tools. Its neighbours replace a row: the number of rows is public to it."""
import numpy as np
from diffprivlib import tools

from ask import EPSILON, Refused, main


def prepare(q, rows):
    if q.form == "count" and not q.by:
        kept = rows.index.isin(q.kept(rows).index)
        return lambda: [tools.count_nonzero(kept, epsilon=EPSILON)]
    if q.form == "count":
        place = {group: i for i, group in enumerate(q.groups())}
        codes, cells = np.array([place[g] for g in rows[q.by].itertuples(index=False, name=None)]), len(place)
        return lambda: tools.histogram(codes, epsilon=EPSILON, bins=cells, range=(-0.5, cells - 0.5))[0]
    if q.form == "sum":
        data = rows[q.column].to_numpy()
        return lambda: [tools.sum(data, epsilon=EPSILON, bounds=q.ends())]
    if q.form in ("mean", "variance"):
        parts = [part[q.column].to_numpy(dtype=float) for part in q.grouped(rows)]
        tool = tools.mean if q.form == "mean" else tools.var
        return lambda: [tool(part, epsilon=EPSILON, bounds=q.ends()) for part in parts]
    if q.form == "quantile":
        data = rows[q.column].to_numpy(dtype=float)
        return lambda: [tools.quantile(data, q.share, epsilon=EPSILON, bounds=q.ends())]
    raise Refused("no tool")


main("diffprivlib", "to a BudgetAccountant, in memory", "one row replaced", prepare)
