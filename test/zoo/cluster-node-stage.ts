import { setImmediate as turn } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { ConfigurationSchema, MemberSchema } from '../../proto/gen/membership_pb.ts'
import { ClusterNode } from '../../src/cluster/cluster-node.ts'
import { defaultClusterNodeOptions } from '../../src/cluster/cluster-node-deps.ts'
import {
  type ConsensusThreadCommand,
  type ConsensusThreadEvent,
  type ConsensusThreadLink,
  type ConsensusThreadStatus,
  createSameThreadChannel,
} from '../../src/cluster/thread-channel.ts'
import { StateMachine } from '../../src/fsm/state-machine.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { ProposalInput } from '../../src/ports/proposer.ts'
import { ZERO_CONSENSUS_STATS } from '../../src/ports/stats.ts'
import { MemoryStateStore } from '../../src/store/state/memory-state-store.ts'
import { anySystem } from '../support/commands.ts'

const TURNS = 50
const silent = () => undefined

export const someWrite: ProposalInput = {
  kind: CommandKind.ENTITY_CREATE,
  payload: new Uint8Array(0),
  actor: anySystem,
}

/** The real cluster node with the real state machine; the scenario plays the host. */
export class ClusterNodeStage {
  readonly clusterNode: ClusterNode
  readonly machine: StateMachine
  readonly commands: ConsensusThreadCommand[] = []
  readonly fatal: Error[] = []
  readonly #host: ConsensusThreadLink

  private constructor(machine: StateMachine) {
    const { main, host } = createSameThreadChannel()
    this.machine = machine
    this.#host = host
    host.onMessage = (command) => {
      this.commands.push(command)
      if (command.type === 'stop') host.post({ type: 'stopped' })
    }
    const self = { id: 'n1', version: '1', startedAtMs: 1, apiAddresses: [], certificatePem: '' }
    this.clusterNode = new ClusterNode(
      {
        ...defaultClusterNodeOptions,
        lowSpaceBytes: 0,
        self,
        clusterId: 'c',
        generation: 1,
        storeId: new Uint8Array(16),
        boot: 1,
      },
      {
        link: main,
        machine,
        clock: systemClock,
        log: { debug: silent, info: silent, warn: silent, error: silent },
        onFatal: (error) => this.fatal.push(error),
      },
    )
  }

  static async set(store = new MemoryStateStore()): Promise<ClusterNodeStage> {
    return new ClusterNodeStage(await StateMachine.open({ store, clock: systemClock }))
  }

  say(...events: readonly ConsensusThreadEvent[]): void {
    for (const event of events) this.#host.post(event)
  }

  leads(leader: string, term: number): void {
    const members = ['n1', 'n2', 'n3'].map((id) => create(MemberSchema, { id, voter: true }))
    const configuration = toBinary(ConfigurationSchema, create(ConfigurationSchema, { members }))
    const status: ConsensusThreadStatus = {
      role: 'follower',
      term,
      leader,
      leaderSilentMs: 0,
      commit: 0,
      last: 0,
      owed: null,
      configuration,
      configurationIndex: 1,
      isConfigurationCommitted: true,
      peers: [],
      vitals: ZERO_CONSENSUS_STATS,
    }
    this.say({ type: 'status', ...status })
  }

  /** Waits until all sent messages have had their effect. */
  async settle(turns = TURNS): Promise<void> {
    for (let at = 0; at < turns; at += 1) await turn()
  }
}
