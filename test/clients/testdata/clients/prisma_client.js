// Prisma's client over node-postgres, generated as from a shell, against a running proxy.
const { execFileSync } = require('child_process')
const fs = require('fs')
const os = require('os')
const path = require('path')

const SCHEMA = `
generator client {
  provider = "prisma-client-js"
  output   = "./client"
}
datasource db {
  provider = "postgresql"
}
model people {
  age    Int       @id // no column is a key, and Prisma must have one
  sex    String
  income Int?
  region String
  hired  DateTime? @db.Date
}
model regions {
  code String  @id
  name String?
}
`
const e = process.env

function check(what, ok) {
  if (!ok) throw new Error(what)
  console.log('ok', what)
}

async function refused(what, ask) {
  try {
    await ask()
  } catch (error) {
    const cause = error.meta?.driverAdapterError?.cause
    return check(`${what}: ${cause?.message}`, cause?.code === '42501' && cause.hint !== '')
  }
  throw new Error(what + ' was answered')
}

async function main() {
  const modules = path.resolve(require.resolve('@prisma/adapter-pg'), '..', '..', '..', '..')
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'prisma'))
  try {
    fs.symlinkSync(modules, path.join(dir, 'node_modules'))
    fs.writeFileSync(path.join(dir, 'schema.prisma'), SCHEMA)
    fs.writeFileSync(path.join(dir, 'prisma.config.ts'), 'export default { schema: "schema.prisma" }')
    // The engine that compares schemas is a download of its own; the client has no need of it.
    execFileSync('node', [path.join(modules, 'prisma', 'build', 'index.js'), 'generate'],
      { cwd: dir, timeout: 120000, stdio: 'pipe', env: { ...e, PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', CHECKPOINT_DISABLE: '1' } })
    await ask(require(path.join(dir, 'client')))
  } finally {
    fs.rmSync(dir, { recursive: true })
  }
}

async function ask({ PrismaClient, Prisma }) {
  console.log('version', Prisma.prismaVersion.client)
  const { PrismaPg } = require('@prisma/adapter-pg')
  const db = new PrismaClient({ adapter: new PrismaPg({ host: e.PGHOST, port: Number(e.PGPORT), user: e.PGUSER, password: e.PGPASSWORD,
    database: e.PGDATABASE, ssl: { ca: fs.readFileSync(e.PGSSLROOTCERT, 'utf8') } }) })
  await db.$connect()
  console.log('did connects')
  const where = { age: { gte: 30 }, region: { in: ['north', 'south'] }, hired: { lt: new Date('2024-01-01') } }
  check('count', Number.isInteger(await db.people.count()) && Number.isInteger(await db.people.count({ where })))
  console.log('did parameters')
  const both = await db.people.count({ select: { _all: true, income: true } })
  check('count of a column', both._all > both.income)
  const groups = await db.people.groupBy({ by: ['sex'], _count: { _all: true }, _avg: { income: true }, orderBy: { _count: { age: 'desc' } } })
  check(`groupBy ${JSON.stringify(groups)}`, groups.length === 2 && groups[0]._count._all > 0)
  check('having', (await db.people.groupBy({ by: ['sex'], _count: true, orderBy: { sex: 'asc' }, having: { age: { _avg: { gt: 10 } } } })).length === 2)
  const all = await db.people.aggregate({ _avg: { income: true }, _sum: { income: true }, _max: { age: true }, _count: true, where: { sex: 'Male' } })
  check('aggregate', all._count > 0 && typeof all._avg.income === 'number' && all._sum.income > 0)
  check('contains', Number.isInteger(await db.people.count({ where: { sex: { contains: 'ALE', mode: 'insensitive' } } })))
  check('$queryRaw', (await db.$queryRaw`SELECT sex, count(*)::int AS n FROM people WHERE age > ${30} GROUP BY 1`).length === 2)
  check('$transaction', (await db.$transaction([db.people.count(), db.regions.count()]))[1] > 2)
  check('rows of a public table', (await db.regions.findMany({ orderBy: { code: 'asc' }, take: 3 })).length === 3 &&
    (await db.regions.findUnique({ where: { code: 'north' } })).name !== '')
  await refused('findMany', () => db.people.findMany({ take: 10 }))
  await refused('findFirst', () => db.people.findFirst({ where: { age: 30 } }))
  await refused('create', () => db.regions.create({ data: { code: 'x', name: 'x' } }))
  check('the connection stays', Number.isInteger(await db.people.count()))
  console.log('did queries')
  await db.$disconnect()
}

main().catch((error) => {
  console.error(error, String(error.stdout || ''), String(error.stderr || ''))
  process.exit(1)
})
