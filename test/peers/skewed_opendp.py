"""OpenDP over polars: truncate_per_group leaves out a person's rows beyond the bound; Laplace noise."""
import polars
import opendp.prelude as dp

from ask import EPSILON, main

dp.enable_features("contrib")
ROWS = 1000


def prepare(q, rows):
    data = polars.LazyFrame({c: rows[c].tolist() for c in rows.columns})
    ends = q.ends() if q.column else None
    noisy = {"count": [dp.len()], "sum": [polars.col("amount").dp.sum(ends)] if ends else [],
             "mean": [polars.col("amount").dp.sum(ends), dp.len()] if ends else []}[q.form]

    keys = polars.LazyFrame({c: q.columns[c] for c in q.by})

    def once():
        context = dp.Context.compositor(
            data=data, privacy_unit=dp.unit_of(contributions=1, identifier=polars.col("person")),
            privacy_loss=dp.loss_of(epsilon=EPSILON), split_evenly_over=1, margins=[dp.polars.Margin(max_length=10**6)])
        query = context.query().truncate_per_group(ROWS)
        query = query.group_by(q.by).agg(*noisy).with_keys(keys) if q.by else query.select(*noisy)
        frame = query.release().collect()
        if q.form == "mean":
            return [frame.row(0)[0] / max(1, frame.row(0)[1])]
        return q.in_order([tuple(row) for row in frame.rows()]) if q.by else [frame.row(0)[0]]

    return once


main("opendp", "truncate_per_group(1000), Laplace", "one person", prepare)
