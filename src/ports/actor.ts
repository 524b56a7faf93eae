import { isSessionPermission, type SessionPermission } from '../lib/permissions.ts'

/**
 * Author of a write, with the rights that the state machine checks. It is a closed union, like the
 * `actor` field of the logged command; the state machine refuses a command without an actor.
 */
export type Actor =
  | { readonly case: 'system'; readonly value: SystemActor }
  | { readonly case: 'enrollment'; readonly value: EnrollmentActor }
  | { readonly case: 'session'; readonly value: SessionActor }

/** The cluster itself, or the operator of one of its hosts. It has every right. */
interface SystemActor {
  /**
   * Name of the controller or host user that acts; '' lets the proposing controller fill in its own
   * name.
   */
  readonly name: string
  /** Address of the client whose request caused the write; '' without one. */
  readonly address: string
  /**
   * Identity on whose behalf the system acts. It appears only in the audit record, and neither adds
   * nor removes a right.
   */
  readonly identityId: string
  readonly sessionId: string
}

/**
 * A caller without a session that presents an enrollment token, a certificate of a CA, a router's
 * certificate or a token of an external JWT signer. Exactly one of the four ids is set; the other
 * ids are ''.
 */
export interface EnrollmentActor {
  readonly enrollmentId: string
  readonly method: string
  readonly address: string
  readonly caId: string
  readonly routerId: string
  readonly signerId: string
}

/** Names of the fields of an {@link EnrollmentActor} of which exactly one is not ''. */
export type CredentialIdField = 'enrollmentId' | 'caId' | 'routerId' | 'signerId'

/** An identity that acts through its API session. */
export interface SessionActor {
  readonly identityId: string
  readonly sessionId: string
  readonly address: string
  /**
   * Permission with which the API admitted the session's request; the state machine checks the
   * permission again.
   */
  readonly permission: SessionPermission
  /**
   * The external JWT signer whose token for the same identity the request contains; '' without such
   * a token.
   */
  readonly signerId: string
  /** Revision of that signer when the token was verified, in decimal; '0' without a token. */
  readonly signerRevision: string
}

/**
 * Creates the actor for a caller without a session.
 * @param shown the credential that the caller presented, in one of the four fields.
 */
export function createEnrollmentActor(
  shown: Partial<Pick<EnrollmentActor, CredentialIdField>>,
  given: Pick<EnrollmentActor, 'method' | 'address'>,
): Actor {
  const value = { enrollmentId: '', caId: '', routerId: '', signerId: '', ...shown, ...given }
  return { case: 'enrollment', value }
}

/**
 * Creates the system actor.
 * @param given the fields that are not ''. Without an identity, the system acts on its own behalf.
 */
export function createSystemActor(given: Partial<SystemActor> = {}): Actor {
  const value = { name: '', address: '', identityId: '', sessionId: '', ...given }
  return { case: 'system', value }
}

/** A controller that writes on its own initiative. */
export const SYSTEM_ACTOR = createSystemActor()

/** A session actor from the log: its permission may be any string. */
export type LoggedSessionActor = Readonly<Record<keyof SessionActor, string>>

/** An actor from the log, which may be absent. */
export type LoggedActor =
  | Actor
  | { readonly case: 'session'; readonly value: LoggedSessionActor }
  | { readonly case?: undefined }
  | undefined

/**
 * Reason why an actor has no rights, whatever records the state has; null when it may have some.
 */
export function actorFault(actor: LoggedActor): string | null {
  switch (actor?.case) {
    case 'system':
      return actor.value.name === '' ? 'the system actor has no name' : null
    case 'enrollment':
      return shownBy(actor.value).length === 1
        ? null
        : 'the enrollment actor does not show exactly one of token, CA, router and signer'
    case 'session':
      return sessionFault(actor.value)
    default:
      return 'the command names no actor'
  }
}

/**
 * The presented credentials as `enrollment:ID`, `ca:ID`, `router:ID` or `signer:ID`: one text for
 * each field that is set.
 */
function shownBy({ enrollmentId, caId, routerId, signerId }: EnrollmentActor): string[] {
  return Object.entries({
    enrollment: enrollmentId,
    ca: caId,
    router: routerId,
    signer: signerId,
  }).flatMap(([kind, id]) => (id === '' ? [] : `${kind}:${id}`))
}

function sessionFault(session: LoggedSessionActor): string | null {
  if (session.identityId === '') return 'the session actor names no identity'
  if (session.sessionId === '') return 'the session actor names no API session'
  if (session.permission === '') return 'the session actor has no permission'
  return isSessionPermission(session.permission)
    ? null
    : 'the permission of the session actor is unknown'
}

/** Identity of a session actor; '' for another actor. */
export function actorIdentityId(actor: Actor): string {
  return actor.case === 'session' ? actor.value.identityId : ''
}

/** Session through which an actor acts, or on whose behalf it acts; '' for none. */
export function actorSessionId(actor: LoggedActor): string {
  return actor?.case === 'system' || actor?.case === 'session' ? actor.value.sessionId : ''
}

/** Name of an actor in logs and audit records: the id of an identity if it has one. */
export function actorName(actor: LoggedActor): string {
  switch (actor?.case) {
    case 'system':
      return actor.value.identityId || actor.value.name
    case 'enrollment':
      return shownBy(actor.value).join(' ')
    case 'session':
      return actor.value.identityId
    default:
      return ''
  }
}
