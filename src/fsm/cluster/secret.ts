import { fromBinary } from '@bufbuild/protobuf'
import {
  type SecretRotate,
  SecretRotateSchema,
  SecretShareSchema,
  type WrappedSecret,
} from '../../../proto/gen/command_pb.ts'
import type { SharedSecret } from '../../entities/kinds/shared-secret.ts'
import {
  isSecretVersionNeeded,
  isRandomKey,
  type SecretExposure,
  type SecretVersion,
  type SharedSecretName,
  sharedSecretNames,
} from '../../lib/shared-secrets.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import { acceptedOutcome, fieldFaultOutcome, refusedOutcome } from '../apply/outcome.ts'

/** Limits for shared secrets. */
export const secretLimits = {
  /**
   * Maximum versions of one secret; adding another version removes the oldest. A version of the
   * factor key is removed only when no second factor uses it; if all are used, the rotation is
   * refused.
   */
  versionsMax: 8,
  /** Maximum characters of one wrapped secret, a compact JWE; a longer one counts as missing. */
  wrappedCharactersMax: 32 * 1024,
  /** Maximum characters of the PEM certificate of a rotated secret; a longer one is refused. */
  certificateCharactersMax: 64 * 1024,
  /**
   * Maximum log time for which older versions remain valid after a rotation; a later end is reduced
   * to this maximum.
   */
  overlapMsMax: 7 * 24 * 60 * 60_000,
} as const

const COMPACT_JWE = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){4}$/

function isWrapped({ jwe }: WrappedSecret): boolean {
  return jwe.length <= secretLimits.wrappedCharactersMax && COMPACT_JWE.test(jwe)
}

/** The entries sorted by key, so that equal records have equal text. */
function sorted(wrapped: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(wrapped).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function secrets(state: State): SharedSecret[] {
  return sharedSecretNames.flatMap((name) => state.get('sharedSecret', name) ?? [])
}

function putVersions(
  state: State,
  secret: SharedSecret,
  versions: readonly SecretVersion[],
  { index, logTimeMs }: CommandContext,
): void {
  state.put('sharedSecret', { ...secret, versions, updatedAt: logTimeMs, revision: index })
}

function find(
  given: readonly WrappedSecret[],
  name: string,
  version: number,
  nodeId: string,
): WrappedSecret | undefined {
  return given.find(
    (one) =>
      one.name === name && one.version === version && one.nodeId === nodeId && isWrapped(one),
  )
}

/**
 * Refusal of a controller for which a wrapped secret is missing, or with too many of them; null if
 * the controller can decrypt every version that controllers still need.
 */
export function missingSecretRefusal(
  state: State,
  nodeId: string,
  given: readonly WrappedSecret[],
  { logTimeMs }: CommandContext,
): Outcome | null {
  if (given.length > sharedSecretNames.length * secretLimits.versionsMax) {
    return fieldFaultOutcome({ field: 'secrets', reason: 'there are too many' })
  }
  for (const { id, versions } of secrets(state)) {
    for (const version of versions) {
      if (!isSecretVersionNeeded(id as SharedSecretName, version, logTimeMs)) continue
      // The secret was rotated after the proposer wrapped the secrets, so the proposer must wrap
      // them again.
      if (find(given, id, version.version, nodeId) === undefined)
        return refusedOutcome('REVISION_MOVED')
    }
  }
  return null
}

/**
 * Stores the wrapped secrets that `missingSecretRefusal` has accepted. Entries for removed versions
 * are ignored.
 */
export function addWrappedSecrets(
  state: State,
  nodeId: string,
  given: readonly WrappedSecret[],
  context: CommandContext,
): void {
  for (const secret of secrets(state)) {
    const versions = secret.versions.map((version) => {
      const found = find(given, secret.id, version.version, nodeId)
      if (found === undefined) return version
      return { ...version, wrapped: sorted({ ...version.wrapped, [nodeId]: found.jwe }) }
    })
    putVersions(state, secret, versions, context)
  }
}

/**
 * Removes the wrapped secrets of a removed controller. Marks the secrets that it could decrypt, so
 * that the leader rotates them.
 */
export function removeWrappedSecrets(
  state: State,
  nodeId: string,
  exposure: Exclude<SecretExposure, 'none'>,
  context: CommandContext,
): void {
  for (const secret of secrets(state)) {
    const versions = secret.versions.map((version) => {
      if (!Object.hasOwn(version.wrapped, nodeId)) return version
      const wrapped = Object.fromEntries(
        Object.entries(version.wrapped).filter(([id]) => id !== nodeId),
      )
      const worst = version.exposure === 'compromised' ? version.exposure : exposure
      return { ...version, wrapped, exposure: worst }
    })
    putVersions(state, secret, versions, context)
  }
}

/**
 * Makes the next version of a secret the current one. A version that a compromised controller knew
 * is removed immediately, regardless of the proposed overlap. Versions whose overlap has ended are
 * removed too. For the factor key, exactly the versions with which second factors are encrypted
 * stay.
 */
export function rotateSecret(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  const message = fromBinary(SecretRotateSchema, payload)
  const name = sharedSecretNames.find((one) => one === message.name)
  if (name === undefined)
    return fieldFaultOutcome({ field: 'name', reason: 'no secret has this name' })
  const refusal = rotateFault(name, message)
  if (refusal !== null) return refusal
  const known = state.get('sharedSecret', name)
  const before = known?.versions ?? []
  if (message.version !== (before.at(-1)?.version ?? 0) + 1) return refusedOutcome('REVISION_MOVED')
  const admitted = [...state.table('admission').ids]
  const isCovered = admitted.every(
    (id) => find(message.wrapped, name, message.version, id) !== undefined,
  )
  // The rotation is refused unless the recipients are exactly the admitted controllers: the
  // admission of an additional recipient was revoked, so it must not get the new version.
  if (!isCovered || message.wrapped.length !== admitted.length)
    return refusedOutcome('REVISION_MOVED')
  const { index: revision, logTimeMs } = context
  const kept = keptVersions(state, name, before, message, logTimeMs)
  if (kept === null) return fieldFaultOutcome({ field: 'name', reason: allInUse })
  state.put('sharedSecret', {
    ...(known ?? { id: name, createdAt: logTimeMs }),
    id: name,
    updatedAt: logTimeMs,
    revision,
    versions: [...kept, newVersion(message, logTimeMs)],
  })
  return acceptedOutcome(name)
}

function rotateFault(name: SharedSecretName, message: SecretRotate): Outcome | null {
  const { length } = message.certificatePem
  const hasCertificate = length > 0 && length <= secretLimits.certificateCharactersMax
  if (isRandomKey(name) ? length === 0 : hasCertificate) return null
  return fieldFaultOutcome({
    field: 'certificatePem',
    reason: isRandomKey(name) ? 'a key of this kind has none' : 'it is missing or too large',
  })
}

const allInUse = 'second factors are still encrypted by every version that is kept'

/**
 * The versions that the secret must keep; null: every version is still in use, so there is no room
 * for another version.
 */
function keptVersions(
  state: State,
  name: SharedSecretName,
  before: readonly SecretVersion[],
  message: SecretRotate,
  logTimeMs: number,
): SecretVersion[] | null {
  if (name !== 'factorKey') return stillVerifying(before, message, logTimeMs)
  const { indexes } = state.table('mfa')
  const inUse = before.filter(({ version }) => indexes.ids('keyVersion', String(version)).size > 0)
  if (inUse.length >= secretLimits.versionsMax) return null
  return inUse.map((version) => ({ ...version, overlapEndsAt: version.overlapEndsAt ?? logTimeMs }))
}

function stillVerifying(
  before: readonly SecretVersion[],
  { overlapEndsAtMs }: SecretRotate,
  logTimeMs: number,
): SecretVersion[] {
  const endsAt = Math.min(Number(overlapEndsAtMs), logTimeMs + secretLimits.overlapMsMax)
  return before
    .map((version) => ({
      ...version,
      overlapEndsAt: Math.min(version.overlapEndsAt ?? endsAt, endsAt),
    }))
    .filter(({ exposure }) => exposure !== 'compromised')
    .filter(({ overlapEndsAt }) => overlapEndsAt > logTimeMs)
    .slice(1 - secretLimits.versionsMax)
}

function newVersion(message: SecretRotate, logTimeMs: number): SecretVersion {
  return {
    version: message.version,
    certificatePem: message.certificatePem,
    createdAt: logTimeMs,
    overlapEndsAt: null,
    exposure: 'none',
    wrapped: sorted(Object.fromEntries(message.wrapped.map(({ nodeId, jwe }) => [nodeId, jwe]))),
  }
}

/**
 * Adds missing wrapped secrets. An existing wrapped secret is never replaced, so that no caller can
 * exchange it.
 */
export function addMissingWrappedSecrets(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const { wrapped } = fromBinary(SecretShareSchema, payload)
  let isUseful = false
  for (const secret of secrets(state)) {
    const versions = secret.versions.map((version) => {
      const added = wrapped.filter(
        (one) =>
          one.name === secret.id &&
          one.version === version.version &&
          isWrapped(one) &&
          !Object.hasOwn(version.wrapped, one.nodeId) &&
          state.get('admission', one.nodeId) !== undefined,
      )
      if (added.length === 0) return version
      isUseful = true
      const entries = added.map(({ nodeId, jwe }) => [nodeId, jwe] as const)
      return { ...version, wrapped: sorted({ ...version.wrapped, ...Object.fromEntries(entries) }) }
    })
    if (versions.some((version, at) => version !== secret.versions[at])) {
      putVersions(state, secret, versions, context)
    }
  }
  return isUseful || wrapped.length === 0 ? acceptedOutcome('') : refusedOutcome('REVISION_MOVED')
}
