import type { AdmissionAnswer } from '../../../proto/gen/peer_pb.ts'
import { Problem } from '../../lib/problems.ts'
import { decodePeerMessage, encodePeerMessage } from '../peer/peer-message.ts'
import { peerMethods } from '../peer/peer-methods.ts'
import { resolveAddress } from '../mesh/addresses-names.ts'
import type { MeshIdentity } from '../mesh/mesh-service.ts'
import { callPeerOnce } from '../mesh/peer-call.ts'
import {
  type EntryAnswer,
  type EntryRefusalReason,
  entryRequestMessage,
} from './judge-admission.ts'
import { boundedText, countOf } from './messages.ts'

export interface EnterOptions {
  /** host:port of members' meshes, tried in turn. */
  readonly addresses: readonly string[]
  /** address:port of the DNS servers that names are asked of; the system's way when empty. */
  readonly resolvers?: readonly string[]
  readonly identity: MeshIdentity
  readonly trustDomain: string
  /** '' when it is not known, as after the loss of a disk. */
  readonly clusterId: string
  /** 16 bytes. */
  readonly storeId: Uint8Array
  /** host:port of the own mesh. */
  readonly address: string
  readonly version: string
  readonly featureLevel: number
  /**
   * Start of this process as it says on the mesh, UTC ms; of one that is not on it yet, any time.
   */
  readonly startedAtMs: number
  /** For each address. */
  readonly timeoutMs: number
}

/** Targets of names that stand for many. */
const TARGETS_MAX = 64

const REASONS: readonly EntryRefusalReason[] = [
  'not-admitted',
  'removed',
  'other-key',
  'other-cluster',
  'store-in-use',
  'full',
  'too-old',
]

/**
 * Asks one member after the other to be let in, until one answers yes or no; safe to repeat at any
 * time.
 * @throws {Problem} PEER_UNREACHABLE when none does, with one sentence an address.
 */
export async function enterCluster(options: EnterOptions): Promise<EntryAnswer> {
  const { addresses, resolvers = [], identity, trustDomain, timeoutMs, ...request } = options
  const { name: method, request: schema, answer: answerSchema } = peerMethods.enter
  const message = entryRequestMessage(request)
  const failures: string[] = []
  for (const address of await targetsOf(addresses, resolvers)) {
    const callee = { address, identity, trustDomain, method, timeoutMs }
    try {
      const payload = encodePeerMessage(schema, message)
      const answer = await callPeerOnce({ ...callee, payload })
      return entryAnswerOf(decodePeerMessage(answerSchema, answer.payload))
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      const because = error.message.startsWith(address)
        ? error.message
        : `${address}: ${error.message}`
      failures.push(because)
    }
  }
  const detail =
    failures.length === 0 ? 'no member address is known; set cluster.seeds' : failures.join('; ')
  throw new Problem('PEER_UNREACHABLE', { detail })
}

/** A name that nobody knows stays: the attempt to reach it says so. */
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

/** @throws {Problem} COULD_NOT_VALIDATE. */
function entryAnswerOf(message: AdmissionAnswer): EntryAnswer {
  const { outcome, configuration, generation, because } = message
  const configurationIndex = countOf(message.configurationIndex, 'configurationIndex')
  if (outcome === 'member' || outcome === 'added' || outcome === 'returning') {
    const clusterId = boundedText(message.clusterId, 'clusterId')
    return { outcome, clusterId, generation, configuration, configurationIndex }
  }
  if (outcome !== 'refused') throw unreadable()
  // A reason of a newer release: its sentence says what is to be known.
  const reason = REASONS.find((known) => known === message.reason) ?? 'not-admitted'
  return { outcome, reason, because: because.slice(0, 500), configurationIndex }
}

function unreadable(): Problem {
  return new Problem('COULD_NOT_VALIDATE', { detail: 'malformed response' })
}
