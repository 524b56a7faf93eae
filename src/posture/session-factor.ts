import type { ApiSession } from '../entities/kinds/api-session.ts'
import { isInVersionRange } from '../lib/text/version-range.ts'
import type { EndpointState, ShownFactor } from '../ports/posture.ts'

/** Second factor that an API session has shown, to be judged at `nowMs`. */
export function sessionFactor(
  { mfaPassedAt }: ApiSession,
  endpoint: EndpointState | undefined,
  sdkInfo: unknown,
  nowMs: number,
): ShownFactor {
  return {
    passedAtMs: mfaPassedAt ?? null,
    wokenAtMs: endpoint?.wokenAtMs ?? null,
    unlockedAtMs: endpoint?.unlockedAtMs ?? null,
    nowMs,
    isLegacyClient: isLegacy(sdkInfo),
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
