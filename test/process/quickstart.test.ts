import { execFile } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  axeFindings,
  browserMissing,
  ConsoleBrowser,
  logIn,
} from '../console/support/console-browser.ts'
import { until } from './support/client.ts'
import { flotilla, TestCluster } from './support/cluster.ts'

// Goal: one command creates a real cluster that a user can use, stop and restart.

let cluster: TestCluster
beforeAll(async () => {
  cluster = await TestCluster.start()
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

test('quickstart writes the files that scripts use, and only their owner can read the secrets', () => {
  const { admin, folder, port } = cluster
  expect(admin.controllers).toEqual([0, 1, 2].map((k) => expect.stringContaining(`:${port + k}`)))
  expect(admin.password.length).toBeGreaterThanOrEqual(16)
  expect(existsSync(admin.ca)).toBe(true)
  const readable: string[] = []
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const isSecret = /admin\.json$|key/i.test(entry.name) && entry.isFile()
    if (isSecret && (statSync(path).mode & 0o077) !== 0) readable.push(path)
  }
  expect(readable).toEqual([])
  for (const k of [1, 2, 3]) {
    for (const name of ['config.yml', 'pid', 'controller.log', 'data']) {
      expect(existsSync(join(folder, `ctrl${k}`, name)), `ctrl${k}/${name}`).toBe(true)
    }
  }
})

test('a service that was created through one controller can be read from every other, and all controllers report the same digest', async () => {
  const clients = await Promise.all([1, 2, 3].map((k) => cluster.loggedIn(k)))
  const [first, second, third] = clients
  if (first === undefined || second === undefined || third === undefined) throw new Error('clients')
  const created = await first.request('POST', '/edge/management/v1/services', {
    body: { name: 'wiki', encryptionRequired: true },
  })
  expect(created.status).toBe(201)
  const { id } = created.body.data as { id: string }
  const index = String(created.headers['net-index'])
  expect(index).toMatch(/^1:\d+$/)
  for (const client of [second, third]) {
    const read = await client.request('GET', `/edge/management/v1/services/${id}`, {
      headers: { 'net-min-index': index },
    })
    expect(read.status).toBe(200)
    expect((read.body.data as { name: string }).name).toBe('wiki')
  }
  await until('one digest at one index', async () => {
    const members = await cluster.status(1)
    const digests = new Set(members.map((member) => `${member.digestIndex} ${member.digest}`))
    return members.length === 3 && digests.size === 1
  })
})

test('every controller lists all three controllers as online, with the same certificates and addresses', async () => {
  const seen: object[] = []
  for (const k of [1, 2, 3]) {
    const client = await cluster.loggedIn(k)
    const rows = await until(`ctrl${k} sees all online`, async () => {
      const answer = await client.request('GET', '/edge/management/v1/controllers')
      const data = answer.body.data as {
        name: string
        isOnline: boolean
        certPem: string
        fingerprint: string
        lastJoinedAt: string
        ctrlAddress: string
        apiAddresses: Record<string, { url: string; version: string }[]>
      }[]
      return data.length === 3 && data.every((row) => row.isOnline) && data
    })
    expect(rows.map((row) => row.name).sort()).toEqual(['ctrl1', 'ctrl2', 'ctrl3'])
    seen.push(
      rows
        .toSorted((one, other) => one.name.localeCompare(other.name))
        .map(({ name, certPem, fingerprint, ctrlAddress, apiAddresses }) => {
          return { name, certPem, fingerprint, ctrlAddress, apiAddresses }
        }),
    )
    for (const row of rows) {
      expect(row.certPem).toContain('BEGIN CERTIFICATE')
      expect(row.fingerprint).toMatch(/^[0-9a-f]{40}$/)
      expect(Date.parse(row.lastJoinedAt)).toBeGreaterThan(Date.now() - 600_000)
      expect(row.apiAddresses['edge-client']?.[0]?.url).toMatch(/^https:\/\/.*\/edge\/client\/v1$/)
    }
    const members = await client.request('GET', '/fabric/v1/cluster/list-members')
    const listed = members.body.data as { leader: boolean; voter: boolean; connected: boolean }[]
    expect(listed.filter((member) => member.leader)).toHaveLength(1)
    expect(listed.every((member) => member.voter && member.connected)).toBe(true)
  }
  for (const rows of seen) expect(rows).toEqual(seen[0])
})

test.skipIf(browserMissing !== null)(
  `an administrator can log in to the console of the second controller and see the cluster ${browserMissing ?? ''}`,
  async () => {
    await using browser = await ConsoleBrowser.start()
    const page = await browser.page()
    await logIn(page, `${cluster.admin.controllers[1]}/console/`, cluster.admin)
    await page.getByRole('link', { name: 'Cluster', exact: true }).click()
    await page.getByRole('heading', { name: 'Tolerates the failure of 1 controller' }).waitFor()
    for (const id of ['ctrl1', 'ctrl2', 'ctrl3']) {
      await page.getByRole('rowheader', { name: id }).waitFor()
    }
    await page.getByText('Connected to ctrl2').waitFor()
    expect(await axeFindings(page)).toEqual([])
    expect(browser.complaints).toEqual([])
  },
)

test('an action at the admin socket is in the audit log of every controller, with the name of the host user', async () => {
  const config = join(cluster.folder, 'ctrl1', 'config.yml')
  const run = (...verb: string[]) =>
    promisify(execFile)(flotilla, ['cluster', ...verb, '--config', config], { env: cluster.env })
  await run('invite')
  await run('transfer-leadership', cluster.id((await cluster.followers())[0] ?? 0))
  const { uid, username } = userInfo()
  for (const k of [1, 2, 3]) {
    const client = await cluster.loggedIn(k)
    const filter = encodeURIComponent(`actor = "uid:${uid} (${username})"`)
    const told = await until(`ctrl${k} has all of it`, async () => {
      const { body } = await client.request('GET', `/fabric/v1/audit?filter=${filter}`)
      const rows = body.data as { action: string; outcome: string }[]
      return rows[0]?.action === 'leadership-transfer' && rows[0].outcome === 'done' && rows
    })
    // The newest line is first; quickstart itself has invited the others.
    expect(told.slice(0, 3).map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
      'leadership-transfer done',
      'leadership-transfer requested',
      'ticket-create done',
    ])
  }
})

test('quickstart prints the start command of a killed controller, and ^C stops every process', async () => {
  cluster.kill(2)
  await until('the notice', () =>
    Promise.resolve(/ctrl2[\s\S]*controller run \S*ctrl2\/config\.yml/.test(cluster.output)),
  )
  const pids = [1, 3].map((k) => cluster.pid(k) ?? 0)
  expect(await cluster.interrupt()).toBe(0)
  for (const pid of pids) expect(() => process.kill(pid, 0), `pid ${pid}`).toThrow(/ESRCH/)
})

test('quickstart resumes in the same folder with its data, and a second quickstart at the same time is refused', async () => {
  await cluster.quickstart()
  const client = await cluster.loggedIn(2)
  const list = await client.request(
    'GET',
    `/edge/management/v1/services?filter=${encodeURIComponent('name = "wiki"')}`,
  )
  expect((list.body.data as unknown[]).length).toBe(1)

  const second = ['quickstart', '--dir', cluster.folder, '--port', `${cluster.port}`]
  const refused = await promisify(execFile)(flotilla, second, { env: cluster.env }).catch(
    (error: unknown) => error as { code: number; stderr: string },
  )
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('flotilla: ') })
  expect((await client.request('GET', '/edge/client/v1/current-identity')).status).toBe(200)
})
