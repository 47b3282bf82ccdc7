"""pipeline-dp, Laplace noise, public partitions: max_contributions_per_partition and ends of values as declared."""
import pipeline_dp
from pipeline_dp import Metrics

from ask import EPSILON, main

ROWS = 1000


def prepare(q, rows):
    groups = q.groups()
    low, high = q.columns["amount"]
    keys = rows[q.by].itertuples(index=False, name=None) if q.by else [()] * len(rows)
    data = list(zip(rows["person"].tolist(), keys, rows["amount"].tolist()))
    metric = {"count": Metrics.COUNT, "sum": Metrics.SUM, "mean": Metrics.MEAN}[q.form]

    def once():
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=0)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        params = pipeline_dp.AggregateParams(
            metrics=[metric], noise_kind=pipeline_dp.NoiseKind.LAPLACE, max_partitions_contributed=len(groups),
            max_contributions_per_partition=ROWS, min_value=low, max_value=high)
        extract = pipeline_dp.DataExtractors(privacy_id_extractor=lambda r: r[0], partition_extractor=lambda r: r[1],
                                             value_extractor=lambda r: r[2])
        result = engine.aggregate(data, params, extract, public_partitions=groups)
        accountant.compute_budgets()
        found = {tuple(key): value[0] for key, value in result}
        return [found[group] for group in groups]

    return once


main("pipeline-dp", "max_contributions_per_partition 1000, all groups of a person, Laplace", "one person", prepare)
