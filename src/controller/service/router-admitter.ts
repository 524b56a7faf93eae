import { peerCertificateChain } from '../../api/http/transport/peer-certificate-chain.ts'
import { verifyRouterCertificate } from '../../auth/certificates/client-certificate.ts'
import type { NetworkAuthorities } from '../../auth/certificates/network-authorities.ts'
import type { RouterAdmitter } from '../../fabric/router-admission.ts'
import type { StateMachine } from '../../fsm/state-machine.ts'
import { assert } from '../../lib/assert.ts'
import { systemClock } from '../../lib/clock.ts'
import { parseCertificate } from '../../pki/certificate.ts'

interface RouterGateDeps {
  readonly machine: StateMachine
  readonly authorities: NetworkAuthorities
  /** Whether this controller refuses all routers, for example because its state may be wrong. */
  readonly isOutOfService: () => boolean
}

/**
 * Decides by the router's certificate and record whether a router may connect, and how long it may
 * stay connected. Later requests are authorized separately.
 */
export function createRouterAdmitter({
  machine,
  authorities,
  isOutOfService,
}: RouterGateDeps): RouterAdmitter {
  return {
    admit: (socket) => {
      if (isOutOfService()) return { ok: false, reason: 'this controller is out of service' }
      const chain = peerCertificateChain(socket)
      if (chain === null) return { ok: false, reason: 'no certificate was presented' }
      const judged = verifyRouterCertificate(
        { state: machine, authorities, clock: systemClock },
        chain,
      )
      if (!judged.ok) return judged
      const { id, name, isEdge, certPem } = judged.router
      assert(certPem !== null, 'the certificate differs from the router record')
      return { ok: true, router: { id, name, isEdge, certPem } }
    },
    revoked: ({ id, certPem }) => {
      const record = machine.get('router', id)
      if (record === undefined) return { reason: 'the router was deleted', endsLinks: true }
      if (record.disabled) return { reason: 'the router was disabled', endsLinks: true }
      if (!record.isVerified) return { reason: 'the router must enroll again', endsLinks: true }
      if (record.certPem === certPem) return null
      // A renewal keeps the key. Another key means that the router enrolled again since this
      // controller last checked, for example because the former key was stolen.
      const isSameRouter = isSameKey(record.certPem, certPem)
      // @guard links-of-a-stolen-router
      return { reason: 'the certificate of the router changed', endsLinks: !isSameRouter }
    },
  }
}

/** Whether two certificates have the same public key; false if one is missing or unreadable. */
function isSameKey(onePem: string | null, otherPem: string): boolean {
  const [one, other] = [onePem, otherPem].map(publicKeyHash)
  return one !== undefined && other !== undefined && Buffer.compare(one, other) === 0
}

/** SHA-256 of the public key; undefined if the certificate is missing or unreadable. */
function publicKeyHash(certPem: string | null): Uint8Array | undefined {
  try {
    return certPem === null ? undefined : parseCertificate(certPem).publicKeySha256
  } catch {
    return undefined
  }
}
