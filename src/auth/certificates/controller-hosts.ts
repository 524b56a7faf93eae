import { CertificateError, parseCertificates } from '../../pki/certificate.ts'
import { normalizedHosts } from '../../pki/authority/router-names.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'

/** Host names at which members can be reached, and host names in the members' certificates. */
export class ControllerHosts {
  readonly #cluster: Pick<ClusterView, 'members'>
  /** For each current member, the PEM of its certificate and the hosts in it. */
  #hostsByPem: ReadonlyMap<string, readonly string[]> = new Map()

  constructor(cluster: Pick<ClusterView, 'members'>) {
    this.#cluster = cluster
  }

  list(): string[] {
    const members = this.#cluster.members()
    const known = this.#hostsByPem
    this.#hostsByPem = new Map(
      members.map(({ certificatePem: pem }) => [pem, known.get(pem) ?? hostsIn(pem)]),
    )
    const hosts = members.flatMap((member) => [
      member.id,
      ...hostIn(`tls://${member.address}`),
      ...member.routerAddresses.flatMap((address) => hostIn(address.replace(/^tls:/, 'tls://'))),
      ...member.apiAddresses.flatMap(({ url }) => hostIn(url)),
      ...(this.#hostsByPem.get(member.certificatePem) ?? []),
    ])
    return [...new Set(hosts)]
  }
}

function hostIn(url: string): string[] {
  const host = URL.parse(url)?.hostname ?? ''
  return host === '' ? [] : [host]
}

function hostsIn(pem: string): readonly string[] {
  try {
    return normalizedHosts(parseCertificates(pem)[0].names)
  } catch (error) {
    // Ignores a member whose certificate is not known yet.
    if (error instanceof CertificateError) return []
    throw error
  }
}
