// tools/release-fixture.ts runs this file in the checked-out sources of a release, so the file
// contains nothing of a later release: `node test/releases/record-data.ts DATA.tgz LISTING.json`.
// FLOTILLA_PROGRAM names the program of the release.
//
// The script gives three controllers of that release records of every kind that can be created
// without a second network, and kills the controllers before their state stores contain all of
// these records. DATA.tgz gets their data folders; LISTING.json gets the state that the release
// itself reads from the first folder.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

import type { Json } from '../../src/lib/text/canonical-json.ts'
import { sendToAdminSocket } from '../../src/cli/client/admin-socket.ts'
import { clusterOperationRequest } from '../../src/cli/client/connection.ts'
import { applyLogEntry } from '../../src/fsm/apply-log-entry.ts'
import { loadState } from '../../src/fsm/records/load.ts'
import { LevelStateStore } from '../../src/store/state/level-state-store.ts'
import { openLog } from '../../src/store/log/open-log.ts'
import { Maker } from '../api/generated/maker.ts'
import { operationsIn, type ServedOperation } from '../api/generated/operations.ts'
import { type Client, until } from '../process/support/client.ts'
import { TestCluster } from '../process/support/cluster.ts'
import { dataOf, Enrolling, newRequest } from '../process/support/enrolling.ts'
import { ServedAnswers, apiNames, bases } from '../support/served-answers.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

const MANAGEMENT = '/edge/management/v1'
const PASSWORD = 'a password for the tests'
const IDS = [1, 2, 3]
/**
 * These writes are sent without a pause at the end, so that the delayed write to the state store
 * has not run when the controllers are killed.
 */
const TAIL_WRITES = 12

const [dataFile, listingFile] = process.argv.slice(2)
if (dataFile === undefined || listingFile === undefined) {
  console.error('usage: node test/releases/record-data.ts DATA.tgz LISTING.json')
  process.exit(2)
}

const scratch = mkdtempSync(join(tmpdir(), 'flotilla-record-'))
const cluster = await TestCluster.start({ env: { FLOTILLA_LOG_SEGMENT_BYTES: '1048576' } })
try {
  await fill()
  await killWithTail()
  for (const k of IDS) copyData(k)
} finally {
  await cluster[Symbol.asyncDispose]()
}
pack(resolve(dataFile))
writeFileSync(listingFile, `${JSON.stringify(await listing(join(scratch, 'ctrl1')), null, 1)}\n`)
rmSync(scratch, { recursive: true })

async function fill(): Promise<void> {
  const admin = await cluster.loggedIn(1)
  await oneOfEveryKind(admin)
  const net = await Enrolling.on(cluster)
  await peopleAndSessions(net)
  const ticket = { isVoter: false, lifetimeMs: 7 * 86_400_000 }
  await sendToAdminSocket(dataFolder(1), clusterOperationRequest('invite', ticket))
  dataOf(await net.ask(1, 'POST', '/database/check-data-integrity'), 202)
  dataOf(await admin.request('POST', `${MANAGEMENT}/database/snapshot`, { isHeld: false }))
}

/**
 * Creates records according to the documents that the release serves; policies grant every identity
 * access to every service.
 */
async function oneOfEveryKind(admin: Client): Promise<void> {
  const operations: ServedOperation[] = []
  for (const api of apiNames) {
    const { text } = await admin.request('GET', `${bases[api]}/openapi.json`)
    operations.push(...operationsIn(api, ServedAnswers.of(text).document))
  }
  const maker = new Maker(operations, (method, url, body) =>
    admin.request(method, url, body === undefined ? {} : { body }),
  )
  const hasDetail = (path: string): boolean =>
    operations.some((one) => one.api === 'management' && one.path === `${path}/{id}`)
  for (const one of operations) {
    const { api, method, path } = one
    if (api !== 'management' || method !== 'POST' || !hasDetail(path)) continue
    await maker.create(one, await maker.body(one, 'full'))
  }
  await maker.openAll()
  const serviceId = await maker.id('/services')
  const pair = [{ serviceId, configId: await maker.id('/configs') }]
  const ofAdmin = `${MANAGEMENT}/identities/${await maker.id('/identities')}/service-configs`
  dataOf(await admin.request('POST', ofAdmin, { body: pair }))
  const roles = { identityRoles: ['#all'], serviceRoles: ['#all'], semantic: 'AnyOf' }
  const open = { name: 'open to all', type: 'Dial', ...roles }
  dataOf(await admin.request('POST', `${MANAGEMENT}/service-policies`, { body: open }), 201)
  const session = { serviceId, type: 'Dial' }
  dataOf(await admin.request('POST', `${bases.client}/sessions`, { body: session }), 201)
}

/**
 * Creates a second factor, a session with a certificate, and failed log-ins with wrong passwords.
 */
async function peopleAndSessions(net: Enrolling): Promise<void> {
  const policy = { primary: { updb: { maxAttempts: 5, lockoutDurationMinutes: 10 } } }
  dataOf(await net.ask(1, 'PATCH', '/auth-policies/default', policy))
  const identityId = await net.make(1, '/identities', {
    name: 'a person',
    type: 'User',
    isAdmin: false,
  })
  const credential = { identityId, method: 'updb', username: 'person', password: PASSWORD }
  await net.make(1, '/authenticators', credential)
  const token = String(dataOf(await net.logInByPassword(1, 'person', PASSWORD))['token'])
  const { csr } = await newRequest()
  const certificates = '/current-api-session/certificates'
  dataOf(await net.device(1, 'POST', certificates, { token, body: { csr } }), 201)
  dataOf(await net.device(1, 'POST', '/current-identity/mfa', { token }), 201)
  const code = { token, body: { code: '000000' } }
  await net.device(1, 'POST', '/current-identity/mfa/verify', code)
  await net.logInByPassword(1, 'person', 'not the password')
}

async function killWithTail(): Promise<void> {
  const admin = await cluster.loggedIn(1)
  await until('all is persisted', async () => {
    const members = await cluster.status(1)
    return members.every(({ persisted, commit }) => persisted === commit)
  })
  for (let n = 1; n <= TAIL_WRITES; n += 1) {
    const body = { name: `written last ${n}`, encryptionRequired: true }
    dataOf(await admin.request('POST', `${MANAGEMENT}/services`, { body }), 201)
  }
  for (const k of IDS) cluster.kill(k)
}

function dataFolder(k: number): string {
  return join(cluster.folder, cluster.id(k), 'data')
}

function copyData(k: number): void {
  const isKept = (path: string): boolean => !/\.sock$|\/pid$/.test(path)
  cpSync(dataFolder(k), join(scratch, cluster.id(k)), { recursive: true, filter: isKept })
}

/**
 * Packs the folder without owners and times, in sorted order, so that archives differ only if their
 * content differs.
 */
function pack(file: string): void {
  const flags = [
    '--sort=name',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mtime=@0',
    '--sparse',
  ]
  const names = readdirSync(scratch).sort()
  const args = ['--create', '--use-compress-program=gzip -9n', `--file=${file}`, ...flags]
  const done = spawnSync('tar', [...args, '--directory', scratch, ...names], { encoding: 'utf8' })
  if (done.status !== 0) throw new Error(done.stderr)
}

async function listing(dir: string): Promise<unknown> {
  const store = await LevelStateStore.open(dir, { freeBytesMin: 0 })
  const state = await loadState(store, new ClusterState())
  const persisted = state.position.index
  const { disk, restored } = openLog(dir, { statePosition: state.position, hasOtherVoters: true })
  for (const entry of restored.entries) if (entry.index > persisted) applyLogEntry(state, entry)
  disk.closeNow()
  await store.close()
  const { position, featureLevel } = state
  return {
    position,
    persisted,
    featureLevel,
    digest: state.stateDigest(),
    records: recordsOf(state),
  }
}

function recordsOf(state: ClusterState): Record<string, Record<string, Json>> {
  const kinds: Record<string, Record<string, Json>> = {}
  for (const [name, { entity, rows }] of state.tables) {
    if (entity.name !== name || rows.size === 0) continue
    const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1))
    kinds[name] = Object.fromEntries(sorted.map(([id, { record }]) => [id, record as Json]))
  }
  return kinds
}
