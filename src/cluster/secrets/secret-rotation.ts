import { create, toBinary } from '@bufbuild/protobuf'
import {
  AccessRevokeSchema,
  AdmissionDeleteSchema,
  CommandKind,
  SecretRotateSchema,
  SecretShareSchema,
} from '../../../proto/gen/command_pb.ts'
import {
  isSecretVersionNeeded,
  type SecretExposure,
  type SecretVersion,
  type SharedSecretName,
  sharedSecretNames,
} from '../../lib/shared-secrets.ts'
import { commandFeatureLevel } from '../../ports/feature-level.ts'
import { refusalProblem } from '../../lib/refusal-problem.ts'
import type { CertificateWithKey } from '../../pki/authority/authority.ts'
import { checkKeyMatches, parseCertificates } from '../../pki/certificate.ts'
import { newClusterKey } from '../../pki/secrets/cluster-key.ts'
import type { Outcome, Proposer } from '../../ports/proposer.ts'
import type { RecordOf, StateView } from '../../ports/state-view.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { NodeId } from '../../raft/types.ts'
import type { Logger } from '../logger.ts'
import type { Keyring } from './keyring.ts'
import { type SecretRecipient, authorityKeyBytes, wrapSecretsForAll } from './wrap-secrets.ts'

export interface SecretRotationDeps {
  readonly proposer: Proposer
  readonly state: StateView
  readonly keyring: Pick<Keyring, 'held' | 'refresh'>
  readonly log: Logger
  /**
   * Time for which controllers accept tokens signed with the previous version: the timeout of
   * sessions.
   */
  readonly overlapMs: number
}

interface RemovalManner {
  /** True if all former versions must become invalid immediately, without an overlap. */
  readonly isCompromised: boolean
  /** True if the id was admitted again with another key; its admission then stays. */
  readonly isAdmittedAgain?: boolean
}

const ATTEMPTS_MAX = 5
/** Maximum revoked enrollments in one log line; each of them also causes an event. */
const ENROLLMENTS_LOGGED_MAX = 100
/**
 * Maximum wrapped secrets in one command, so that the command is far smaller than the maximum size
 * of a log entry.
 */
const SHARED_AT_ONCE_MAX = 64

/** Admissions, sorted by id. */
function admissionsOf(state: StateView): readonly RecordOf<'admission'>[] {
  return state.list('admission', { limit: -1 }).records
}

function versionsOf(state: StateView, name: SharedSecretName): readonly SecretVersion[] {
  return state.get('sharedSecret', name)?.versions ?? []
}

/**
 * Whether a rotation is due, because a removed controller could decrypt the current cluster key or
 * factor key, or there is no factor key. Depends only on the state.
 */
export function isSecretRotationDue(state: StateView): boolean {
  return isFactorKeyDue(state) || exposureOf(state, 'clusterKey') !== 'none'
}

/**
 * Whether a new factor key (the key that encrypts the secrets of second factors) is needed: a
 * removed controller could decrypt the current one, or the cluster was created by a release without
 * second factors and has none.
 */
function isFactorKeyDue(state: StateView): boolean {
  const isMissing = versionsOf(state, 'factorKey').length === 0
  const isExposed = exposureOf(state, 'factorKey') !== 'none'
  return isExposed || (isMissing && versionsOf(state, 'clusterKey').length > 0)
}

/** Whether, and how, the current version is exposed to removed controllers. */
function exposureOf(state: StateView, name: SharedSecretName): SecretExposure {
  return versionsOf(state, name).at(-1)?.exposure ?? 'none'
}

/** Sorted ids of admitted controllers that cannot decrypt every secret version that they need. */
export function admittedIdsLackingSecrets(state: StateView): readonly NodeId[] {
  return admissionsOf(state)
    .filter(({ id }) => lacking(state, id).length > 0)
    .map(({ id }) => id)
}

/**
 * Sorted ids of controllers admitted by a ticket that has expired or was deleted. Log time does not
 * advance without writes, so the clocks of a majority are used as well.
 * @param majorityMs UTC; null when too few clocks are known.
 */
export function admittedIdsWithExpiredTickets(
  state: StateView,
  majorityMs: number | null,
): readonly NodeId[] {
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
      .filter((version) => isSecretVersionNeeded(name, version, state.logTimeMs))
      .filter(({ wrapped }) => !Object.hasOwn(wrapped, id))
      .map(({ version }) => ({ name, version })),
  )
}

/**
 * Replaces the cluster key. Controllers accept tokens signed with the previous version during the
 * overlap, but only from the address of their session; after a compromise they reject such tokens
 * immediately.
 * @throws {Problem} when the rotation failed or its outcome is unknown.
 */
export async function rotateClusterKey(
  deps: SecretRotationDeps,
  reason: string,
  { isCompromised }: RemovalManner,
): Promise<void> {
  const overlapMs = isCompromised ? 0 : deps.overlapMs
  const version = await putInForce(deps, 'clusterKey', newClusterKey(), '', overlapMs)
  deps.log.info({ version, reason, overlapMs }, 'rotated the cluster key')
}

/**
 * Replaces the factor key, which encrypts the secrets of second factors. Former versions stay while
 * a second factor is encrypted with them, even after a compromise: the removed controller may
 * already have read those factors, and their owners should not lose them.
 * @throws {Problem} like `rotateClusterKey`.
 */
async function rotateFactorKey(deps: SecretRotationDeps, reason: string): Promise<void> {
  const version = await putInForce(deps, 'factorKey', newClusterKey(), '', 0)
  deps.log.info({ version, reason }, 'rotated the key of second factors')
}

/**
 * Replaces the issuing authority. Leaf certificates that the previous authority issued stay valid
 * until they expire: their chains contain the certificate of that authority, and verification does
 * not need the key of that authority.
 * @throws {CertificateError} when key and certificate do not match.
 * @throws {Problem} like `rotateClusterKey`.
 */
export async function installIssuingAuthority(
  deps: SecretRotationDeps,
  authority: CertificateWithKey,
): Promise<void> {
  const [certificate] = parseCertificates(authority.certificatePem)
  checkKeyMatches(certificate, authority.privateKeyPem)
  const secret = authorityKeyBytes(authority)
  const { certificatePem } = authority
  const version = await putInForce(deps, 'issuingAuthority', secret, certificatePem, 0)
  deps.log.info({ version, sha256: certificate.sha256 }, 'rotated the issuing authority')
}

/**
 * Wraps the secret for all admitted controllers and makes it current. Retries if the admissions or
 * the version have changed meanwhile.
 * @returns the version.
 */
async function putInForce(
  deps: SecretRotationDeps,
  name: SharedSecretName,
  secret: Uint8Array,
  certificatePem: string,
  overlapMs: number,
): Promise<number> {
  const { state } = deps
  for (let attempt = 1; ; attempt += 1) {
    const version = (versionsOf(state, name).at(-1)?.version ?? 0) + 1
    const recipients = admissionsOf(state).map(recipientOf)
    const message = create(SecretRotateSchema, {
      name,
      version,
      certificatePem,
      wrapped: await wrapSecretsForAll(state.clusterId, [{ name, version, secret }], recipients),
      overlapEndsAtMs: BigInt(state.logTimeMs + overlapMs),
    })
    const payload = toBinary(SecretRotateSchema, message)
    const outcome = await propose(deps, CommandKind.SECRET_ROTATE, payload)
    if (outcome.ok) {
      await deps.keyring.refresh()
      return version
    }
    if (outcome.code !== 'REVISION_MOVED' || attempt === ATTEMPTS_MAX) throw refusalProblem(outcome)
  }
}

/**
 * Wraps secrets that admitted controllers cannot decrypt yet, if this controller can decrypt them.
 * @returns whether there were any.
 */
export async function wrapMissingSecrets(deps: SecretRotationDeps): Promise<boolean> {
  const { state, keyring } = deps
  await keyring.refresh()
  const wrapped = []
  for (const admission of admissionsOf(state)) {
    const wanted = lacking(state, admission.id)
    const versions = keyring
      .held()
      .filter(({ name, version }) =>
        wanted.some((one) => one.name === name && one.version === version),
      )
    wrapped.push(...(await wrapSecretsForAll(state.clusterId, versions, [recipientOf(admission)])))
  }
  for (let at = 0; at < wrapped.length; at += SHARED_AT_ONCE_MAX) {
    const message = create(SecretShareSchema, {
      wrapped: wrapped.slice(at, at + SHARED_AT_ONCE_MAX),
    })
    const payload = toBinary(SecretShareSchema, message)
    const outcome = await propose(deps, CommandKind.SECRET_SHARE, payload)
    // REVISION_MOVED means that another controller has already shared these secrets.
    if (!outcome.ok && outcome.code !== 'REVISION_MOVED') throw refusalProblem(outcome)
  }
  return wrapped.length > 0
}

/**
 * Called after a member was removed. Unless the id was admitted again, deletes its admission, which
 * marks the secrets that the member could decrypt. Rotates the cluster key and the factor key if
 * they are marked. After a compromise, also ends the overlap of exposed versions and revokes
 * access. Each step depends only on the state, so the caller may repeat the call at any time.
 * @throws {Problem}
 */
export async function rotateSecretsAfterRemoval(
  deps: SecretRotationDeps,
  id: NodeId,
  { isCompromised, isAdmittedAgain = false }: RemovalManner,
): Promise<void> {
  // @guard join-after-a-compromise--again
  if (!isAdmittedAgain) await deleteAdmission(deps, id, isCompromised)
  await rotateSecretsIfDue(deps, `${id} was removed`)
  if (!isCompromised) return
  await endExposed(deps, `${id} is reported as compromised`)
  // @guard access-after-a-compromise--leader
  await revokeAccess(deps, id)
  // Admitted controllers that are not members yet could decrypt the new version, so the key rotates
  // after their admissions are revoked.
  // @guard join-after-a-compromise--rotation
  await rotateSecretsIfDue(deps, `${id} is reported as compromised`)
}

/**
 * Closes every API session, and revokes all open enrollments, join tickets and unused admissions.
 * This follows the rotation, so that nothing that the removed controller encrypted or signed can
 * open another session. If the cluster's feature level is too low for this, only logs a warning.
 */
async function revokeAccess(
  { proposer, state, log }: SecretRotationDeps,
  id: NodeId,
): Promise<void> {
  if (state.featureLevel < commandFeatureLevel(CommandKind.ACCESS_REVOKE)) {
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

/** Ids of join tickets and admitted controllers. */
function joiningIds(state: StateView) {
  const { records } = state.list('joinTicket', { limit: -1 })
  return {
    tickets: records.map(({ id }) => id),
    admissions: admissionsOf(state).map(({ id }) => id),
  }
}

/**
 * Ends the overlap immediately by another rotation, if an operator declares a removed controller
 * compromised after a normal removal.
 */
async function endExposed(deps: SecretRotationDeps, reason: string): Promise<void> {
  const { state } = deps
  const isHonored = versionsOf(state, 'clusterKey').some(
    ({ exposure, overlapEndsAt }) =>
      exposure !== 'none' && (overlapEndsAt === null || overlapEndsAt > state.logTimeMs),
  )
  if (!isHonored) return
  await rotateClusterKey(deps, reason, { isCompromised: true })
  warnOfAuthority(deps)
}

/**
 * Replaces the cluster key if a removed controller could decrypt it, and the factor key if a
 * removed controller could decrypt it or there is none.
 * @throws {Problem}
 */
export async function rotateSecretsIfDue(deps: SecretRotationDeps, reason: string): Promise<void> {
  const { state } = deps
  const exposure = exposureOf(state, 'clusterKey')
  if (exposure !== 'none') {
    const isCompromised = exposure === 'compromised'
    await rotateClusterKey(deps, reason, { isCompromised })
    if (isCompromised) warnOfAuthority(deps)
  }
  if (isFactorKeyDue(state)) await rotateFactorKey(deps, reason)
}

/**
 * If a removed controller could decrypt the key of the authority, warns that an operator must
 * replace it, which needs the offline root key.
 */
function warnOfAuthority({ state, log }: SecretRotationDeps): void {
  if ((versionsOf(state, 'issuingAuthority').at(-1)?.exposure ?? 'none') === 'none') return
  log.warn(
    {},
    "a compromised controller had access to the issuing authority; rotate it with 'flotilla pki renew-issuing', then renew the controller certificates",
  )
}

async function deleteAdmission(
  deps: SecretRotationDeps,
  nodeId: NodeId,
  compromised: boolean,
): Promise<void> {
  const known = deps.state.get('admission', nodeId)
  if (known === undefined) return
  const { publicKeySpki } = recipientOf(known)
  const message = create(AdmissionDeleteSchema, { nodeId, publicKeySpki, compromised })
  const payload = toBinary(AdmissionDeleteSchema, message)
  const outcome = await propose(deps, CommandKind.ADMISSION_DELETE, payload)
  if (!outcome.ok) throw refusalProblem(outcome)
}

function recipientOf({ id, publicKeySpki }: RecordOf<'admission'>): SecretRecipient {
  return { nodeId: id, publicKeySpki: Uint8Array.from(Buffer.from(publicKeySpki, 'base64')) }
}

async function propose(
  { proposer }: Pick<SecretRotationDeps, 'proposer'>,
  kind: CommandKind,
  payload: Uint8Array,
): Promise<Outcome> {
  const { outcome } = await proposer.propose({ kind, payload, actor: SYSTEM_ACTOR })
  return outcome
}
