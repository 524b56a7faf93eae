import type { PostureCheck } from '../entities/kinds/posture-check.ts'
import type { Json, JsonObject } from '../lib/text/canonical-json.ts'
import { extractHexDigits } from '../lib/text/hex-digits.ts'
import { formatTime } from '../lib/text/format-time.ts'
import { isInVersionRange } from '../lib/text/version-match.ts'
import {
  clientMfaTimes,
  isPromptSatisfied,
  isCodeTimedOut,
  passesMfaCheck,
} from './factor-evaluation.ts'
import type { DeviceFactKind, Posture, ProcessReport } from '../ports/posture.ts'

interface OperatingSystem {
  readonly type: string
  readonly versions: readonly string[]
}

/**
 * A required process. The check types PROCESS and PROCESS_MULTI are both converted to this form.
 */
interface WantedProcess {
  readonly osType: string
  readonly path: string
  readonly hashes: readonly string[]
  /** The process must be signed by one of these signers; [] means no restriction. */
  readonly signers: readonly string[]
}

/**
 * Cached results by posture and check, because a list of services evaluates the same checks for
 * each service. The cache needs no invalidation: records and reports are immutable.
 */
const judged = new WeakMap<Posture, WeakMap<PostureCheck, boolean>>()

/**
 * Whether a posture passes a check. A check fails if the client did not report what the check
 * requires, unless `judgedByRouter` contains the kind of report that the check evaluates.
 * Controllers cannot verify the reports, because the client makes them about itself.
 */
export function passesPostureCheck(check: PostureCheck, posture: Posture): boolean {
  let known = judged.get(posture)
  if (known === undefined) judged.set(posture, (known = new WeakMap()))
  const before = known.get(check)
  if (before !== undefined) return before
  const isPassing = judge(check, posture)
  known.set(check, isPassing)
  return isPassing
}

/** For each check type except second factors, the kind of report that it evaluates. */
const kindOf: Readonly<Record<string, DeviceFactKind>> = {
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
      const [wanted] = requiredProcesses(check)
      return wanted !== undefined && isRunning(wanted, ofCheck(check, wanted, posture))
    }
    case 'PROCESS_MULTI': {
      const wanted = requiredProcesses(check)
      const runs = (one: WantedProcess): boolean => isRunning(one, atPath(one.path, posture))
      if (check.semantic === 'AnyOf') return wanted.some(runs)
      return wanted.length > 0 && wanted.every(runs)
    }
    default:
      return passesMfaCheck(check, posture.factor)
  }
}

/** Expected and actual values of a check, stored with a failed request. */
export function expectedAndActualValues(check: PostureCheck, posture: Posture): JsonObject {
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
      const [wanted] = requiredProcesses(check)
      const reported = wanted === undefined ? undefined : ofCheck(check, wanted, posture)
      return { actualValue: shownProcess(wanted, reported), expectedValue: check.process }
    }
    case 'PROCESS_MULTI':
      return {
        actualValue: requiredProcesses(check).map((one) =>
          shownProcess(one, atPath(one.path, posture)),
        ),
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

/**
 * Processes that each check requires; cached, because a check may have thousands of hashes and is
 * evaluated for every service that it protects.
 */
const wantedOf = new WeakMap<PostureCheck, readonly WantedProcess[]>()

/** Processes that a check requires; at most one for the type PROCESS. */
export function requiredProcesses(check: PostureCheck): readonly WantedProcess[] {
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

/**
 * Normalizes hex values. A string without hex digits is kept unchanged, so that it matches no
 * report.
 */
function hex(values: Json | readonly (Json | undefined)[] | undefined): string[] {
  if (!Array.isArray(values)) return []
  return values.flatMap((value: unknown) =>
    typeof value === 'string' ? extractHexDigits(value) || value : [],
  )
}

/**
 * The report with the check's id; if there is none, the report for the check's path. A client
 * reports each path once, with the id of the first check that contains the path.
 */
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
  const { timeout, timeoutRemaining } = clientMfaTimes(check, factor)
  return {
    actualValue: {
      passedMfa: (factor?.passedAtMs ?? null) !== null,
      timedOut: isCodeTimedOut(check, factor),
      passedOnUnlock: isPromptSatisfied(check.promptOnUnlock, factor?.unlockedAtMs ?? null, factor),
      passedOnWake: isPromptSatisfied(check.promptOnWake, factor?.wokenAtMs ?? null, factor),
    },
    expectedValue: { passedMfa: true, passedOnUnlock: true, passedOnWake: true, timedOut: false },
    criteria: {
      passedMfaAt: formatTime(factor?.passedAtMs ?? null),
      unlockedAt: formatTime(factor?.unlockedAtMs ?? null),
      wokenAt: formatTime(factor?.wokenAtMs ?? null),
      timeoutSeconds: timeout,
      timeoutRemainingSeconds: timeoutRemaining,
    },
  }
}
