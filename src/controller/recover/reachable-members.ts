import { connect } from 'node:tls'

import { resolveAddress } from '../../cluster/mesh/resolve-address.ts'
import { parseHostPort } from '../../lib/text/names.ts'
import { peerLeafDer } from '../../lib/runtime/peer-certificates.ts'
import { leafControllerId, parseCertificate } from '../../pki/certificate.ts'
import type { Credentials } from '../start/check-certificates.ts'
import type { SurvivorMember } from './survivor.ts'

const ANSWER_MS = 3_000
const ADDRESSES_MAX = 16

/**
 * Finds members that are running and reachable. Each must prove its id in a TLS handshake.
 * @returns their ids and addresses.
 */
export async function findReachableMembers(
  members: readonly SurvivorMember[],
  credentials: Pick<Credentials, 'certificatePem' | 'privateKeyPem' | 'caPem'>,
  place: { readonly trustDomain: string; readonly resolvers: readonly string[] },
): Promise<readonly { readonly id: string; readonly address: string }[]> {
  const asked = members.map(async ({ id, address }) => {
    const found = place.resolvers.length === 0 ? [] : await resolveAddress(address, place.resolvers)
    const addresses = (found.length === 0 ? [address] : found).slice(0, ADDRESSES_MAX)
    const answers = await Promise.all(
      addresses.map((one) => controllerAt(one, credentials, place.trustDomain)),
    )
    return answers.includes(id) ? { id, address } : null
  })
  return (await Promise.all(asked)).filter((one) => one !== null)
}

/**
 * Tests in a TLS handshake which controller listens at an address.
 * @returns the id that the peer proved; null when no program answers, or its certificate is not
 * that of a controller of this trust domain.
 */
function controllerAt(
  address: string,
  {
    certificatePem,
    privateKeyPem,
    caPem,
  }: Pick<Credentials, 'certificatePem' | 'privateKeyPem' | 'caPem'>,
  trustDomain: string,
): Promise<string | null> {
  const target = parseHostPort(address)
  if (target === null) return Promise.resolve(null)
  return new Promise((resolve) => {
    const socket = connect({
      ...target,
      cert: certificatePem,
      key: privateKeyPem,
      ca: caPem,
      minVersion: 'TLSv1.3',
      ALPNProtocols: ['h2'],
      // Host names are not checked, because the certificate identifies the controller, not the
      // host.
      checkServerIdentity: () => undefined,
    })
    const end = (id: string | null): void => {
      socket.destroy()
      resolve(id)
    }
    socket.setTimeout(ANSWER_MS, () => end(null))
    socket.once('error', () => end(null))
    socket.once('secureConnect', () => {
      try {
        const shown = peerLeafDer(socket)
        end(shown === null ? null : leafControllerId(parseCertificate(shown), trustDomain))
      } catch {
        end(null)
      }
    })
  })
}
