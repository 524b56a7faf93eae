import { createSecureContext } from 'node:tls'
import { fromBinary } from '@bufbuild/protobuf'

import { ConfigurationSchema } from '../../../proto/gen/membership_pb.ts'
import { probeControllerId } from '../../cluster/mesh/seed-finder.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import { SEEDS_MAX } from '../../controller/start/known-seeds.ts'
import { lookUpHost } from '../../lib/runtime/cached-resolver.ts'
import { formatHostPort, parseHostPort } from '../../lib/text/names.ts'
import type { JoinResponse } from '../../ports/membership.ts'
import type { CheckList } from '../terminal/check-list.ts'

/** Maximum addresses of one seed that are tried. */
const ADDRESSES_MAX = 8
/**
 * Longer than the connection timeout between controllers. They retry, but this check does not: a
 * shorter limit would remove the seed of a slow member.
 */
const TIMEOUT_MS = 10_000
/** Time limit for a connection to the address of this host, at which usually nothing listens. */
const ADDRESS_TIMEOUT_MS = 3_000

/**
 * Seeds for the configuration of a joining controller: first the seeds of its existing
 * configuration that lead to members, then the mesh addresses of the members. A seed is removed if
 * its name resolves and no member listens at its first {@link ADDRESSES_MAX} addresses, because it
 * probably belongs to a removed controller. A name that does not resolve stays, because an operator
 * may have configured it before creating its DNS record.
 */
export async function seedsForJoin(
  { id: selfId, cluster, trustDomain }: ControllerConfig,
  answer: JoinResponse,
  checks: CheckList,
): Promise<readonly string[]> {
  const { members } = fromBinary(ConfigurationSchema, answer.configuration)
  const addresses = members.flatMap(({ id, address }) => (id === selfId ? [] : [address]))
  const secureContext = createSecureContext({ ca: answer.caPem })
  const leadsToMember = async (seed: string): Promise<boolean> => {
    if (seed === cluster.advertise || addresses.includes(seed)) return true
    const found = await addressesOf(seed)
    if (found.length === 0) return true
    const ids = await Promise.all(
      found.map((address) => probeControllerId(address, secureContext, trustDomain, TIMEOUT_MS)),
    )
    return ids.some((id) => members.some((member) => member.id === id))
  }
  const judged = await Promise.all(
    cluster.seeds.map(async (seed) => ({ seed, isKept: await leadsToMember(seed) })),
  )
  const removed = judged.filter(({ isKept }) => !isKept).map(({ seed }) => seed)
  if (removed.length > 0) {
    const sentence = `removed from cluster.seeds, because no member of the cluster listens there: ${removed.join(', ')}`
    checks.warn('seeds', sentence)
  }
  // Host names from the operator come first, because addresses change more often than names.
  const kept = judged.filter(({ isKept }) => isKept).map(({ seed }) => seed)
  return [...new Set([...kept, ...addresses])].slice(0, SEEDS_MAX)
}

/**
 * Refuses a join whose mesh address is that of another running controller: the members could not
 * connect to the new controller, which would stay a learner without the state.
 * @throws {CommandFailure} with the id of the other controller.
 */
export async function checkJoinAddress(
  { id: selfId, cluster: { advertise }, trustDomain }: ControllerConfig,
  caPem: string,
  checks: CheckList,
): Promise<void> {
  const secureContext = createSecureContext({ ca: caPem })
  const ids = await Promise.all(
    (await addressesOf(advertise)).map((address) =>
      probeControllerId(address, secureContext, trustDomain, ADDRESS_TIMEOUT_MS),
    ),
  )
  const other = ids.find((id) => id !== null && id !== selfId)
  if (other === undefined) return
  checks.fail(
    'address',
    `${other} answers at ${advertise}, the address that ${selfId} would have; pass the name of this host with --advertise, or correct cluster.advertise in an existing configuration`,
  )
}

/** The IP addresses of a seed, each as host:port. */
async function addressesOf(seed: string): Promise<readonly string[]> {
  const target = parseHostPort(seed)
  if (target === null) return []
  const { addresses } = await lookUpHost(target.host)
  return addresses
    .slice(0, ADDRESSES_MAX)
    .map((host) => formatHostPort({ host, port: target.port }))
}
