// drizzle-kit pull as from a shell, and drizzle-orm over node-postgres, against a running proxy.
const { execFileSync } = require('child_process')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { Pool } = require('pg')
const { drizzle } = require('drizzle-orm/node-postgres')
const { and, avg, count, desc, eq, gte, inArray, sql } = require('drizzle-orm')
const { pgTable, integer, text, date } = require('drizzle-orm/pg-core')

const e = process.env
const modules = path.resolve(require.resolve('drizzle-orm'), '..', '..')
const versionOf = (name) => JSON.parse(fs.readFileSync(path.join(modules, name, 'package.json'))).version

function check(what, ok) {
  if (!ok) throw new Error(what)
  console.log('ok', what)
}

async function main() {
  console.log(`version kit ${versionOf('drizzle-kit')}, orm ${versionOf('drizzle-orm')}`)
  const ssl = e.PGSSLMODE === 'disable' ? false : { ca: fs.readFileSync(e.PGSSLROOTCERT, 'utf8') }
  const credentials = { host: e.PGHOST, port: Number(e.PGPORT), user: e.PGUSER, password: e.PGPASSWORD, database: e.PGDATABASE, ssl }
  const pool = new Pool(credentials)
  const db = drizzle(pool)
  const spent = async () => (await db.execute(sql`SELECT spent FROM dp.budget WHERE user_name = current_user`)).rows[0].spent
  const before = await spent()
  console.log('did connects')

  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'drizzle'))
  try {
    fs.symlinkSync(modules, path.join(dir, 'node_modules'))
    fs.writeFileSync(path.join(dir, 'drizzle.config.js'), `module.exports = ${JSON.stringify({ dialect: 'postgresql', out: dir + '/out', dbCredentials: credentials })}`)
    execFileSync('node', [path.join(modules, 'drizzle-kit', 'bin.cjs'), 'pull'], { cwd: dir, timeout: 120000, stdio: 'pipe' })
    const schema = fs.readFileSync(path.join(dir, 'out', 'schema.ts'), 'utf8')
    check('pull', ['people', 'visits', 'bids', 'likes', 'prices', 'regions'].every((t) => schema.includes(`pgTable("${t}"`)))
    check('columns', schema.includes('age: integer()') && schema.includes('sex: text().notNull()') && schema.includes('hired: date()') &&
      schema.includes('timestamp("visited_at", { withTimezone: true') && schema.includes('apple: boolean().notNull()'))
  } finally {
    fs.rmSync(dir, { recursive: true })
  }
  check('browsing is free', (await spent()) === before)
  console.log('did browses')

  const people = pgTable('people', { age: integer(), sex: text(), income: integer(), region: text(), hired: date() })
  const regions = pgTable('regions', { code: text(), name: text() })
  check('$count', Number.isInteger(await db.$count(people, eq(people.sex, 'Female'))))
  const rows = await db.select({ sex: people.sex, n: count(), income: avg(people.income) }).from(people)
    .where(and(gte(people.age, 30), inArray(people.region, ['north', 'south']))).groupBy(people.sex).orderBy(desc(count()))
  check(`groups ${JSON.stringify(rows)}`, rows.length === 2 && rows[0].n >= rows[1].n)
  console.log('did parameters')
  check('prepared', (await db.select({ n: count() }).from(people).where(gte(people.age, sql.placeholder('age'))).prepare('older').execute({ age: 40 })).length === 1)
  check('rows of a public table', (await db.select().from(regions).orderBy(regions.code).limit(3)).length === 3)
  let said
  try {
    await db.select().from(people).limit(10)
  } catch (error) {
    said = error.cause
  }
  check(`rows: ${said.message}`, said.code === '42501' && said.hint.includes('aggregates'))
  console.log('did queries')
  await pool.end()
}

main().catch((error) => {
  console.error(error, String(error.stdout || ''), String(error.stderr || ''))
  process.exit(1)
})
