import { existsSync, readdirSync, readFileSync } from 'node:fs'

import type { ControllerConfig } from '../../config/controller/options.ts'
import {
  BUNDLE_CERTIFICATES_MAX,
  checkCertificateChain,
  checkKeyMatches,
  leafControllerId,
  parseCertificates,
} from '../../pki/certificate.ts'
import { checkControllerUsage } from '../../pki/verify/controller-leaf.ts'
import { readSecretFile } from '../../pki/secret-file.ts'
import { parseTicket, type Ticket, TicketError } from '../../pki/secrets/ticket.ts'
import { readDataIdentity } from '../../store/log/data-identity.ts'
import type { CheckList } from '../terminal/check-list.ts'
import { advertisedHosts } from '../../config/controller/advertised-hosts.ts'
import type { PlannedConfig } from './config-from-flags.ts'
import { findListenFault } from '../../controller/start/check-listeners.ts'
import { type ReachedMember, reachMembers } from './join-request.ts'
import type { JoinState } from './join-state.ts'
import { errorMessage } from '../../lib/error-code.ts'
import { isoTime } from '../../lib/text/format-time.ts'
import { decodeText } from '../../lib/text/decode-text.ts'

const CLOCK_WARNING_MS = 2_000
const CLOCK_REFUSAL_MS = 60_000
/**
 * Possible error of a measured clock difference: a member reports its time in whole seconds, and
 * its response takes a moment to arrive.
 */
const CLOCK_DOUBT_MS = 600
const REACH_ATTEMPTS_MAX = 3

// The checks of a join before it changes anything. Each adds its results to `checks`, and ends the
// join if it fails.

/**
 * An expired ticket causes only a warning: the cluster decides whether the ticket has expired, and
 * the clock of this host may be wrong.
 */
export function checkJoinTicket(text: string, checks: CheckList, nowMs: number): Ticket {
  let ticket: Ticket
  try {
    ticket = parseTicket(text)
  } catch (error) {
    if (error instanceof TicketError) return checks.fail('ticket', error.message, error)
    throw error
  }
  const { isVoter, clusterId, expiresAtMs } = ticket
  const role = isVoter ? 'voter' : 'learner'
  const until = isoTime(expiresAtMs)
  if (nowMs > expiresAtMs) {
    checks.warn('ticket', `expired at ${until} by this host's clock`)
  } else {
    checks.ok('ticket', `${role} of cluster ${clusterId}, valid until ${until}`)
  }
  return ticket
}

export function checkJoinConfig(planned: PlannedConfig, ticket: Ticket, checks: CheckList): void {
  const { config, path } = planned
  if (config.trustDomain !== ticket.trustDomain) {
    checks.fail(
      'configuration',
      `${path} has trustDomain ${config.trustDomain}, the ticket is for ${ticket.trustDomain}; correct the file, or use a ticket of that cluster`,
    )
  }
  checks.ok('configuration', planned.isThere ? path : `${path} will be written`)
  const hosts = advertisedHosts(config)
  checks.ok('names', `certificate for ${hosts.join(', ')}`)
}

/**
 * @returns `own` for a data folder of this controller in the cluster of the ticket, for example
 * from an earlier attempt of this join.
 */
export function checkJoinFolder(
  { data, id }: ControllerConfig,
  ticket: Ticket,
  checks: CheckList,
): 'empty' | 'own' {
  if (!existsSync(data) || readdirSync(data).length === 0) {
    checks.ok('data folder', `${data} is empty`)
    return 'empty'
  }
  let identity
  try {
    identity = readDataIdentity(data)
  } catch (error) {
    checks.fail(
      'data folder',
      `${data} is not empty and not a data folder; name another one, or move it away`,
      error,
    )
  }
  const { nodeId, clusterId } = identity
  if (clusterId === ticket.clusterId && nodeId === id) {
    checks.ok('data folder', `${data} already belongs to this controller`)
    return 'own'
  }
  return checks.fail(
    'data folder',
    `${data} belongs to controller ${nodeId} of cluster ${clusterId}; name another folder as data, or move it away if that cluster is gone`,
  )
}

/**
 * Determines the private key. An interrupted join keeps the key of its first attempt. Otherwise, an
 * existing key is used, whose certificate must be valid in the cluster of the ticket.
 * @returns `privateKeyPem` is null if the join must generate the key.
 */
export function checkJoinIdentity(
  { identity, id, trustDomain }: ControllerConfig,
  state: JoinState | null,
  ticket: Ticket,
  checks: CheckList,
  nowMs: number,
): { readonly privateKeyPem: string | null; readonly keepsCertificate: boolean } {
  if (state !== null && (state.clusterId !== ticket.clusterId || state.id !== id)) {
    checks.fail(
      'key',
      `a join of ${state.id} to cluster ${state.clusterId} is in progress; finish it, or remove the file .joining in the folder of CONFIG to abort it`,
    )
  }
  if (state !== null) {
    checks.ok('key', 'reused from the earlier attempt')
    const { privateKeyPem, keepsCertificate } = state
    return { privateKeyPem, keepsCertificate }
  }
  const { key, cert } = identity
  if (!existsSync(key)) {
    checks.ok('key', `created ${key}`)
    return { privateKeyPem: null, keepsCertificate: false }
  }
  try {
    const { text } = readSecretFile(key)
    const chain = parseCertificates(decodeText(readFileSync(cert)))
    checkKeyMatches(chain[0], text)
    checkCertificateChain(
      chain,
      parseCertificates(ticket.caPem, { certificatesMax: BUNDLE_CERTIFICATES_MAX }),
      nowMs,
    )
    checkControllerUsage(chain[0])
    if (leafControllerId(chain[0], trustDomain) !== id) throw new Error('it is for another id')
    checks.ok('key', `reused ${key} and its certificate`)
    return { privateKeyPem: text, keepsCertificate: true }
  } catch (error) {
    return checks.fail(
      'key',
      `${key} exists, but its certificate ${cert} cannot be used in this cluster (${errorMessage(error)}); move both away, or install a valid certificate`,
      error,
    )
  }
}

export async function checkJoinPorts(config: ControllerConfig, checks: CheckList): Promise<void> {
  const { cluster, routers, web } = config
  const optional = routers.bind === null ? [] : [routers.bind]
  const binds = [cluster.bind, ...optional, ...web.map(({ bind }) => bind)]
  for (const bind of binds) {
    const fault = await findListenFault(bind)
    if (fault !== null) checks.fail('ports', `${bind} ${fault}`)
  }
  checks.ok('ports', `${binds.join(', ')} available`)
}

/** @returns the members that responded, at least one. */
export async function checkJoinMembers(
  ticket: Ticket,
  checks: CheckList,
): Promise<readonly ReachedMember[]> {
  const { reached, faults } = await reachMembersPatiently(ticket)
  if (reached.length === 0) {
    checks.fail('members', `no member of the ticket is reachable: ${faults.join('; ')}`)
  }
  const ids = [...new Set(reached.map(({ id }) => id))].sort().join(', ')
  if (faults.length === 0)
    checks.ok('members', `${ids} reachable, verified with the CA of the ticket`)
  else checks.warn('members', `${ids} reachable; ${faults.join('; ')}`)
  checkClock(reached, checks)
  return reached
}

/** Tries again if no member responded, because an overloaded host may miss the time limit once. */
async function reachMembersPatiently(ticket: Ticket): ReturnType<typeof reachMembers> {
  for (let attempt = 1; ; attempt += 1) {
    const found = await reachMembers(ticket)
    if (found.reached.length > 0 || attempt === REACH_ATTEMPTS_MAX) return found
  }
}

/**
 * Compares this host's clock with the median of the members' clocks, so that among three or more
 * members, a single wrong clock has no influence.
 */
function checkClock(reached: readonly ReachedMember[], checks: CheckList): void {
  const offsets = reached.flatMap(({ clockOffsetMs }) => clockOffsetMs ?? []).sort((a, b) => a - b)
  const offset = offsets[Math.floor(offsets.length / 2)]
  if (offset === undefined) return
  const ahead = `this host's clock is ${(Math.abs(offset) / 1000).toFixed(1)} s ${offset > 0 ? 'ahead of' : 'behind'} the cluster's`
  const beyond = Math.abs(offset) - CLOCK_DOUBT_MS
  if (beyond > CLOCK_REFUSAL_MS) {
    checks.fail('clock', `${ahead}; correct it (chronyc makestep, or timedatectl set-ntp true)`)
  }
  if (beyond > CLOCK_WARNING_MS) checks.warn('clock', `${ahead}; check its NTP synchronization`)
  else checks.ok('clock')
}
