// node-postgres against a running proxy: text results, parameters without types, named statements, cursors where pg-cursor is there.
const fs = require('fs')
const { Client, Pool, Query } = require('pg')

const tls = process.env.PGSSLMODE === 'disable' ? false : { ca: fs.readFileSync(process.env.PGSSLROOTCERT) }
const config = (user) => ({ host: process.env.PGHOST, port: +process.env.PGPORT, database: process.env.PGDATABASE, user, password: user, ssl: tls })

function check(what, ok) {
  if (!ok) throw new Error(what)
  console.log('ok ' + what)
}

async function fails(code, run, hint) {
  try {
    await run()
  } catch (e) {
    if (e.code !== code || (hint && !e.hint)) throw e
    console.log('ok', code, e.hint || '')
    return
  }
  throw new Error('no error ' + code)
}

async function main() {
  const c = new Client(config(process.env.PGUSER))
  const told = []
  c.on('notice', (m) => told.push(m.message))
  await c.connect()
  console.log('version ' + require('pg/package.json').version)
  console.log('did connects')
  const spent = async () => +(await c.query('SELECT spent FROM dp.budget WHERE user_name = current_user')).rows[0]?.spent || 0
  const atFirst = await spent()
  const columns = await c.query('SELECT column_name FROM information_schema.columns WHERE table_name = $1', ['people'])
  check('columns', columns.rows.some((r) => r.column_name === 'age'))
  check('no rows of people', (await c.query('SELECT * FROM people LIMIT 0')).fields[0].name === 'age')
  check('values of a column', (await c.query('SELECT DISTINCT region FROM people')).rows.length >= 5)
  check('browsing is free', (await spent()) === atFirst)
  console.log('did browses')
  const questions = [
    ['SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2', [30, 40]],
    ['SELECT count(*) FROM people WHERE sex = $1', ['Female']],
    ['SELECT count(*) FROM people WHERE hired >= $1', ['2020-01-01']],
    ['SELECT count(*) FROM people WHERE hired >= $1', [new Date(Date.UTC(2020, 0, 1))]],
    ['SELECT count(*) FROM visits WHERE visited_at < $1', [new Date(Date.UTC(2025, 0, 1))]],
    ['SELECT count(*) FROM people WHERE region = ANY($1)', [['north', 'south']]],
    ['SELECT count(*) FROM people WHERE age = ANY($1)', [[30, 31]]],
    ['SELECT count(*) FROM people WHERE age = ANY($1::int[])', [[30, 31]]],
  ]
  for (const [text, values] of questions) {
    const r = await c.query(text, values)
    check(text + ' ' + r.rows[0].count, typeof r.rows[0].count === 'string' && r.rowCount === 1)
  }
  console.log('did parameters')
  check('notice', told.some((m) => m.includes('cost') || m.includes('free')))
  for (const age of [20, 30, 20]) {
    const r = await c.query({ name: 'older', text: 'SELECT count(*) FROM people WHERE age > $1', values: [age] })
    check('named ' + r.rows[0].count, r.rows.length === 1)
  }
  const r = await c.query({ rowMode: 'array', text: "SELECT 1::smallint, 2::int, 3::bigint, 1.5::float8, 2.50::numeric(6,2), 'x'::text, true, " +
    "TIMESTAMPTZ '2024-02-03 04:05:06+00', NULL::int, '6f1c2d3e-0000-4000-8000-000000000001'::uuid, ARRAY[1,2], ARRAY['a','b'], " +
    "INTERVAL '1 day 2 hours', DATE '2024-02-03'" })
  const v = r.rows[0]
  check('values ' + JSON.stringify(v), v[0] === 1 && v[1] === 2 && v[2] === '3' && v[3] === 1.5 && v[4] === '2.50' && v[5] === 'x' && v[6] === true &&
    v[7].getTime() === Date.UTC(2024, 1, 3, 4, 5, 6) && v[8] === null && v[10][1] === 2 && v[11][0] === 'a' && v[12].days === 1 && v[12].hours === 2)
  const b = await c.query({ text: 'SELECT count(*) AS n, 1.5::float8 AS f, true AS t FROM people WHERE age > $1', values: [30], binary: true })
  check('binary ' + JSON.stringify(b.rows), typeof b.rows[0].f === 'number' && b.rows[0].t === true)
  const part = await c.query({ text: 'SELECT age, count(*) FROM people GROUP BY age ORDER BY age', rows: 10 })
  check('rows in parts ' + part.rows.length, part.rows.length >= 110)
  const several = await c.query("SELECT 1; SET application_name = 'x'; SELECT 2 AS b")
  check('several', several.length === 3 && several[2].rows[0].b === 2)

  await fails('42703', () => c.query('SELECT count(*) FROM people WHERE wage > $1', [1]))
  await fails('42P01', () => c.query('SELECT count(*) FROM nobody'))
  await fails('42501', () => c.query('SELECT age FROM people'), true)
  await fails('DP002', () => c.query('SELECT corr(DISTINCT age, income) FROM people'), true)
  const before = await spent()
  await c.query('BEGIN')
  await c.query("SELECT count(*) FROM people WHERE hired > DATE '2005-03-01' + 10 * " + (process.env.CLIENTS_RUN || 0))
  await c.query('SAVEPOINT s')
  await fails('42703', () => c.query('SELECT nothing FROM people'))
  await fails('25P02', () => c.query('SELECT 1'))
  await c.query('ROLLBACK TO SAVEPOINT s')
  await c.query('SELECT 1')
  await c.query('ROLLBACK')
  check('a rollback gives nothing back', (await spent()) > before)
  await c.query('DISCARD ALL')

  let Cursor = null
  try { Cursor = require('pg-cursor') } catch (e) { console.log('no pg-cursor') }
  if (Cursor) {
    const cursor = c.query(new Cursor('SELECT age, count(*) FROM people GROUP BY age ORDER BY age', []))
    const first = await cursor.read(7), second = await cursor.read(5)
    check('cursor', first.length === 7 && second[0].age === 7)
    await cursor.close()
    check('after the cursor', (await c.query('SELECT 1 AS a')).rows[0].a === 1)
  }
  const script = ['DECLARE c CURSOR FOR SELECT age, count(*) FROM people GROUP BY age ORDER BY age', 'FETCH 4 FROM c', 'MOVE 2 IN c', 'FETCH c', 'CLOSE c']
  await c.query('BEGIN')
  const parts = await c.query(script.join('; '))
  await c.query('COMMIT')
  check('cursor of SQL', parts[1].rows.length === 4 && parts[3].rows[0].age === 6)
  await c.query('PREPARE younger (int) AS SELECT count(*) FROM people WHERE age < $1')
  check('EXECUTE', (await c.query('EXECUTE younger (40)')).rows.length === 1)
  let copy = null
  try { copy = require('pg-copy-streams') } catch (e) { console.log('no pg-copy-streams') }
  if (copy) {
    const stream = c.query(copy.to('COPY (SELECT sex, count(*) FROM people GROUP BY 1 ORDER BY 1) TO STDOUT WITH CSV HEADER'))
    let text = ''
    for await (const part of stream) text += part
    check('COPY ' + JSON.stringify(text), text.startsWith('sex,count\nFemale,'))
  }
  console.log('did queries')
  let cancelled = null
  for (const wait of [200, 500, 100, 1000, 50]) { // until one falls into the middle
    const many = [...Array(400).keys()].map((i) => "SELECT count(*) FROM people WHERE hired < DATE '2013-01-01' + " + (i + wait))
    const long = new Query('SET dp.epsilon = 0.001; ' + many.join('; '))
    const ended = new Promise((resolve) => { long.on('error', (e) => resolve(e.code)); long.on('end', () => resolve('')) })
    c.query(long)
    setTimeout(() => new Client({ ...config(process.env.PGUSER), ssl: false }).cancel(c, long), wait)
    if ((cancelled = await ended)) break
  }
  check('cancelled', cancelled === '57014')
  await c.query('RESET dp.epsilon')
  console.log('did cancels')
  await c.end()

  const pool = new Pool({ ...config(process.env.PGUSER), max: 3, statement_timeout: 20000, application_name: 'pool' })
  const all = await Promise.all([...Array(9).keys()].map((i) => pool.query('SELECT count(*) FROM people WHERE age > $1', [40 + (i % 3)])))
  check('pool', all.length === 9)
  await pool.end()

  const poor = new Client(config(process.env.PGPOOR))
  await poor.connect()
  await poor.query('SET dp.epsilon = 1')
  await fails('DP001', async () => {
    for (let day = 1; day < 5; day++) await poor.query('SELECT count(*) FROM people WHERE hired <> $1', ['2020-04-0' + day])
  }, true)
  await poor.end()
  await fails('28P01', () => new Client({ ...config(process.env.PGUSER), password: 'wrong' }).connect())
}

main().catch((e) => { console.error(e); process.exit(1) })
