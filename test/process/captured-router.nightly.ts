import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { parseCertificates } from '../../src/pki/certificate.ts'
import { type KnownEndpoints, readEndpoints } from '../../src/router/controllers/endpoints-file.ts'
import { until } from './support/client.ts'
import { expectMembers, Fleet } from './support/fleet.ts'
import { RouterProcess } from './support/router-process.ts'

// Goal: an attacker with the disk and the key of a removed controller cannot capture a router, even
// if the router was off during the removal and reaches the attacker before all others. Method: the
// folder of ctrl3 is copied while it is a member; the copy is recovered as a separate cluster and
// listens at the address of ctrl3. Each test continues where the previous one ended.

let fleet: Fleet
let folder: string
let routerId: string
let router: RouterProcess

beforeAll(async () => {
  fleet = await Fleet.create(3)
  router = new RouterProcess(fleet.env)
  await fleet.init()
  for (const k of [2, 3]) await fleet.join(k, 1)
  folder = join(fleet.dir, 'router')
  mkdirSync(folder)
})
afterAll(async () => {
  await router.stop()
  await fleet[Symbol.asyncDispose]()
})

const path = (name: string): string => join(folder, name)
const endpointOf = (k: number): string => `tls:127.0.0.1:${fleet.port + 100 + k - 1}`

/**
 * Waits for a condition about the router and its cluster, and prints the output of both if it does
 * not occur.
 */
async function eventually(what: string, look: () => boolean | Promise<boolean>): Promise<void> {
  await until(what, () => Promise.resolve(look()), 60_000).catch((error: unknown) => {
    throw new Error(
      `${String(error)}\n${router.output}\n${JSON.stringify(known())}\n${fleet.logs()}`,
    )
  })
}

function known(): KnownEndpoints | null {
  const read = readEndpoints(path('endpoints.yml'))
  return read.kind === 'known' ? read.known : null
}

const membersOnDisk = (): string =>
  (known()?.controllers ?? [])
    .map(({ id, toldBy }) => (toldBy === null ? id : `(${id})`))
    .sort()
    .join(' ')

async function expectOnline(k: number): Promise<void> {
  const admin = await fleet.loggedIn(k)
  await eventually(`the router is online on ctrl${k}`, async () => {
    const { body } = await admin.request('GET', `/edge/management/v1/edge-routers/${routerId}`)
    return (body.data as { isOnline: boolean }).isOnline
  })
  admin.close()
}

const keyOf = (k: number): string => {
  const [leaf] = parseCertificates(readFileSync(join(fleet.folder(k), 'cert.pem'), 'utf8'))
  return Buffer.from(leaf.publicKeySha256).toString('hex')
}

test('a router stores the pinned keys of all controllers', async () => {
  const admin = await fleet.loggedIn(1)
  const made = await admin.request('POST', '/edge/management/v1/edge-routers', {
    body: { name: 'gate' },
  })
  routerId = String((made.body.data as { id: string }).id)
  const shown = await admin.request('GET', `/edge/management/v1/edge-routers/${routerId}`)
  admin.close()
  const { enrollmentJwt } = shown.body.data as { enrollmentJwt: string }
  writeFileSync(path('router.jwt'), enrollmentJwt)
  const endpoints = JSON.stringify([1, 2, 3].map(endpointOf))
  writeFileSync(
    path('router.yml'),
    `v: 3
identity: {cert: router.cert, server_cert: router.server.cert, key: router.key, ca: router.ca}
ctrl: {endpoints: ${endpoints}, startupTimeout: 60s}
csr: {sans: {dns: [router.test]}}
edge: {}
`,
  )
  const enroll = ['router', 'enroll', path('router.yml'), '--jwt', path('router.jwt')]
  const done = await fleet.cli(enroll)
  expect(done.code, done.stdout + done.stderr).toBe(0)
  router.start(path('router.yml'))
  const wanted = [1, 2, 3].map((k) => `ctrl${k} ${keyOf(k)}`)
  const keys = (): string[] =>
    (known()?.controllers ?? []).map(({ id, keySha256 }) => `${id} ${keySha256 ?? ''}`).sort()
  await eventually(
    'all controllers are written down with their keys',
    () => keys().join() === wanted.join(),
  )
  expect(membersOnDisk()).toBe('ctrl1 ctrl2 ctrl3')
  await router.stop()
})

// The client API of each controller has another port, and ctrl1 enrolled the router.
test.each([
  ['deleted', null],
  ['damaged', 'endpoints: ['],
])(
  'a router whose endpoints file was %s renews its certificates without the controller that enrolled it',
  async (_state, text) => {
    const leaf = (): string => parseCertificates(readFileSync(path('router.cert'), 'utf8'))[0].sha1
    const before = leaf()
    await fleet.stop(1)
    rmSync(path('endpoints.yml'))
    if (text !== null) writeFileSync(path('endpoints.yml'), text)
    router.start(path('router.yml'), '--extend')
    await eventually('the certificates are extended', () =>
      /certificates extended/.test(router.output),
    )
    expect(leaf()).not.toBe(before)
    expect(router.output).not.toContain('cannot be extended')
    await fleet.start(1)
    await expectOnline(1)
    const wanted = [1, 2, 3].map((k) => ({
      id: `ctrl${k}`,
      addresses: [endpointOf(k)],
      keySha256: keyOf(k),
      apis: [fleet.url(k)],
    }))
    const shown = (): object[] =>
      (known()?.controllers ?? [])
        .map(({ id, addresses, keySha256, apis }) => ({ id, addresses, keySha256, apis }))
        .sort((a, b) => (a.id < b.id ? -1 : 1))
    await eventually('the file is whole', () => JSON.stringify(shown()) === JSON.stringify(wanted))
    expect(known()?.apis.toSorted()).toEqual([1, 2, 3].map((k) => fleet.url(k)))
    await router.stop()
  },
)

test('a stolen controller to which a router connects first cannot remove the other controllers from the router', async () => {
  const stolen = join(fleet.dir, 'stolen')
  await fleet.stop(3)
  cpSync(fleet.folder(3), stolen, { recursive: true })
  await fleet.start(3)
  await expectMembers(fleet, [1, 2, 3])
  await fleet.change(1, 'remove', 'ctrl3', '--compromised')
  expect(await fleet.ended(3)).toBe(0)
  await expectMembers(fleet, [1, 2])
  await Promise.all([1, 2].map((k) => fleet.stop(k)))

  rmSync(fleet.folder(3), { recursive: true })
  cpSync(stolen, fleet.folder(3), { recursive: true })
  const recover = ['cluster', 'recover', '--config', fleet.config(3)]
  const recovered = await fleet.cli([...recover, '--confirm', 'without ctrl1 ctrl2'])
  expect(recovered.code, recovered.stderr).toBe(0)
  await fleet.start(3)
  router.start(path('router.yml'))
  await eventually('the router has the list of the stolen controller', () =>
    /leader changed/.test(router.output),
  )
  expect(router.output).toMatch(/"ctrl3".*connected to controller/)
  expect(membersOnDisk()).toBe('ctrl1 ctrl2 ctrl3')
})

test('a router reconnects to the other controllers once they are reachable again, and disconnects from the stolen one', async () => {
  await Promise.all([1, 2].map((k) => fleet.start(k)))
  for (const k of [1, 2]) await expectOnline(k)
  await eventually('ctrl3 is gone', () => membersOnDisk() === 'ctrl1 ctrl2')
  expect(router.output).toMatch(/"ctrl3".*disconnected from controller/)
  expect(known()?.removed).toEqual([{ id: 'ctrl3', keySha256: keyOf(3) }])
})

test('a router refuses the removed controller’s stolen key after a restart, even if it reaches no other controller', async () => {
  await router.stop()
  await Promise.all([1, 2].map((k) => fleet.stop(k)))
  router.start(path('router.yml'))
  await eventually('ctrl3 is refused', () =>
    /controller ctrl3 was removed from the cluster/.test(router.output),
  )
  expect(router.output).not.toMatch(/connected to controller/)
  await Promise.all([1, 2].map((k) => fleet.start(k)))
  for (const k of [1, 2]) await expectOnline(k)
  expect(membersOnDisk()).toBe('ctrl1 ctrl2')
})

test('a router removes the removed controller when a cluster shrinks from two controllers to one', async () => {
  await fleet.stop(3)
  await fleet.change(1, 'remove', 'ctrl2')
  expect(await fleet.ended(2)).toBe(0)
  await eventually('ctrl1 is alone', () => membersOnDisk() === 'ctrl1')
})
