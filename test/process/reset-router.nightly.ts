import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { readEndpoints } from '../../src/router/controllers/endpoints-file.ts'
import { until } from './support/client.ts'
import { dataOf } from './support/enrolling.ts'
import { Fleet } from './support/fleet.ts'
import { RouterProcess } from './support/router-process.ts'

// Goal: after all controllers were lost and restored from a backup with the same ids and addresses,
// and after a recovery from a lost quorum, an operator brings a router back with the command that
// its log names. Method: the router runs
// during the restore, as a router on another host does. Each test continues where the previous one
// ended.

/** Position of a data model, as inspections report it. */
interface ModelIndex {
  readonly timeline: string
  readonly index: number
}

const management = '/edge/management/v1'
const PINNED = /refused a controller/

let fleet: Fleet
let folder: string
let backup: string
let routerId: string
let router: RouterProcess

beforeAll(async () => {
  fleet = await Fleet.create(2)
  router = new RouterProcess(fleet.env)
  await fleet.init()
  await fleet.join(2, 1)
  folder = join(fleet.dir, 'router')
  backup = join(fleet.dir, 'monday.backup')
  mkdirSync(folder)
})
afterAll(async () => {
  await router.stop()
  await fleet[Symbol.asyncDispose]()
})

const config = (): string => join(folder, 'router.yml')
const endpointsFile = (): string => join(folder, 'endpoints.yml')

async function succeed(...words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await fleet.cli(words)
  expect(code, `${words.join(' ')}\n${stdout}${stderr}`).toBe(0)
  return stdout
}

async function eventually(what: string, look: () => boolean | Promise<boolean>): Promise<void> {
  await until(what, () => Promise.resolve(look()), 60_000).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${router.output}\n${fleet.logs()}`)
  })
}

function learnedKeys(): string[] {
  const read = readEndpoints(endpointsFile())
  return read.kind === 'known'
    ? read.known.controllers.map(({ id, keySha256 }) => `${id} ${keySha256 ?? ''}`).sort()
    : []
}

/**
 * Creates a service at a controller, and waits until the router is online there and has the same
 * data model as the controller.
 */
async function expectInService(k: number, name: string): Promise<void> {
  const admin = await fleet.loggedIn(k)
  const service = { name, encryptionRequired: true }
  dataOf(await admin.request('POST', `${management}/services`, { body: service }), 201)
  await eventually(`ctrl${k} reports the router as online`, async () => {
    const shown = dataOf(await admin.request('GET', `${management}/edge-routers/${routerId}`))
    return shown['isOnline'] === true && shown['syncStatus'] === 'SYNC_DONE'
  })
  await eventually('the router has the data model of the controller', async () => {
    const { body } = await admin.request('POST', '/fabric/v1/inspections', {
      body: { appRegex: '.*', requestedValues: ['router-data-model-index'] },
    })
    const { values } = body as unknown as { values: { appId: string; value: ModelIndex }[] }
    const [own, other] = [routerId, `ctrl${k}`].map(
      (id) => values.find(({ appId }) => appId === id)?.value,
    )
    return own !== undefined && own.timeline === other?.timeline && own.index === other.index
  })
  admin.close()
}

test('before two controllers are lost, a router stores their keys', async () => {
  const admin = await fleet.loggedIn(1)
  const made = await admin.request('POST', `${management}/edge-routers`, { body: { name: 'gate' } })
  routerId = String(dataOf(made, 201)['id'])
  const shown = dataOf(await admin.request('GET', `${management}/edge-routers/${routerId}`))
  admin.close()
  writeFileSync(join(folder, 'router.jwt'), String(shown['enrollmentJwt']))
  const endpoints = [1, 2].map((k) => `tls:127.0.0.1:${fleet.routerPort(k)}`)
  writeFileSync(
    config(),
    `v: 3
identity: {cert: router.cert, server_cert: router.server.cert, key: router.key, ca: router.ca}
ctrl: {endpoints: ${JSON.stringify(endpoints)}}
csr: {sans: {dns: [router.test]}}
edge: {}
`,
  )
  await succeed('router', 'enroll', config(), '--jwt', join(folder, 'router.jwt'))
  router.start(config())
  await expectInService(1, 'wiki')
  await eventually(
    'both keys are stored',
    () => learnedKeys().filter((one) => /^ctrl[12] [0-9a-f]{64}$/.test(one)).length === 2,
  )
  const save = ['cluster', 'snapshot', 'save', backup, '--config', fleet.config(1), '--plaintext']
  await succeed(...save)
})

test('a running router refuses the restored controller, and its log names the command flotilla router reset', async () => {
  const before = learnedKeys()
  for (const k of [1, 2]) {
    await fleet.stop(k, 'SIGKILL')
    rmSync(fleet.folder(k), { recursive: true })
  }
  const restored = await fleet.restore(1, backup)
  expect(restored.code, restored.stderr).toBe(0)
  expect(restored.stdout).toMatch(
    /^routers refuse the new key of this controller until you reset them/m,
  )
  await fleet.start(1)
  await eventually('the router refuses ctrl1', () => PINNED.test(router.output))
  const [line = ''] = router.output.split('\n').filter((one) => PINNED.test(one))
  expect(line).toContain('the key of controller ctrl1 is not the one')
  expect(line).toContain(`flotilla router reset ${config()}`)
  expect(line).toContain('Otherwise treat the key of the issuing authority as stolen')
  const admin = await fleet.loggedIn(1)
  const shown = dataOf(await admin.request('GET', `${management}/edge-routers/${routerId}`))
  admin.close()
  expect(shown['isOnline']).toBe(false)
  expect(learnedKeys()).toEqual(before)
})

test('a reset changes nothing while the router runs', async () => {
  const before = learnedKeys()
  const refused = await fleet.cli(['router', 'reset', config()])
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain(
    `nothing was changed; stop it with SIGTERM or ^C, repeat this command, and start it with: flotilla router run ${config()}`,
  )
  expect(learnedKeys()).toEqual(before)
  expect(readdirSync(folder).filter((name) => name.includes('set-aside'))).toEqual([])
})

test('a router that was restarted without a reset refuses the restored controller', async () => {
  await router.stop()
  router.start(config())
  await eventually('the router refuses ctrl1', () => PINNED.test(router.output))
  expect(router.output).not.toMatch(/connected to controller/)
})

test('a router that was reset is in service at the restored controller, and at a controller that joins', async () => {
  const before = learnedKeys()
  await router.stop()
  expect(await succeed('router', 'reset', config())).toContain(
    'forgot the controllers ctrl1, ctrl2',
  )
  router.start(config())
  await expectInService(1, 'restored')
  expect(router.output).not.toMatch(PINNED)
  await fleet.join(2, 1)
  await expectInService(2, 'joined')
  await eventually('the new keys are stored', () => {
    const keys = learnedKeys().filter((one) => /^ctrl[12] [0-9a-f]{64}$/.test(one))
    return keys.length === 2 && keys.every((key) => !before.includes(key))
  })
})

test('a router refuses a controller that joins again after a recovery, until the reset that the recovery names', async () => {
  for (const k of [1, 2]) await fleet.stop(k, 'SIGKILL')
  rmSync(fleet.folder(2), { recursive: true })
  const recovered = await succeed(
    'cluster',
    'recover',
    '--config',
    fleet.config(1),
    '--confirm',
    'without ctrl2',
  )
  expect(recovered).toMatch(/^routers refuse the new keys of controllers that join again until/m)
  await fleet.start(1)
  await expectInService(1, 'recovered')
  await fleet.join(2, 1)
  await eventually('the router refuses ctrl2', () => PINNED.test(router.output))
  expect(router.output).toContain('the key of controller ctrl2 is not the one')
  expect(router.output).toContain('or recovered after a lost quorum')
  await router.stop()
  await succeed('router', 'reset', config())
  router.start(config())
  await expectInService(2, 'joined again')
  expect(router.output).not.toMatch(PINNED)
})
