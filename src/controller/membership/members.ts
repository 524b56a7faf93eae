import type { Logger } from 'pino'

import { ClusterActionRecorder } from '../../cluster/action-recorder.ts'
import type { ClusterNode } from '../../cluster/cluster-node.ts'
import { OptionsWatch } from '../../cluster/health/options-watch.ts'
import { JoinTickets } from '../../cluster/membership/join-tickets.ts'
import { requestAdmission } from '../../cluster/membership/admission-client.ts'
import { RejoinLoop } from '../../cluster/membership/rejoin-loop.ts'
import type { AdmissionOutcome } from '../../cluster/membership/decide-admission.ts'
import { proposeFeatureLevel } from '../../cluster/feature-level.ts'
import { createMemberManagement, type MemberManagement } from '../../cluster/membership/manage.ts'
import type { Keyring } from '../../cluster/secrets/keyring.ts'
import {
  admittedIdsWithExpiredTickets,
  rotateSecretsAfterRemoval,
  isSecretRotationDue,
  admittedIdsLackingSecrets,
  rotateSecretsIfDue,
  wrapMissingSecrets,
} from '../../cluster/secrets/secret-rotation.ts'
import type { ControllerConfig } from '../../config/controller/options.ts'
import type { StateMachine } from '../../fsm/state-machine.ts'
import { periodicScheduler } from '../../lib/periodic-scheduler.ts'
import { earlierOfLocalAndQuorumNowMs, systemClock } from '../../lib/clock.ts'
import { FEATURE_LEVEL } from '../../ports/feature-level.ts'
import type { ActiveIdentity } from '../active-identity.ts'
import type { ReleaseStack } from '../release-stack.ts'
import type { RunningOptions } from '../running-options.ts'
import type { Credentials } from '../start/check-certificates.ts'
import { SeedsFile } from './seeds-file.ts'
import { sharedOptionList } from '../settings.ts'
import { programVersion } from '../version.ts'
import { defaultLeadershipTiming } from '../../cluster/membership/leadership.ts'
import { LeadershipBalancer } from '../../cluster/membership/leadership-balancer.ts'
import { SYSTEM_ACTOR } from '../../ports/actor.ts'
import type { ActionRecorder } from '../../ports/membership.ts'

/** Timeout for an admission request to one member; the request needs one or two commits. */
const ENTER_TIMEOUT_MS = 10_000
/** Interval for checking whether members' addresses have changed. */
const SEEDS_LOOK_MS = 1_000

export interface MembershipDeps {
  readonly config: ControllerConfig
  readonly running: RunningOptions
  readonly credentials: Credentials
  readonly log: Logger
  readonly clusterNode: ClusterNode
  readonly machine: StateMachine
  readonly secrets: Keyring
  readonly storeId: Uint8Array
  readonly startedAtMs: number
  readonly releases: ReleaseStack
  readonly onAnswer: (answer: AdmissionOutcome) => void
}

/**
 * Starts the management of members and leadership. If this controller is not a member, it also
 * requests admission.
 */
export function startMembership(deps: MembershipDeps): {
  readonly management: MemberManagement
  readonly entrance: RejoinLoop
} {
  const management = openManagement(deps)
  const entrance = openEntrance(deps)
  const { config, clusterNode } = deps
  const options = clusterNode.soft.open('options')
  new OptionsWatch(sharedOptionList(config), options, clusterNode.alarms)
  keepSeeds(deps)
  management.start()
  entrance.start()
  deps.releases.push(() => {
    entrance.stop()
    management.stop()
  })
  return { management, entrance }
}

function keepSeeds({ config, clusterNode, releases }: MembershipDeps): void {
  const file = new SeedsFile({
    config,
    configuration: () => clusterNode.configuration(),
    addressOf: (id) => meshAddress(clusterNode, id),
    alarms: clusterNode.alarms,
  })
  releases.push(periodicScheduler.every(SEEDS_LOOK_MS, () => file.look()))
}

/** host:port of a connected member. */
function meshAddress(clusterNode: ClusterNode, id: string): string | null {
  const peer = clusterNode.peerStatuses().find((one) => one.id === id)
  return peer?.isConnected === true ? peer.address : null
}

/** Creates and redeems join tickets. */
export function createJoinTickets(
  { config, log, clusterNode, machine, secrets }: Omit<MembershipDeps, 'onAnswer'>,
  inForce: ActiveIdentity,
): JoinTickets {
  return new JoinTickets({
    cluster: clusterNode,
    proposer: clusterNode,
    state: machine,
    keyring: secrets,
    clock: systemClock,
    log,
    trustDomain: config.trustDomain,
    addressOf: (id) => (id === config.id ? config.cluster.advertise : meshAddress(clusterNode, id)),
    caPem: () => inForce.caPem,
    sharedOptions: sharedOptionList(config),
  })
}

function openManagement(deps: MembershipDeps): MemberManagement {
  const { config, running, log, clusterNode, machine, secrets, releases } = deps
  const overlapMs = config.api.sessionTimeoutMs
  const rotation = { proposer: clusterNode, state: machine, keyring: secrets, log, overlapMs }
  const actions = new ClusterActionRecorder(clusterNode, log)
  const leadership = watchLeadership(config, clusterNode, actions, log)
  running.onReload(({ cluster }) => leadership.prefer(cluster))
  releases.push(() => leadership.stop())
  return createMemberManagement({
    onTransferred: () => leadership.pin(),
    consensus: clusterNode,
    actions,
    state: machine,
    clusterId: clusterNode.clusterId,
    generation: clusterNode.generation,
    clock: systemClock,
    log,
    secrets: {
      afterRemoval: (id, removal) => rotateSecretsAfterRemoval(rotation, id, removal),
      isRotationDue: () => isSecretRotationDue(machine),
      rotateIfDue: (reason) => rotateSecretsIfDue(rotation, reason),
      admittedIdsWithExpiredTickets: () =>
        admittedIdsWithExpiredTickets(
          machine,
          earlierOfLocalAndQuorumNowMs({ cluster: clusterNode, clock: systemClock }),
        ),
      admittedIdsLackingSecrets: () => admittedIdsLackingSecrets(machine),
      wrapMissingSecrets: () => wrapMissingSecrets(rotation),
    },
    featureLevel: { own: FEATURE_LEVEL, raise: (level) => proposeFeatureLevel(clusterNode, level) },
  })
}

function openEntrance(deps: MembershipDeps): RejoinLoop {
  const { config, log, clusterNode, storeId, onAnswer } = deps
  return new RejoinLoop({
    consensus: clusterNode,
    storeId,
    seeds: () => config.cluster.seeds,
    enter: (addresses) => enter(deps, addresses),
    onAnswer,
    clock: systemClock,
    log,
  })
}

async function enter(
  { config, credentials, clusterNode, storeId, startedAtMs }: MembershipDeps,
  addresses: readonly string[],
): Promise<AdmissionOutcome> {
  const { certificatePem, privateKeyPem, caPem } = credentials
  return await requestAdmission({
    addresses,
    resolvers: config.cluster.resolvers,
    identity: { certificatePem, privateKeyPem, caPem },
    trustDomain: config.trustDomain,
    clusterId: clusterNode.clusterId,
    storeId,
    address: config.cluster.advertise,
    version: `v${programVersion()}`,
    featureLevel: FEATURE_LEVEL,
    startedAtMs,
    timeoutMs: ENTER_TIMEOUT_MS,
  })
}

/**
 * Starts the leadership balancer, which transfers leadership to a member of higher priority, or
 * away from a leader with a slow disk or event loop.
 */
function watchLeadership(
  { cluster }: ControllerConfig,
  clusterNode: ClusterNode,
  actions: ActionRecorder,
  log: Logger,
): LeadershipBalancer {
  const { priority, slowFsyncMs, slowLoopMs } = cluster
  const steward = new LeadershipBalancer(
    { ...defaultLeadershipTiming, priority, slowFsyncMs, slowLoopMs },
    {
      cluster: clusterNode,
      soft: clusterNode.soft,
      clock: systemClock,
      log,
      matchIndex: (id) =>
        clusterNode.peerStatuses().find((peer) => peer.id === id)?.matchIndex ?? null,
      transfer: async (to, reason) => {
        await clusterNode.transferLeadership(to)
        const action = { action: 'leadership-transfer', target: to, reason }
        void actions.note({ ...action, outcome: 'done' }, SYSTEM_ACTOR)
      },
    },
  )
  steward.start()
  return steward
}
