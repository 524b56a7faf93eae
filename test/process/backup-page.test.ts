import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { askController } from '../../src/cli/client/admin-socket.ts'
import { requestOf } from '../../src/cli/client/connection.ts'
import type { ClusterStatus } from '../../src/api/cluster/cluster-status.ts'
import { flotilla } from '../support/program.ts'
import { type Client, until } from './support/client.ts'
import { dataOf } from './support/enrolling.ts'
import { Fleet } from './support/fleet.ts'
import { run } from './support/page.ts'

// Goal: whoever follows docs/backup.md word for word backs a cluster up, puts a mistake right and restores it after the loss of all.
// Method: each line of the drill as it stands there. Hosts are folders: the old controller, the restored one, the one that joins.

const page = readFileSync(resolve(import.meta.dirname, '../../docs/backup.md'), 'utf8')
const management = '/edge/management/v1'
const OLD = 1
const RESTORED = 2
const JOINING = 3

let fleet: Fleet
let folder = ''
const children: ChildProcess[] = []
/** What a reader fills in. */
const noted = new Map<string, string>()

beforeAll(async () => {
  fleet = await Fleet.create(3)
  folder = join(fleet.dir, 'operator')
  mkdirSync(folder)
  await fleet.init()
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await fleet[Symbol.asyncDispose]()
})

/** The blocks of one step, by how its bold head begins. */
function blocksOf(step: string): string[] {
  const from = page.indexOf(`\n**${step}. `)
  expect(from, `step ${step}`).toBeGreaterThan(0)
  const rest = page.slice(from + 1)
  const end = /\n(?:\*\*\w\. |## )/.exec(rest)?.index ?? rest.length
  return [...rest.slice(0, end).matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
}

/** Paths, addresses and what was noted as they are on that host. */
function onHost(k: number, text: string): string {
  return text
    .replaceAll('/etc/flotilla/config.yml', fleet.config(k))
    .replace(/(?:--id \S+ )?--advertise ctrl\d\.example\.net/, fleet.flags(k).join(' '))
    .replace(/<([^>]+)>/g, (_, name: string) => noted.get(name) ?? `'${name} was not noted'`)
}

/** Types what is on the page, but for what runs on in the foreground: that is started, and returned from. */
async function type(k: number, text: string): Promise<string> {
  const lines = onHost(k, text)
  const at = lines.search(/^flotilla (?:controller run|cluster join)/m)
  const typed = at < 0 ? lines : lines.slice(0, at)
  const { code, output } = await run(`PATH='${dirname(flotilla)}':$PATH\n${typed}`, folder)
  expect(code, `${typed}\n${output}`).toBe(0)
  if (at >= 0) begin(lines.slice(at))
  return output
}

function begin(line: string): void {
  const script = `PATH='${dirname(flotilla)}':$PATH; exec ${line.trim()}`
  children.push(spawn('sh', ['-c', script], { cwd: folder, env: fleet.env, stdio: 'ignore' }))
}

async function statusOf(k: number): Promise<ClusterStatus> {
  return (await askController(fleet.data(k), requestOf('status'))) as ClusterStatus
}

async function names(client: Client): Promise<unknown[]> {
  const answer = await client.request('GET', `${management}/services?limit=500&sort=name`)
  return (dataOf(answer) as unknown as { name: string }[]).map(({ name }) => name)
}

async function make(client: Client, name: string): Promise<void> {
  const body = { name, encryptionRequired: true }
  expect((await client.request('POST', `${management}/services`, { body })).status).toBe(201)
}

test('the drill of docs/backup.md works as it stands there: saved, put back, lost, restored and joined', async () => {
  const client = await fleet.loggedIn(OLD)
  await make(client, 'wiki')
  for (const step of ['1', '2']) {
    for (const block of blocksOf(step)) {
      const output = await type(OLD, block)
      const sha256 = /SHA-256 ([0-9a-f]{64})/.exec(output)?.[1]
      if (sha256 !== undefined) noted.set('the one that was noted', sha256)
    }
  }
  expect(await type(OLD, blocksOf('3').join('\n'))).toMatch(/monday\.backup .* complete$/m)

  await make(client, 'by mistake')
  noted.set('the id of the cluster', (await statusOf(OLD)).clusterId)
  expect(await type(OLD, blocksOf('a').join('\n'))).toMatch(/^service +0 +0 +1$/m)
  expect(await type(OLD, blocksOf('b').join('\n'))).toMatch(/^replaced the records at index \d+/m)
  expect(await names(await fleet.loggedIn(OLD))).toEqual(['wiki'])

  await fleet.stop(OLD, 'SIGKILL')
  mkdirSync(fleet.folder(RESTORED))
  await type(RESTORED, blocksOf('4').join('\n'))
  const restored = await fleet.loggedIn(RESTORED)
  expect(await names(restored)).toEqual(['wiki'])
  expect(await type(RESTORED, blocksOf('5').join('\n'))).toContain('leader: ')

  const [invite = '', join = '', ...more] = blocksOf('6')
  expect(more).toEqual([])
  await type(RESTORED, invite)
  mkdirSync(fleet.folder(JOINING))
  await type(JOINING, join)
  await until(
    'the other has joined',
    async () => {
      const { members } = await statusOf(RESTORED)
      return members.length === 2 && members.every(({ role }) => role !== 'learner')
    },
    60_000,
  )
  expect(await names(await fleet.loggedIn(JOINING))).toEqual(['wiki'])
})
