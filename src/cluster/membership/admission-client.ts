import type { AdmissionAnswer } from '../../../proto/gen/peer_pb.ts'
import { Problem } from '../../lib/problems.ts'
import { decodePeerMessage, encodePeerMessage } from '../peer/peer-message.ts'
import { peerMethods } from '../peer/peer-methods.ts'
import { resolveAddress } from '../mesh/resolve-address.ts'
import type { MeshIdentity } from '../mesh/mesh-service.ts'
import { callPeerOnce } from '../mesh/peer-call.ts'
import {
  type AdmissionOutcome,
  type AdmissionRefusalReason,
  encodeAdmissionRequest,
} from './decide-admission.ts'
import { readBoundedText, readCount } from './messages.ts'

interface EnterOptions {
  /** Mesh addresses (host:port) of members, in the order in which they are tried. */
  readonly addresses: readonly string[]
  /** address:port of DNS servers; if empty, the system's resolver. */
  readonly resolvers?: readonly string[]
  readonly identity: MeshIdentity
  readonly trustDomain: string
  /**
   * Id of the cluster; '' if this controller does not know it, for example after the loss of its
   * disk.
   */
  readonly clusterId: string
  /** 16 bytes. */
  readonly storeId: Uint8Array
  /** host:port of this controller's mesh. */
  readonly address: string
  readonly version: string
  readonly featureLevel: number
  /**
   * Start time of this process, as in its Hello, UTC ms; any time if the process has not joined the
   * mesh yet.
   */
  readonly startedAtMs: number
  /** Timeout for each address. */
  readonly timeoutMs: number
}

/**
 * Maximum addresses to try, after host names in `addresses` were resolved by `resolvers`; further
 * ones are ignored.
 */
const TARGETS_MAX = 64

const REASONS: readonly AdmissionRefusalReason[] = [
  'not-admitted',
  'removed',
  'other-key',
  'other-cluster',
  'store-in-use',
  'full',
  'too-old',
]

/**
 * Requests admission from one member after another until one returns a decision. A caller may
 * repeat the request.
 * @throws {Problem} PEER_UNREACHABLE when no member returns a decision, with one sentence for each
 * address.
 */
export async function requestAdmission(options: EnterOptions): Promise<AdmissionOutcome> {
  const { addresses, resolvers = [], identity, trustDomain, timeoutMs, ...request } = options
  const { name: method, request: schema, answer: answerSchema } = peerMethods.enter
  const message = encodeAdmissionRequest(request)
  const failures: string[] = []
  for (const address of await targetsOf(addresses, resolvers)) {
    const callee = { address, identity, trustDomain, method, timeoutMs }
    try {
      const payload = encodePeerMessage(schema, message)
      const answer = await callPeerOnce({ ...callee, payload })
      return entryAnswerOf(decodePeerMessage(answerSchema, answer.payload))
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      const detail = error.message.startsWith(address)
        ? error.message
        : `${address}: ${error.message}`
      failures.push(detail)
    }
  }
  const detail =
    failures.length === 0 ? 'no member address is known; set cluster.seeds' : failures.join('; ')
  throw new Problem('PEER_UNREACHABLE', { detail })
}

/**
 * Asks the members how they would decide about this controller. The request changes nothing: it
 * names feature level 0, so a controller that would be admitted is refused as `too-old`. The leader
 * compares feature levels before it changes anything.
 * @throws {Problem} as {@link requestAdmission}.
 */
export async function queryAdmission(
  options: Omit<EnterOptions, 'featureLevel'>,
): Promise<AdmissionOutcome> {
  return await requestAdmission({ ...options, featureLevel: 0 })
}

/**
 * Resolves the names in `addresses` with `resolvers`, if there are any. A name that cannot be
 * resolved stays, so that the attempt to connect to it reports the error.
 */
async function targetsOf(
  addresses: readonly string[],
  resolvers: readonly string[],
): Promise<readonly string[]> {
  if (resolvers.length === 0) return addresses
  const found = await Promise.all(
    addresses.map(async (address) => {
      const targets = await resolveAddress(address, resolvers)
      return targets.length === 0 ? [address] : targets
    }),
  )
  return [...new Set(found.flat())].slice(0, TARGETS_MAX)
}

/**
 * Decodes the response to an admission request.
 * @throws {Problem} COULD_NOT_VALIDATE.
 */
function entryAnswerOf(message: AdmissionAnswer): AdmissionOutcome {
  const { outcome, configuration, generation, detail } = message
  const configurationIndex = readCount(message.configurationIndex, 'configurationIndex')
  if (outcome === 'member' || outcome === 'added' || outcome === 'returning') {
    const clusterId = readBoundedText(message.clusterId, 'clusterId')
    return { outcome, clusterId, generation, configuration, configurationIndex }
  }
  if (outcome !== 'refused') throw unreadable()
  // A newer release may send an unknown reason; the detail still explains it.
  const reason = REASONS.find((known) => known === message.reason) ?? 'not-admitted'
  return { outcome, reason, detail: detail.slice(0, 500), configurationIndex }
}

function unreadable(): Problem {
  return new Problem('COULD_NOT_VALIDATE', { detail: 'malformed response' })
}
