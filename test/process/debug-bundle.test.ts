import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Client, isRunning, until } from './support/client.ts'
import { TestCluster, flotilla } from './support/cluster.ts'
import { dataOf } from './support/enrolling.ts'

// Goal: a debug bundle of a controller, running or stopped, contains the relevant information and
// no secret. Method: one real controller. The test first creates every secret that a controller can
// have, and searches all bytes of the bundle for each of them.

const run = promisify(execFile)
const hookToken = 'hook-token-5f0c'
const password = 'Somebodys-own-password-81'

let cluster: TestCluster
let admin: Client
let logFile: string
const secrets: string[] = [hookToken, password]

beforeAll(async () => {
  cluster = await TestCluster.create({ nodes: 1 })
  logFile = join(cluster.dir, 'controller.jsonl')
  Object.assign(cluster.env, {
    FLOTILLA_LOG_FILE_PATH: logFile,
    FLOTILLA_BACKUP_HOOK: JSON.stringify(['/bin/true', '--token', hookToken]),
  })
  await cluster.quickstart()
  admin = await cluster.loggedIn(1)
  await plantSecrets()
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

async function plantSecrets(): Promise<void> {
  const management = '/edge/management/v1'
  const make = async (path: string, body: unknown): Promise<string> =>
    String(dataOf(await admin.request('POST', management + path, { body }), 201)['id'])
  const identity = { type: 'User', isAdmin: false }
  const device = await make('/identities', {
    ...identity,
    name: 'device',
    enrollment: { ott: true },
  })
  const { enrollment } = dataOf(await admin.request('GET', `${management}/identities/${device}`))
  const { ott } = enrollment as { ott: { token: string; jwt: string } }
  const person = await make('/identities', { ...identity, name: 'person' })
  const login = { identityId: person, method: 'updb', username: 'person', password }
  await make('/authenticators', login)
  const invite = await admin.request('POST', '/fabric/v1/cluster/invite', { body: {} })
  secrets.push(ott.token, ott.jwt, String(dataOf(invite)['ticket']))
  secrets.push(cluster.admin.password, String(admin.token), ...keysIn(cluster.folder))
}

/** Each line of each private key in a folder and its subfolders. */
function keysIn(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const keys = names.filter((name) => name.endsWith('.key'))
  return keys.flatMap((name) => {
    const lines = readFileSync(join(folder, name), 'utf8').split('\n')
    return lines.filter((line) => /^[A-Za-z0-9+/=]{20,}$/.test(line))
  })
}

interface Bundle {
  readonly parts: ReadonlyMap<string, string>
  readonly missing: readonly string[]
}

/** The tar of this host unpacks the bundle, as a recipient would do. */
async function bundle(name: string): Promise<Bundle> {
  const out = join(cluster.dir, `${name}.tar.gz`)
  const config = join(cluster.folder, 'ctrl1', 'config.yml')
  const words = ['debug', 'bundle', '--config', config, '--out', out, '--json']
  const { stdout } = await run(flotilla, words, { env: cluster.env })
  expect(statSync(out).mode & 0o777).toBe(0o600)
  const all = gunzipSync(readFileSync(out)).toString('latin1')
  for (const secret of secrets) expect(all.includes(secret), `${name} holds ${secret}`).toBe(false)
  const { stdout: listed } = await run('tar', ['-tzf', out])
  const parts = new Map<string, string>()
  for (const path of listed.trim().split('\n')) {
    const { stdout: text } = await run('tar', ['-xzOf', out, path], { maxBuffer: 8 * 1024 * 1024 })
    parts.set(path.slice(path.indexOf('/') + 1), text)
  }
  await expect(run(flotilla, words, { env: cluster.env })).rejects.toThrow(
    /already exists; choose another/,
  )
  return { parts, missing: (JSON.parse(stdout) as { missing: string[] }).missing }
}

function inPart({ parts }: Bundle, name: string): Record<string, unknown> {
  return JSON.parse(parts.get(name) ?? `"${name} is not there"`) as Record<string, unknown>
}

/** Metrics that a file in deploy/ uses and that a real controller does not serve. */
function unservedIn(file: string, metrics: string): string[] {
  const text = readFileSync(resolve(import.meta.dirname, '../../deploy', file), 'utf8')
  const served = new Set([...metrics.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name))
  const named = text.match(/\b(?:flotilla|process)_[a-z0-9_]*[a-z0-9]\b/g) ?? []
  expect(named.length).toBeGreaterThan(10)
  // Tunnels serve the remaining metrics (test/tunnel/metrics.test.ts).
  const ofController = named.filter((name) => !name.startsWith('flotilla_tunnel_'))
  return ofController.filter((name) => !served.has(name.replace(/_(bucket|count|sum)$/, '')))
}

test('a debug bundle of a running controller contains its state, limits, metrics, log and configuration, and no secret', async () => {
  expect(secrets.length).toBeGreaterThan(8)
  const made = await bundle('running')
  expect(made.missing).toEqual(['disk.json: read only while the controller is stopped'])
  expect(inPart(made, 'status.json')).toMatchObject({ selfId: 'ctrl1', leaderId: 'ctrl1' })
  expect(inPart(made, 'health.json')).toMatchObject({ role: 'leader', alarms: expect.any(Array) })
  expect(inPart(made, 'raft.json')).toMatchObject({ elections: expect.any(Number) })
  expect(inPart(made, 'upgrade.json')).toMatchObject({ state: 'complete' })
  expect(inPart(made, 'limits.json')).toMatchObject({ bodyBytesMax: 1024 * 1024 })
  expect(inPart(made, 'process.json')).toMatchObject({ heap: expect.any(Object) })
  const { backup, id } = inPart(made, 'configuration.json')
  expect(id).toBe('ctrl1')
  expect(backup).toMatchObject({ hook: '(redacted)', folder: null })
  expect(made.parts.get('metrics.txt')).toContain('flotilla_raft_term')
  expect(unservedIn('grafana/flotilla.json', made.parts.get('metrics.txt') ?? '')).toEqual([])
  expect(unservedIn('prometheus/rules.yml', made.parts.get('metrics.txt') ?? '')).toEqual([])
  expect(made.parts.get('log.jsonl')).toContain('"audit":"write"')
  expect(made.parts.get('data-folder.txt')).toMatch(/^- 600 +\d+ \S+ IDENTITY$/m)
})

test('a debug bundle of a stopped controller contains the data on its disk, and lists the items that are missing', async () => {
  const pid = cluster.pid(1)
  await cluster.interrupt()
  await until('it has ended', () => Promise.resolve(!isRunning(pid)))
  const made = await bundle('down')
  expect(inPart(made, 'disk.json')).toMatchObject({ id: 'ctrl1', finding: null, fencedBy: null })
  expect(made.missing.map((one) => one.split(':')[0])).toEqual([
    'status.json',
    'members.json',
    'upgrade.json',
    'version.json',
    'health.json',
    'raft.json',
    'process.json',
    'limits.json',
    'metrics.txt',
  ])
  expect(made.missing[0]).toContain('no controller is running')
  expect(made.parts.get('log.jsonl')).toContain('"audit":"write"')
})
