import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'

import type { Json } from '../../src/lib/text/canonical-json.ts'
import { Client } from '../process/support/client.ts'
import { comparedLists, differences, knownDifferences, listPath } from './migrated-lists.ts'
import { seen } from './stock-router.ts'

// Migrates recorded OpenZiti networks, starts a controller with the result and compares every list
// of the API with the answers that OpenZiti gave: `node test/stock/migrate.ts --data FOLDER
// [--keep]`. Each folder in FOLDER has the configurations (*.yml, *.yaml), snapshots (*.db.gz),
// `pki.tar.gz` and `api/LIST.json` of one network, whose files were originally in /stock/.

const program = resolve(import.meta.dirname, '../../src/main.ts')
const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    password: { type: 'string', default: 'migr8-Admin' },
    keep: { type: 'boolean', default: false },
    set: { type: 'string' },
  },
})
const { data } = values
if (data === undefined || !existsSync(data)) {
  console.log('skipped: --data names no folder of recorded networks')
  process.exit(0)
}
const names = readdirSync(data)
  .filter((name) => existsSync(join(data, name, 'pki.tar.gz')))
  .filter((name) => values.set === undefined || name === values.set)
let failures = 0
for (const name of names) failures += await moveNetwork(name, join(data, name))
console.log(failures === 0 ? 'every list is as expected' : `${failures} unexpected differences`)
process.exitCode = failures === 0 ? 0 : 1

async function moveNetwork(name: string, from: string): Promise<number> {
  console.log(`${name}:`)
  const folder = mkdtempSync(join(tmpdir(), `flotilla-migrate-${name}-`))
  let controller: ChildProcess | null = null
  try {
    const { configurations, databases } = layOut(from, folder)
    const backup = join(folder, 'net.backup')
    const configs = join(folder, 'configs')
    run(
      'migrate',
      ...configurations,
      '--db',
      ...databases,
      '--out',
      backup,
      '--configs',
      configs,
      '--plaintext',
    )
    const [id = ''] = readdirSync(configs).sort()
    const config = join(configs, id, 'config.yml')
    run('cluster', 'snapshot', 'restore', backup, config)
    controller = spawn(process.execPath, [program, 'controller', 'run', config], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const address = /advertise: (\S+)\n {4}apis/.exec(readFileSync(config, 'utf8'))?.[1] ?? ''
    const client = new Client(`https://${address}`, join(configs, id, 'ca.pem'))
    await seen('a log-in with the old password', async () => {
      const url = '/edge/management/v1/authenticate?method=password'
      const body = { username: 'admin', password: values.password }
      const answer = await client.request('POST', url, { body, isHeld: false }).catch(() => null)
      if (answer?.status !== 200) return false
      client.token = (answer.body.data as { readonly token: string }).token
      return true
    })
    return await compare(client, join(from, 'api'))
  } finally {
    controller?.kill('SIGTERM')
    if (controller !== null) await new Promise((done) => controller?.once('exit', done))
    if (values.keep) console.log(`  kept in ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
  }
}

/** Unpacks a recorded network, and replaces its paths in /stock/NAME by paths in the folder. */
function layOut(from: string, folder: string) {
  execFileSync('tar', ['xzf', join(from, 'pki.tar.gz'), '-C', folder])
  const files = readdirSync(from)
  const configurations = files.filter((name) => /\.ya?ml$/.test(name)).sort()
  for (const name of configurations) {
    const text = readFileSync(join(from, name), 'utf8').replaceAll(
      /\/stock\/[a-z]+\//g,
      `${folder}/`,
    )
    writeFileSync(join(folder, name), text)
  }
  const databases = files.filter((name) => /\.db\.gz$/.test(name) && !name.includes('stopped'))
  for (const name of databases) {
    writeFileSync(join(folder, basename(name, '.gz')), gunzipSync(readFileSync(join(from, name))))
  }
  cpSync(join(from, 'clients'), join(folder, 'clients'), { recursive: true })
  return {
    configurations: configurations.map((name) => join(folder, name)),
    databases: databases.map((name) => join(folder, basename(name, '.gz'))),
  }
}

function run(...words: string[]): void {
  execFileSync(process.execPath, [program, ...words], { stdio: ['ignore', 'pipe', 'inherit'] })
}

async function compare(client: Client, answers: string): Promise<number> {
  let unexpected = 0
  for (const list of comparedLists) {
    const before = JSON.parse(readFileSync(join(answers, `${list}.json`), 'utf8')) as Json
    const { status, body } = await client.request('GET', listPath(list))
    if (status !== 200) throw new Error(`${list}: ${status}`)
    const after = body.data as Json
    const found = differences(list, before, after)
    const unknown = found.filter((one) => !knownDifferences.some((known) => known.matches(one)))
    const count = Array.isArray(before) ? before.length : 1
    console.log(
      `  ${list}: ${count} records, ${found.length} differences, ${unknown.length} unexpected`,
    )
    for (const { id, path, before: was, after: is } of unknown.slice(0, 20)) {
      console.log(`    ${id} ${path}: ${short(was)} became ${short(is)}`)
    }
    unexpected += unknown.length
  }
  return unexpected
}

function short(value: Json | undefined): string {
  return (JSON.stringify(value) ?? 'nothing').slice(-160)
}
