import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { KindName } from '../../src/entities/kind-records.ts'
import { openState } from '../../src/controller/start/open-state.ts'
import { entities, findEntity } from '../../src/entities/registry.ts'
import { loadState } from '../../src/fsm/records/load.ts'
import type { StateMachine } from '../../src/fsm/state-machine.ts'
import type { Json } from '../../src/lib/text/canonical-json.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import { LevelStateStore } from '../../src/store/state/level-state-store.ts'
import { openLog } from '../../src/store/log/open-log.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

// Goal: this program reads the same content from the data folders of release 0.2.0 as that release
// did. Method: three folders of killed controllers, recorded by that release together with a
// listing of their content (README.md in this folder). The test opens them as `controller run`
// does; their log time does not advance.

type Records = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, Json>>>>>>

interface Listing {
  readonly position: { readonly term: number; readonly index: number }
  readonly persisted: number
  readonly featureLevel: number
  readonly digest: string
  readonly records: Records
}

const listing = JSON.parse(
  readFileSync(join(import.meta.dirname, 'data-0.2.0.json'), 'utf8'),
) as Listing

let dir: string
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'flotilla-releases-'))
  const args = ['--extract', '--gzip', `--file=${join(import.meta.dirname, 'data-0.2.0.tgz')}`]
  const done = spawnSync('tar', [...args, '--directory', dir], { encoding: 'utf8' })
  expect(done.stderr).toBe('')
})
afterAll(() => rmSync(dir, { recursive: true, force: true }))

interface Opened {
  readonly machine: StateMachine
  /** Position of the state before the log was applied to it. */
  readonly persisted: number
  readonly digest: string
}

async function open(folder: string): Promise<Opened> {
  const { machine, dropped } = await openState(folder, 0, true)
  expect(dropped).toBeNull()
  const { position: statePosition } = machine.persistedMark()
  const log = openLog(folder, { statePosition, hasOtherVoters: true })
  expect(log.repair).toBeNull()
  for (const entry of log.restored.entries) {
    if (entry.index <= listing.position.index) machine.apply(entry)
  }
  log.disk.closeNow()
  return { machine, persisted: statePosition.index, digest: machine.digests().state }
}

/**
 * The listing does not contain the fields that this release adds; a field missing here would be
 * lost data.
 */
function expectRecorded(records: Records, here: (kind: KindName, id: string) => unknown): void {
  for (const [kind, byId] of Object.entries(records)) {
    for (const [id, record] of Object.entries(byId)) {
      expect(here(findEntity(kind).name, id), `${kind} ${id}`).toMatchObject(record)
    }
  }
}

/** This field is written only if the clocks of a majority were ahead. */
const notRecorded = new Set(['logTimeReset'])

test('the recorded data folders contain a record of every kind that existed in their release', () => {
  const own = entities.filter(
    ({ name, table, since }) => name === table && since <= listing.featureLevel,
  )
  const recorded = own.map(({ name }) => name).filter((name) => !notRecorded.has(name))
  expect(Object.keys(listing.records).sort()).toEqual(recorded)
})

test('each of the three recorded data folders can be opened, and its log and state give the digest that its release computed', async () => {
  for (const id of ['ctrl1', 'ctrl2', 'ctrl3']) {
    const { machine, persisted, digest } = await open(join(dir, id))
    expect(machine.appliedIndex, id).toBe(listing.position.index)
    expect(machine.featureLevel, id).toBe(listing.featureLevel)
    expect(digest, id).toBe(listing.digest)
    expect(persisted, `${id} has a log to apply`).toBeLessThan(listing.position.index)
    expectRecorded(listing.records, (kind, of) => machine.get(kind, of))
    for (const [kind, byId] of Object.entries(listing.records)) {
      expect([...machine.ids(findEntity(kind).name)].sort(), kind).toEqual(Object.keys(byId))
    }
    await machine.close()
  }
})

/** Reads the state as a controller does when it receives and loads the sent state. */
async function received(file: string): Promise<ClusterState> {
  const store = await LevelStateStore.open(mkdtempSync(join(dir, 'received-')), { freeBytesMin: 0 })
  const receiver = await store.receive()
  await receiver.write(readFileSync(file))
  await receiver.finish()
  await receiver.swap()
  const state = await loadState(store, new ClusterState())
  await store.close()
  return state
}

test('the snapshot file of the previous release is loaded with its services, identities, configs and routers', async () => {
  const folder = join(dir, 'ctrl1', 'snapshots')
  const [name] = readdirSync(folder)
  const state = await received(join(folder, requirePresent(name, 'the snapshot file')))
  expect(state.featureLevel).toBe(listing.featureLevel)
  const isLater = (record: Readonly<Record<string, Json>>): boolean =>
    String(record['name']).startsWith('written last')
  const services = Object.entries(listing.records['service'] ?? {})
  expect([...state.table('service').rows.keys()].sort()).toEqual(
    services.filter(([, record]) => !isLater(record)).map(([id]) => id),
  )
  const { identity = {}, config = {}, router = {} } = listing.records
  expectRecorded({ identity, config, router }, (kind, id) => state.get(kind, id))
})
