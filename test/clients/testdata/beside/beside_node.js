// node-postgres as programs use it: parameters without types, named statements, cursors, COPY streams, several statements, errors, pools.
// Each line is a name, a tab, and what was seen; the test runs it against PostgreSQL and against dpproxy and compares.
const fs = require('fs')
const pg = require('pg')

const tls = process.env.PGSSLMODE === 'disable' ? false : { ca: fs.readFileSync(process.env.PGSSLROOTCERT), servername: 'localhost' }
const config = (more) => ({ host: process.env.PGHOST, port: +process.env.PGPORT, database: process.env.PGDATABASE, user: process.env.PGUSER, password: process.env.PGPASSWORD, ssl: tls, ...more })
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

function error (e) {
  const state = e.code || ''
  if (state === '42501' || state.startsWith('DP')) return e.severity + ' ' + state // what is refused says so in its own words
  if (state.startsWith('22')) return state + ' ' + e.message.split(': "')[0] // dpproxy repeats no value, and shows the operator
  return [e.severity, state, e.message, 'at', e.position, 'detail', e.detail].join(' ')
}

async function see (name, look) {
  let value
  try { value = await look() } catch (e) { value = error(e) }
  if (typeof value !== 'string') value = JSON.stringify(value)
  console.log(name + '\t' + String(value).replace(/\n/g, '\\n').replace(/\t/g, '\\t'))
}

const shown = (r) => Array.isArray(r) ? r.map(shown) : { command: r.command, count: r.rowCount, rows: r.rows, fields: (r.fields || []).map((f) => [f.name, f.dataTypeID, f.dataTypeSize, f.dataTypeModifier, f.format]) }

const questions = [
  'SELECT * FROM samples ORDER BY id', 'SELECT tier, count(*), sum(balance), avg(balance), avg(clicks)::float8 FROM customers GROUP BY tier ORDER BY tier', 'SELECT seen, segment, newsletter, level, count(*)::int FROM customers WHERE seen < \'2024-01-02\' GROUP BY 1, 2, 3, 4 HAVING count(*) > 0 ORDER BY seen', 'SELECT born, joined, count(*)::int FROM customers WHERE joined < \'2024-01-02\' GROUP BY 1, 2 HAVING count(*) > 0 ORDER BY 1',
  'SELECT ARRAY[1, 2] AS a, ARRAY[\'x\', NULL] AS b, \'{"a": [1]}\'::json AS c, interval \'1 mon 2 days 03:04:05.6\' AS e, NULL AS f, ARRAY[1.5] AS g, ARRAY[true] AS h, ARRAY[date \'2024-01-01\'] AS i', 'SELECT status, date_trunc(\'month\', placed) AS month, count(*) FROM orders GROUP BY 1, 2 HAVING count(*) > 0 ORDER BY 2, 1 LIMIT 6',
  'SELECT json_build_object(\'tier\', tier, \'n\', count(*)) FROM customers GROUP BY tier ORDER BY tier', 'SELECT json_agg(t) FROM (SELECT tier, count(*) AS n, avg(balance) AS a FROM customers GROUP BY tier ORDER BY tier) t', 'SELECT json_object_agg(tier, n) FROM (SELECT tier, count(*) AS n FROM customers GROUP BY tier ORDER BY tier) t', 'SELECT array_agg(tier ORDER BY n DESC) FROM (SELECT tier, count(*) AS n FROM customers GROUP BY tier) t',
  'SELECT 1/0', 'SELECT nope FROM products', 'SELECT * FROM nobody', 'selec 1', "SELECT 'x'::int", 'SELECT email FROM customers LIMIT 1', 'INSERT INTO products (product_id) VALUES (1)', 'LISTEN a', 'UNLISTEN *', '', '-- nothing', 'SELECT 1; SELECT 2 AS b; SET application_name = \'n\'', 'SELECT 1; SELECT 1/0; SELECT 2', 'BEGIN; SELECT 1; COMMIT',
]

async function main () {
  const c = new pg.Client(config())
  await c.connect()
  for (const q of questions) {
    await see('[query] ' + q, async () => shown(await c.query(q)))
    await see('[array mode] ' + q, async () => shown(await c.query({ text: q, rowMode: 'array' })))
    await see('[extended] ' + q, async () => shown(await c.query({ text: q, queryMode: 'extended', values: [] })))
    await see('[named] ' + q, async () => { const name = 'n' + questions.indexOf(q); await c.query({ name, text: q, values: [] }); return shown(await c.query({ name, text: q, values: [] })) })
  }
  const day = new Date(Date.UTC(2024, 0, 15))
  for (const [where, values] of [
    ['level = $1', [3]], ['level = $1', ['3']], ['level = $1', [3.5]], ['level = $1', ['x']], ['level = ANY($1)', [[1, 2]]], ['tier = $1', ['gold']], ['tier = ANY($1)', [['gold', 'silver']]], ['tier = ANY($1::text[])', [[]]], ['tier IN ($1, $2)', ['gold', 'x']], ['country = $1', ['de']], ['born > $1', ['1960-01-01']], ['born > $1', [day]], ['joined > $1', [day]], ['seen > $1', [day]],
    ['balance > $1', [10]], ['balance > $1', ['10.5']], ['balance > $1', [10.5]], ['score > $1', [2.5]], ['rating > $1', [1.5]], ['clicks = $1', [7n]], ['clicks IS NOT DISTINCT FROM $1', [null]], ['newsletter = $1', [true]], ['newsletter = $1', ['f']], ['segment = $1', ['00000000-0000-4000-8000-000000000001']], ['email LIKE $1', ['%.org']], ['email ILIKE $1', ['%.ORG']], ['$1 = level', [2]],
    ['($1::text IS NULL OR tier = $1)', [null]], ['($1::text IS NULL OR tier = $1)', ['gold']], ['level > $1 AND level < $1 + 2', [1]], ['level BETWEEN $1 AND $2', [2, 3]], ['joined BETWEEN $1 AND $2', [day, new Date(day.getTime() + 86400000)]], ['coalesce(clicks, $1) = $1', [0]], ['level = $1', [undefined]], ['level = $1', []], ['level = $1', [1, 2]], ['tier = $1', [{ toPostgres: () => 'gold' }]], ['level = $1', [Buffer.from('3')]], ["joined > now() - ($1 || ' days')::interval", [100000]], ["date_trunc($1, joined) = '2024-01-01'", ['month']],
  ]) await see(`where ${where} ${JSON.stringify(values, (k, v) => typeof v === 'bigint' ? v + 'n' : v)}`, async () => shown(await c.query('SELECT count(*) FROM customers WHERE ' + where, values)))
  for (const [kind, value] of [['json', { a: [1] }], ['jsonb', { b: null }], ['int[]', [1, null]], ['text[]', ['a', 'b"c\\', 'NULL', '']], ['text[][]', [['a'], ['b']]], ['timestamptz', day], ['timestamp', day], ['date', day], ['bytea', Buffer.from([1, 255])], ['numeric', 1e21], ['float8', NaN], ['interval', '1 day'], ['boolean', 1], ['text', 5], ['text', true], ['text', { a: 1 }], ['int', '12abc'], ['varchar(2)', 'abc']]) {
    await see(`$1::${kind} ${typeof value === 'number' ? value : JSON.stringify(value)}`, async () => shown(await c.query('SELECT $1::' + kind + ' AS v', [value])))
  }
  await see('limit', async () => shown(await c.query('SELECT product_id FROM products ORDER BY 1 LIMIT $1 OFFSET $2', [3, '2'])))
  await see('group by a parameter', async () => shown(await c.query('SELECT floor(balance / $1) * $1 AS b, count(*) FROM customers GROUP BY 1 HAVING count(*) > 0 ORDER BY 1', [5])))
  await see('group by two parameters', async () => shown(await c.query('SELECT CASE WHEN level > $1 THEN $2 ELSE $3 END AS b, count(*) FROM customers GROUP BY 1 ORDER BY 1', [2, 'high', 'low'])))
  await see('untold parameter', async () => shown(await c.query('SELECT $1 AS a, $2 AS b', ['x', 5])))
  for (const script of [['BEGIN', 'SELECT 1/0', 'SELECT 1', 'COMMIT', 'SELECT 1'], ['BEGIN READ ONLY', 'SHOW transaction_read_only', 'SAVEPOINT a', 'SELECT nope', 'ROLLBACK TO a', 'SELECT count(*) FROM customers', 'END'], ['DECLARE c CURSOR FOR SELECT 1', 'BEGIN', 'DECLARE c CURSOR FOR SELECT level, count(*) FROM customers GROUP BY level ORDER BY level', 'FETCH 2 FROM c', 'FETCH ALL FROM c', 'ROLLBACK'], ["SET TIME ZONE 'Asia/Tokyo'", 'SELECT zoned, zoned::text FROM samples ORDER BY id', 'SELECT date_trunc(\'day\', joined)::text AS d, count(*) FROM customers GROUP BY 1 HAVING count(*) > 0 ORDER BY 1 LIMIT 2', 'DISCARD ALL', 'SHOW DateStyle']]) {
    for (const [i, q] of script.entries()) await see(`script ${script[0]} ${i} ${q}`, async () => shown(await c.query(q)))
  }
  for (const rows of [1, 3, 100]) await see('rows by ' + rows, async () => shown(await c.query({ text: 'SELECT level, count(*) FROM customers GROUP BY level ORDER BY level', rows })).count)
  let Cursor = null, copy = null, Stream = null
  try { Cursor = require('pg-cursor') } catch (e) { }
  try { copy = require('pg-copy-streams') } catch (e) { }
  if (Cursor) {
    await see('pg-cursor', async () => {
      const cursor = c.query(new Cursor('SELECT level, count(*) FROM customers WHERE level > $1 GROUP BY level ORDER BY level', [1]))
      const got = [await cursor.read(2), await cursor.read(1), await cursor.read(5), await cursor.read(5)]
      await cursor.close()
      return [got, shown(await c.query('SELECT 1'))]
    })
    await see('pg-cursor with an error', async () => { const cursor = c.query(new Cursor('SELECT 1/0')); return cursor.read(1) })
    await see('pg-cursor closed early', async () => { const cursor = c.query(new Cursor('SELECT product_id FROM products ORDER BY 1')); const got = await cursor.read(2); await cursor.close(); return [got, shown(await c.query('SELECT 2'))] })
  }
  if (copy) {
    for (const text of ['COPY (SELECT tier, count(*) FROM customers GROUP BY 1 ORDER BY 1) TO STDOUT WITH CSV HEADER', 'COPY samples TO STDOUT']) await see('copy ' + text, async () => { let out = ''; for await (const part of c.query(copy.to(text))) out += part; return out })
    await see('copy from', () => new Promise((resolve, reject) => { const s = c.query(copy.from('COPY products (product_id) FROM STDIN')); s.on('error', reject); s.on('finish', () => resolve('finished')); s.end('1\n') }))
    await see('after copy from', async () => shown(await c.query('SELECT 1')))
  }
  await see('many at once', async () => Promise.all([1, 2, 3].map(async (i) => shown(await c.query('SELECT $1::int AS i, count(*) FROM customers', [i])))))
  await c.end()
  for (const more of [{ statement_timeout: 300 }, { query_timeout: 300 }, { application_name: 'a b' }, { options: '-c search_path=public -c TimeZone=Asia/Tokyo' }, { client_encoding: 'LATIN1' }, { lock_timeout: 100, idle_in_transaction_session_timeout: 500 }, { keepAlive: true, connectionTimeoutMillis: 5000 }, { enableChannelBinding: true }, { database: 'nosuch' }, { replication: 'database' }]) {
    await see('client ' + JSON.stringify(more), async () => {
      const d = new pg.Client(config(more))
      d.on('error', () => { })
      await d.connect()
      const got = []
      for (const q of ['SHOW application_name', 'SHOW DateStyle', 'SHOW client_encoding', 'SHOW statement_timeout', 'SHOW lock_timeout', more.statement_timeout || more.query_timeout ? 'SELECT pg_sleep(5)' : 'SELECT 1 AS a']) {
        try { got.push((await d.query(q)).rows) } catch (e) { got.push(error(e)) }
      }
      if (more.idle_in_transaction_session_timeout) { await d.query('BEGIN'); await sleep(1200); try { await d.query('SELECT 1'); got.push('goes on') } catch (e) { got.push(e.code === '25P03' || /Connection terminated|not queryable/.test(e.message)) } }
      await d.end()
      return got
    })
  }
  const pool = new pg.Pool(config({ max: 20, idleTimeoutMillis: 200 }))
  await see('pool', async () => (await Promise.all([...Array(60).keys()].map((i) => pool.query('SELECT count(*)::int AS n FROM customers WHERE level = $1', [1 + i % 4])))).map((r) => r.rows[0].n))
  await sleep(500)
  await see('pool after a rest', async () => shown(await pool.query('SELECT 1 AS a')))
  await pool.end()
}

main().then(() => process.exit(0), (e) => { console.error(e); process.exit(1) })
