import type { EventLoopDelayGauge } from '../../lib/runtime/event-loop-delay.ts'
import { readThreadMemory } from '../../lib/runtime/thread-memory.ts'
import { type DiskStats, type ConsensusStats, ZERO_DISK_STATS } from '../../ports/stats.ts'
import type { FullCoreStatus } from '../../raft/core.ts'
import type { CoreStatus, ProposalResult } from '../../raft/effects.ts'
import type { ConsensusThreadStatus, PeerReport } from '../thread-channel.ts'
import type { MeshPeer } from '../mesh/mesh-deps.ts'
import type { ConsensusMesh } from '../mesh/mesh.ts'

interface ConsensusStatusDeps {
  readonly tickMs: number
  readonly mesh: Pick<ConsensusMesh, 'droppedFrames' | 'peers' | 'queuedBytes'>
  readonly loopDelay: EventLoopDelayGauge
  readonly diskVitals?: (() => DiskStats) | undefined
}

/**
 * Builds the status of consensus, mesh and disk for the main thread, and maintains its counters.
 */
export class ConsensusStatus {
  readonly #deps: ConsensusStatusDeps
  readonly #counts = { elections: 0, leaderChanges: 0, proposalsAccepted: 0, proposalsRefused: 0 }
  #memory = readThreadMemory()

  constructor(deps: ConsensusStatusDeps) {
    this.#deps = deps
  }

  countProposals(results: readonly ProposalResult[]): void {
    for (const { ok } of results) {
      if (ok) this.#counts.proposalsAccepted += 1
      else this.#counts.proposalsRefused += 1
    }
  }

  countChanges(before: CoreStatus, now: CoreStatus): void {
    // A pre-candidate that becomes candidate or leader continues its election. After a leadership
    // transfer, an election has no pre-vote; a sole voter becomes leader in one step.
    if (!isElectedOrCandidate(before) && isElectedOrCandidate(now)) this.#counts.elections += 1
    if (now.leader !== null && now.leader !== before.leader) this.#counts.leaderChanges += 1
  }

  measureMemory(): void {
    this.#memory = readThreadMemory()
  }

  /**
   * Builds the status.
   * @param configuration the encoded current configuration.
   */
  of(full: FullCoreStatus, configuration: Uint8Array): ConsensusThreadStatus {
    const { leaderSilenceTicks, peers } = full
    const matches = new Map(peers.map(({ id, matchIndex }) => [id, matchIndex]))
    return {
      role: full.role,
      term: full.term,
      leader: full.leader,
      leaderSilentMs: leaderSilenceTicks === null ? null : leaderSilenceTicks * this.#deps.tickMs,
      commit: full.commit,
      last: full.last.index,
      owed: full.owed,
      configuration,
      configurationIndex: full.configurationIndex,
      isConfigurationCommitted: full.isConfigurationCommitted,
      peers: this.#deps.mesh.peers().map((peer) => peerStatus(peer, matches.get(peer.id) ?? null)),
      vitals: this.#vitals(full),
    }
  }

  #vitals({ last, base, logBytes }: FullCoreStatus): ConsensusStats {
    const { mesh, loopDelay, diskVitals } = this.#deps
    return {
      ...this.#counts,
      disk: diskVitals?.() ?? ZERO_DISK_STATS,
      loopDelayP99Ms: loopDelay.p99Ms,
      memory: this.#memory,
      logEntries: last.index - base.index,
      logBytes,
      droppedFrames: mesh.droppedFrames,
      queuedBytes: mesh.queuedBytes,
    }
  }
}

function peerStatus(peer: MeshPeer, matchIndex: number | null): PeerReport {
  const { id, address, isConnected, silentMs, hello, leafPem } = peer
  return {
    id,
    address,
    isConnected,
    silentMs,
    version: hello?.version ?? '',
    startedAtMs: Number(hello?.startedAtMs ?? 0n),
    apiAddresses: (hello?.apiAddresses ?? []).map(({ api, url, version }) => ({
      api,
      url,
      version,
    })),
    certificatePem: leafPem,
    featureLevel: hello?.featureLevel ?? 0,
    matchIndex,
  }
}

/** Whether this controller asks for votes or has got them. */
function isElectedOrCandidate({ role }: Pick<CoreStatus, 'role'>): boolean {
  return role === 'preCandidate' || role === 'candidate' || role === 'leader'
}
