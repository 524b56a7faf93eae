import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  type PostureFact,
  PostureFactSchema,
  type PostureRecord,
  PostureRecordSchema,
} from '../../proto/gen/soft_pb.ts'
import { type DeviceKind, deviceKinds, type PostureReport } from '../ports/posture.ts'

/**
 * The facts of one identity, by what each is about; a later fact on the same thing takes the place
 * of an earlier one.
 */
export type Facts = Map<string, PostureFact>

/** The oldest first; of facts on two things told at once, in one order on all controllers. */
export function inOrder(facts: Facts): (readonly [slot: string, fact: PostureFact])[] {
  return [...facts].sort(([slotA, a], [slotB, b]) => {
    if (a.version !== b.version) return a.version < b.version ? -1 : 1
    return slotA < slotB ? -1 : 1
  })
}

export function pack(moves: bigint, facts: Facts): Uint8Array {
  return toBinary(
    PostureRecordSchema,
    create(PostureRecordSchema, { moves, facts: [...facts.values()] }),
  )
}

/** Heard bytes were decoded before they were kept, with all of their integers. */
export function unpack(bytes: Uint8Array): PostureRecord {
  return fromBinary(PostureRecordSchema, bytes)
}

export function factsOf(record: PostureRecord | undefined): Facts {
  const facts: Facts = new Map()
  for (const fact of record?.facts ?? []) {
    const slot = slotOfFact(fact)
    if (slot !== null) facts.set(slot, fact)
  }
  return facts
}

const routerSlot = (apiSessionId: string): string => `router ${apiSessionId}`
const endpointSlot = (apiSessionId: string): string => `endpoint ${apiSessionId}`
/** One path is one process, whichever checks ask for it: clients answer each path once. */
const processSlot = (path: string, checkId: string): string =>
  path === '' ? `check ${checkId}` : `path ${path}`

export function slotOf(report: PostureReport, apiSessionId: string): string {
  if (report.kind === 'endpoint') return endpointSlot(apiSessionId)
  if (report.kind === 'router') return routerSlot(apiSessionId)
  if (report.kind === 'process') return processSlot(report.path, report.checkId)
  return report.kind
}

/** null: a newer controller knows of more. */
function slotOfFact({ what, checkId }: PostureFact): string | null {
  if (what.case === undefined) return null
  if (what.case === 'endpoint') return endpointSlot(what.value.apiSessionId)
  if (what.case === 'router') return routerSlot(what.value.apiSessionId)
  if (what.case === 'process') return processSlot(what.value.path, checkId)
  return what.case
}

export type Report = Pick<PostureFact, 'checkId' | 'what'>

export function whatOf(
  report: PostureReport,
  apiSessionId: string,
  known: PostureFact | undefined,
  nowMs: number,
): Report {
  const before = known?.what.case === 'endpoint' ? known.what.value : null
  const bare = create(PostureFactSchema, initOf(report, apiSessionId, before, nowMs))
  return { checkId: bare.checkId, what: bare.what }
}

function initOf(
  report: PostureReport,
  apiSessionId: string,
  before: { readonly wokenAtMs: bigint; readonly unlockedAtMs: bigint } | null,
  nowMs: number,
): Parameters<typeof create<typeof PostureFactSchema>>[1] {
  switch (report.kind) {
    case 'os': {
      const { checkId, type, version, build } = report
      return { checkId, what: { case: 'os', value: { type, version, build } } }
    }
    case 'domain':
      return {
        checkId: report.checkId,
        what: { case: 'domain', value: { domain: report.domain } },
      }
    case 'mac':
      return {
        checkId: report.checkId,
        what: { case: 'mac', value: { addresses: [...report.addresses] } },
      }
    case 'process': {
      const { checkId, path, isRunning: running, hash } = report
      const signerFingerprints = [...report.signerFingerprints]
      return {
        checkId,
        what: { case: 'process', value: { path, running, hash, signerFingerprints } },
      }
    }
    case 'endpoint': {
      const wokenAtMs = report.isWoken ? BigInt(nowMs) : (before?.wokenAtMs ?? 0n)
      const unlockedAtMs = report.isUnlocked ? BigInt(nowMs) : (before?.unlockedAtMs ?? 0n)
      return { what: { case: 'endpoint', value: { apiSessionId, wokenAtMs, unlockedAtMs } } }
    }
    case 'router': {
      const { routerId } = report
      return { what: { case: 'router', value: { apiSessionId, routerId } } }
    }
  }
}

/**
 * The later word on each kind counts: that of the router which has judged it in an API session, or
 * that of the device to a controller.
 * @returns the kinds that the router has judged since.
 */
export function judgedByRouter(facts: Facts, apiSessionId: string): ReadonlySet<DeviceKind> {
  const judged = facts.get(routerSlot(apiSessionId))
  const kinds = new Set<DeviceKind>(judged === undefined ? [] : deviceKinds)
  if (judged === undefined) return kinds
  for (const { what, version } of facts.values()) {
    const { case: kind } = what
    if (version > judged.version && isDeviceKind(kind)) kinds.delete(kind)
  }
  return kinds
}

/** @returns whether the device has reported nothing since the router has judged. */
export function isLastWord(facts: Facts, slot: string): boolean {
  const version = facts.get(slot)?.version ?? 0n
  return [...facts.values()].every(
    (fact) => fact.version <= version || !isDeviceKind(fact.what.case),
  )
}

function isDeviceKind(kind: string | undefined): kind is DeviceKind {
  return deviceKinds.has(kind as DeviceKind)
}

export function sameReport(known: PostureFact, { checkId, what }: Report): boolean {
  const bare = (fact: Report): Uint8Array =>
    toBinary(
      PostureFactSchema,
      create(PostureFactSchema, { checkId: fact.checkId, what: fact.what }),
    )
  return Buffer.compare(bare(known), bare({ checkId, what })) === 0
}
