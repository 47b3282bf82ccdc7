#!/usr/bin/env bash
# pgsql-ast-parser 12.0.2 (npm): what it prints of a statement that it read is not that statement.
#
# Expected: toSql of parse answers as the text did, or parse fails.
# Seen: 1e3 is read as the number 1 with the name e3; integers above 2^53 and long decimals are doubles; a set
# operation in parentheses on the right loses them, so that UNION takes duplicates away which UNION ALL had kept;
# ROLLUP is a function and ANY a quoted one. Nothing fails.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --no-save pgsql-ast-parser@12.0.2 > /dev/null
cat > main.cjs <<'EOF'
const { parse, toSql } = require('pgsql-ast-parser')
const print = q => toSql.statement(parse(q)[0]).replace(/\s+/g, ' ').trim()
const cases = [
  ['SELECT 1e3', 'SELECT (1) AS e3'],
  ['SELECT 9007199254740993', 'SELECT (9007199254740992)'],
  ['SELECT 12345678901234567890.5', 'SELECT (12345678901234567000.)'],
  // PostgreSQL: 1, 1, 2 of the first text, 1, 2 of what is printed
  ['SELECT 1 UNION ALL (SELECT 1 UNION SELECT 2)', '(SELECT (1) ) UNION ALL (SELECT (1) ) UNION (SELECT (2) )'],
  ['SELECT a FROM t GROUP BY ROLLUP (a)', 'SELECT a FROM t GROUP BY (rollup (a) )'],
  ['SELECT a FROM t WHERE a = ANY (ARRAY[1])', 'SELECT a FROM t WHERE (a = ("any" ((ARRAY[(1)])) ))'],
]
let same = true
for (const [query, want] of cases) {
  const seen = print(query)
  console.log(`${query}\n    ${seen}`)
  same &&= seen === want
}
if (!same) console.log('changed: ' + JSON.stringify(cases))
process.exit(same ? 0 : 1)
EOF
node main.cjs
