"""PyDP (Google's C++ library): a sum of each person's totals, with bounds that it infers, as none are given."""
from pydp.algorithms.laplacian import BoundedSum

from ask import EPSILON, main


def summed(totals, epsilon, groups):
    algorithm = BoundedSum(epsilon=epsilon, l0_sensitivity=groups, dtype="float")
    return algorithm.quick_result([float(x) for x in totals])


def prepare(q, rows):
    parts = list(q.grouped(rows))
    counts = [part.groupby("person").size().tolist() for part in parts]
    sums = [part.groupby("person")["amount"].sum().tolist() for part in parts]

    def once():
        if q.form == "mean":
            return [summed(s, EPSILON / 2, 1) / max(1, summed(n, EPSILON / 2, 1)) for s, n in zip(sums, counts)]
        return [summed(x, EPSILON, len(parts)) for x in (counts if q.form == "count" else sums)]

    return once


main("python-dp", "totals of each person, bounds inferred by itself, Laplace", "one person", prepare)
