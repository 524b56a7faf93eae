import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import type { KindName } from '../../src/entities/kind-records.ts'
import {
  CommandKind,
  IntegrityClaimSchema,
  IntegrityDetachSchema,
  IntegrityEndSchema,
  IntegrityRebuildSchema,
  IntegrityStartSchema,
} from '../../proto/gen/command_pb.ts'
import { integrityLimits } from '../../src/fsm/cluster/integrity.ts'
import { requirePresent } from '../../src/lib/assert.ts'
import { type IntegrityRepair, IntegrityScan } from '../../src/fsm/cluster/integrity-scan.ts'
import { formedState, identity, type LogWriter, policy, service } from './support/log.ts'
import type { ClusterState } from '../../src/fsm/access/cluster-state.ts'

/** A state with every kind of derived data. */
function filled() {
  const { state, log } = formedState()
  log.create('identity', 'alice', identity('Alice', ['staff']))
  log.create('identity', 'bob', identity('Bob'))
  log.create('service', 'mail', service('mail', ['office']))
  log.create('servicePolicy', 'use', policy('use', ['#staff', '@bob'], ['@mail']))
  log.logIn('session', 'alice', '')
  return { state, log }
}

/** A terminator `host` of the service `inner`; both exist only in the fabric API. */
function withFabricTerminator(log: LogWriter): void {
  const inner = { name: 'inner', isFabricOnly: true }
  log.raw(CommandKind.ENTITY_CREATE, 'fabricService', 'inner', inner)
  log.create('fabricRouter', 'core', { name: 'core', cost: 0, noTraversal: false })
  const host = { serviceId: 'inner', routerId: 'core', address: 'tcp:host:80' }
  log.raw(CommandKind.ENTITY_CREATE, 'fabricTerminator', 'host', host)
}

function stored(state: ClusterState, kind: KindName, id: string) {
  return requirePresent(state.get(kind, id), `${kind} ${id}`)
}

function scanned(state: ClusterState): IntegrityScan {
  const scan = new IntegrityScan(state)
  while (scan.step());
  return scan
}

function descriptions(state: ClusterState): string[] {
  return scanned(state).findings.map(({ description }) => description)
}

function repair(log: LogWriter, fix: IntegrityRepair) {
  if (fix.kind === 'rebuild') {
    const message = create(IntegrityRebuildSchema, { entity: fix.entity })
    return log.command(CommandKind.INTEGRITY_REBUILD, toBinary(IntegrityRebuildSchema, message))
      .outcome
  }
  const { entity, id, field, missingId } = fix
  const message = create(IntegrityDetachSchema, { entity, id, field, missingId })
  return log.command(CommandKind.INTEGRITY_DETACH, toBinary(IntegrityDetachSchema, message)).outcome
}

function repairAll(state: ClusterState, log: LogWriter): void {
  for (const finding of scanned(state).findings) repair(log, finding.repair)
}

describe('The scan for data integrity', () => {
  test('reports nothing for a consistent state', () => {
    expect(descriptions(filled().state)).toEqual([])
  })

  test('reports nothing for a consistent fabric-only terminator', () => {
    const { state, log } = formedState()
    withFabricTerminator(log)
    expect(descriptions(state)).toEqual([])
  })

  test('removes a fabric-only terminator whose service is missing', () => {
    const { state, log } = formedState()
    withFabricTerminator(log)
    state.remove('fabricService', 'inner')
    expect(descriptions(state)).toEqual([
      'terminator host names the service inner in serviceId, which does not exist',
    ])
    repairAll(state, log)
    expect(state.get('fabricTerminator', 'host')).toBeUndefined()
    expect(descriptions(state)).toEqual([])
  })

  test('reports a missing index entry, and rebuilds the index', () => {
    const { state, log } = filled()
    const digest = state.entitiesDigest()
    const alice = state.get('identity', 'alice')
    state.table('identity').indexes.move('alice', alice, undefined)
    const found = descriptions(state)
    expect(found).toContain('identity alice is not found by its name')
    expect(found).toContain('identity alice is not found by its roleAttributes')
    repairAll(state, log)
    expect(descriptions(state)).toEqual([])
    expect(state.table('identity').indexes.owner('name', 'Alice')).toBe('alice')
    expect(state.entitiesDigest()).toBe(digest)
  })

  test('reports wrong index entries', () => {
    const { state, log } = filled()
    const record = { ...stored(state, 'service', 'mail'), id: 'ghost', name: 'ghost' }
    state.table('service').indexes.move('ghost', undefined, record)
    state.table('service').ids.add('ghost')
    const found = descriptions(state)
    expect(found).toContain('the order of services names ghost, which does not exist')
    expect(found).toContain(
      "the index of services by name leads from 'ghost' to ghost, which is not so",
    )
    repairAll(state, log)
    expect(descriptions(state)).toEqual([])
  })

  test('reports a record that is missing in the sorted IDs of its table', () => {
    const { state, log } = filled()
    state.table('service').ids.delete('mail')
    expect(descriptions(state)).toEqual(['service mail is not in the order of its table'])
    repairAll(state, log)
    expect(descriptions(state)).toEqual([])
  })

  test('reports wrong digests, both of one record and of all records', () => {
    for (const [kind, id, which] of [
      ['service', 'mail', 'that clients see'],
      ['apiSession', 'session', 'that clients do not see'],
    ] as const) {
      const { state, log } = filled()
      const digests = [state.entitiesDigest(), state.stateDigest()]
      const { rows } = state.table(kind)
      const row = requirePresent(rows.get(id), 'a row')
      rows.set(id, { ...row, lanes: { ...row.lanes, a: row.lanes.a ^ 1 } })
      expect(descriptions(state)).toEqual([
        `the digest of ${kind} ${id} is not that of its content`,
        `the digest of the records ${which} is not their sum`,
      ])
      repairAll(state, log)
      expect(descriptions(state)).toEqual([])
      expect(state.entitiesDigest()).toBe(digests[0])
    }
  })

  test('reports references to missing records, and removes them as the deletion of those records would', () => {
    const { state, log } = filled()
    state.put('service', { ...stored(state, 'service', 'mail'), configs: ['gone'] })
    state.put('servicePolicy', {
      ...stored(state, 'servicePolicy', 'use'),
      serviceRoles: ['@lost', '@mail'],
    })
    state.put('identity', { ...stored(state, 'identity', 'bob'), authPolicyId: 'none' })
    state.put('apiSession', { ...stored(state, 'apiSession', 'session'), identityId: 'nobody' })
    expect(descriptions(state).sort()).toEqual([
      'apiSession session names the identity nobody in identityId, which does not exist',
      'identity bob names the authPolicy none in authPolicyId, which does not exist',
      'service mail names the config gone in configs, which does not exist',
      'servicePolicy use names the service lost in serviceRoles, which does not exist',
    ])
    repairAll(state, log)
    expect(descriptions(state)).toEqual([])
    expect(state.get('service', 'mail')).toMatchObject({ configs: [] })
    expect(state.get('servicePolicy', 'use')).toMatchObject({ serviceRoles: ['@mail'] })
    expect(state.get('identity', 'bob')).toMatchObject({ authPolicyId: 'default' })
    expect(state.get('apiSession', 'session')).toBeUndefined()
  })

  test('removes no reference to an existing record, and no reference that the referencing record requires', () => {
    const { state, log } = filled()
    const use = {
      kind: 'detach',
      entity: 'servicePolicy',
      id: 'use',
      field: 'serviceRoles',
    } as const
    const outcome = repair(log, { ...use, missingId: 'mail' })
    expect(outcome).toMatchObject({ ok: false, code: 'REVISION_MOVED' })
    const [configTypeId = ''] = state.table('configType').ids
    log.create('config', 'one', { name: 'one', configTypeId, data: {} })
    state.put('config', { ...stored(state, 'config', 'one'), configTypeId: 'none' })
    const one = { kind: 'detach', entity: 'config', id: 'one', field: 'configTypeId' } as const
    expect(repair(log, { ...one, missingId: 'none' })).toMatchObject({ ok: false })
    expect(state.get('config', 'one')).toMatchObject({ configTypeId: 'none' })
  })

  test('does not report a change that happens during the scan as a fault', () => {
    const { state, log } = filled()
    for (let i = 0; i < 300; i += 1) log.create('service', `s${i}`, service(`s${i}`, ['office']))
    const scan = new IntegrityScan(state)
    for (let i = 0; scan.step(); i += 1) {
      log.delete('service', `s${(i * 7) % 300}`)
      log.create('service', `t${i}`, service(`t${i}`, ['office', 'late']))
      log.patch('service', `s${(i * 11) % 300}`, { name: `moved ${i}`, roleAttributes: ['moved'] })
    }
    expect(scan.findings).toEqual([])
  })

  test('keeps a limited number of findings, and reports that there were more', () => {
    const { state, log } = filled()
    for (let i = 0; i <= integrityLimits.findingsMax; i += 1) {
      log.create('service', `s${i}`, service(`s${i}`))
      state.table('service').ids.delete(`s${i}`)
    }
    const scan = scanned(state)
    expect(scan.findings).toHaveLength(integrityLimits.findingsMax)
    expect(scan.hasMore).toBe(true)
  })
})

describe('A run of the data integrity check', () => {
  const start = (log: LogWriter, id: string, isFixing = false) =>
    log.command(
      CommandKind.INTEGRITY_START,
      toBinary(IntegrityStartSchema, create(IntegrityStartSchema, { id, isFixing })),
    ).outcome
  const claim = (log: LogWriter, runId: string, runner: string) =>
    log.command(
      CommandKind.INTEGRITY_CLAIM,
      toBinary(IntegrityClaimSchema, create(IntegrityClaimSchema, { runId, runner })),
    ).outcome
  const end = (log: LogWriter, runId: string, runner: string, error = '') =>
    log.command(
      CommandKind.INTEGRITY_END,
      toBinary(IntegrityEndSchema, create(IntegrityEndSchema, { runId, runner, error })),
    ).outcome
  const runOf = (state: ClusterState) => state.get('integrityRun', 'run')

  test('can be claimed and completed by only one controller', () => {
    const { state, log } = filled()
    expect(start(log, 'first')).toMatchObject({ ok: true })
    expect(start(log, 'second', true)).toMatchObject({ ok: false, code: 'RATE_LIMITED' })
    expect(claim(log, 'other', 'a')).toMatchObject({ ok: false })
    expect(claim(log, 'first', 'a')).toMatchObject({ ok: true })
    expect(claim(log, 'first', 'b')).toMatchObject({ ok: false })
    expect(end(log, 'first', 'b')).toMatchObject({ ok: false })
    expect(end(log, 'first', 'a', 'stopped')).toMatchObject({ ok: true })
    expect(runOf(state)).toMatchObject({ isInProgress: false, error: 'stopped' })
    expect(start(log, 'second', true)).toMatchObject({ ok: true })
    expect(runOf(state)).toMatchObject({
      isInProgress: true,
      isFixing: true,
      error: '',
      runner: '',
    })
  })
})
