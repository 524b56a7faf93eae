import { expect, test } from 'vitest'

import { CommandKind } from '../../proto/gen/command_pb.ts'
import { callerWriteLimits, CallerWriteLimiter } from '../../src/api/http/caller-write-limiter.ts'
import { auditLimits } from '../../src/fsm/records/audit-line.ts'
import { loadState } from '../../src/fsm/records/load.ts'
import { currentStorePosition } from '../../src/fsm/records/write-behind.ts'
import { createEnrollmentActor } from '../../src/ports/actor.ts'
import { FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import type { ProposalInput } from '../../src/ports/proposer.ts'
import { createCertificateHandler } from '../../src/fabric/certificate-handler.ts'
import { controlContentType } from '../../src/channel/messages/control.ts'
import { startController } from '../api/support/controller.ts'
import { settle } from '../channel/pipe.ts'
import { TestStore } from '../fsm/support/store.ts'

import { newCa } from '../support/authorities.ts'
import { RouterStage } from '../fabric/stage.ts'
import { ClusterState } from '../../src/fsm/access/cluster-state.ts'

// The attack: somebody with an ordinary session, or a router, writes so often that the audit log no
// longer contains the actions of other callers.

test('an ordinary identity can begin a limited number of MFA enrollments per minute over all its sessions', async () => {
  const controller = await startController()
  const begin = async (identityId: string): Promise<number> => {
    const headers = { 'net-session': controller.openSession(identityId) }
    const url = '/edge/client/v1/current-identity/mfa'
    const reply = await controller.app.inject({ method: 'POST', url, headers, payload: {} })
    return reply.statusCode
  }
  try {
    const { identityWritesOfKindMax: most, writeWindowMs } = callerWriteLimits
    const statuses: number[] = []
    for (let at = 0; at < most + 5; at += 1) statuses.push(await begin('alice-id'))
    expect(statuses.filter((status) => status === 429)).toHaveLength(5)
    expect(await begin('admin-id')).not.toBe(429)
    controller.clock.advance(writeWindowMs)
    expect(await begin('alice-id')).not.toBe(429)
  } finally {
    await controller.close()
  }
})

function allowance(limits: Partial<typeof callerWriteLimits> = {}) {
  const taken: ProposalInput[] = []
  const proposer = {
    propose: (input: ProposalInput) => {
      taken.push(input)
      return Promise.resolve({ index: 1, outcome: { ok: true as const, id: '' } })
    },
  }
  const clock = { monotonicMs: () => 0 }
  const allowed = new CallerWriteLimiter(proposer, clock, { ...callerWriteLimits, ...limits })
  const write = async (routerId: string, kind: ProposalInput['kind'], times: number) => {
    const actor = createEnrollmentActor({ routerId }, { method: 'channel', address: '192.0.2.1' })
    for (let at = 0; at < times; at += 1) {
      await allowed.propose({ kind, payload: new Uint8Array(), actor }).catch(() => undefined)
    }
  }
  return { taken, write }
}

test('a router can extend its certificates a limited number of times per minute', async () => {
  const { taken, write } = allowance()
  await write('r1', CommandKind.ROUTER_EXTEND, 1000)
  expect(taken).toHaveLength(callerWriteLimits.routerExtensionsMax)
  await write('r2', CommandKind.ROUTER_EXTEND, 1)
  await write('r1', CommandKind.HOSTED_TERMINATOR_CREATE, 1)
  expect(taken).toHaveLength(callerWriteLimits.routerExtensionsMax + 2)
})

test('a controller signs no certificate for a router that has reached the maximum number of extensions per minute, because the controller could not record the certificate', async () => {
  const stage = new RouterStage()
  stage.certPem = (await newCa('a router', 0)).certificatePem
  const proposer = new CallerWriteLimiter(
    { propose: () => Promise.resolve({ index: 1, outcome: { ok: true, id: '' } }) },
    { monotonicMs: () => 0 },
  )
  let signed = 0
  const client = { chainPem: '', fingerprint: '', publicKeyPrint: '', serial: '' }
  const extend = () => {
    signed += 1
    return Promise.resolve({ client, server: { chainPem: '', hosts: [] } } as never)
  }
  const log = { info: () => undefined, warn: () => undefined }
  stage.channels.add(
    createCertificateHandler({
      state: { featureLevel: FEATURE_LEVEL },
      certifier: { extend },
      proposer,
      log,
      anchorsPem: () => '',
    }),
  )
  const pipe = await stage.dial('er1')
  for (let at = 0; at < 3 * callerWriteLimits.routerExtensionsMax; at += 1) {
    pipe.say({
      contentType: controlContentType.enrollmentExtendRouter,
      sequence: at,
      headers: new Map(),
    })
    await settle()
  }
  expect(signed).toBe(callerWriteLimits.routerExtensionsMax)
  stage.channels.stop()
})

test('a router can cause only a limited number of log entries of all kinds per minute', async () => {
  const { taken, write } = allowance()
  const half = Math.ceil(callerWriteLimits.routerWritesMax * 0.75)
  await write('r1', CommandKind.HOSTED_TERMINATOR_CREATE, half)
  await write('r1', CommandKind.HOSTED_TERMINATOR_UPDATE, half)
  expect(taken).toHaveLength(callerWriteLimits.routerWritesMax)
})

test('all callers together can cause only a limited number of log entries per minute, and each entry counts once', async () => {
  const { taken, write } = allowance({ writesMax: 10 })
  await write('r1', CommandKind.HOSTED_TERMINATOR_CREATE, 4)
  await write('r1', CommandKind.ROUTER_EXTEND, 4)
  expect(taken).toHaveLength(8)
  await write('r2', CommandKind.HOSTED_TERMINATOR_CREATE, 4)
  expect(taken).toHaveLength(10)
})

test('the refused writes of a router take no writes from other routers', async () => {
  const { taken, write } = allowance({ writesMax: 12, routerWritesMax: 4 })
  await write('r1', CommandKind.HOSTED_TERMINATOR_CREATE, 4)
  await write('r1', CommandKind.HOSTED_TERMINATOR_UPDATE, 4)
  await write('r1', CommandKind.ROUTER_EXTEND, 4)
  expect(taken).toHaveLength(4)
  for (const other of ['r2', 'r3']) await write(other, CommandKind.HOSTED_TERMINATOR_CREATE, 4)
  expect(taken).toHaveLength(12)
})

function remember(state: ClusterState, index: number, actor: string): void {
  const who = { actor, actorName: '', session: 's', address: '192.0.2.1' }
  const what = {
    action: 'patch',
    entity: 'service',
    entityId: `s${index}`,
    outcome: 'done',
    entityName: '',
    change: '',
  }
  state.remember({ index, atMs: index, ...who, ...what, fields: [], also: [], reason: '' })
  state.forget()
}

test('the audit records of an actor that floods the audit log are evicted before those of others, also after a restart', async () => {
  const state = new ClusterState()
  const store = new TestStore()
  state.featureLevel = 2
  // Other callers write from time to time, before the flood and during it.
  const others = new Set<number>()
  const end = auditLimits.recordsMax + 40_000
  for (let index = 1; index <= end; index += 1) {
    const isOther = index % 700 === 0
    if (isOther) others.add(index)
    remember(state, index, isOther ? `person ${index % 5}` : 'mallory')
    if (index % 30_000 === 0) await store.write(state.takeDirty(), currentStorePosition(state))
  }
  const kept = [...state.audit.newestFirst()].map(({ id }) => Number(id))
  expect(new Set(kept).intersection(others)).toEqual(others)
  expect(kept).toEqual(kept.toSorted((a, b) => b - a))
  expect(kept.length).toBe(state.audit.size)
  expect(state.audit.size).toBeLessThan(auditLimits.recordsMax + 2 * auditLimits.blockRecords)
  expect(state.audit.page(0, kept.length).map(({ id }) => Number(id))).toEqual(kept)
  expect(state.isDigestRight('state')).toBe(true)

  await store.write(state.takeDirty(), currentStorePosition(state))
  const loaded = await loadState(store, new ClusterState())
  expect(loaded.stateDigest()).toBe(state.stateDigest())
  for (let index = end + 1; index < end + 300; index += 1) {
    for (const each of [state, loaded]) remember(each, index, 'mallory')
  }
  expect(loaded.stateDigest()).toBe(state.stateDigest())
})

test('below feature level 2, the oldest audit record is evicted first, even if another actor floods the audit log', () => {
  const state = new ClusterState()
  remember(state, 1, 'alice')
  for (let index = 2; index <= auditLimits.recordsMax + 200; index += 1) {
    remember(state, index, 'mallory')
  }
  expect([...state.audit.newestFirst()].some(({ actor }) => actor === 'alice')).toBe(false)
})
