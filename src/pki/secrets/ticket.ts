import { createHash, randomBytes } from 'node:crypto'

import { canonicalJson, type Json } from '../../lib/text/canonical-json.ts'
import { isTrustDomain } from '../../lib/text/names.ts'
import { isNonNegativeInteger } from '../../lib/text/json-value.ts'

/**
 * A ticket that admits one new controller to the cluster. The ticket string must be kept secret
 * until the ticket is used.
 */
export interface Ticket {
  /** Id of the ticket in the replicated state; not secret. */
  readonly id: string
  /** 32 random bytes that prove possession of the ticket. */
  readonly secret: Uint8Array
  readonly clusterId: string
  readonly generation: number
  readonly trustDomain: string
  /** PEM of the trust anchors; a joining controller trusts only these CA certificates. */
  readonly caPem: string
  /**
   * Base URLs of the members' fabric API (`https://host:port/fabric/v1`), in the order in which to
   * try them.
   */
  readonly addresses: readonly string[]
  /** False: the joining controller stays a learner. */
  readonly isVoter: boolean
  /** Expiry, UTC ms; compared with the cluster's log time. */
  readonly expiresAtMs: number
}

type TicketFault = 'no-ticket' | 'damaged' | 'newer'

/** The message is one sentence with a remedy; it never contains a part of the ticket. */
export class TicketError extends Error {
  override readonly name = 'TicketError'
  readonly fault: TicketFault

  constructor(fault: TicketFault, message: string) {
    super(message)
    this.fault = fault
  }
}

/**
 * Maximum characters of a ticket string: less than the limit for secret files, and enough for 20 CA
 * certificates with RSA keys of 4,096 bits. A network migrated from OpenZiti can have several
 * roots, and an intermediate CA for each controller.
 */
export const TICKET_CHARACTERS_MAX = 60 * 1024
const TICKET_SECRET_BYTES = 32
export const TICKET_ADDRESSES_MAX = 64
const PREFIX = 'flotilla-ticket-1.'
const ANY_PREFIX = /^flotilla-ticket-([0-9]{1,6})\./
const BODY = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{11})$/
/**
 * The checksum has 64 bits, enough to detect copying errors. The checksum need not prevent forgery,
 * because the ticket's secret does.
 */
const CHECKSUM_BYTES = 8
const ID = /^[A-Za-z0-9_-]{8,64}$/
const UUID = /^[0-9a-f-]{36}$/

export function newTicketSecret(): Uint8Array {
  return Uint8Array.from(randomBytes(TICKET_SECRET_BYTES))
}

/**
 * Formats a ticket as one line without blanks: `flotilla-ticket-1.<base64url of JSON>.<checksum>`.
 * Tickets with equal values have equal strings.
 * @throws {TicketError} when the string would be longer than {@link TICKET_CHARACTERS_MAX}.
 */
export function formatTicket(ticket: Ticket): string {
  const { secret, ...rest } = ticket
  const json = canonicalJson({ ...rest, secret: Buffer.from(secret).toString('base64url') })
  const body = Buffer.from(json).toString('base64url')
  const text = `${PREFIX}${body}.${checksumOf(body)}`
  if (text.length > TICKET_CHARACTERS_MAX) {
    const count = ticket.caPem.split('-----BEGIN CERTIFICATE-----').length - 1
    throw new TicketError(
      'damaged',
      `the ticket would be longer than ${TICKET_CHARACTERS_MAX} characters, because identity.ca contains ${count} CA certificates; remove those from it that issued no certificate in use`,
    )
  }
  return text
}

/**
 * SHA-256 of the whole ticket string, 32 bytes. The cluster stores only this hash, never the
 * string.
 */
export function ticketDigest(text: string): Uint8Array {
  return Uint8Array.from(createHash('sha256').update(text.trim()).digest())
}

/**
 * Parses a ticket, ignoring surrounding white space.
 * @throws {TicketError}
 */
export function parseTicket(text: string): Ticket {
  const trimmed = text.length > 2 * TICKET_CHARACTERS_MAX ? text : text.trim()
  const format = ANY_PREFIX.exec(trimmed)
  if (format === null) {
    throw new TicketError(
      'no-ticket',
      "not a ticket; pass the line printed by 'flotilla cluster invite'",
    )
  }
  if (!trimmed.startsWith(PREFIX)) {
    throw new TicketError(
      'newer',
      `this ticket has format ${format[1] ?? '?'} and this program reads format 1; install the version of flotilla that the cluster runs`,
    )
  }
  const match = BODY.exec(trimmed.slice(PREFIX.length))
  const [, body = '', checksum = ''] = match ?? []
  if (trimmed.length > TICKET_CHARACTERS_MAX || match === null || checksumOf(body) !== checksum) {
    throw damaged()
  }
  const ticket = ticketOf(parseJson(Buffer.from(body, 'base64url').toString('utf8')))
  if (ticket === null) throw damaged()
  return ticket
}

function damaged(): TicketError {
  return new TicketError(
    'damaged',
    "the ticket is truncated or edited; copy the whole line printed by 'flotilla cluster invite', or create a new one",
  )
}

function checksumOf(body: string): string {
  const digest = createHash('sha256').update(PREFIX).update(body).digest()
  return digest.subarray(0, CHECKSUM_BYTES).toString('base64url')
}

function parseJson(text: string): Readonly<Record<string, Json | undefined>> | null {
  try {
    const value = JSON.parse(text) as Json
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return null
    return value as Readonly<Record<string, Json>>
  } catch {
    return null
  }
}

function ticketOf(value: Readonly<Record<string, Json | undefined>> | null): Ticket | null {
  if (value === null) return null
  const { id, clusterId, generation, trustDomain, caPem, isVoter, expiresAtMs } = value
  const secret = bytesOf(value['secret'])
  const addresses = addressesOf(value['addresses'])
  if (typeof id !== 'string' || !ID.test(id)) return null
  if (typeof clusterId !== 'string' || !UUID.test(clusterId)) return null
  if (typeof trustDomain !== 'string' || !isTrustDomain(trustDomain)) return null
  if (typeof caPem !== 'string' || !caPem.includes('-----BEGIN CERTIFICATE-----')) return null
  if (
    !isNonNegativeInteger(generation) ||
    !isNonNegativeInteger(expiresAtMs) ||
    typeof isVoter !== 'boolean'
  )
    return null
  if (secret?.length !== TICKET_SECRET_BYTES || addresses === null) return null
  return {
    id,
    secret,
    clusterId,
    generation,
    trustDomain,
    caPem,
    addresses,
    isVoter,
    expiresAtMs,
  }
}

function bytesOf(value: Json | undefined): Uint8Array | null {
  return typeof value === 'string' ? Uint8Array.from(Buffer.from(value, 'base64url')) : null
}

function addressesOf(value: Json | undefined): readonly string[] | null {
  if (!Array.isArray(value) || value.length === 0 || value.length > TICKET_ADDRESSES_MAX) {
    return null
  }
  const addresses: string[] = []
  for (const address of value as readonly Json[]) {
    if (typeof address !== 'string' || !isHttpsUrl(address)) return null
    addresses.push(address)
  }
  return addresses
}

function isHttpsUrl(text: string): boolean {
  return URL.canParse(text) && new URL(text).protocol === 'https:'
}
