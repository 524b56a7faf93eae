import { CertificateError, parseCertificates } from '../../pki/certificate.ts'
import { normalizedHosts } from '../../pki/authority/router-names.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'

/** IDs of the members, hosts of their addresses, and hosts in their certificates. */
export class ControllerHosts {
  readonly #cluster: Pick<ClusterView, 'members'>
  /** Cached hosts in the certificates of the members, by PEM. */
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
    // The certificate of the member is not known yet.
    if (error instanceof CertificateError) return []
    throw error
  }
}
