import { cpSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SessionTokenSigner } from '../../src/auth/sessions/session-token-signer.ts'
import { requestAdmission } from '../../src/cluster/membership/admission-client.ts'
import { Keyring } from '../../src/cluster/secrets/keyring.ts'
import { loadControllerConfig } from '../../src/config/controller/load.ts'
import { StateMachine } from '../../src/fsm/state-machine.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { parseTicket } from '../../src/pki/secrets/ticket.ts'
import { readDataIdentity } from '../../src/store/log/data-identity.ts'
import { LevelStateStore } from '../../src/store/state/level-state-store.ts'
import { FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import { type Client, until } from './support/client.ts'
import { expectMembers, Fleet } from './support/fleet.ts'

// Goal: an attacker with everything that a removed controller had cannot rejoin, vote, read, or
// create a valid token. Method: the test copies the controller's folder while it is a member,
// removes the controller, and uses the copy for each attack.

let fleet: Fleet
beforeAll(async () => {
  fleet = await Fleet.create(5)
  await fleet.init()
  for (const k of [2, 3, 4, 5]) await fleet.join(k, 1)
})
afterAll(async () => {
  await fleet[Symbol.asyncDispose]()
})

/** Everything that a thief copies from controller k, including the session of its owner. */
async function stolenFrom(k: number, owner: Client): Promise<string> {
  const copy = join(fleet.dir, `stolen-${k}`)
  expect(await statusWith(k, owner.token ?? '', '127.0.0.1')).toBe(200)
  await fleet.stop(k, 'SIGTERM')
  cpSync(fleet.folder(k), copy, { recursive: true })
  await fleet.start(k)
  await expectMembers(
    fleet,
    [1, 2, 3, 4, 5].filter((one) => one <= k),
  )
  return copy
}

/** Every token that the stolen state and key can create. */
async function tokensFrom(folder: string, k: number): Promise<string[]> {
  const data = join(folder, 'data')
  const store = await LevelStateStore.open(data, { freeBytesMin: 0 })
  const machine = await StateMachine.open({ store, clock: systemClock })
  try {
    const privateKeyPem = readFileSync(join(folder, 'controller.key'), 'utf8')
    const keyring = new Keyring({
      state: machine,
      selfId: `ctrl${k}`,
      privateKeyPem: () => privateKeyPem,
      log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    })
    await keyring.refresh()
    const keys = keyring.clusterKeys()
    const signer = new SessionTokenSigner({ clusterKeys: () => keys })
    const { records } = machine.list('apiSession', { limit: -1 })
    return records.flatMap(({ id }) => keys.map(({ version }) => signer.tokenOf(id, version)))
  } finally {
    await machine.close()
  }
}

const quiet = (): void => undefined

/**
 * Status of a request with that token, sent from another address than those from which the sessions
 * were opened.
 */
function statusWith(k: number, token: string, localAddress: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const ca = readFileSync(join(fleet.folder(1), 'ca.pem'))
    const asked = request(
      `${fleet.url(k)}/edge/client/v1/current-identity`,
      { headers: { 'net-session': token }, localAddress, agent: new Agent({ ca }) },
      (answer) => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      },
    )
    asked.once('error', reject)
    asked.end()
  })
}

/** The controller that used the ticket; null: none. */
async function ticketUser(text: string): Promise<string | null> {
  const { id } = parseTicket(text)
  const words = ['cluster', 'tickets', 'list', '--config', fleet.config(1), '--json']
  const listed = JSON.parse((await fleet.cliOf(1, words)).stdout) as {
    readonly id: string
    readonly usedBy: string | null
  }[]
  const found = listed.find((one) => one.id === id)
  if (found === undefined) throw new Error(`the ticket ${id} is not listed`)
  return found.usedBy
}

async function termOf(k: number): Promise<number> {
  return Math.max(...(await fleet.status(k)).map(({ term }) => term))
}

/** Connects with the certificate and key in the folder, to the port that every controller uses. */
async function enter(folder: string): Promise<string> {
  const loaded = loadControllerConfig(join(folder, 'config.yml'), {})
  if (!loaded.ok) throw new Error('the stolen configuration does not load')
  const { config } = loaded
  const answer = await requestAdmission({
    addresses: [1, 2].map((k) => `127.0.0.1:${fleet.port + 200 + k - 1}`),
    identity: {
      certificatePem: readFileSync(config.identity.cert, 'utf8'),
      privateKeyPem: readFileSync(config.identity.key, 'utf8'),
      caPem: readFileSync(config.identity.ca, 'utf8'),
    },
    trustDomain: config.trustDomain,
    clusterId: '',
    storeId: readDataIdentity(join(folder, 'data')).storeId,
    address: config.cluster.advertise,
    version: 'v0.1.0',
    featureLevel: FEATURE_LEVEL,
    startedAtMs: Date.now(),
    timeoutMs: 5000,
  })
  return answer.outcome
}

test('a removed controller gets no access with its old certificate, key and data', async () => {
  const owner = await fleet.loggedIn(1)
  const stolen = await stolenFrom(5, owner)
  await fleet.change(1, 'remove', 'ctrl5')
  expect(await fleet.ended(5)).toBe(0)
  await expectMembers(fleet, [1, 2, 3, 4])
  const term = await termOf(1)

  expect(await enter(stolen)).toBe('refused')

  // The removed controller, started as a process, learns that it is removed and exits; it caused no
  // election.
  rmSync(fleet.folder(5), { recursive: true })
  cpSync(stolen, fleet.folder(5), { recursive: true })
  fleet.run(5)
  expect(await fleet.ended(5, 60_000)).toBe(0)
  expect(fleet.log(5)).toMatch(/was removed from the cluster/)
  await expectMembers(fleet, [1, 2, 3, 4])
  expect(await termOf(1)).toBe(term)

  // A join with the remaining folder of the removed controller fails before anything is started,
  // and reports which files prevent it.
  const ticket = await fleet.invite(1)
  const refused = await fleet.prepareJoin(5, ticket)
  const folder = fleet.folder(5)
  const left = ['data', 'controller.key', 'cert.pem'].map((name) => join(folder, name))
  expect(refused).toMatchObject({ code: 1 })
  expect(refused.stdout).toMatch(/^admission \.+ failed$/m)
  expect(refused.stdout).not.toContain('is prepared')
  expect(refused.stderr).toMatch(/^flotilla: ctrl5 .*not a member as of configuration \d+/)
  expect(refused.stderr).toContain(`move away: ${left.join(' ')}`)
  expect(await ticketUser(ticket)).toBeNull()

  // After the files are moved away, the same ticket admits the host.
  for (const path of left) rmSync(path, { recursive: true })
  expect(await fleet.prepareJoin(5, ticket)).toMatchObject({ code: 0 })
  // Before the first start, a repeated join changes nothing.
  const repeated = await fleet.prepareJoin(5, ticket)
  expect(repeated.stdout).toMatch(/^admission \.+ ok: ctrl5 is still admitted$/m)
  expect(repeated).toMatchObject({ code: 0, stderr: '' })
  await expectMembers(fleet, [1, 2, 3, 4])
  fleet.run(5)
  await expectMembers(fleet, [1, 2, 3, 4, 5])
  await fleet.change(1, 'remove', 'ctrl5')
  expect(await fleet.ended(5)).toBe(0)

  // The tokens belong to sessions of clients, so they are valid only from the addresses of those
  // clients.
  const tokens = await tokensFrom(stolen, 5)
  expect(tokens).toContain(owner.token)
  for (const k of [1, 2]) {
    for (const token of tokens) expect(await statusWith(k, token, '127.0.0.9')).toBe(401)
  }
  expect((await owner.request('GET', '/edge/client/v1/current-identity')).status).toBe(200)
})

test('once a compromised controller is removed, its certificate and the session tokens that it knew are refused, even from the addresses of the sessions’ clients', async () => {
  const owner = await fleet.loggedIn(1)
  const stolen = await stolenFrom(4, owner)
  await fleet.change(1, 'remove', 'ctrl4', '--compromised')
  expect(await fleet.ended(4)).toBe(0)
  await until('the key is rotated', async () => {
    const answer = await owner.request('GET', '/edge/client/v1/current-identity')
    return answer.status === 401
  })
  const tokens = await tokensFrom(stolen, 4)
  expect(tokens).toContain(owner.token)
  for (const k of [1, 2, 3]) {
    for (const token of tokens) expect(await statusWith(k, token, '127.0.0.1')).toBe(401)
  }
  expect(await enter(stolen)).toBe('refused')
  await expectMembers(fleet, [1, 2, 3])
})
