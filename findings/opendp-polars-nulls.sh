#!/usr/bin/env bash
# opendp 0.16.0 (PyPI) with polars: a NULL counts as the middle of the bounds in dp.sum and dp.mean.
#
# Expected: NULLs are left out, as in SQL and in polars' own sum and mean, or refused until fill_null says what they
# are.
# Seen: each is added as (lower + upper) / 2 and counted in the mean, without a word; so is each NaN. The released sum
# of one column moves with the bounds, where no value is clipped: 3500 is -7750 with bounds of -100 and 10.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  opendp==0.16.0 polars==1.36.1 pyarrow==26.0.1 numpy==2.4.6

PYTHONPATH="$dir/lib" python3 - <<'EOF'
import sys, warnings
warnings.simplefilter("ignore")
import polars
import opendp.prelude as dp

dp.enable_features("contrib")
rows = polars.LazyFrame({
    "value": [None if i % 4 == 0 else i % 10 for i in range(1000)],    # 250 NULLs; the others sum to 3500, mean 4.67
    "real": [float("nan") if i % 4 == 0 else float(i % 10) for i in range(1000)],
})

def release(expression):  # epsilon is so large that the noise cannot be seen
    context = dp.Context.compositor(
        data=rows, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1e6),
        split_evenly_over=1, margins=[dp.polars.Margin(max_length=2000)])
    return round(float(context.query().select(expression).release().collect().item()), 2)

value, real = polars.col("value"), polars.col("real")
seen = {
    "polars' own sum": rows.select(value.sum()).collect().item(),
    "sum, bounds 0 and 10": release(value.dp.sum((0, 10))),
    "sum, bounds -100 and 10": release(value.dp.sum((-100, 10))),
    "sum, NULL filled with 0": release(value.fill_null(0).dp.sum((-100, 10))),
    "mean, bounds 0 and 10": release(value.cast(polars.Float64).dp.mean((0.0, 10.0))),
    "mean, bounds 0 and 1000": release(value.cast(polars.Float64).dp.mean((0.0, 1000.0))),
    "sum with NaN, bounds 0 and 10": release(real.dp.sum((0.0, 10.0))),
}
for name, x in seen.items():
    print(f"{name}: {x}")
want = [3500, 4750, -7750, 3500, 4.75, 128.5, 4750]
sys.exit(0 if list(seen.values()) == want else "changed: " + repr(want))
EOF
