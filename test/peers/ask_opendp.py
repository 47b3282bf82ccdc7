"""The questions by OpenDP's own measurements: bounds declared, Laplace noise, ε split evenly where an answer needs two."""
import opendp.prelude as dp

from ask import EPSILON, Refused, main

dp.enable_features("contrib", "honest-but-curious")
try:
    dp.enable_features("idealized-numerics")
except Exception:
    dp.enable_features("floating-point")
ONE = 1  # one row more or less


def least(chain, epsilon):
    """The measurement of a family by scale whose loss is epsilon."""
    return dp.binary_search_chain(chain, d_in=ONE, d_out=epsilon, T=float)


def space(bounds=None, of=int):
    return dp.vector_domain(dp.atom_domain(bounds=bounds, T=of) if bounds else dp.atom_domain(T=of)), dp.symmetric_distance()


def count(epsilon):
    return least(lambda s: space() >> dp.t.then_count() >> dp.m.then_laplace(s), epsilon)


def summed(q, epsilon):
    low, high = q.ends()
    return least(lambda s: space() >> dp.t.then_clamp((low, high)) >> dp.t.then_sum() >> dp.m.then_laplace(s), epsilon)


def prepare(q, rows):
    rows = q.kept(rows)
    if q.form == "count" and not q.by:
        m, data = count(EPSILON), rows["age"].tolist()
        return lambda: [m(data)]
    if q.form == "count":
        names = ["/".join(g) for g in q.groups()]
        data = rows[q.by].agg("/".join, axis=1).tolist()
        m = least(lambda s: space(of=str) >> dp.t.then_count_by_categories(categories=names, null_category=False) >> dp.m.then_laplace(s), EPSILON)
        return lambda: m(data)
    if q.form == "distinct":
        data = rows[q.column].tolist()
        m = least(lambda s: space(of=str) >> dp.t.then_count_distinct() >> dp.m.then_laplace(s), EPSILON)
        return lambda: [m(data)]
    if q.form == "sum":
        m, data = summed(q, EPSILON), rows[q.column].tolist()
        return lambda: [m(data)]
    if q.form == "mean":  # groups are apart: each has all of ε
        n, s = count(EPSILON / 2), summed(q, EPSILON / 2)
        parts = [part[q.column].tolist() for part in q.grouped(rows)]
        return lambda: [s(part) / max(1, n(part)) for part in parts]
    if q.form == "quantile":
        low, high = q.ends()
        candidates, data = list(range(low, high + 1)), rows[q.column].tolist()
        m = least(lambda s: space((low, high)) >> dp.m.then_private_quantile(dp.max_divergence(), candidates, q.share, s), EPSILON)
        return lambda: [m(data)]
    if q.form == "variance":
        raise Refused("its variance needs the number of rows to be public")
    raise Refused("no measurement")


main("opendp", "by an odometer or composition, where the program uses one", "one row more or less", prepare)
