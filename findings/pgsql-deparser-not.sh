#!/usr/bin/env bash
# pgsql-deparser 18.3.8 (npm): NOT under a test loses its parentheses.
#
# Expected: what is printed of a tree is parsed to the same tree.
# Seen: (NOT a) IS NULL is printed as NOT (a) IS NULL, which is NOT (a IS NULL): of a NULL the first is true and the
# second false. IS TRUE likewise; (NOT a) = b keeps its parentheses. Operands of BETWEEN and AT TIME ZONE lose theirs
# too, as in pg-query-deparse.sh.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --no-save pgsql-deparser@18.3.8 pgsql-parser@18.2.8 > /dev/null
cat > main.mjs <<'EOF'
import { parse, deparse } from 'pgsql-parser'
const print = async q => (await deparse(await parse(q))).replace(/\s+/g, ' ')
const cases = [
  ['SELECT (NOT a) IS NULL FROM t', 'SELECT NOT (a) IS NULL FROM t'],
  ['SELECT (NOT a) IS NOT NULL FROM t', 'SELECT NOT (a) IS NOT NULL FROM t'],
  ['SELECT (NOT a) IS TRUE FROM t', 'SELECT NOT (a) IS TRUE FROM t'],
  ['SELECT (NOT a) = b FROM t', 'SELECT (NOT (a)) = b FROM t'],
]
let same = true
for (const [query, want] of cases) {
  const seen = await print(query)
  console.log(`${query}\n    ${seen}`)
  same &&= seen === want
}
if (!same) console.log('changed: ' + JSON.stringify(cases))
process.exit(same ? 0 : 1)
EOF
node main.mjs
