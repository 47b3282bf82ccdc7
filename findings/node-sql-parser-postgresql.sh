#!/usr/bin/env bash
# node-sql-parser 5.4.0 (npm), database postgresql: statements are read or printed as others.
#
# Expected: PostgreSQL's SQL is read as PostgreSQL reads it, or is an error; numbers keep their digits, as
# 9007199254740993 and 123456789012345678901.5 do.
# Seen: 99999999999999.99 is printed as ...99.98, 0.30000000000000000001 below 0.3, and negative integers beyond 2^53
# as their doubles, -2^63 below the least bigint. NATURAL is read as an alias and the join loses its condition; CROSS
# likewise, and ONLY as a table; a ISNULL is column a under a name; the seed of REPEATABLE loses its word; - -1
# becomes a comment, with all behind it.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --no-save node-sql-parser@5.4.0 > /dev/null
cat > main.mjs <<'EOF'
import sql from 'node-sql-parser'
const parser = new sql.Parser(), postgresql = { database: 'postgresql' }
const cases = [
  ['SELECT a FROM t WHERE b = 9007199254740993', 'SELECT a FROM t WHERE b = 9007199254740993'],
  ['SELECT a FROM t WHERE b = 123456789012345678901.5', 'SELECT a FROM t WHERE b = 123456789012345678901.5'],
  ['SELECT a FROM t WHERE b = -9007199254740993', 'SELECT a FROM t WHERE b = -9007199254740992'],
  ['SELECT -9223372036854775808 FROM t', 'SELECT -9223372036854776000 FROM t'],
  ['SELECT a FROM t WHERE b = 99999999999999.99', 'SELECT a FROM t WHERE b = 99999999999999.98'],
  ['SELECT a FROM t WHERE b >= 0.30000000000000000001', 'SELECT a FROM t WHERE b >= 0.29999999999999998890'],
  ['SELECT a FROM t NATURAL LEFT JOIN u', 'SELECT a FROM t AS NATURAL LEFT JOIN u'],
  ['SELECT a FROM t NATURAL JOIN u', 'SELECT a FROM t AS NATURAL INNER JOIN u'],
  ['SELECT a FROM t CROSS JOIN u', 'SELECT a FROM t AS CROSS INNER JOIN u'],
  ['SELECT a FROM ONLY t', 'SELECT a FROM ONLY AS t'],
  ['SELECT a ISNULL FROM t', 'SELECT a AS ISNULL FROM t'],
  ['SELECT a FROM t TABLESAMPLE SYSTEM (10) REPEATABLE (1)', 'SELECT a FROM t TABLESAMPLE SYSTEM(10) 1'],
  ['SELECT - -1, a FROM t', 'SELECT --1, a FROM t'],
]
let same = true
for (const [query, want] of cases) {
  const seen = parser.sqlify(parser.astify(query, postgresql), postgresql).replaceAll('"', '')
  console.log(`${query}\n    ${seen}`)
  same &&= seen === want
}
if (!same) console.log('changed: ' + JSON.stringify(cases))
process.exit(same ? 0 : 1)
EOF
node main.mjs
