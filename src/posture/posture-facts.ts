import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  type PostureFact,
  PostureFactSchema,
  type PostureRecord,
  PostureRecordSchema,
} from '../../proto/gen/soft_pb.ts'
import { type DeviceFactKind, deviceFactKinds, type PostureReport } from '../ports/posture.ts'

/**
 * The posture facts of one identity, by subject. A later fact about the same subject replaces the
 * earlier one.
 */
export type PostureFacts = Map<string, PostureFact>

/**
 * The facts, oldest first. Facts with the same version are sorted by subject, so that all
 * controllers have the same order.
 */
export function sortPostureFacts(
  facts: PostureFacts,
): (readonly [slot: string, fact: PostureFact])[] {
  return [...facts].sort(([slotA, a], [slotB, b]) => {
    if (a.version !== b.version) return a.version < b.version ? -1 : 1
    return slotA < slotB ? -1 : 1
  })
}

/**
 * Encodes the facts about an identity that one controller received, for soft state.
 * @param moves how many changes this controller has counted, see `PostureReports.moves`.
 */
export function encodePostureRecord(moves: bigint, facts: PostureFacts): Uint8Array {
  return toBinary(
    PostureRecordSchema,
    create(PostureRecordSchema, { moves, facts: [...facts.values()] }),
  )
}

/**
 * Decodes a posture record. The soft-state topic checked, when it received the record, that all of
 * it can be decoded.
 */
export function decodePostureRecord(bytes: Uint8Array): PostureRecord {
  return fromBinary(PostureRecordSchema, bytes)
}

/**
 * The facts of a record, by the key of their subject. A later report about the same subject
 * replaces the fact under that key.
 */
export function postureFactsFromRecord(record: PostureRecord | undefined): PostureFacts {
  const facts: PostureFacts = new Map()
  for (const fact of record?.facts ?? []) {
    const slot = slotOfFact(fact)
    if (slot !== null) facts.set(slot, fact)
  }
  return facts
}

const routerSlot = (apiSessionId: string): string => `router ${apiSessionId}`
const endpointSlot = (apiSessionId: string): string => `endpoint ${apiSessionId}`
/**
 * Key of a process fact. All checks for the same path share this key, because clients report once
 * per path.
 */
const processSlot = (path: string, checkId: string): string =>
  path === '' ? `check ${checkId}` : `path ${path}`

/** Key of the subject whose fact the report replaces. */
export function reportSubjectKey(report: PostureReport, apiSessionId: string): string {
  if (report.kind === 'endpoint') return endpointSlot(apiSessionId)
  if (report.kind === 'router') return routerSlot(apiSessionId)
  if (report.kind === 'process') return processSlot(report.path, report.checkId)
  return report.kind
}

/** Returns null for a kind of fact that only a newer release knows. */
function slotOfFact({ what, checkId }: PostureFact): string | null {
  if (what.case === undefined) return null
  if (what.case === 'endpoint') return endpointSlot(what.value.apiSessionId)
  if (what.case === 'router') return routerSlot(what.value.apiSessionId)
  if (what.case === 'process') return processSlot(what.value.path, checkId)
  return what.case
}

type Report = Pick<PostureFact, 'checkId' | 'what'>

export function toPostureFact(
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
 * For each kind of fact, the later of two reports counts: the result that the router reported for
 * an API session, or the report that the device sent to a controller.
 * @returns the kinds for which the router's result is later.
 */
export function kindsJudgedByRouter(
  facts: PostureFacts,
  apiSessionId: string,
): ReadonlySet<DeviceFactKind> {
  const judged = facts.get(routerSlot(apiSessionId))
  const kinds = new Set<DeviceFactKind>(judged === undefined ? [] : deviceFactKinds)
  if (judged === undefined) return kinds
  for (const { what, version } of facts.values()) {
    const { case: kind } = what
    if (version > judged.version && isDeviceFactKind(kind)) kinds.delete(kind)
  }
  return kinds
}

/**
 * @param slot key of the router's result.
 * @returns whether no fact of the kinds `DeviceFactKind` was reported to controllers since this
 * result.
 */
export function isUnchangedSinceVerdict(facts: PostureFacts, slot: string): boolean {
  const version = facts.get(slot)?.version ?? 0n
  return [...facts.values()].every(
    (fact) => fact.version <= version || !isDeviceFactKind(fact.what.case),
  )
}

function isDeviceFactKind(kind: string | undefined): kind is DeviceFactKind {
  return deviceFactKinds.has(kind as DeviceFactKind)
}

/** Whether a report equals the known fact, except for its time. */
export function isSameReport(known: PostureFact, { checkId, what }: Report): boolean {
  const bare = (fact: Report): Uint8Array =>
    toBinary(
      PostureFactSchema,
      create(PostureFactSchema, { checkId: fact.checkId, what: fact.what }),
    )
  return Buffer.compare(bare(known), bare({ checkId, what })) === 0
}
