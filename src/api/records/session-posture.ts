import type { ApiSession } from '../../entities/api-session.ts'
import type { EntityRecord } from '../../lib/entity-record.ts'
import { isInVersionRange } from '../../lib/version-range.ts'
import type { Posture, ShownFactor } from '../../ports/posture.ts'
import type { ApiParts } from '../parts.ts'

type PostureParts = Pick<ApiParts, 'state' | 'posture' | 'clock'>

/** What the checks that concern an API session are judged by: what its identity told, and what was shown in the session. */
export function postureOfSession(parts: PostureParts, session: EntityRecord): Posture {
  const told = parts.posture.of(String(session['identityId']))
  return { ...told, factor: factorOfSession(parts, session) }
}

export function factorOfSession(
  { state, posture, clock }: PostureParts,
  session: EntityRecord,
): ShownFactor {
  const { identityId, mfaPassedAt } = session as ApiSession
  const endpoint = posture.endpointsOf(identityId).get(session.id)
  return {
    passedAtMs: mfaPassedAt ?? null,
    wokenAtMs: endpoint?.wokenAtMs ?? null,
    unlockedAtMs: endpoint?.unlockedAtMs ?? null,
    nowMs: clock.nowMs(),
    isLegacyClient: isLegacy(state.get('identity', identityId)?.['sdkInfo']),
  }
}

/** Only this one knows timeouts of second factors, from that version on. */
const TIMED_SDK = { type: 'ziti-sdk-c', versions: '>=0.25.0' } as const

function isLegacy(sdkInfo: unknown): boolean {
  const { type, version } = (sdkInfo ?? {}) as {
    readonly type?: unknown
    readonly version?: unknown
  }
  if (type !== TIMED_SDK.type || typeof version !== 'string') return true
  return !isInVersionRange(version.replace(/^v/, ''), TIMED_SDK.versions)
}
