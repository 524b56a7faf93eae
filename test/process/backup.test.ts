import { generateKeyPairSync } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { RestoreResult } from '../../src/cli/snapshot/restore.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import { allServices, type Client, until } from './support/client.ts'
import { certifiedKey, dataOf, newRequest } from './support/enrolling.ts'
import { expectMembers, Fleet } from './support/fleet.ts'
import { Load } from './support/load.ts'

// Goal: a cluster that was lost completely is restored from its backup, with the same users and
// records. Method: three controllers are backed up while clients write, and killed; a fourth
// controller is restored elsewhere, and a fifth joins it.

const management = '/edge/management/v1'
const kinds = ['identities', 'authenticators', 'configs', 'config-types', 'auth-policies'] as const

let fleet: Fleet
beforeAll(async () => {
  fleet = await Fleet.create(5)
  await fleet.init()
  for (const k of [2, 3]) await fleet.join(k, 1)
  await expectMembers(fleet, [1, 2, 3])
})
afterAll(async () => {
  await fleet[Symbol.asyncDispose]()
})

async function make(client: Client, path: string, body: unknown): Promise<string> {
  const answer = await client.request('POST', management + path, { body })
  return String(dataOf(answer, 201)['id'])
}

/** An identity that has enrolled by its one-time token. */
async function enrolled(client: Client): Promise<{ id: string; key: CertificateWithKey }> {
  const enrollment = { ott: true }
  const body = { name: 'device', type: 'Device', isAdmin: false, enrollment }
  const id = await make(client, '/identities', body)
  const shown = dataOf(await client.request('GET', `${management}/identities/${id}`))
  const { ott } = shown['enrollment'] as { ott: { token: string } }
  const keys = await newRequest()
  const answer = await client.request(
    'POST',
    `/edge/client/v1/enroll?method=ott&token=${ott.token}`,
    {
      body: keys.csr,
      headers: { 'content-type': 'text/plain' },
    },
  )
  return { id, key: certifiedKey(keys, dataOf(answer)['cert']) }
}

/** Every record of a kind as an administrator sees it, without fields about current connections. */
async function recordsOf(client: Client, path: string): Promise<unknown[]> {
  const answer = await client.request('GET', `${management}/${path}?limit=500&sort=id`)
  const records = dataOf(answer) as unknown as Record<string, unknown>[]
  return records.map(({ hasApiSession: _session, lastSeenAt: _seen, ...rest }) => rest)
}

function recipient(): { publicPath: string; privatePath: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const publicPath = join(fleet.dir, 'backup.pem')
  const privatePath = join(fleet.dir, 'backup.key')
  writeFileSync(publicPath, publicKey.export({ type: 'spki', format: 'pem' }))
  writeFileSync(privatePath, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
  return { publicPath, privatePath }
}

async function succeed(...words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await fleet.cli(words)
  expect(code, `${words.join(' ')}\n${stdout}${stderr}`).toBe(0)
  return stdout
}

test('after a cluster is killed, a backup that was saved during writes restores it as one new controller, which another controller joins', async () => {
  const { publicPath, privatePath } = recipient()
  const file = join(fleet.dir, 'monday.backup')
  const client = await fleet.loggedIn(1)
  const device = await enrolled(client)
  const before = await Promise.all(kinds.map((kind) => recordsOf(client, kind)))

  const load = new Load([client, await fleet.loggedIn(2)])
  await load.more(100)
  const acknowledged = [...load.fates].flatMap(([name, fate]) =>
    fate === 'acknowledged' ? name : [],
  )
  const snapshot = ['cluster', 'snapshot']
  await succeed(...snapshot, 'save', file, '--config', fleet.config(2), '--recipient', publicPath)
  await load.more(50)
  await load.end()
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readFileSync(file).includes('PRIVATE KEY')).toBe(false)
  expect(await succeed(...snapshot, 'verify', file, '--key', privatePath)).toContain('is intact')
  expect(await succeed(...snapshot, 'list', fleet.dir)).toMatch(/ctrl2 .* complete$/m)
  const known = new Set((await allServices(client)).values())

  for (const k of [1, 2, 3]) await fleet.stop(k, 'SIGKILL')
  const restored = await fleet.restore(4, file, '--key', privatePath, '--json')
  expect(restored.code, restored.stderr).toBe(0)
  const result = JSON.parse(restored.stdout) as RestoreResult
  expect(result).toMatchObject({ id: 'ctrl4', generation: 2, isIdentityKept: false })
  await fleet.start(4)

  // No earlier session is valid, and every credential is.
  const second = fleet.client(4)
  second.token = client.token
  await until('ctrl4 leads', async () => (await fleet.leader(4)) === 4)
  expect((await second.request('GET', `${management}/identities`)).status).toBe(401)
  const again = await fleet.loggedIn(4)
  expect(await Promise.all(kinds.map((kind) => recordsOf(again, kind)))).toEqual(before)
  const path = '/edge/client/v1/authenticate?method=cert'
  const logIn = await again.request('POST', path, {
    by: device.key,
    body: {},
    headers: { 'net-session': '' },
  })
  expect(dataOf(logIn)['identityId']).toBe(device.id)
  const services = new Set((await allServices(again)).values())
  expect(acknowledged.filter((name) => !services.has(name))).toEqual([])
  expect([...services].filter((name) => !known.has(name))).toEqual([])

  await fleet.join(5, 4)
  await expectMembers(fleet, [4, 5])
  const joined = await fleet.loggedIn(5)
  expect(await recordsOf(joined, 'identities')).toEqual(before[0])
  await make(joined, '/services', { name: 'after all', encryptionRequired: true })
  expect((await fleet.status(5)).map(({ id }) => id)).toEqual(['ctrl4', 'ctrl5'])
})

test('a restore fails if the folder is not empty or the key is missing, and leaves no partial folder', async () => {
  const file = join(fleet.dir, 'monday.backup')
  const privatePath = join(fleet.dir, 'backup.key')
  const again = await fleet.restore(4, file, '--key', privatePath)
  expect(again.code).toBe(1)
  expect(again.stderr).toMatch(/data is not empty; move it away/)
  const unkeyed = await fleet.restore(1, file)
  expect(unkeyed.code).toBe(1)
  const partial = readdirSync(fleet.dir).filter((name) => name.includes('partial'))
  expect(partial).toEqual([])
})
