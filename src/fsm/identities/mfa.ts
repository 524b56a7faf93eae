import { fromBinary } from '@bufbuild/protobuf'
import {
  MfaBeginSchema,
  type MfaProve,
  MfaProve_Purpose as Purpose,
  MfaProveSchema,
  MfaRemoveSchema,
  MfaResealSchema,
  type SealedFactor,
} from '../../../proto/gen/command_pb.ts'
import type { ApiSession } from '../../entities/kinds/api-session.ts'
import { type Mfa, mfa as mfaKind, encryptedFactorCharactersMax } from '../../entities/kinds/mfa.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import { identityActionRefusal } from '../apply/actor-rights.ts'
import type { CommandContext } from '../apply/command-context.ts'
import {
  MFA_LAST_CODE_REUSE_FEATURE_LEVEL,
  MFA_ENROLLMENT_CODE_REUSE_FEATURE_LEVEL,
} from '../../ports/feature-level.ts'
import { deleteMfaAttempts, undoMfaAttempt } from './mfa-attempt.ts'
import {
  acceptedOutcome,
  fieldFaultOutcome,
  notFoundOutcome,
  type Refusal,
  refusedOutcome,
} from '../apply/outcome.ts'
import { removeWithReferences } from '../apply/references.ts'

/** Number of recovery codes that the setup of MFA creates, and maximum number in one set. */
export const recoveryCodesMax = 20
const idCharactersMax = 64

/**
 * Begins the MFA enrollment of the calling session's identity; replaces an unverified enrollment.
 */
export function beginMfa(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  const { secretId, factor } = fromBinary(MfaBeginSchema, payload)
  const session = state.get('apiSession', context.sessionId)
  if (session === undefined) return refusedOutcome('UNAUTHORIZED')
  const { identityId } = session
  const known = state.get('mfa', identityId)
  if (known?.isVerified === true) return refusedOutcome('MFA_EXISTS')
  const fault = secretId === '' ? idFault : factorFault(state, factor)
  if (fault !== null || factor === undefined) return fault ?? idFault
  const { logTimeMs, index: revision } = context
  state.put('mfa', {
    id: identityId,
    createdAt: logTimeMs,
    updatedAt: logTimeMs,
    revision,
    identityId,
    isVerified: false,
    secretId: secretId.slice(0, idCharactersMax),
    ...sealedFields(factor),
    lastStep: 0,
    usedCodes: [],
  })
  context.touched.push({ action: 'create', entity: 'mfa', id: identityId, fields: [] })
  return acceptedOutcome(identityId)
}

const idFault = fieldFaultOutcome({ field: 'id', reason: 'the factor or its id is missing' })

/**
 * Refusal of a factor that cannot be stored; null if it can be. REVISION_MOVED: the key was
 * rotated, so the proposer must encrypt the factor again.
 */
function factorFault(state: State, factor: SealedFactor | undefined): Refusal | null {
  if (factor === undefined || factor.codesId === '') return idFault
  const { sealed, codesId, keyVersion } = factor
  if (
    sealed === '' ||
    sealed.length > encryptedFactorCharactersMax ||
    codesId.length > idCharactersMax
  ) {
    return fieldFaultOutcome({ field: 'sealed', reason: 'it is missing or too long' })
  }
  const inForce = state.get('sharedSecret', 'factorKey')?.versions.at(-1)?.version
  return keyVersion === inForce ? null : refusedOutcome('REVISION_MOVED')
}

function sealedFields({ sealed, codesId, keyVersion }: SealedFactor) {
  return { sealed, codesId, keyVersion }
}

/** How the use of a code changes the MFA record, or why the code is refused. */
type Judgement =
  | { readonly refusal: Refusal }
  | { readonly refusal: null; readonly change: Partial<Mfa> }

const changing = (change: Partial<Mfa>): Judgement => ({ refusal: null, change })
const refusing = (refusal: Refusal): Judgement => ({ refusal })

/**
 * Uses a correct code. The state machine decides whether the code is still unused, because the log
 * orders the uses on all controllers: of two concurrent uses, only one succeeds.
 */
export function consumeMfaCode(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const message = fromBinary(MfaProveSchema, payload)
  const { purpose, secretId } = message
  const session = state.get('apiSession', context.sessionId)
  if (session === undefined) return refusedOutcome('UNAUTHORIZED')
  const { identityId } = session
  const known = state.get('mfa', identityId)
  const wanted = known === undefined ? missing : stateFault(known, purpose)
  if (wanted !== null || known === undefined) return wanted ?? missing
  if (known.secretId !== secretId) return refusedOutcome('REVISION_MOVED')
  if (isRepeated(state, known, session, message)) {
    undoMfaAttempt(state, identityId, context)
    return acceptedOutcome(identityId)
  }
  const isFree = purpose === Purpose.END && !known.isVerified
  const used = isFree ? changing({}) : judgeUse(state, known, message)
  if (used.refusal !== null) return used.refusal
  if (purpose === Purpose.END) {
    endMfa(state, known, context)
    return acceptedOutcome(identityId)
  }
  const renewal = purpose === Purpose.RENEW ? renewed(state, message) : changing({})
  if (renewal.refusal !== null) return renewal.refusal
  const { logTimeMs: updatedAt, index: revision } = context
  const isVerified = known.isVerified || purpose === Purpose.VERIFY
  const change = {
    ...used.change,
    ...renewal.change,
    ...stepUse(state, session, message),
    isVerified,
  }
  state.put('mfa', { ...known, ...change, updatedAt, revision })
  deleteMfaAttempts(state, identityId)
  if (purpose === Purpose.VERIFY || purpose === Purpose.PASS) passIn(state, session, context)
  const fields = fieldsOf[purpose] ?? []
  context.touched.push({ action: 'patch', entity: 'mfa', id: identityId, fields })
  return acceptedOutcome(identityId)
}

/**
 * Records the session that passes the second factor with a time-based code; every other use of a
 * code clears this record.
 */
function stepUse(
  { featureLevel }: State,
  { id }: ApiSession,
  { proof, purpose }: MfaProve,
): Partial<Mfa> {
  if (featureLevel < MFA_LAST_CODE_REUSE_FEATURE_LEVEL) return {}
  return { stepSessionId: purpose === Purpose.PASS && proof.case === 'step' ? id : '' }
}

/**
 * Whether the session repeats the code with which it last passed the second factor, and no code of
 * the identity has been used since. OpenZiti's SDKs request a TOTP token with the code of their
 * log-in, and a client repeats a request whose response was lost. The session gains nothing: the
 * time at which it passed the factor stays the same.
 */
function isRepeated(
  { featureLevel }: State,
  { lastStep, stepSessionId }: Mfa,
  session: ApiSession,
  { proof, purpose }: MfaProve,
): boolean {
  if (featureLevel < MFA_LAST_CODE_REUSE_FEATURE_LEVEL || purpose !== Purpose.PASS) return false
  if (proof.case !== 'step' || Number(proof.value) !== lastStep) return false
  // @guard mfa-code-used-twice--session
  return session.isMfaComplete && stepSessionId === session.id
}

const usedOrWrong = refusedOutcome('MFA_INVALID_TOKEN')
const missing = refusedOutcome('NOT_FOUND', 'mfa of the current identity not found')
/** Fields that the audit record lists as changed, by the purpose of the code. */
const fieldsOf: Readonly<Partial<Record<Purpose, readonly string[]>>> = {
  [Purpose.VERIFY]: ['isVerified'],
  [Purpose.PASS]: ['lastUse'],
  [Purpose.VIEW]: ['lastUse'],
  [Purpose.RENEW]: ['recoveryCodes'],
}

/**
 * Reason why an enrollment in this state does not accept a code for the purpose; null when it does.
 */
function stateFault({ isVerified }: Mfa, purpose: Purpose): Refusal | null {
  switch (purpose) {
    case Purpose.VERIFY:
      return isVerified ? missing : null
    case Purpose.PASS:
      return isVerified ? null : refusedOutcome('MFA_NOT_ENROLLED')
    case Purpose.VIEW:
    case Purpose.RENEW:
      return isVerified ? null : missing
    case Purpose.END:
      return null
    default:
      return fieldFaultOutcome({ field: 'purpose', reason: 'it is not known' })
  }
}

/**
 * Decides how the use of the code changes the MFA record. Refuses a code that cannot be used, or
 * was used before.
 */
function judgeUse(state: State, known: Mfa, { proof, purpose }: MfaProve): Judgement {
  if (proof.case === 'step') {
    const step = Number(proof.value)
    // Clients log in with the code that verified the factor. Anyone who has seen that code has also
    // seen the new secret, so refusing the code would protect no one.
    const isKept =
      purpose === Purpose.VERIFY && state.featureLevel >= MFA_ENROLLMENT_CODE_REUSE_FEATURE_LEVEL
    const lastStep = isKept ? step - 1 : step
    // @guard mfa-code-used-twice--step
    return step > known.lastStep ? changing({ lastStep }) : refusing(usedOrWrong)
  }
  if (proof.case === undefined || purpose === Purpose.VERIFY || purpose === Purpose.VIEW) {
    return refusing(usedOrWrong)
  }
  const { codesId, position } = proof.value
  // @guard mfa-code-used-twice--recovery
  const isOpen =
    codesId === known.codesId && position < recoveryCodesMax && !known.usedCodes.includes(position)
  return isOpen ? changing({ usedCodes: [...known.usedCodes, position] }) : refusing(usedOrWrong)
}

function renewed(state: State, { renewed: factor }: MfaProve): Judgement {
  const fault = factorFault(state, factor)
  if (fault !== null || factor === undefined) return refusing(fault ?? idFault)
  return changing({ ...sealedFields(factor), usedCodes: [] })
}

/**
 * Records the factor only in the session that submitted the code, because an attacker may have
 * another session of the identity.
 */
function passIn(state: State, session: ApiSession, context: CommandContext): void {
  const { logTimeMs, index: revision } = context
  const passed = { isMfaComplete: true, mfaPassedAt: logTimeMs }
  // @guard session-fixation
  state.put('apiSession', { ...session, ...passed, updatedAt: logTimeMs, revision })
}

/** Removes the second factor of an identity, with its recovery codes. */
export function removeMfa(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  const { identityId } = fromBinary(MfaRemoveSchema, payload)
  if (state.get('identity', identityId) === undefined)
    return notFoundOutcome('identity', identityId)
  // @guard mfa-of-others
  const denial = identityActionRefusal(state, identityId, context)
  if (denial !== null) return denial
  deleteMfa(state, identityId, context)
  return acceptedOutcome(identityId)
}

/** Removes MFA, verified or not, and ends the pause after wrong codes. */
export function deleteMfa(state: State, identityId: string, context: CommandContext): void {
  const known = state.get('mfa', identityId)
  if (known !== undefined) endMfa(state, known, context)
  deleteMfaAttempts(state, identityId)
}

/**
 * Removes MFA, and marks the second factor as missing in the identity's sessions, because a later
 * enrollment is another factor.
 */
function endMfa(state: State, known: Mfa, context: CommandContext): void {
  const { identityId } = known
  removeWithReferences(state, mfaKind, known, context)
  deleteMfaAttempts(state, identityId)
  const { logTimeMs: updatedAt, index: revision } = context
  for (const id of Array.from(state.table('apiSession').indexes.ids('identityId', identityId))) {
    const session = state.get('apiSession', id)
    if (session?.isMfaComplete !== true) continue
    const gone = { isMfaComplete: false, mfaPassedAt: null }
    state.put('apiSession', { ...session, ...gone, updatedAt, revision })
  }
  context.touched.push({ action: 'delete', entity: 'mfa', id: identityId, fields: [] })
}

/**
 * Stores the same secret and recovery codes, encrypted with a new key. The results of earlier code
 * checks remain valid.
 */
export function reencryptMfa(
  state: State,
  payload: Uint8Array,
  { index: revision }: CommandContext,
): Outcome {
  const { identityId, secretId, factor } = fromBinary(MfaResealSchema, payload)
  const known = state.get('mfa', identityId)
  const fault = factorFault(state, factor)
  if (fault !== null || factor === undefined) return fault ?? idFault
  const isSame = known?.secretId === secretId && known.codesId === factor.codesId
  if (known === undefined || !isSame) return refusedOutcome('REVISION_MOVED')
  state.put('mfa', { ...known, ...sealedFields(factor), revision })
  return acceptedOutcome(identityId)
}
