import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { Problem, fieldProblem } from '../../../lib/problems.ts'
import { clientAddress } from '../../../lib/bounds/client-address.ts'
import { sourceNetwork } from '../../../lib/bounds/source-network.ts'
import type { Actor } from '../../../ports/actor.ts'
import { bearerTokens } from '../../../auth/tokens/unverified-token.ts'
import type { CallerCredentials } from '../../../auth/principal/credentials.ts'
import { hasUnknownExpectation } from './expect-continue.ts'
import { peerCertificateChain } from './peer-certificate-chain.ts'

/** @throws {Problem} for a head that no operation accepts. */
export function checkRequestHead({ raw }: FastifyRequest): void {
  // RFC 9112, 3.2: an HTTP/1.1 request without a Host header is refused.
  if (raw.headers.host === undefined && raw.httpVersion === '1.1') {
    throw fieldProblem('Host', 'is required')
  }
  // Node uses only the first one, and a proxy in front may have checked another.
  // @guard header-smuggling--hosts
  if (headerValuesOf(raw, 'host').length > 1) throw fieldProblem('Host', 'must be given once')
  if (hasUnknownExpectation(raw)) {
    throw new Problem('EXPECTATION_FAILED', {
      fault: { field: 'Expect', reason: 'should be 100-continue' },
    })
  }
}

/** Implements the part of RFC 9110 section 12.5.1 that clients use: names, wildcards, and q=0. */
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

/** All values of a header: Node keeps only the first one of some repeated headers. */
function headerValuesOf({ headers, rawHeaders }: IncomingMessage, name: string): string[] {
  if (headers[name] === undefined) return []
  const found: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() === name) found.push(rawHeaders[at + 1] ?? '')
  }
  return found
}

/** Stands for two different tokens in one request; refused like a forged token. */
const AMBIGUOUS = ''

/**
 * Session token of a request. Two different tokens count as an invalid token: a proxy may have
 * checked one of them, and this controller would use the other.
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

/** Finds the host user behind a request at the admin socket, from the headers of the request. */
export type AdminSocketCallerFinder = (request: IncomingMessage) => Actor

/**
 * @param socketCaller set by the listener, never by a request; null except at the admin socket.
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
    bearers: () => bearerTokens(headerValuesOf(raw, 'authorization')),
    // @guard system-caller-over-tcp--header, system-caller-over-tcp--peer
    hostUser: socketCaller === null ? null : () => socketCaller(raw),
  }
}
