#!/usr/bin/env bash
# OpenDP 0.16.0 (PyPI): a cast of text to bool makes true of every text that is not empty.
#
# Expected: 'true' is true, and 'false' and '0' are false or the default of what cannot be cast.
# Seen: 'false', '0' and 'no' are true; '' alone is false. Texts that are no number do become the default, as the name
# of the transformation (cast_default) says, '1e3' as an integer among them. So a flag that is read from a CSV file is
# counted as its cells that are filled, by a measurement whose privacy is in order.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  opendp==0.16.0

PYTHONPATH="$dir/lib" python3 - <<'EOF'
import importlib.metadata, sys
import opendp.prelude as dp

dp.enable_features("contrib")
texts = dp.vector_domain(dp.atom_domain(T="String")), dp.symmetric_distance()
cast = lambda to, values: (texts >> dp.t.then_cast_default(TOA=to))(values)
flags = ["true", "false", "1", "0", "no", ""]
seen = {
    "version": importlib.metadata.version("opendp"),
    "bool": dict(zip(flags, cast("bool", flags))),
    "i32": cast("i32", ["3", "1e3", "3.7"]),
}
for name, value in seen.items():
    print(f"{name}: {value}")
# version: 0.16.0
# bool: {'true': True, 'false': True, '1': True, '0': True, 'no': True, '': False}
# i32: [3, 0, 0]
want = {
    "version": "0.16.0",
    "bool": {"true": True, "false": True, "1": True, "0": True, "no": True, "": False},
    "i32": [3, 0, 0],
}
sys.exit(0 if seen == want else "changed: " + repr(want))
EOF
