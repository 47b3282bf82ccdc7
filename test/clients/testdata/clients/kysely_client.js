// Kysely over node-postgres against a running proxy: introspection, which sends booleans as parameters, and queries.
const fs = require('fs')
const path = require('path')
const { Pool } = require('pg')
const { Kysely, PostgresDialect, sql } = require('kysely')

const e = process.env

function check(what, ok) {
  if (!ok) throw new Error(what)
  console.log('ok', what)
}

async function main() {
  const at = require.resolve('kysely').split(path.sep + 'kysely' + path.sep)[0]
  console.log(`version ${JSON.parse(fs.readFileSync(path.join(at, 'kysely', 'package.json'))).version}`)
  const ssl = e.PGSSLMODE === 'disable' ? false : { ca: fs.readFileSync(e.PGSSLROOTCERT, 'utf8') }
  const pool = new Pool({ host: e.PGHOST, port: Number(e.PGPORT), user: e.PGUSER, password: e.PGPASSWORD, database: e.PGDATABASE, ssl })
  const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
  const spent = async () => (await sql`SELECT spent FROM dp.budget WHERE user_name = current_user`.execute(db)).rows[0].spent
  const before = await spent()
  console.log('did connects')

  const tables = (await db.introspection.getTables()).filter((t) => t.schema === 'public')
  check('tables', ['people', 'visits', 'bids', 'likes', 'prices', 'regions'].every((name) => tables.some((t) => t.name === name && !t.isView)))
  const age = tables.find((t) => t.name === 'people').columns.find((c) => c.name === 'age')
  check('columns', age.dataType === 'int4' && !age.isAutoIncrementing)
  check('schemas', (await db.introspection.getSchemas()).some((s) => s.name === 'public'))
  check('a boolean over catalogs', (await db.selectFrom('pg_catalog.pg_class').select('relname').where('relname', '=', 'regions').where('relhasrules', '=', false).execute()).length === 1)
  check('a boolean over a public table', (await sql`SELECT name FROM regions WHERE (area_km2 > ${1}) = ${true}`.execute(db)).rows.length === 5)
  check('browsing is free', (await spent()) === before)
  console.log('did browses')

  const people = db.selectFrom('people').select(({ fn }) => ['sex', fn.countAll().as('n')]).where('age', '>=', 30).groupBy('sex').orderBy('n', 'desc')
  check('groups', (await people.execute()).length >= 2)
  console.log('did queries')
  check('parameters', Number((await db.selectFrom('people').select(({ fn }) => fn.countAll().as('n')).where('region', 'in', ['north', 'south']).executeTakeFirstOrThrow()).n) > 0)
  console.log('did parameters')
  await db.destroy()
}

main().catch((err) => {
  console.error(err)
  process.exit(1)
})
