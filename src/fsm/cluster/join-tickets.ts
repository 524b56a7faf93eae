import { createHash, timingSafeEqual } from 'node:crypto'

import { fromBinary } from '@bufbuild/protobuf'
import {
  AdmissionDeleteSchema,
  TicketCreateSchema,
  type TicketRedeem,
  TicketRedeemSchema,
  TicketRevokeSchema,
} from '../../../proto/gen/command_pb.ts'
import { ConfigurationSchema, type Member } from '../../../proto/gen/membership_pb.ts'
import type { JoinAdmission } from '../../entities/kinds/admission.ts'
import type { JoinTicket } from '../../entities/kinds/join-ticket.ts'
import { isControllerId, parseHostPort } from '../../lib/text/names.ts'
import type { FieldFault } from '../../lib/problems.ts'
import { toHex } from '../../lib/text/to-hex.ts'
import type { Outcome } from '../../ports/proposer.ts'
import type { State } from '../records/state.ts'
import type { CommandContext } from '../apply/command-context.ts'
import {
  acceptedOutcome,
  fieldFaultOutcome,
  notFoundOutcome,
  refusedOutcome,
} from '../apply/outcome.ts'
import { removeWrappedSecrets, missingSecretRefusal, addWrappedSecrets } from './secret.ts'

/** Limits for the records that joining controllers cause in the state. */
export const joiningLimits = {
  /**
   * Maximum lifetime of a join ticket, to which `ticketSlackMs` is added; a longer lifetime is
   * refused.
   */
  ticketLifetimeMsMax: 7 * 24 * 60 * 60_000,
  /**
   * Tolerance above the maximum lifetime of a ticket: the clock of the issuing controller
   * determines the expiry, but the state machine computes the lifetime with log time.
   */
  ticketSlackMs: 5 * 60_000,
  /**
   * Maximum stored join tickets in the cluster; further ones are refused with 429
   * SERVER_TOO_MANY_REQUESTS.
   */
  ticketsMax: 256,
  /** Maximum number of expired tickets that one command removes. */
  ticketsPrunedMax: 32,
  /**
   * Maximum admitted controllers of a cluster; a further controller is refused with
   * MEMBERSHIP_REFUSED.
   */
  admissionsMax: 64,
  /**
   * Maximum characters of the PEM certificate of a joining controller; a longer one is refused.
   */
  certificateCharactersMax: 64 * 1024,
  /** Maximum bytes of the public key of a joining controller; a longer key is refused. */
  publicKeyBytesMax: 2048,
  /** Maximum characters of the address of a joining controller; a longer address is refused. */
  addressCharactersMax: 300,
} as const

const TICKET_ID = /^[A-Za-z0-9_-]{8,64}$/
const DIGEST_BYTES = 32
const STORE_ID_BYTES = 16

/**
 * Removes some expired tickets. Called when a ticket is created or redeemed, so that no timer is
 * needed.
 */
function pruneTickets(state: State, { logTimeMs }: CommandContext): void {
  let pruned = 0
  for (const id of Array.from(state.table('joinTicket').ids)) {
    const ticket = state.get('joinTicket', id)
    if ((ticket?.expiresAt ?? 0) > logTimeMs) continue
    state.remove('joinTicket', id)
    pruned += 1
    if (pruned === joiningLimits.ticketsPrunedMax) return
  }
}

/** Records a new ticket, with which one controller can join. */
export function createTicket(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  const message = fromBinary(TicketCreateSchema, payload)
  const expiresAt = Number(message.expiresAtMs)
  pruneTickets(state, context)
  if (!TICKET_ID.test(message.id) || state.get('joinTicket', message.id) !== undefined) {
    return fieldFaultOutcome({ field: 'id', reason: 'id must be usable and unique' })
  }
  if (message.digest.length !== DIGEST_BYTES) {
    return fieldFaultOutcome({ field: 'digest', reason: 'digest has 32 bytes' })
  }
  const { ticketLifetimeMsMax, ticketSlackMs } = joiningLimits
  const lifetimeMs = expiresAt - context.logTimeMs
  if (lifetimeMs <= 0 || lifetimeMs > ticketLifetimeMsMax + ticketSlackMs) {
    return fieldFaultOutcome({ field: 'lifetimeMs', reason: 'a ticket lives for at most 7 days' })
  }
  if (state.table('joinTicket').rows.size >= joiningLimits.ticketsMax) {
    return refusedOutcome(
      'SERVER_TOO_MANY_REQUESTS',
      `${joiningLimits.ticketsMax} tickets are open; wait until some have expired`,
    )
  }
  state.put('joinTicket', {
    ...base(message.id, context),
    digest: toHex(message.digest),
    isVoter: message.voter,
    expiresAt,
  })
  return acceptedOutcome(message.id)
}

/**
 * Revokes a ticket. A used ticket cannot be revoked: the operator must remove the controller that
 * joined with it.
 */
export function revokeTicket(state: State, payload: Uint8Array): Outcome {
  const { id } = fromBinary(TicketRevokeSchema, payload)
  const ticket = state.get('joinTicket', id)
  if (ticket === undefined) return notFoundOutcome('joinTicket', id)
  const { usedByNodeId } = ticket
  if (usedByNodeId !== '') {
    return refusedOutcome(
      'MEMBERSHIP_REFUSED',
      `${usedByNodeId} has joined by ticket ${id}; remove that controller instead ('flotilla cluster remove ${usedByNodeId}')`,
    )
  }
  // @guard revoked-ticket
  state.remove('joinTicket', id)
  return acceptedOutcome(id)
}

/**
 * Uses a ticket to admit a controller. The certificate request and its signature were verified
 * before the proposal. This function checks again everything that can have changed since: of two
 * controllers with the same ticket or id, the first in the log is admitted.
 */
export function redeemTicket(state: State, payload: Uint8Array, context: CommandContext): Outcome {
  const message = fromBinary(TicketRedeemSchema, payload)
  const fault = redeemFault(message)
  if (fault !== null) return fieldFaultOutcome(fault)
  const ticket = state.get('joinTicket', message.ticketId)
  const refusal = ticketRefusal(ticket, message, context)
  if (refusal !== null) return refusal
  const known = state.get('admission', message.nodeId)
  if (ticket !== undefined && ticket.usedByNodeId !== '') {
    const isRepeated =
      known?.ticketId === message.ticketId &&
      ticket.usedByNodeId === message.nodeId &&
      isSame(known, message)
    if (isRepeated) return acceptedOutcome(message.nodeId)
    return refusedOutcome('TICKET_REFUSED', 'this ticket was used before; ask for a new one')
  }
  const taken = takenRefusal(state, known, message)
  if (taken !== null) return taken
  const missing = missingSecretRefusal(state, message.nodeId, message.secrets, context)
  if (missing !== null) return missing
  admit(state, message, ticket?.isVoter === true, context)
  if (ticket !== undefined) {
    state.put('joinTicket', {
      ...ticket,
      usedByNodeId: message.nodeId,
      updatedAt: context.logTimeMs,
      revision: context.index,
    })
  }
  pruneTickets(state, context)
  return acceptedOutcome(message.nodeId)
}

function redeemFault(message: TicketRedeem): FieldFault | null {
  const limits = joiningLimits
  if (!isControllerId(message.nodeId)) return { field: 'id', reason: 'id is not usable' }
  if (message.storeId.length !== STORE_ID_BYTES) {
    return { field: 'storeId', reason: 'storeId has 16 bytes' }
  }
  const keyBytes = message.publicKeySpki.length
  if (keyBytes === 0 || keyBytes > limits.publicKeyBytesMax) {
    return { field: 'certificateRequestPem', reason: 'its key is not usable' }
  }
  const { address, certificatePem } = message
  if (address.length > limits.addressCharactersMax || parseHostPort(address) === null) {
    return { field: 'address', reason: 'address must be host:port' }
  }
  if (certificatePem === '' || certificatePem.length > limits.certificateCharactersMax) {
    return { field: 'certificatePem', reason: 'the certificate is missing or too large' }
  }
  return null
}

function ticketRefusal(
  ticket: JoinTicket | undefined,
  message: TicketRedeem,
  { logTimeMs }: CommandContext,
): Outcome | null {
  if (ticket === undefined || !isEqual(Buffer.from(ticket.digest, 'hex'), message.ticketDigest)) {
    return refusedOutcome(
      'TICKET_REFUSED',
      "the cluster does not know this ticket, or no longer; ask for a new one ('flotilla cluster invite')",
    )
  }
  if ((ticket.expiresAt ?? 0) > logTimeMs) return null
  return refusedOutcome(
    'TICKET_REFUSED',
    "this ticket has expired; ask for a new one ('flotilla cluster invite')",
  )
}

/**
 * Refusal if the id, key or store of the controller is already known in another combination, or if
 * the cluster has too many controllers. Id, key and store belong together permanently, so another
 * combination is a mistake or an attack.
 */
function takenRefusal(
  state: State,
  known: JoinAdmission | undefined,
  message: TicketRedeem,
): Outcome | null {
  const { nodeId } = message
  if (known !== undefined && !isSame(known, message)) return idTaken(nodeId)
  const member = memberNamed(state, nodeId)
  const sha256 = createHash('sha256').update(message.publicKeySpki).digest()
  if (member !== undefined && !isEqual(member.publicKeySha256, sha256)) return idTaken(nodeId)
  const table = state.table('admission')
  for (const id of table.ids) {
    const other = state.get('admission', id)
    if (other === undefined || id === nodeId) continue
    if (other.publicKeySpki === base64(message.publicKeySpki)) {
      return refusedOutcome(
        'MEMBERSHIP_REFUSED',
        `controller ${id} has this key; make a new one for ${nodeId}`,
      )
    }
    if (other.storeId === toHex(message.storeId)) {
      return refusedOutcome(
        'MEMBERSHIP_REFUSED',
        `controller ${id} has this data folder; begin with an empty one for ${nodeId}`,
      )
    }
  }
  if (known !== undefined || table.rows.size < joiningLimits.admissionsMax) return null
  return refusedOutcome(
    'MEMBERSHIP_REFUSED',
    `a cluster has at most ${joiningLimits.admissionsMax} controllers; remove one first`,
  )
}

function idTaken(id: string): Outcome {
  return refusedOutcome(
    'MEMBERSHIP_REFUSED',
    `${id} is the id of another controller of this cluster; choose another id, or remove that one first ('flotilla cluster remove ${id}')`,
  )
}

function admit(
  state: State,
  message: TicketRedeem,
  isVoter: boolean,
  context: CommandContext,
): void {
  const { nodeId } = message
  state.put('admission', {
    ...base(nodeId, context),
    publicKeySpki: base64(message.publicKeySpki),
    storeId: toHex(message.storeId),
    address: message.address,
    certificatePem: message.certificatePem,
    ticketId: message.ticketId,
    isVoter,
  })
  addWrappedSecrets(state, nodeId, message.secrets, context)
}

/**
 * Deletes the admission of a removed controller, which is the last step of a removal. Never deletes
 * the admission of a current member.
 */
export function deleteAdmission(
  state: State,
  payload: Uint8Array,
  context: CommandContext,
): Outcome {
  const message = fromBinary(AdmissionDeleteSchema, payload)
  const { nodeId } = message
  const known = state.get('admission', nodeId)
  if (known === undefined) return acceptedOutcome(nodeId)
  if (known.publicKeySpki !== base64(message.publicKeySpki)) {
    return refusedOutcome(
      'MEMBERSHIP_REFUSED',
      `${nodeId} has been admitted with another key meanwhile`,
    )
  }
  if (memberNamed(state, nodeId) !== undefined) {
    return refusedOutcome('MEMBERSHIP_REFUSED', `${nodeId} is still a member; remove it first`)
  }
  removeWrappedSecrets(state, nodeId, message.compromised ? 'compromised' : 'left', context)
  state.remove('admission', nodeId)
  return acceptedOutcome(nodeId)
}

/**
 * Removes everything with which a controller could still become a member: tickets that no member
 * has used, and the admissions of controllers that are not members yet, with the secrets encrypted
 * for these controllers. A compromised controller may have created tickets and admissions.
 */
export function revokePendingJoins(state: State, context: CommandContext): void {
  for (const id of Array.from(state.table('joinTicket').ids)) {
    const ticket = state.get('joinTicket', id)
    if (ticket === undefined || memberNamed(state, ticket.usedByNodeId) !== undefined) continue
    // @guard join-after-a-compromise--ticket
    state.remove('joinTicket', id)
    context.touched.push({ action: 'delete', entity: 'joinTicket', id, fields: [] })
  }
  for (const nodeId of Array.from(state.table('admission').ids)) {
    if (memberNamed(state, nodeId) !== undefined) continue
    // @guard join-after-a-compromise--opened
    removeWrappedSecrets(state, nodeId, 'compromised', context)
    // @guard join-after-a-compromise--admission
    state.remove('admission', nodeId)
    context.touched.push({ action: 'delete', entity: 'admission', id: nodeId, fields: [] })
  }
}

/** The member with this id in the last applied configuration. */
function memberNamed(state: State, id: string): Member | undefined {
  const { members } = fromBinary(ConfigurationSchema, state.configuration)
  return members.find((member) => member.id === id)
}

function isSame(known: JoinAdmission, message: TicketRedeem): boolean {
  return (
    known.publicKeySpki === base64(message.publicKeySpki) &&
    known.storeId === toHex(message.storeId)
  )
}

function base(id: string, { index, logTimeMs }: CommandContext) {
  return { id, createdAt: logTimeMs, updatedAt: logTimeMs, revision: index }
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
