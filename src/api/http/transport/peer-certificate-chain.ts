import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

import { peerChainDer } from '../../../lib/runtime/peer-certificates.ts'
import {
  CertificateError,
  CHAIN_CERTIFICATES_MAX,
  parsePresentedAuthority,
  parsePresentedLeaf,
} from '../../../pki/certificate.ts'
import type { PresentedCertificates } from '../../../pki/verify/client-chain.ts'

const chains = new WeakMap<Socket, PresentedCertificates | null>()

/**
 * The certificates that the client presented in the TLS handshake, at most
 * `CHAIN_CERTIFICATES_MAX`. The handshake proves only that the client has the key of the first
 * certificate; nothing else is verified. Null if the client presented no certificate, an unreadable
 * one, or a chain that is too large.
 */
export function peerCertificateChain(socket: Socket): PresentedCertificates | null {
  const known = chains.get(socket)
  if (known !== undefined) return known
  const chain = socket instanceof TLSSocket ? read(socket) : null
  chains.set(socket, chain)
  return chain
}

function read(socket: TLSSocket): PresentedCertificates | null {
  try {
    const shown = peerChainDer(socket, CHAIN_CERTIFICATES_MAX)
    // @guard certificate-without-its-key--header
    if (shown === null) return null
    const [leaf, ...others] = shown
    return [parsePresentedLeaf(leaf), ...others.map(parsePresentedAuthority)]
  } catch (error) {
    if (error instanceof CertificateError) return null
    throw error
  }
}
