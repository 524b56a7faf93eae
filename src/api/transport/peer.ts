import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { X509Certificate } from 'node:crypto'

import {
  type Certificate,
  CertificateError,
  CHAIN_CERTIFICATES_MAX,
  parseCertificate,
} from '../../pki/certificate.ts'
import type { PeerChain } from '../../pki/verify/client-chain.ts'

const chains = new WeakMap<Socket, PeerChain | null>()

/**
 * The certificates that the client of a connection showed in the handshake, which proves that it
 * holds the key of the first one, and of no other. Nothing else about them is judged here. Null: it
 * showed none, or one that can not be read.
 */
export function peerChainOf(socket: Socket): PeerChain | null {
  const known = chains.get(socket)
  if (known !== undefined) return known
  const chain = socket instanceof TLSSocket ? read(socket) : null
  chains.set(socket, chain)
  return chain
}

function read(socket: TLSSocket): PeerChain | null {
  try {
    const leaf = socket.getPeerX509Certificate()
    if (leaf === undefined) return null
    const chain: [Certificate, ...Certificate[]] = [parseCertificate(leaf.raw)]
    let next: X509Certificate | undefined = leaf.issuerCertificate
    while (next !== undefined && chain.length < CHAIN_CERTIFICATES_MAX) {
      const certificate = parseCertificate(next.raw)
      // One that is self-signed names itself as its issuer.
      if (chain.some(({ sha256 }) => sha256 === certificate.sha256)) break
      chain.push(certificate)
      next = next.issuerCertificate
    }
    return chain
  } catch (error) {
    if (error instanceof CertificateError) return null
    throw error
  }
}
