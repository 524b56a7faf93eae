import { fromBinary } from '@bufbuild/protobuf'
import {
  type Command,
  CommandKind,
  CommandSchema,
  type RequestId,
} from '../../proto/gen/command_pb.ts'
import { AssertionError } from '../lib/assert.ts'
import { problemTypes } from '../lib/problems.ts'
import { toHex } from '../lib/text/to-hex.ts'
import { actorFault } from '../ports/actor.ts'
import { HISTORY_FEATURE_LEVEL, type KnownCommandKind } from '../ports/feature-level.ts'
import type { AppliedEntry } from '../ports/replicated-state-machine.ts'
import type { Outcome } from '../ports/proposer.ts'
import type { Entry } from '../raft/types.ts'
import { expireAccess } from './expiry/expire-access.ts'
import { applyAccessEffects } from './access/access-effects.ts'
import { entryAuditRecord, commandsWithAuditedChanges, type AuditedWrite } from './apply/audit.ts'
import { actorRights } from './apply/actor-rights.ts'
import { applyClusterActionCommand } from './cluster/cluster-action.ts'
import {
  createTicket,
  deleteAdmission,
  redeemTicket,
  revokeTicket,
} from './cluster/join-tickets.ts'
import {
  createSessionCertificate,
  deleteSessionCertificate,
  extendAuthenticator,
  verifyAuthenticatorExtension,
} from './enrollment/certificate.ts'
import type { CommandContext } from './apply/command-context.ts'
import { adoptCertificate } from './enrollment/certificate-adoption.ts'
import {
  beginRouterCertificateExtension,
  enrollByEnrollmentToken,
  enrollByCa,
  extendRouterCertificate,
  verifyRouterCertificateExtension,
} from './enrollment/enrollment.ts'
import {
  createEntity,
  deleteEntity,
  patchEntity,
  replaceEntity,
  writeBatch,
} from './apply/entity.ts'
import { raiseFeatureLevel } from './seed/feature-level.ts'
import { applyCreateClusterCommand } from './seed/create-cluster.ts'
import {
  createHostedTerminator,
  removeHostedTerminators,
  updateHostedTerminator,
} from './services/hosted-terminator.ts'
import { disableIdentity, enableIdentity } from './identities/identity.ts'
import {
  assignIntegrityRun,
  detachMissingReference,
  endIntegrityRun,
  rebuildTable,
  startIntegrityRun,
} from './cluster/integrity.ts'
import { resetLogTime } from './cluster/log-time.ts'
import { countMfaAttempt } from './identities/mfa-attempt.ts'
import { beginMfa, consumeMfaCode, removeMfa, reencryptMfa } from './identities/mfa.ts'
import { refusedOutcome } from './apply/outcome.ts'
import { recoverAdmin } from './identities/admin-recovery.ts'
import { countPasswordAttempt } from './identities/password-attempt.ts'
import { updateRouterPresence } from './services/router-presence.ts'
import { rehashPassword } from './identities/password-rehash.ts'
import { associateServiceConfigs, disassociateServiceConfigs } from './services/service-configs.ts'
import { revokeAccess } from './cluster/access-revocation.ts'
import { beginRestore, endRestore, stageRestoreChunk } from './cluster/restore.ts'
import { rotateSecret, addMissingWrappedSecrets } from './cluster/secret.ts'
import { createServiceSession, endServiceSessions } from './sessions/service-session.ts'
import {
  createApiSession,
  deleteApiSession,
  expireSessions,
  updateSessionActivity,
} from './sessions/session.ts'
import { rulesForKind } from './kind-rules.ts'
import { enrollByExternalJwt } from './enrollment/token-enrollment.ts'
import { requestCertificateExtension, verifyCa } from './enrollment/ca-verification.ts'
import { isKindName } from '../entities/registry.ts'
import type { ClusterState } from './access/cluster-state.ts'

/** Index and log time of a log entry. */
type Place = Pick<CommandContext, 'index' | 'logTimeMs'>
type Handler = (state: ClusterState, payload: Uint8Array, context: CommandContext) => Outcome

/**
 * The compiler requires a handler for every kind of command. Without a handler, every controller
 * would stop applying the log at the first entry of that kind.
 */
const handlers: Readonly<Record<KnownCommandKind, Handler>> = {
  [CommandKind.FORM]: applyCreateClusterCommand,
  [CommandKind.ENTITY_CREATE]: createEntity,
  [CommandKind.ENTITY_REPLACE]: replaceEntity,
  [CommandKind.ENTITY_PATCH]: patchEntity,
  [CommandKind.ENTITY_DELETE]: deleteEntity,
  [CommandKind.ENTITY_BATCH]: writeBatch,
  [CommandKind.SESSION_CREATE]: createApiSession,
  [CommandKind.SESSION_DELETE]: deleteApiSession,
  [CommandKind.SESSION_TOUCH]: updateSessionActivity,
  [CommandKind.SESSION_EXPIRE]: expireSessions,
  [CommandKind.IDENTITY_DISABLE]: disableIdentity,
  [CommandKind.IDENTITY_ENABLE]: enableIdentity,
  [CommandKind.SERVICE_CONFIGS_ASSOCIATE]: associateServiceConfigs,
  [CommandKind.SERVICE_CONFIGS_DISASSOCIATE]: disassociateServiceConfigs,
  [CommandKind.PASSWORD_ATTEMPT]: countPasswordAttempt,
  [CommandKind.ADMIN_RECOVER]: recoverAdmin,
  [CommandKind.MFA_BEGIN]: beginMfa,
  [CommandKind.MFA_PROVE]: consumeMfaCode,
  [CommandKind.MFA_REMOVE]: removeMfa,
  [CommandKind.MFA_ATTEMPT]: countMfaAttempt,
  [CommandKind.MFA_RESEAL]: reencryptMfa,
  [CommandKind.CA_VERIFY]: verifyCa,
  [CommandKind.AUTHENTICATOR_REQUEST_EXTEND]: requestCertificateExtension,
  [CommandKind.ENROLL]: enrollByEnrollmentToken,
  [CommandKind.CA_ENROLL]: enrollByCa,
  [CommandKind.ROUTER_EXTEND]: extendRouterCertificate,
  [CommandKind.AUTHENTICATOR_EXTEND]: extendAuthenticator,
  [CommandKind.AUTHENTICATOR_EXTEND_VERIFY]: verifyAuthenticatorExtension,
  [CommandKind.SESSION_CERTIFICATE_CREATE]: createSessionCertificate,
  [CommandKind.SESSION_CERTIFICATE_DELETE]: deleteSessionCertificate,
  [CommandKind.TICKET_CREATE]: createTicket,
  [CommandKind.TICKET_REDEEM]: redeemTicket,
  [CommandKind.TICKET_REVOKE]: revokeTicket,
  [CommandKind.ADMISSION_DELETE]: deleteAdmission,
  [CommandKind.SECRET_ROTATE]: rotateSecret,
  [CommandKind.SECRET_SHARE]: addMissingWrappedSecrets,
  [CommandKind.SERVICE_SESSION_CREATE]: createServiceSession,
  [CommandKind.SERVICE_SESSION_END]: endServiceSessions,
  [CommandKind.TOKEN_ENROLL]: enrollByExternalJwt,
  [CommandKind.HOSTED_TERMINATOR_CREATE]: createHostedTerminator,
  [CommandKind.HOSTED_TERMINATOR_UPDATE]: updateHostedTerminator,
  [CommandKind.HOSTED_TERMINATORS_REMOVE]: removeHostedTerminators,
  [CommandKind.ROUTER_EXTEND_BEGIN]: beginRouterCertificateExtension,
  [CommandKind.ROUTER_EXTEND_VERIFY]: verifyRouterCertificateExtension,
  [CommandKind.RESTORE_BEGIN]: beginRestore,
  [CommandKind.RESTORE_CHUNK]: stageRestoreChunk,
  [CommandKind.RESTORE_END]: endRestore,
  [CommandKind.LOG_TIME_RESET]: resetLogTime,
  [CommandKind.ACCESS_REVOKE]: revokeAccess,
  [CommandKind.CERTIFICATE_ADOPT]: adoptCertificate,
  [CommandKind.PASSWORD_REHASH]: rehashPassword,
  [CommandKind.ACCESS_END]: expireAccess,
  [CommandKind.ROUTER_PRESENCE]: updateRouterPresence,
  [CommandKind.INTEGRITY_START]: startIntegrityRun,
  [CommandKind.INTEGRITY_CLAIM]: assignIntegrityRun,
  [CommandKind.INTEGRITY_END]: endIntegrityRun,
  [CommandKind.INTEGRITY_REBUILD]: rebuildTable,
  [CommandKind.INTEGRITY_DETACH]: detachMissingReference,
  [CommandKind.CLUSTER_ACTION]: applyClusterActionCommand,
  [CommandKind.FEATURE_LEVEL_RAISE]: raiseFeatureLevel,
}

const nothingDone = { outcome: null, audit: null } as const

function hasMoved(state: ClusterState, command: Command): boolean {
  for (const { entity, id, revision } of command.judgedOn) {
    const record = isKindName(entity) ? state.get(entity, id) : undefined
    if ((record?.revision ?? 0) !== Number(revision)) return true
  }
  return false
}

type Performed = Pick<AppliedEntry, 'audit'> & { readonly outcome: Outcome }

function perform(state: ClusterState, command: Command, place: Place): Performed {
  const touched: AuditedWrite[] = []
  const outcome = performUnaudited(state, command, place, touched)
  const isKept =
    outcome.ok &&
    state.featureLevel >= HISTORY_FEATURE_LEVEL &&
    commandsWithAuditedChanges.has(command.kind)
  const changes = isKept ? state.takeHistory() : []
  // Log time is read again here, because the command may have reset it.
  const now = { index: place.index, logTimeMs: state.logTimeMs }
  const audit = entryAuditRecord(state, command, now, { outcome, touched, changes })
  if (audit !== null) state.remember(audit)
  // The result omits the changes: code that uses the result stores it for a long time, and
  // subscribers receive the changes through `ChangeFeed`.
  return {
    outcome,
    audit: audit === null || audit.change === '' ? audit : { ...audit, change: '' },
  }
}

function performUnaudited(
  state: ClusterState,
  command: Command,
  place: Place,
  touched: AuditedWrite[],
): Outcome {
  const handler = (handlers as Readonly<Record<number, Handler | undefined>>)[command.kind]
  if (handler === undefined) throw new Error(`command kind ${command.kind} is unknown here`)
  const rights = actorRights(state, command.actor, command.kind)
  if (rights === null) return refusedOutcome('UNAUTHORIZED', actorFault(command.actor))
  if (hasMoved(state, command)) return refusedOutcome('REVISION_MOVED')
  const { actor } = command
  const sessionId = actor.case === 'session' ? actor.value.sessionId : ''
  const routerId = actor.case === 'enrollment' ? actor.value.routerId : ''
  return handler(state, command.payload, {
    ...place,
    sessionId,
    routerId,
    ...rights,
    touched,
    rulesOf: rulesForKind,
  })
}

/**
 * Applies the command of a request once. If the outcome of an earlier attempt with the same request
 * id is stored, returns that outcome, whichever controller received the attempt.
 */
function performOnce(
  state: ClusterState,
  command: Command,
  request: RequestId,
  place: Place,
): Performed {
  const { caller, id } = request
  const bodyHash = toHex(request.bodyHash)
  const judgement = state.judgeRequest(caller, id, bodyHash)
  if (judgement !== 'new') return { outcome: judgement, audit: null }
  const performed = perform(state, command, place)
  const { outcome } = performed
  // The outcome of a temporary refusal is not stored, so that the caller may repeat the request
  // with the same id.
  if (outcome.ok || problemTypes[outcome.code].retry === 'never') {
    const { index } = place
    const { logTimeMs: atMs } = state
    state.rememberRequest(caller, id, { atMs, bodyHash, index, outcome })
  }
  return performed
}

function applyCommand(
  state: ClusterState,
  command: Command,
  place: Place,
): Omit<AppliedEntry, 'index'> {
  const { request } = command
  const run = (): Performed => {
    // Only the replicated feature level decides. A version that knows the command therefore refuses
    // it in the same cases as a version that does not know it.
    if (command.level > state.featureLevel) {
      return { outcome: refusedOutcome('FEATURE_LEVEL_NOT_RAISED'), audit: null }
    }
    return request === undefined
      ? perform(state, command, place)
      : performOnce(state, command, request, place)
  }
  if (command.origin === undefined) return { origin: null, ...run() }
  const storeId = toHex(command.origin.storeId)
  const boot = Number(command.origin.boot)
  const sequence = Number(command.origin.sequence)
  const lowest = Number(command.origin.lowestOutstanding)
  const isNew = state.origins.take(storeId, boot, sequence, lowest, place.index)
  return { origin: { storeId, boot, sequence }, ...(isNew ? run() : nothingDone) }
}

/**
 * Applies one log entry to the state. The result depends only on state and entry. The outcome is
 * null for a no-op, a configuration, and a command that its proposer has already applied or
 * abandoned.
 * @throws when the entry is not the next one, cannot be decoded, has a kind that this version does
 * not know, or raises the feature level above what this version supports. After that, the state
 * must not be used, because the change may be incomplete.
 */
export function applyLogEntry(state: ClusterState, entry: Entry): AppliedEntry {
  if (entry.index !== state.position.index + 1) {
    throw new AssertionError('entries are applied in order, without gaps')
  }
  const logTimeMs = Math.max(state.logTimeMs, entry.timeMs - state.setbackMs)
  // @guard 39-apply-reads-the-local-clock
  const place = { index: entry.index, logTimeMs }
  state.logTimeMs = logTimeMs
  state.forget()
  let applied: Omit<AppliedEntry, 'index'> = { origin: null, ...nothingDone }
  switch (entry.type) {
    case 'noop':
      break
    case 'configuration':
      // The bytes are copied, because a view would keep the large buffer of the entry in memory.
      state.configuration = Uint8Array.from(entry.data)
      break
    case 'command':
      applied = applyCommand(state, fromBinary(CommandSchema, entry.data), place)
      applyAccessEffects(state, {
        ...place,
        logTimeMs: state.logTimeMs,
        sessionId: '',
        routerId: '',
        authority: 'full',
        held: [],
        touched: [],
        rulesOf: rulesForKind,
      })
      break
  }
  state.position = { term: entry.term, index: entry.index }
  return { index: entry.index, ...applied }
}
