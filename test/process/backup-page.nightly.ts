import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { sendToAdminSocket } from '../../src/cli/client/admin-socket.ts'
import { clusterOperationRequest } from '../../src/cli/client/connection.ts'
import type { ClusterStatus } from '../../src/api/cluster/cluster-status.ts'
import { shellBlocksBelow } from '../support/pages.ts'
import { flotilla } from '../support/program.ts'
import { type Client, until } from './support/client.ts'
import { dataOf } from './support/enrolling.ts'
import { Fleet } from './support/fleet.ts'
import { run } from './support/page.ts'

// Goal: a reader who follows docs/operate/backup-and-restore.md backs up a cluster, corrects a
// mistake and restores the cluster after the loss of all controllers. Method: the test runs each
// line unchanged. Folders represent the hosts: of the old controller, the restored one, and the
// joining one.

const page = 'operate/backup-and-restore.md'
const management = '/edge/management/v1'
const OLD = 1
const RESTORED = 2
const JOINING = 3

let fleet: Fleet
let folder = ''
const children: ChildProcess[] = []
/** Values that a reader fills in. */
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

/** @returns the code blocks below a heading, one for each step. */
function blocksOf(heading: string, count: number): string[] {
  const blocks = shellBlocksBelow(page, heading)
  expect(blocks, heading).toHaveLength(count)
  return blocks
}

/** Replaces paths, addresses and noted values in a text with those on that host. */
function onHost(k: number, text: string): string {
  return text
    .replaceAll('/etc/flotilla/config.yml', fleet.config(k))
    .replace(/(?:--id \S+ )?--advertise ctrl\d\.example\.net/, fleet.flags(k).join(' '))
    .replace(/<([^>]+)>/g, (_, name: string) => noted.get(name) ?? `'${name} was not noted'`)
}

/** Runs the commands of the page. It starts foreground programs and returns while they run. */
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
  return (await sendToAdminSocket(
    fleet.data(k),
    clusterOperationRequest('status'),
  )) as ClusterStatus
}

async function names(client: Client): Promise<unknown[]> {
  const answer = await client.request('GET', `${management}/services?limit=500&sort=name`)
  return (dataOf(answer) as unknown as { name: string }[]).map(({ name }) => name)
}

async function make(client: Client, name: string): Promise<void> {
  const body = { name, encryptionRequired: true }
  expect((await client.request('POST', `${management}/services`, { body })).status).toBe(201)
}

test('the commands of docs/operate/backup-and-restore.md create and restore a backup, even after the loss of all controllers', async () => {
  const client = await fleet.loggedIn(OLD)
  await make(client, 'wiki')
  const [key = '', save = '', verify = ''] = blocksOf('Take and check a backup', 3)
  await type(OLD, key)
  const saved = await type(OLD, save)
  noted.set('the noted SHA-256', /SHA-256 ([0-9a-f]{64})/.exec(saved)?.[1] ?? '')
  expect(await type(OLD, verify)).toMatch(/monday\.backup .* complete$/m)

  await make(client, 'by mistake')
  const [diff = '', restore = ''] = blocksOf('Restore into the running cluster', 2)
  noted.set('the cluster id', (await statusOf(OLD)).clusterId)
  expect(await type(OLD, diff)).toMatch(/^service +0 +0 +1$/m)
  expect(await type(OLD, restore)).toMatch(/^replaced the records at index \d+/m)
  expect(await names(await fleet.loggedIn(OLD))).toEqual(['wiki'])

  await fleet.stop(OLD, 'SIGKILL')
  mkdirSync(fleet.folder(RESTORED))
  const [anew = '', status = '', invite = '', join = ''] = blocksOf('Restore into a new cluster', 4)
  await type(RESTORED, anew)
  const restored = await fleet.loggedIn(RESTORED)
  expect(await names(restored)).toEqual(['wiki'])
  expect(await type(RESTORED, status)).toContain('leader: ')

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
