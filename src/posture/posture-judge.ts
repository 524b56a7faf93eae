import type { PostureCheck } from '../entities/kinds/posture-check.ts'
import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import { hexDigits } from '../lib/text/hex-digits.ts'
import { shownTime } from '../lib/text/shown-time.ts'
import { isInVersionRange } from '../lib/text/version-range.ts'
import { factorTimes, isFresh, isTimedOut, passesFactor } from './factor-judge.ts'
import type { DeviceKind, Posture, ProcessReport } from '../ports/posture.ts'

interface OperatingSystem {
  readonly type: string
  readonly versions: readonly string[]
}

/** A process as both types of check have it. */
interface WantedProcess {
  readonly osType: string
  readonly path: string
  readonly hashes: readonly string[]
  /** One of them must have signed it; []: whoever did. */
  readonly signers: readonly string[]
}

/**
 * Neither records nor reports ever change, and a list asks for the same checks again with each
 * service.
 */
const judged = new WeakMap<Posture, WeakMap<PostureCheck, boolean>>()

/**
 * Whether the reports of a client pass a check; they do not where nothing was reported that the
 * check asks for. A report is the client's own word.
 */
export function passes(check: PostureCheck, posture: Posture): boolean {
  let known = judged.get(posture)
  if (known === undefined) judged.set(posture, (known = new WeakMap()))
  const before = known.get(check)
  if (before !== undefined) return before
  const isPassing = judge(check, posture)
  known.set(check, isPassing)
  return isPassing
}

/** Checks are judged by one kind of report each, but for a second factor. */
const kindOf: Readonly<Record<string, DeviceKind>> = {
  OS: 'os',
  DOMAIN: 'domain',
  MAC: 'mac',
  PROCESS: 'process',
  PROCESS_MULTI: 'process',
}

function judge(check: PostureCheck, posture: Posture): boolean {
  const kind = kindOf[check.typeId]
  // @guard oidc/posture-at-a-router--factor
  if (kind !== undefined && posture.judgedByRouter?.has(kind) === true) return true
  switch (check.typeId) {
    case 'OS':
      return passesOs(systemsOf(check), posture)
    case 'DOMAIN': {
      const domain = posture.domain?.domain.toLowerCase()
      return check.domains.some((wanted) => wanted.toLowerCase() === domain)
    }
    case 'MAC': {
      const reported = new Set(posture.mac?.addresses)
      return check.macAddresses.some((address) => reported.has(address))
    }
    case 'PROCESS': {
      const [wanted] = wantedBy(check)
      return wanted !== undefined && isRunning(wanted, ofCheck(check, wanted, posture))
    }
    case 'PROCESS_MULTI': {
      const wanted = wantedBy(check)
      const runs = (one: WantedProcess): boolean => isRunning(one, atPath(one.path, posture))
      if (check.semantic === 'AnyOf') return wanted.some(runs)
      return wanted.length > 0 && wanted.every(runs)
    }
    default:
      return passesFactor(check, posture.factor)
  }
}

/**
 * Values that the check asked for and what it got, as the record of a failed request shows them.
 */
export function judgedValues(check: PostureCheck, posture: Posture): JsonObject {
  switch (check.typeId) {
    case 'OS': {
      const { type = '', version = '' } = posture.os ?? {}
      return { actualValue: { type, version }, expectedValue: systemsOf(check) as unknown as Json }
    }
    case 'DOMAIN':
      return { actualValue: posture.domain?.domain ?? '', expectedValue: check.domains }
    case 'MAC':
      return { actualValue: posture.mac?.addresses ?? [], expectedValue: check.macAddresses }
    case 'PROCESS': {
      const [wanted] = wantedBy(check)
      const reported = wanted === undefined ? undefined : ofCheck(check, wanted, posture)
      return { actualValue: shownProcess(wanted, reported), expectedValue: check.process }
    }
    case 'PROCESS_MULTI':
      return {
        actualValue: wantedBy(check).map((one) => shownProcess(one, atPath(one.path, posture))),
        expectedValue: check.processes,
        semantic: check.semantic,
      }
    default:
      return shownSecondFactor(check, posture)
  }
}

function systemsOf(check: PostureCheck): readonly OperatingSystem[] {
  return check.operatingSystems as unknown as readonly OperatingSystem[]
}

function passesOs(systems: readonly OperatingSystem[], { os }: Posture): boolean {
  if (os === null) return false
  const ofType = systems.find(({ type }) => type.toLowerCase() === os.type.toLowerCase())
  if (ofType === undefined) return false
  const { versions } = ofType
  return versions.length === 0 || versions.some((range) => isInVersionRange(os.version, range))
}

/** A check may ask for thousands of hashes, and is asked for with every service that it guards. */
const wantedOf = new WeakMap<PostureCheck, readonly WantedProcess[]>()

/** The processes that a check asks for; one for the type PROCESS. */
export function wantedBy(check: PostureCheck): readonly WantedProcess[] {
  const known = wantedOf.get(check)
  if (known !== undefined) return known
  const wanted = readWanted(check)
  wantedOf.set(check, wanted)
  return wanted
}

function readWanted(check: PostureCheck): WantedProcess[] {
  const all = check.typeId === 'PROCESS' ? [check.process] : check.processes
  return all.flatMap((one) => {
    if (one === null || typeof one !== 'object' || Array.isArray(one)) return []
    const { osType, path, hashes, signerFingerprint, signerFingerprints } = one as JsonObject
    const signers = signerFingerprints ?? (signerFingerprint === '' ? [] : [signerFingerprint])
    return [
      { osType: String(osType), path: String(path), hashes: hex(hashes), signers: hex(signers) },
    ]
  })
}

function hex(values: Json | readonly (Json | undefined)[] | undefined): string[] {
  if (!Array.isArray(values)) return []
  return values.flatMap((value: unknown) => (typeof value === 'string' ? hexDigits(value) : []))
}

/** Clients tell of each path once, under the id of whichever check they came upon first. */
function ofCheck(
  check: PostureCheck,
  { path }: WantedProcess,
  posture: Posture,
): ProcessReport | undefined {
  return posture.processes.findLast(({ checkId }) => checkId === check.id) ?? atPath(path, posture)
}

function atPath(path: string, { processes }: Posture): ProcessReport | undefined {
  return processes.findLast((reported) => reported.path === path)
}

function isRunning(
  { hashes, signers }: WantedProcess,
  reported: ProcessReport | undefined,
): boolean {
  if (reported?.isRunning !== true) return false
  if (hashes.length > 0 && !hashes.includes(reported.hash)) return false
  return signers.length === 0 || signers.some((one) => reported.signerFingerprints.includes(one))
}

function shownProcess(
  wanted: WantedProcess | undefined,
  reported: ProcessReport | undefined,
): JsonObject {
  return {
    hash: reported?.hash ?? '',
    isRunning: reported?.isRunning ?? false,
    osType: wanted?.osType ?? '',
    path: wanted?.path ?? '',
    signerFingerprints: reported?.signerFingerprints ?? [],
  }
}

function shownSecondFactor(check: PostureCheck, { factor }: Posture): JsonObject {
  const { timeout, timeoutRemaining } = factorTimes(check, factor)
  return {
    actualValue: {
      passedMfa: (factor?.passedAtMs ?? null) !== null,
      timedOut: isTimedOut(check, factor),
      passedOnUnlock: isFresh(check.promptOnUnlock, factor?.unlockedAtMs ?? null, factor),
      passedOnWake: isFresh(check.promptOnWake, factor?.wokenAtMs ?? null, factor),
    },
    expectedValue: { passedMfa: true, passedOnUnlock: true, passedOnWake: true, timedOut: false },
    criteria: {
      passedMfaAt: shownTime(factor?.passedAtMs ?? null),
      unlockedAt: shownTime(factor?.unlockedAtMs ?? null),
      wokenAt: shownTime(factor?.wokenAtMs ?? null),
      timeoutSeconds: timeout,
      timeoutRemainingSeconds: timeoutRemaining,
    },
  }
}
