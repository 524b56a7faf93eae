import { CertificateError, parseCertificates } from '../../pki/certificate.ts'
import { namedHostKeys } from '../../pki/authority/router-names.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'

/** Hosts that members are reached under or that their certificates name. */
export class ControllerHosts {
  readonly #cluster: Pick<ClusterView, 'members'>
  /** Hosts by the PEM of a controller's certificate, of the current members. */
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
      ...hostIn((member.routerAddress ?? '').replace(/^tls:/, 'tls://')),
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
    return namedHostKeys(parseCertificates(pem)[0].names)
  } catch (error) {
    // Ignore a member whose certificate is not known yet.
    if (error instanceof CertificateError) return []
    throw error
  }
}
