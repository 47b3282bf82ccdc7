// What makes code of a schema, against a running proxy: kysely-codegen, kanel and PostGraphile (4; 5 wants Node 22).
const fs = require('fs')
const os = require('os')
const path = require('path')
const { execFileSync } = require('child_process')
const { Pool } = require('pg')

const e = process.env
const ca = e.PGSSLROOTCERT
const where = {
  host: e.PGHOST, port: Number(e.PGPORT), user: e.PGASSISTANT, password: e.PGPASSWORD, database: e.PGDATABASE,
  ssl: { ca: fs.readFileSync(ca, 'utf8') },
}
const url = `postgres://${e.PGASSISTANT}:${e.PGPASSWORD}@${e.PGHOST}:${e.PGPORT}/${e.PGDATABASE}` +
  `?sslmode=verify-full&sslrootcert=${encodeURIComponent(ca)}`
const howToAsk = 'EXPLAIN says what a question costs'

function check(what, ok) {
  if (!ok) throw new Error(what)
  console.log('ok', what)
}

// run runs the program of an npm package in a folder, and prints the package's version.
function run(name, folder, args) {
  const at = path.join(e.NODE_PATH, name)
  const { version, bin } = JSON.parse(fs.readFileSync(path.join(at, 'package.json')))
  console.log(`version ${version}`)
  const program = path.join(at, typeof bin === 'string' ? bin : bin[name])
  return execFileSync('node', [program, ...args], { cwd: folder, encoding: 'utf8' })
}

const generators = {
  'kysely-codegen': async (folder) => {
    const text = run('kysely-codegen', folder, ['--print', '--dialect', 'postgres', '--url', url])
    check('types', ['age: number | null;', 'person_id: Int8;', '"dp.budget": DpBudget'].every((t) => text.includes(t)))
    check('comments', text.includes('one of Female, Male'))
  },
  kanel: async (folder) => {
    const settings = { connection: where, outputPath: 'out', schemas: ['public'] }
    fs.writeFileSync(path.join(folder, 'kanel.js'), `module.exports = ${JSON.stringify(settings)}`)
    run('kanel', folder, ['-c', 'kanel.js'])
    const text = fs.readFileSync(path.join(folder, 'out', 'public', 'People.ts'), 'utf8')
    check('types', text.includes('age: number | null;') && text.includes('PeoplePersonId'))
    check('comments, and how to ask', text.includes('one of Female, Male') && text.includes(howToAsk))
  },
  postgraphile: async (folder, pool, spent, before) => {
    const { createPostGraphileSchema, withPostGraphileContext } = require('postgraphile')
    const { graphql, printSchema } = require('graphql')
    console.log(`version ${require('postgraphile/package.json').version}`)
    const schema = await createPostGraphileSchema(pool, ['public'], { disableDefaultMutations: true })
    const text = printSchema(schema)
    check('types', text.includes('type Person implements Node') && text.includes('age: Int'))
    check('comments, and how to ask', text.includes('one of Female, Male') && text.includes(howToAsk))
    check('browsing is free', (await spent()) === before)
    const ask = (q) => withPostGraphileContext({ pgPool: pool }, (context) => graphql(schema, q, null, { ...context }))
    const { data } = await ask('{ allPeople(condition: {sex: "Male"}) { totalCount } allRegions { nodes { name } } }')
    check('a count and public rows', data.allPeople.totalCount > 0 && data.allRegions.nodes.length === 5)
    const after = await spent()
    const refused = await ask('{ allPeople { nodes { age } } }')
    const { message } = refused.errors[0]
    check('rows are refused, with the hint', message.includes('not permitted') && message.includes('HINT'))
    check('and cost nothing', (await spent()) === after)
    console.log('did queries')
  },
}

async function main() {
  const pool = new Pool(where)
  const balance = 'SELECT spent FROM dp.budget WHERE user_name = current_user'
  const spent = async () => (await pool.query(balance)).rows[0].spent
  const before = await spent()
  console.log('did connects')
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'generators-'))
  try {
    await generators[process.argv[2]](folder, pool, spent, before)
  } finally {
    fs.rmSync(folder, { recursive: true })
  }
  if (process.argv[2] !== 'postgraphile') check('browsing is free', (await spent()) === before)
  console.log('did browses')
  await pool.end()
}

main().catch((err) => {
  console.error(err)
  process.exit(1)
})
