import { createHash } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'

import type { KindName } from '../../src/entities/kind-records.ts'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { type RestoreContent, splitRestoreContent } from '../../src/backup/restore-content.ts'
import { IntegrityScan } from '../../src/fsm/cluster/integrity-scan.ts'
import { restoreLimits } from '../../src/fsm/records/restore-limits.ts'
import { anySession } from '../support/commands.ts'
import { slowTypes } from './support/access-twin.ts'
import { identity, type LogWriter, policy, service } from './support/log.ts'
import { contentOf, restorableState, Restore } from './support/restoring.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

// Goal: a restore is one entry: before it every reader sees the old records, after it the new ones,
// and never a mixture. Method: one log represents the backup, another one the cluster after the
// backup; each state is both replayed from its log and loaded from its records.

const refusedRestore = { ok: false, code: 'RESTORE_REFUSED' }

/** Records that both have: the state of the cluster at the time of the backup. */
function write(log: LogWriter): void {
  log.create('identity', 'alice', identity('alice', ['staff']))
  log.create('identity', 'bob', identity('bob'))
  log.create('service', 'wiki', service('wiki', ['web']))
  log.create('service', 'mail', service('mail', ['web']))
  log.create('servicePolicy', 'dial', policy('dial', ['#staff'], ['#web']))
  for (const [id, identityId] of [
    ['open', 'bob'],
    ['used', 'alice'],
  ] as const) {
    const fields = { identityId, method: 'ott', token: id, expiresAt: 4_000_000_000_000 }
    log.raw(CommandKind.ENTITY_CREATE, 'enrollment', id, fields)
  }
}

/** The same cluster after harmful changes. */
function since(): { readonly state: ClusterState; readonly log: LogWriter } {
  const made = restorableState()
  write(made.log)
  const { log } = made
  log.delete('service', 'wiki')
  log.patch('service', 'mail', { name: 'post' })
  // The name of a restored record belongs to another record.
  log.create('service', 'other', service('mail'))
  // Two identities have exchanged their names.
  log.patch('identity', 'alice', { name: 'nobody' })
  log.patch('identity', 'bob', { name: 'alice' })
  log.patch('identity', 'alice', { name: 'bob' })
  log.delete('enrollment', 'used')
  log.patch('identity', 'bob', { roleAttributes: ['staff'] })
  log.create('revocation', 'bob', { id: 'bob', type: 'IDENTITY' })
  log.logIn('session')
  return made
}

function backup(): { readonly state: ClusterState; readonly content: RestoreContent } {
  const { state, log } = restorableState()
  write(log)
  log.logIn('of-old')
  return { state, content: contentOf(state) }
}

/** A text that is hard to compress, and the same in each run. */
function incompressible(seed: number): string {
  const texts = Array.from({ length: 16 }, (_, n) => createHash('sha512').update(`${seed} ${n}`))
  return texts.map((text) => text.digest('base64')).join('')
}

function deflated(text: string): Uint8Array {
  return Uint8Array.from(deflateRawSync(text))
}

function names(state: ClusterState, kind: KindName): unknown[] {
  return [...state.table(kind).rows.values()].map(({ record }) => record['name']).sort()
}

function expectIntact(state: ClusterState): void {
  const scan = new IntegrityScan(state)
  while (scan.step());
  expect(scan.findings).toEqual([])
}

describe('a restore', () => {
  test('shows the old records until its last log entry is applied, and afterwards the restored records', () => {
    const { state, log } = since()
    const { state: wanted, content } = backup()
    const before = state.entitiesDigest()
    const restore = new Restore(log, content)
    expect(restore.begin()).toEqual({ ok: true, id: 'one' })
    content.chunks.forEach((_, number) => {
      expect(restore.chunk(number)).toEqual({ ok: true, id: 'one' })
    })
    expect(state.entitiesDigest()).toBe(before)
    expect(restore.end()).toEqual({ ok: true, id: 'one' })
    for (const kind of [
      'identity',
      'service',
      'servicePolicy',
      'configType',
      'authenticator',
    ] as const) {
      const rows = (of: ClusterState): unknown => [...of.table(kind).rows].sort()
      expect(rows(state), kind).toEqual(rows(wanted))
    }
    expect(names(state, 'service')).toEqual(['mail', 'wiki'])
    expectIntact(state)
  })

  test('ends sessions, keeps revocations, and does not make used tokens valid again', () => {
    const { state, log } = since()
    new Restore(log, backup().content).stage()
    expect([...state.table('apiSession').ids]).toEqual(['session'])
    new Restore(log, backup().content).end()
    expect([...state.table('apiSession').ids]).toEqual([])
    expect([...state.table('revocation').ids]).toEqual(['bob'])
    expect([...state.table('enrollment').ids]).toEqual(['open'])
    expectIntact(state)
  })

  test('keeps admissions, join tickets, shared secrets, log time, feature level, cluster id and request ids', () => {
    const { state, log } = since()
    const kept = (): unknown => [
      state.clusterId,
      state.featureLevel,
      state.requests.size,
      state.logTimeMs,
      ...(['admission', 'sharedSecret', 'joinTicket'] as const).map((kind) => [
        ...state.table(kind).rows,
      ]),
    ]
    const before = kept()
    const restore = new Restore(log, backup().content)
    restore.stage()
    restore.end()
    expect(kept()).toEqual(before)
  })

  test('changes the access of identities according to the restored records', () => {
    const { state, log } = since()
    const restore = new Restore(log, backup().content)
    restore.stage()
    restore.end()
    for (const who of ['alice', 'bob']) {
      for (const what of ['wiki', 'mail']) {
        const [one, other] = [state.get('identity', who), state.get('service', what)]
        if (one === undefined || other === undefined) throw new Error('they were restored')
        const may = state.access.bitsOf(one, other) === 0 ? [] : ['Dial']
        expect(may, `${who} ${what}`).toEqual(slowTypes(state, one, other))
      }
    }
  })

  test('is recorded with the name of its backup, and can be repeated later', () => {
    const { state, log } = since()
    const { content } = backup()
    const restore = new Restore(log, content)
    restore.stage()
    restore.end()
    const [told] = state.audit.page(0, 1)
    expect(told).toMatchObject({ action: 'restore-end', outcome: 'done', reason: 'a backup' })
    log.delete('service', 'wiki')
    const again = new Restore(log, content, 'two')
    again.stage()
    expect(again.end()).toEqual({ ok: true, id: 'two' })
    expect(names(state, 'service')).toEqual(['mail', 'wiki'])
  })

  test('accepts a repetition of each of its log entries', () => {
    const { state, log } = since()
    const { content } = backup()
    const restore = new Restore(log, content)
    restore.begin()
    restore.chunk(0)
    expect(restore.begin()).toMatchObject({ ok: true })
    expect(restore.chunk(0)).toMatchObject({ ok: true })
    content.chunks.forEach((_, number) => restore.chunk(number))
    restore.end()
    log.create('service', 'newer', service('newer'))
    expect(restore.end()).toMatchObject({ ok: true })
    expect(names(state, 'service')).toEqual(['mail', 'newer', 'wiki'])
    expect(restore.begin()).toMatchObject(refusedRestore)
  })
})

describe('a restore changes nothing', () => {
  test.each([
    ['a backup of another cluster', { clusterId: 'elsewhere' }],
    ['a backup of a newer feature level', { featureLevel: 3 }],
    [
      'a backup that is too large',
      { bytes: String(restoreLimits.stagedBytesMax + 1), chunks: 10_000 },
    ],
    ['an invalid id of the restore', { id: 'a b' }],
    ['more chunks than the bytes allow', { chunks: 100_000 }],
  ])('if it begins with %s', (_what, given) => {
    const { state, log } = since()
    const before = state.entitiesDigest()
    const restore = new Restore(log, backup().content)
    expect(restore.begin(given)).toMatchObject({ ok: false })
    expect(restore.chunk(0)).toMatchObject(refusedRestore)
    expect(restore.end()).toMatchObject(refusedRestore)
    expect(state.entitiesDigest()).toBe(before)
    expect(state.staged.head).toBeNull()
  })

  test('if another restore is in progress', () => {
    const { log } = since()
    const { content } = backup()
    new Restore(log, content).begin()
    const other = new Restore(log, content, 'two')
    expect(other.begin()).toMatchObject({ ok: false, code: 'RESTORE_UNDER_WAY' })
    expect(other.chunk(0)).toMatchObject(refusedRestore)
    expect(other.end()).toMatchObject(refusedRestore)
  })

  test('if a chunk is missing, truncated or replaced', () => {
    const { state, log } = since()
    for (let n = 0; n < 150; n += 1) {
      log.create('service', `s${n}`, { ...service(`s${n}`), tags: { a: incompressible(n) } })
    }
    const content = splitRestoreContent(state)
    expect(content.chunks.length).toBeGreaterThan(2)
    const before = state.entitiesDigest()
    const restore = new Restore(log, content)
    restore.begin()
    expect(restore.end()).toMatchObject(refusedRestore)
    expect(restore.chunk(1), 'out of order').toMatchObject(refusedRestore)
    const last = content.chunks.findIndex(({ endsBlock }) => endsBlock)
    for (let number = 0; number < last; number += 1) restore.chunk(number)
    const cut = content.chunks[last]?.bytes.slice(0, -9)
    expect(restore.chunk(last, cut), 'cut').toMatchObject(refusedRestore)
    for (let number = last; number + 1 < content.chunks.length; number += 1) restore.chunk(number)
    expect(restore.end(), 'without the last chunk').toMatchObject(refusedRestore)
    restore.chunk(content.chunks.length - 1)
    expect(restore.end({ sha256: Buffer.alloc(32) }), 'another digest').toMatchObject(
      refusedRestore,
    )
    expect(state.entitiesDigest()).toBe(before)
    expect(restore.end()).toMatchObject({ ok: true })
  })

  test('if its chunks contain unsupported or malformed records', () => {
    const { state, log } = since()
    const { content } = backup()
    const restore = new Restore(log, content)
    restore.begin()
    for (const text of ['admission\t{"id":"x"}', 'identity\t{}', 'identity', '', 'service\t[1']) {
      const made = new Restore(log, content)
      expect(made.chunk(0, deflated(text)), text).toMatchObject(refusedRestore)
    }
    expect(state.staged.received).toBe(0)
  })

  test('if it was aborted, or took too long', () => {
    const { state, log } = since()
    const { content } = backup()
    const before = state.entitiesDigest()
    const restore = new Restore(log, content)
    restore.stage()
    expect(restore.end({ isAbandoned: true })).toMatchObject({ ok: true })
    expect(restore.end()).toMatchObject(refusedRestore)
    const other = new Restore(log, content, 'two')
    other.stage()
    log.timeMs += restoreLimits.lifetimeMs
    expect(other.end()).toMatchObject(refusedRestore)
    expect(state.staged.head).toBeNull()
    expect(state.entitiesDigest()).toBe(before)
  })

  test('if records were written after the index for which the restore was planned', () => {
    const { state, log } = since()
    const { index } = state.position
    const restore = new Restore(log, backup().content)
    restore.stage()
    log.create('service', 'late', service('late'))
    expect(restore.end({ ifIndex: String(index) })).toMatchObject(refusedRestore)
    expect(state.get('service', 'late')).toBeDefined()
    expect(restore.end({ ifIndex: String(index + 20) })).toMatchObject({ ok: true })
  })

  test('if a session requests it, whatever permissions the session has', () => {
    const { log } = since()
    log.logIn('of-admin')
    const actor = anySession({ sessionId: 'of-admin', permission: 'admin' })
    for (const kind of [
      CommandKind.RESTORE_BEGIN,
      CommandKind.RESTORE_CHUNK,
      CommandKind.RESTORE_END,
    ]) {
      const { outcome } = log.command(kind, new Uint8Array(), { level: 2, actor })
      expect(outcome).toMatchObject({ ok: false, code: 'UNAUTHORIZED' })
    }
  })
})

test('sessions that begin and end while a restore is in progress do not prevent the restore', () => {
  const { state, log } = since()
  const { index } = state.position
  const restore = new Restore(log, backup().content)
  restore.stage()
  log.logIn('another')
  log.logOut('another')
  expect(restore.end({ ifIndex: String(index) })).toMatchObject({ ok: true })
})
