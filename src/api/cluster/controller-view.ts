import { X509Certificate } from 'node:crypto'
import type { ClusterView, MemberView } from '../../ports/cluster-view.ts'
import { rfc3339Text } from '../http/responses/envelope.ts'
import type { ApiName } from '../../auth/principal/permissions.ts'

/** All controllers of the cluster with their client APIs, for the enrollment response. */
export function controllersForClients(
  cluster: Pick<ClusterView, 'members'>,
): readonly Record<string, unknown>[] {
  const members = cluster.members()
  const preferred = preferredLeaders(members)
  return members.map((member) => {
    const isPreferredLeader = preferred.has(member.id)
    return controllerView(member, { api: 'client', seesMesh: false, isPreferredLeader })
  })
}

interface Shows {
  readonly api: ApiName
  readonly seesMesh: boolean
  readonly isPreferredLeader: boolean
}

/** A controller of the cluster, with the fields of the requested API. */
export function controllerView(
  member: MemberView,
  { api, seesMesh, isPreferredLeader }: Shows,
): Record<string, unknown> {
  const startedAt = rfc3339Text(member.startedAtMs)
  return {
    _links: { self: { href: `./controllers/${member.id}` } },
    apiAddresses: addressesOf(member, api),
    certPem: member.certificatePem,
    createdAt: startedAt,
    ...(seesMesh ? { ctrlAddress: member.address } : {}),
    fingerprint: sha1Fingerprint(member.certificatePem),
    id: member.id,
    isOnline: member.connected,
    isPreferredLeader,
    lastJoinedAt: startedAt,
    name: member.id,
    tags: {},
    updatedAt: startedAt,
  }
}

const clientAddresses = new Set(['edge-client', 'edge-oidc'])

function addressesOf(
  member: MemberView,
  api: ApiName,
): Record<string, { url: string; version: string }[]> {
  const addresses: Record<string, { url: string; version: string }[]> = {}
  for (const { api: name, url, version } of member.apiAddresses) {
    if (api === 'client' && !clientAddresses.has(name)) continue
    const known = (addresses[name] ??= [])
    known.push({ url, version })
  }
  return addresses
}

/**
 * SHA-1 fingerprint in hex, as OpenZiti shows it. Use it only to find certificates: it does not
 * prove that two certificates are equal.
 */
export function sha1Fingerprint(pem: string): string {
  const known = fingerprints.get(pem)
  if (known !== undefined) return known
  if (fingerprints.size >= FINGERPRINTS_MAX) fingerprints.clear()
  const made = computeFingerprint(pem)
  fingerprints.set(pem, made)
  return made
}

function computeFingerprint(pem: string): string {
  try {
    return new X509Certificate(pem).fingerprint.replaceAll(':', '').toLowerCase()
  } catch {
    // Without the member's certificate, there is no fingerprint.
    return ''
  }
}

/**
 * Cache of fingerprints, because parsing a certificate takes longer than the rest of the response.
 */
const fingerprints = new Map<string, string>()
const FINGERPRINTS_MAX = 64

/**
 * The voters with the highest leader priority, among those that have reported a priority; empty if
 * these priorities are all equal.
 */
export function preferredLeaders(members: readonly MemberView[]): ReadonlySet<string> {
  const known = members.flatMap(({ id, voter, vitals }) =>
    voter && vitals !== null ? [{ id, priority: vitals.priority }] : [],
  )
  const highest = Math.max(...known.map(({ priority }) => priority))
  const preferred = known.filter(({ priority }) => priority === highest)
  return new Set(preferred.length === known.length ? [] : preferred.map(({ id }) => id))
}
