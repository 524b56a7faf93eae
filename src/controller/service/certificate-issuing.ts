import type { ClusterNode } from '../../cluster/cluster-node.ts'
import { LeafJwtSigner } from '../../pki/jwt-signer.ts'
import type { ApiLimits } from '../../api/limits.ts'
import type { Keyring } from '../../cluster/secrets/keyring.ts'
import { systemClock } from '../../lib/clock.ts'
import type { CertificateIssuer } from '../../ports/certificate-issuer.ts'
import type { NetworkAuthorities } from '../../auth/certificates/network-authorities.ts'
import { CertificateWorker } from '../../threads/certificate-worker.ts'

/**
 * Creates the component that issues certificates, each with the authority that is current when the
 * order is sent to the certificate thread.
 */
export function openIssuer(
  keyring: Keyring,
  limits: ApiLimits,
  trustDomain: string,
): CertificateIssuer {
  const { enrolledCertificateMs, sessionCertificateMs } = limits
  return new CertificateWorker({
    limits,
    settings: { trustDomain, enrolledCertificateMs, sessionCertificateMs },
    authority: () => keyring.issuing(),
    clock: systemClock,
  })
}

/**
 * The CA certificates that the network trusts, including former authorities, because certificates
 * that they signed are still in use.
 */
export function createNetworkAuthorities(
  keyring: Keyring,
  anchorsPem: () => string,
): NetworkAuthorities {
  return {
    anchorsPem,
    intermediatesPem: () =>
      keyring
        .held()
        .filter(({ name }) => name === 'issuingAuthority')
        .map(({ certificatePem }) => certificatePem)
        .join('\n'),
  }
}

/**
 * Signs tokens for third parties with this controller's key, and verifies tokens with the keys of
 * all members and of recently removed members.
 */
export function createJwtSigner(
  clusterNode: Pick<ClusterNode, 'members' | 'configuration' | 'formerMembers'>,
  privateKeyPem: string,
  leafPem: () => string,
): LeafJwtSigner {
  return new LeafJwtSigner({
    privateKeyPem: () => privateKeyPem,
    leafPem,
    members: () => {
      const seen = new Map(clusterNode.members().map((member) => [member.id, member]))
      return clusterNode.configuration().record.members.map(({ id, publicKeySha256 }) => ({
        certificatePem: seen.get(id)?.certificatePem ?? '',
        publicKeySha256,
      }))
    },
    pinned: () => clusterNode.configuration().record.members,
    former: () => clusterNode.formerMembers(),
    removed: () => clusterNode.configuration().record.removed,
    clock: systemClock,
  })
}
