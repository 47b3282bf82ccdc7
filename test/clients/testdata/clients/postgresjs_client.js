// postgres.js against a running proxy: its own types on connecting, parameters described by the server, cursors, COPY, cancelling.
const fs = require('fs')
const postgres = require('postgres')

function check(what, ok) {
  if (!ok) throw new Error(what)
  console.log('ok ' + what)
}

async function fails(code, run) {
  try {
    await run()
  } catch (e) {
    if (e.code !== code) throw e
    console.log('ok', code, e.hint || '')
    return
  }
  throw new Error('no error ' + code)
}

async function main() {
  const told = []
  const sql = postgres({ host: process.env.PGHOST, port: +process.env.PGPORT, database: process.env.PGDATABASE, username: process.env.PGUSER,
    password: process.env.PGPASSWORD, max: 1, onnotice: (m) => told.push(m.message),
    ssl: process.env.PGSSLMODE === 'disable' ? false : { ca: fs.readFileSync(process.env.PGSSLROOTCERT) } })
  const spent = async () => JSON.stringify(await sql`SELECT spent FROM dp.budget WHERE user_name = current_user`)
  const before = await spent()
  console.log('version ' + JSON.parse(fs.readFileSync(require.resolve('postgres').replace(/cjs.*/, 'package.json'))).version)
  console.log('did connects')
  const columns = await sql`SELECT column_name FROM information_schema.columns WHERE table_name = ${'people'}`
  check('columns', columns.some((r) => r.column_name === 'age'))
  check('values of a column', (await sql`SELECT DISTINCT region FROM people`).length >= 5)
  check('described', (await sql`SELECT age, count(*) FROM people WHERE age > ${3} GROUP BY age`.describe()).columns[0].name === 'age')
  check('browsing is free', (await spent()) === before)
  console.log('did browses')
  for (const q of [() => sql`SELECT count(*) FROM people WHERE age BETWEEN ${30} AND ${40}`, () => sql`SELECT count(*) FROM people WHERE sex = ${'Female'}`,
    () => sql`SELECT count(*) FROM people WHERE hired >= ${'2020-01-01'}`, () => sql`SELECT count(*) FROM visits WHERE visited_at < ${new Date(Date.UTC(2025, 0, 1))}`,
    () => sql`SELECT count(*) FROM people WHERE region IN ${sql(['north', 'south'])}`, () => sql`SELECT count(*) FROM people WHERE age = ANY(${[30, 31]})`]) {
    const first = await q(), second = await q()
    check('count ' + first[0].count, first[0].count === second[0].count)
  }
  console.log('did parameters')
  check('notice', told.some((m) => m.includes('cost') || m.includes('free')))
  let n = 0
  for await (const rows of sql`SELECT age, count(*) FROM people GROUP BY age ORDER BY age`.cursor(25)) n += rows.length
  check('cursor ' + n, n >= 110)
  let text = ''
  for await (const part of await sql`COPY (SELECT sex, count(*) FROM people GROUP BY 1 ORDER BY 1) TO STDOUT WITH CSV HEADER`.readable()) text += part
  check('COPY ' + JSON.stringify(text), text.startsWith('sex,count\nFemale,'))
  const several = await sql.begin(async (tx) => [await tx`SELECT 1 AS a`, await tx`SELECT count(*) FROM people WHERE age > 20`])
  check('transaction', several.length === 2)
  await fails('42501', () => sql`SELECT age FROM people`)
  await fails('42703', () => sql`SELECT count(*) FROM people WHERE wage > ${1}`)
  console.log('did queries')
  await sql`SET dp.epsilon = 0.001`
  let cancelled = ''
  for (const wait of [200, 500, 100, 1000, 50]) { // until one falls into the middle
    const many = [...Array(400).keys()].map((i) => "SELECT count(*) FROM people WHERE hired < DATE '2015-01-01' + " + (i + wait))
    const long = sql.unsafe(many.join('; ')).execute()
    setTimeout(() => long.cancel(), wait)
    await long.catch((e) => { cancelled = e.code })
    if (cancelled) break
  }
  check('cancelled', cancelled === '57014')
  check('after a cancel', (await sql`SELECT 1 AS a`)[0].a === 1)
  console.log('did cancels')
  await sql.end()
}

main().catch((e) => { console.error(e); process.exit(1) })
