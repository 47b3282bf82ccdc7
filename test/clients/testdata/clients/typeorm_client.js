// TypeORM over node-postgres: what it reads of a schema, and its questions, against a running proxy.
require('reflect-metadata')
const fs = require('fs')
const { DataSource, EntitySchema } = require('typeorm')

function check(what, ok) {
  if (!ok) throw new Error(what)
  console.log('ok', what)
}

async function refused(what, ask) {
  let said
  try {
    said = JSON.stringify(await ask())
  } catch (e) {
    return check(`${what}: ${e.message}`, e.code === '42501' && e.message.startsWith('rows of private table people cannot be read') && e.hint.includes('aggregates'))
  }
  throw new Error(`${what} answered ${said}`)
}

const People = new EntitySchema({
  name: 'People', tableName: 'people',
  columns: { age: { type: 'int', primary: true }, sex: { type: 'text' }, income: { type: 'int' }, region: { type: 'text' }, hired: { type: 'date' } },
})
const Region = new EntitySchema({ name: 'Region', tableName: 'regions', columns: { code: { type: 'text', primary: true }, name: { type: 'text' } } })

async function main() {
  const e = process.env
  console.log('version', JSON.parse(fs.readFileSync(require.resolve('typeorm').replace(/typeorm\/.*/, 'typeorm/package.json'))).version)
  const source = new DataSource({
    type: 'postgres', host: e.PGHOST, port: Number(e.PGPORT), username: e.PGUSER, password: e.PGPASSWORD, database: e.PGDATABASE,
    ssl: { ca: fs.readFileSync(e.PGSSLROOTCERT) }, synchronize: false, entities: [People, Region],
  })
  await source.initialize()
  const spent = async () => (await source.query('SELECT spent FROM dp.budget WHERE user_name = current_user'))[0].spent
  const before = await spent()
  console.log('did connects')

  const runner = source.createQueryRunner()
  const tables = await runner.getTables(['people', 'visits', 'regions', 'bids'])
  check('tables', tables.map((t) => t.name).sort().join(' ') === 'bids people regions visits')
  const people = tables.find((t) => t.name === 'people')
  const types = people.columns.map((c) => `${c.name} ${c.type}${c.isNullable ? '' : ' not null'}`).sort().join(', ')
  check(types, types.includes('age integer') && types.includes('hired date') && types.includes('sex text not null'))
  check('comments', /0 to 109/.test(people.columns.find((c) => c.name === 'age').comment) && /private/.test(people.comment))
  check('keys', people.primaryColumns.map((c) => c.name).join() === 'person_id' && people.foreignKeys.length === 0 && people.indices.length === 0 && people.checks.length === 0)
  check('names', (await runner.hasTable('people')) && !(await runner.hasTable('nobody')) && (await runner.hasColumn('people', 'age')) &&
    (await runner.hasSchema('public')) && (await runner.getCurrentDatabase()) === e.PGDATABASE && (await runner.getCurrentSchema()) === 'public')
  check('views', (await runner.getViews([])).length === 0)
  await runner.release()
  check('browsing is free', (await spent()) === before)
  console.log('did browses')

  const r = source.getRepository(People)
  const n = await r.count()
  check(`count ${n}`, Number.isInteger(n))
  check('countBy', Number.isInteger(await r.countBy({ sex: 'Female' })))
  check('average', typeof (await r.average('income', { sex: 'Male' })) === 'number')
  check('sum', typeof (await r.sum('income')) === 'number')
  const rows = await r.createQueryBuilder('p').select('p.sex', 'sex').addSelect('COUNT(*)', 'n').where('p.age > :age', { age: 30 })
    .andWhere('p.region IN (:...regions)', { regions: ['north', 'south'] }).groupBy('p.sex').orderBy('n', 'DESC').getRawMany()
  check(`query builder ${JSON.stringify(rows)}`, rows.length === 2 && rows[0].sex.endsWith('ale'))
  check('getCount', Number.isInteger(await r.createQueryBuilder('p').where('p.hired >= :day', { day: new Date('2020-01-01') }).getCount()))
  console.log('did parameters')
  const regions = await source.getRepository(Region).find({ order: { code: 'ASC' }, take: 3 })
  check('rows of a public table', regions.length === 3 && regions[0].name !== '' && (await source.getRepository(Region).existsBy({ code: regions[0].code })))
  await refused('find', () => r.find({ take: 10 }))
  await refused('findOneBy', () => r.findOneBy({ age: 30 }))
  await refused('existsBy', () => r.existsBy({ sex: 'Female' }))
  check('the connection stays', Number.isInteger(await r.count()))
  console.log('did queries')
  await source.destroy()
}

main().catch((e) => {
  console.error(e)
  process.exit(1)
})
