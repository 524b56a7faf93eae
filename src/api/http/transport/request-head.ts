import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { Problem, fieldProblem } from '../../../lib/problems.ts'
import { clientAddress } from '../../../lib/bounds/client-address.ts'
import { sourceNetwork } from '../../../lib/bounds/source-network.ts'
import type { Actor } from '../../../ports/actor.ts'
import { parseBearerTokens } from '../../../auth/tokens/unverified-token.ts'
import type { CallerCredentials } from '../../../auth/principal/credentials.ts'
import { hasUnknownExpectation } from './expect-continue.ts'
import { peerCertificateChain } from './peer-certificate-chain.ts'

/** @throws {Problem} for a request head that is refused for every operation. */
export function checkRequestHead({ raw }: FastifyRequest): void {
  // Refuses an HTTP/1.1 request without a Host header (RFC 9112, 3.2).
  if (raw.headers.host === undefined && raw.httpVersion === '1.1') {
    throw fieldProblem('Host', 'is required')
  }
  // Node uses only the first Host header, and a proxy in front of the controller may have checked
  // another one.
  // @guard header-smuggling--hosts
  if (headerValuesOf(raw, 'host').length > 1) throw fieldProblem('Host', 'must be given once')
  if (hasUnknownExpectation(raw)) {
    throw new Problem('EXPECTATION_FAILED', {
      fault: { field: 'Expect', reason: 'should be 100-continue' },
    })
  }
}

/**
 * Whether an Accept header allows one of the types. Supports the part of RFC 9110, 12.5.1 that
 * clients use: names, wildcards, and q=0.
 */
export function isMediaTypeAccepted(accept: string | undefined, types: readonly string[]): boolean {
  if (accept === undefined || accept === '' || accept === '*/*') return true
  return accept.split(',', ACCEPT_TYPES_MAX).some((item) => {
    const [range = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
    if (parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))) return false
    return types.some(
      (type) => range === type || range === '*/*' || range === `${type.split('/')[0] ?? ''}/*`,
    )
  })
}

const ACCEPT_TYPES_MAX = 32

/**
 * All values of a header, from the raw headers, because Node keeps only the first value of some
 * repeated headers.
 */
function headerValuesOf({ headers, rawHeaders }: IncomingMessage, name: string): string[] {
  if (headers[name] === undefined) return []
  const found: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() === name) found.push(rawHeaders[at + 1] ?? '')
  }
  return found
}

/**
 * Used as the session token if a request contains two different tokens; this value is refused like
 * a forged token.
 */
const AMBIGUOUS = ''

/**
 * Session token of a request. Two different tokens count as an invalid token: otherwise a proxy
 * could check one of them, and this controller use the other.
 */
function tokenOf({ headers }: IncomingMessage): string | undefined {
  // @guard header-smuggling--spelling
  const own = headers['net-session']
  const alias = headers['zt-session']
  // @guard header-smuggling--two-names
  if (own !== undefined && alias !== undefined && own !== alias) return AMBIGUOUS
  const token = own ?? alias
  // @guard header-smuggling--repeated
  return typeof token === 'string' ? token : undefined
}

/**
 * Determines the operating system user who sent a request to the admin socket, from the request's
 * headers.
 */
export type AdminSocketCallerFinder = (request: IncomingMessage) => Actor

/**
 * @param socketCaller comes from the listener, never from a request; null on every listener except
 * the admin socket.
 */
export function requestCredentials(
  raw: IncomingMessage,
  socketCaller: AdminSocketCallerFinder | null,
): CallerCredentials {
  // @guard header-smuggling--source
  const address = clientAddress(raw.socket)
  return {
    address,
    sessionToken: tokenOf(raw),
    source: sourceNetwork(address),
    peerChain: () => peerCertificateChain(raw.socket),
    bearers: () => parseBearerTokens(headerValuesOf(raw, 'authorization')),
    // @guard system-caller-over-tcp--header, system-caller-over-tcp--peer
    hostUser: socketCaller === null ? null : () => socketCaller(raw),
  }
}
