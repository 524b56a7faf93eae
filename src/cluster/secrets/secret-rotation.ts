import { create, toBinary } from '@bufbuild/protobuf'
import {
  AccessRevokeSchema,
  AdmissionDeleteSchema,
  CommandKind,
  SecretRotateSchema,
  SecretShareSchema,
} from '../../../proto/gen/command_pb.ts'
import {
  isVersionNeeded,
  type SecretExposure,
  type SecretVersion,
  type SharedSecretName,
  sharedSecretNames,
} from '../../lib/cluster-records.ts'
import { levelOfKind } from '../../ports/feature-level.ts'
import { refusalProblem } from '../../lib/refusal-problem.ts'
import type { CertifiedKey } from '../../pki/authority/authority.ts'
import { checkKeyMatches, parseCertificates } from '../../pki/certificate.ts'
import { newClusterKey } from '../../pki/secrets/cluster-key.ts'
import type { Outcome, Proposer } from '../../ports/proposer.ts'
import type { RecordOf, StateView } from '../../ports/state-view.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { NodeId } from '../../raft/types.ts'
import type { Logger } from '../logger.ts'
import type { Keyring } from './keyring.ts'
import { type Recipient, authorityKeyBytes, wrapAll } from './wrap-secrets.ts'

export interface RotationParts {
  readonly proposer: Proposer
  readonly state: StateView
  readonly keyring: Pick<Keyring, 'held' | 'refresh'>
  readonly log: Logger
  /** How long tokens of the version before are honoured: the timeout of sessions. */
  readonly overlapMs: number
}

export interface RemovalManner {
  /** Nothing that it knew is honoured any longer. */
  readonly isCompromised: boolean
  /** Its id has been admitted again, by another key: that admission stays. */
  readonly isAdmittedAgain?: boolean
}

const ATTEMPTS_MAX = 5
/** Withdrawn enrollments that one log line names; events tell of each. */
const ENROLLMENTS_LOGGED_MAX = 100
/** Wrapped secrets in one command: well below the size of one log entry. */
const SHARED_AT_ONCE_MAX = 64

/** Admissions, sorted by id. */
export function admissionsOf(state: StateView): readonly RecordOf<'admission'>[] {
  return state.list('admission', { limit: -1 }).records
}

function versionsOf(state: StateView, name: SharedSecretName): readonly SecretVersion[] {
  return state.get('sharedSecret', name)?.versions ?? []
}

/**
 * Whether a controller that has gone could open a random key in force: it is to be rotated. From
 * the state alone.
 */
export function isRotationDue(state: StateView): boolean {
  return isFactorKeyDue(state) || exposureOf(state, 'clusterKey') !== 'none'
}

/** A cluster that was formed before there were second factors has no key for them yet. */
function isFactorKeyDue(state: StateView): boolean {
  const isMissing = versionsOf(state, 'factorKey').length === 0
  const isExposed = exposureOf(state, 'factorKey') !== 'none'
  return isExposed || (isMissing && versionsOf(state, 'clusterKey').length > 0)
}

/** Exposure of the version in force. */
function exposureOf(state: StateView, name: SharedSecretName): SecretExposure {
  return versionsOf(state, name).at(-1)?.exposure ?? 'none'
}

/** Admitted controllers that can not open every version in force, sorted. */
export function membersLackingSecrets(state: StateView): readonly NodeId[] {
  return admissionsOf(state)
    .filter(({ id }) => lacking(state, id).length > 0)
    .map(({ id }) => id)
}

/**
 * Controllers that were admitted by a ticket that has expired since, sorted. Log time stands still
 * while nothing is written, so the clocks of a majority count as well.
 * @param majorityMs UTC; null: too few clocks are known.
 */
export function admittedLongAgo(state: StateView, majorityMs: number | null): readonly NodeId[] {
  // @guard admitted-and-never-connected--idle
  const nowMs = Math.max(state.logTimeMs, majorityMs ?? 0)
  return admissionsOf(state).flatMap(({ id, ticketId }) => {
    if (ticketId === '') return []
    const ticket = state.get('joinTicket', ticketId)
    // @guard admitted-and-never-connected--expired
    return (ticket?.expiresAt ?? 0) > nowMs ? [] : [id]
  })
}

function lacking(
  state: StateView,
  id: NodeId,
): { readonly name: SharedSecretName; readonly version: number }[] {
  return sharedSecretNames.flatMap((name) =>
    versionsOf(state, name)
      .filter((version) => isVersionNeeded(name, version, state.logTimeMs))
      .filter(({ wrapped }) => !Object.hasOwn(wrapped, id))
      .map(({ version }) => ({ name, version })),
  )
}

/**
 * Puts a new cluster key in force. Tokens of the version before are honoured for the overlap, from
 * the address of their session alone; after a compromise, not at all.
 * @throws {Problem} when it was not put in force, or that is not known.
 */
export async function rotateClusterKey(
  parts: RotationParts,
  reason: string,
  { isCompromised }: RemovalManner,
): Promise<void> {
  const overlapMs = isCompromised ? 0 : parts.overlapMs
  const version = await putInForce(parts, 'clusterKey', newClusterKey(), '', overlapMs)
  parts.log.info({ version, reason, overlapMs }, 'rotated the cluster key')
}

/**
 * Puts a new factor key in force. Versions before it stay as long as a second factor is encrypted
 * by them, even after a compromise: what the controller that has gone could read, it has read, and
 * no owner of a factor is to lose it for that.
 * @throws {Problem} as `rotateClusterKey`.
 */
export async function rotateFactorKey(parts: RotationParts, reason: string): Promise<void> {
  const version = await putInForce(parts, 'factorKey', newClusterKey(), '', 0)
  parts.log.info({ version, reason }, 'rotated the key of second factors')
}

/**
 * Puts another issuing authority in force. Leaves of the one before stay valid for as long as they
 * say: their chains carry its certificate, and its key is needed for nothing more.
 * @throws {CertificateError} when key and certificate do not belong together.
 * @throws {Problem} as `rotateClusterKey`.
 */
export async function installIssuing(parts: RotationParts, authority: CertifiedKey): Promise<void> {
  const [certificate] = parseCertificates(authority.certificatePem)
  checkKeyMatches(certificate, authority.privateKeyPem)
  const secret = authorityKeyBytes(authority)
  const { certificatePem } = authority
  const version = await putInForce(parts, 'issuingAuthority', secret, certificatePem, 0)
  parts.log.info({ version, sha256: certificate.sha256 }, 'rotated the issuing authority')
}

/**
 * Wraps for whoever is admitted, again when that or the version has moved meanwhile.
 * @returns the version.
 */
async function putInForce(
  parts: RotationParts,
  name: SharedSecretName,
  secret: Uint8Array,
  certificatePem: string,
  overlapMs: number,
): Promise<number> {
  const { state } = parts
  for (let attempt = 1; ; attempt += 1) {
    const version = (versionsOf(state, name).at(-1)?.version ?? 0) + 1
    const recipients = admissionsOf(state).map(recipientOf)
    const message = create(SecretRotateSchema, {
      name,
      version,
      certificatePem,
      wrapped: await wrapAll(state.clusterId, [{ name, version, secret }], recipients),
      overlapEndsAtMs: BigInt(state.logTimeMs + overlapMs),
    })
    const payload = toBinary(SecretRotateSchema, message)
    const outcome = await propose(parts, CommandKind.SECRET_ROTATE, payload)
    if (outcome.ok) {
      await parts.keyring.refresh()
      return version
    }
    if (outcome.code !== 'REVISION_MOVED' || attempt === ATTEMPTS_MAX) throw refusalProblem(outcome)
  }
}

/** Wraps what admitted controllers can not open yet. @returns whether there was anything to do. */
export async function shareMissing(parts: RotationParts): Promise<boolean> {
  const { state, keyring } = parts
  await keyring.refresh()
  const wrapped = []
  for (const admission of admissionsOf(state)) {
    const wanted = lacking(state, admission.id)
    const versions = keyring
      .held()
      .filter(({ name, version }) =>
        wanted.some((one) => one.name === name && one.version === version),
      )
    wrapped.push(...(await wrapAll(state.clusterId, versions, [recipientOf(admission)])))
  }
  for (let at = 0; at < wrapped.length; at += SHARED_AT_ONCE_MAX) {
    const message = create(SecretShareSchema, {
      wrapped: wrapped.slice(at, at + SHARED_AT_ONCE_MAX),
    })
    const payload = toBinary(SecretShareSchema, message)
    const outcome = await propose(parts, CommandKind.SECRET_SHARE, payload)
    // Whoever was given it by another one meanwhile needs nothing more.
    if (!outcome.ok && outcome.code !== 'REVISION_MOVED') throw refusalProblem(outcome)
  }
  return wrapped.length > 0
}

/**
 * After it has gone from the members: deletes its admission, which marks what it could open, and
 * rotates the cluster key if that is among it. Each step is found to be done or due in the state
 * alone, so it may be repeated at any point.
 * @throws {Problem}
 */
export async function afterRemoval(
  parts: RotationParts,
  id: NodeId,
  { isCompromised, isAdmittedAgain = false }: RemovalManner,
): Promise<void> {
  // @guard join-after-a-compromise--again
  if (!isAdmittedAgain) await deleteAdmission(parts, id, isCompromised)
  await rotateIfDue(parts, `${id} was removed`)
  if (!isCompromised) return
  await endExposed(parts, `${id} is reported as compromised`)
  // @guard access-after-a-compromise--leader
  await revokeAccess(parts, id)
  // Controllers that were admitted and are no members could open what was rotated just now.
  // @guard join-after-a-compromise--rotation
  await rotateIfDue(parts, `${id} is reported as compromised`)
}

/**
 * Ends every API session, and withdraws every open enrollment and all that lets a controller join.
 * After the rotation, so that nothing that the controller sealed or signed opens another session.
 */
async function revokeAccess({ proposer, state, log }: RotationParts, id: NodeId): Promise<void> {
  if (state.featureLevel < levelOfKind(CommandKind.ACCESS_REVOKE)) {
    log.warn(
      {},
      `open enrollments and join tickets stay, as not all controllers support withdrawing them; ${id} could use them, so delete them with 'flotilla delete enrollment ID' and 'flotilla cluster tickets revoke ID', and remove each controller in 'flotilla cluster list' that you do not know`,
    )
    return
  }
  const { records, totalCount: total } = state.list('enrollment', { limit: ENROLLMENTS_LOGGED_MAX })
  const joining = joiningIds(state)
  const payload = toBinary(AccessRevokeSchema, create(AccessRevokeSchema, { nodeId: id }))
  const outcome = await propose({ proposer }, CommandKind.ACCESS_REVOKE, payload)
  if (!outcome.ok) throw refusalProblem(outcome)
  const enrollments = records.map(({ id: of, method, ...fields }) => ({
    id: of,
    method,
    for: fields.identityId || fields.edgeRouterId || fields.transitRouterId || fields.caId,
  }))
  const left = joiningIds(state)
  const tickets = joining.tickets.filter((one) => !left.tickets.includes(one))
  const admissions = joining.admissions.filter((one) => !left.admissions.includes(one))
  log.warn(
    { controller: id, enrollments, count: total, tickets, admissions },
    `ended all API sessions and withdrew ${total} open enrollments, ${tickets.length} join tickets and ${admissions.length} admissions of controllers that never connected, since ${id} is reported as compromised; create those again that are still needed, and remove each controller in 'flotilla cluster list' that you do not know`,
  )
}

/** Join tickets and admitted controllers, by id. */
function joiningIds(state: StateView) {
  const { records } = state.list('joinTicket', { limit: -1 })
  return {
    tickets: records.map(({ id }) => id),
    admissions: admissionsOf(state).map(({ id }) => id),
  }
}

/**
 * Ends at once what is honoured for the overlap, where a removal was done in peace before it was
 * called compromised.
 */
async function endExposed(parts: RotationParts, reason: string): Promise<void> {
  const { state } = parts
  const isHonored = versionsOf(state, 'clusterKey').some(
    ({ exposure, overlapEndsAt }) =>
      exposure !== 'none' && (overlapEndsAt === null || overlapEndsAt > state.logTimeMs),
  )
  if (!isHonored) return
  await rotateClusterKey(parts, reason, { isCompromised: true })
  warnOfAuthority(parts)
}

/** For a new leader that finds {@link isRotationDue}. @throws {Problem} */
export async function rotateIfDue(parts: RotationParts, reason: string): Promise<void> {
  const { state } = parts
  const exposure = exposureOf(state, 'clusterKey')
  if (exposure !== 'none') {
    const isCompromised = exposure === 'compromised'
    await rotateClusterKey(parts, reason, { isCompromised })
    if (isCompromised) warnOfAuthority(parts)
  }
  if (isFactorKeyDue(state)) await rotateFactorKey(parts, reason)
}

/** Its key can only be replaced with the offline root key, so an operator has to. */
function warnOfAuthority({ state, log }: RotationParts): void {
  if ((versionsOf(state, 'issuingAuthority').at(-1)?.exposure ?? 'none') === 'none') return
  log.warn(
    {},
    "a compromised controller had access to the issuing authority; rotate it with 'flotilla pki renew-issuing', then renew the controller certificates",
  )
}

async function deleteAdmission(
  parts: RotationParts,
  nodeId: NodeId,
  compromised: boolean,
): Promise<void> {
  const known = parts.state.get('admission', nodeId)
  if (known === undefined) return
  const { publicKeySpki } = recipientOf(known)
  const message = create(AdmissionDeleteSchema, { nodeId, publicKeySpki, compromised })
  const payload = toBinary(AdmissionDeleteSchema, message)
  const outcome = await propose(parts, CommandKind.ADMISSION_DELETE, payload)
  if (!outcome.ok) throw refusalProblem(outcome)
}

function recipientOf({ id, publicKeySpki }: RecordOf<'admission'>): Recipient {
  return { nodeId: id, publicKeySpki: Uint8Array.from(Buffer.from(publicKeySpki, 'base64')) }
}

async function propose(
  { proposer }: Pick<RotationParts, 'proposer'>,
  kind: CommandKind,
  payload: Uint8Array,
): Promise<Outcome> {
  const { outcome } = await proposer.propose({ kind, payload, actor: SYSTEM_ACTOR })
  return outcome
}
