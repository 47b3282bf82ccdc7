#!/usr/bin/env bash
# dp-accounting 0.6.0 (PyPI): a Laplace mechanism has no finite epsilon at delta 0.
#
# Expected: noise of scale 1 at sensitivity 1 is 1-DP, and ten of it 10-DP, with delta 0.
# Seen: both accountants (PLD and RDP) say inf for delta 0, of one mechanism as of ten; at delta 1e-12 PLD says 1.0
# and 10.0, and RDP 1.0186 for the one, above what pure composition gives. They are no accountants for a pure budget.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$dir/lib" \
  dp-accounting==0.6.0

PYTHONPATH="$dir/lib" python3 - <<'EOF'
import math, sys
import dp_accounting
from dp_accounting import pld, rdp

def epsilons(accountant, times):
    accountant.compose(dp_accounting.LaplaceDpEvent(1.0), times)
    return [round(float(accountant.get_epsilon(delta)), 4) for delta in (0.0, 1e-12, 1e-6)]

seen = {(kind.__name__, times): epsilons(kind(), times)
        for kind in (pld.PLDAccountant, rdp.RdpAccountant) for times in (1, 10)}
for key, value in seen.items():
    print(*key, "epsilon at delta 0, 1e-12, 1e-6:", value)
# PLDAccountant 1 epsilon at delta 0, 1e-12, 1e-6: [inf, 1.0, 1.0]
# PLDAccountant 10 epsilon at delta 0, 1e-12, 1e-6: [inf, 10.0, 9.999]
# RdpAccountant 1 epsilon at delta 0, 1e-12, 1e-6: [inf, 1.0186, 1.0051]
# RdpAccountant 10 epsilon at delta 0, 1e-12, 1e-6: [inf, 10.0125, 9.999]
same = all(value[0] == math.inf and value[1] < 10.1 for value in seen.values()) and seen["RdpAccountant", 1][1] == 1.0186
sys.exit(0 if same else "changed")
EOF
