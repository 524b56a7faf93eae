import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create, toBinary } from '@bufbuild/protobuf'
import type { FastifyInstance } from 'fastify'
import {
  CommandKind,
  CommandSchema,
  FormSchema,
  SessionCreateSchema,
} from '../../../proto/gen/command_pb.ts'
import type { DeviceLogIn, IdentityTrace } from '../../../proto/gen/soft_pb.ts'
import { hashPassword } from '../../../src/auth/factors/password-verifier.ts'
import { SessionTokenSigner } from '../../../src/auth/sessions/session-token-signer.ts'
import type { KeyFetchRules } from '../../../src/auth/tokens/key-fetcher.ts'
import { TracedIdentities } from '../../../src/fabric/circuits/traced-identities.ts'
import { LinearizableReads } from '../../../src/api/http/linearizable-reads.ts'
import { type ApiLimits, overrideApiLimits } from '../../../src/api/limits.ts'
import type { ApiDeps } from '../../../src/api/api-deps.ts'
import { buildApi } from './build-api.ts'
import { createApi } from '../../../src/api/server.ts'
import { StateMachine } from '../../../src/fsm/state-machine.ts'
import type { ControllerEvents } from '../../../src/events/open-events.ts'
import { eventsOf } from '../../events/support.ts'
import { initialSeedRecords } from '../../../src/fsm/seed/seed.ts'
import { canonicalJson } from '../../../src/lib/text/canonical-json.ts'
import { DataPathCounts } from '../../../src/api/metrics/data-path-counts.ts'
import { fabricMetricSources } from '../../../src/controller/service/fabric-metric-sources.ts'
import { CallerWriteLimiter } from '../../../src/api/http/caller-write-limiter.ts'
import { ProcessorShare } from '../../../src/lib/bounds/processor-share.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { Problem, type ProblemCode } from '../../../src/lib/problems.ts'
import { newShortId } from '../../../src/lib/random.ts'
import type { AuditTrail } from '../../../src/ports/audit.ts'
import type { ClusterView, MemberView } from '../../../src/ports/cluster-view.ts'
import type {
  ChangePlan,
  MembershipChange,
  MembershipControl,
  ControllerAdmission,
  NewJoinTicket,
  JoinResponse,
  JoinRequest,
  TicketView,
} from '../../../src/ports/membership.ts'
import { type Actor, actorName, createSystemActor } from '../../../src/ports/actor.ts'
import type { AppliedProposal, ProposalInput, Proposer } from '../../../src/ports/proposer.ts'
import { ClusterActionRecorder } from '../../../src/cluster/action-recorder.ts'
import { LogLevelSwitch } from '../../../src/controller/log-level.ts'
import { networkAuthorities, type TestAuthorities } from '../../support/authorities.ts'
import { memberLeaf, signerOf } from '../../support/member-leaf.ts'
import { ControllerPosture } from '../../../src/posture/posture-service.ts'
import type { RefreshUse, SoftState } from '../../../src/ports/soft-topics.ts'
import type { Entry } from '../../../src/raft/types.ts'
import { appliedLogs } from '../../support/applied-logs.ts'
import { Replay } from '../../support/replayed.ts'
import { NEXT_LEVEL } from '../../support/next-fields.ts'
import { TestTokenKeys } from '../../support/token-keys.ts'
import { InlineIssuer, testTrustDomain } from './inline-issuer.ts'
import { LocalBackups, LocalPki, LocalRestores } from './host-parts.ts'
import { LocalTrafficCluster } from './local-traffic.ts'
import { liveTables, type LiveTables } from './live-tables.ts'
import { LocalTopic } from './local-topic.ts'
import { ManualClock, ManualScheduler } from './manual-time.ts'
import { nodeHealthExample, vitalsExample } from './node-examples.ts'
import { SchemaWorker } from '../../../src/threads/schema-worker.ts'
import { MemoryStateStore } from '../../../src/store/state/memory-state-store.ts'
import { SnapshotFolder } from '../../../src/controller/backups/snapshot-folder.ts'
import { anySystem, commandData } from '../../support/commands.ts'
import type { ServiceLogger } from '../../../src/ports/logger.ts'
import type { ClusterState } from '../../../src/fsm/access/cluster-state.ts'

export const admin = { username: 'admin', password: 'correct horse battery' }
export const user = { username: 'alice', password: 'a staple of alice' }

/** Computes the hashes once for all tests of a file, because hashing is slow. */
const hashes = Promise.all([hashPassword(admin.password), hashPassword(user.password)])
const ownLeaf = memberLeaf('ctrl1')
const ownAuthorities = networkAuthorities(new ManualClock().nowMs())

/**
 * A cluster with one running controller: the real state machine, and a log that commits an entry
 * immediately. The other listed member is never connected. A test can simulate network faults: no
 * leader, a lost response, entries that arrive late.
 */
export class LocalCluster implements Proposer, ClusterView {
  readonly selfId = 'ctrl1'
  readonly clusterId = 'cluster-1'
  readonly generation = 3
  get featureLevel(): number {
    return this.#machine.featureLevel
  }
  readonly #machine: StateMachine
  readonly #clock: ManualClock
  #stampMs = 0
  hasLeader = true
  /** ID of the leader; null: this controller. */
  leader: string | null = null
  /** True: a command takes effect, but its proposer receives OUTCOME_UNKNOWN. */
  losesAnswers = false
  contactMs = 0
  readRounds = 0
  /**
   * How far the clocks of the members are ahead of this controller's clock; log time follows them.
   */
  aheadMs = 0
  /** Time of a majority's clocks; null: unknown; undefined: as the clock of this controller. */
  clockMs: number | null | undefined = undefined
  proposals: ProposalInput[] = []
  /** Receives all proposals of this controller, and all refusals before a proposal. */
  audit: AuditTrail | null = null
  /**
   * Commands of other controllers. They are applied here before the next proposal, or when the
   * latest state is read.
   */
  readonly arriving: Uint8Array[] = []
  /** The log so far. */
  readonly entries: Entry[] = []

  constructor(machine: StateMachine, clock: ManualClock) {
    this.#machine = machine
    this.#clock = clock
  }

  propose(input: ProposalInput): Promise<AppliedProposal> {
    if (!this.hasLeader) return Promise.reject(new Problem('CLUSTER_NO_LEADER'))
    // In the log, these entries come before the entry that is proposed now.
    for (const data of this.arriving.splice(0)) this.apply(data)
    this.proposals.push(input)
    const { request, judgedOn = [], ...rest } = input
    const command = create(CommandSchema, {
      kind: rest.kind,
      payload: rest.payload,
      actor: named(rest.actor),
      level: rest.level ?? 1,
      ...(request === undefined ? {} : { request }),
      judgedOn: judgedOn.map((one) => ({ ...one, revision: BigInt(one.revision) })),
    })
    const applied = this.#apply(toBinary(CommandSchema, command), this.audit)
    return this.losesAnswers
      ? Promise.reject(new Problem('OUTCOME_UNKNOWN'))
      : Promise.resolve(applied)
  }

  /** Applies an entry that another controller has proposed. */
  apply(data: Uint8Array): AppliedProposal {
    return this.#apply(data, null)
  }

  #apply(data: Uint8Array, trail: AuditTrail | null): AppliedProposal {
    const index = this.#machine.appliedIndex + 1
    // Log time never runs backwards, and stays corrected after a reset.
    const { setbackMs } = this.#machine
    this.#stampMs = Math.max(this.#stampMs, this.#clock.nowMs() + this.aheadMs + setbackMs)
    const timeMs = this.#stampMs
    const entry: Entry = { index, term: 1, timeMs, type: 'command', data }
    this.entries.push(entry)
    const { outcome, audit } = this.#machine.apply(entry)
    if (audit !== null) trail?.applied(audit)
    if (outcome === null) throw new Error('a command has an outcome')
    return { index, outcome }
  }

  members(): readonly MemberView[] {
    const common = {
      voter: true,
      version: 'v1.2.3',
      certificatePem: '',
      featureLevel: 1,
      progress: null,
      vitals: null,
    }
    const address = (port: number) => [
      { api: 'edge-client', url: `https://localhost:${port}/edge/client/v1`, version: 'v1' },
      {
        api: 'edge-management',
        url: `https://localhost:${port}/edge/management/v1`,
        version: 'v1',
      },
    ]
    return [
      {
        ...common,
        id: 'ctrl1',
        address: 'localhost:1480',
        leader: this.hasLeader,
        connected: true,
        apiAddresses: address(1280),
        routerAddresses: ['tls:localhost:1380', 'tls:outside.example:443'],
        startedAtMs: this.#clock.nowMs(),
        lastContactMs: 0,
        readOnly: !this.hasLeader,
      },
      {
        ...common,
        id: 'ctrl2',
        address: 'localhost:1481',
        leader: false,
        connected: false,
        apiAddresses: address(1281),
        routerAddresses: [],
        startedAtMs: 0,
        lastContactMs: null,
        readOnly: true,
      },
    ]
  }

  leaderId(): string | null {
    return this.hasLeader ? (this.leader ?? this.selfId) : null
  }

  quorumClockMs(): number | null {
    return this.clockMs === undefined ? this.#clock.nowMs() : this.clockMs
  }

  leaderContactMs(): number {
    return this.contactMs
  }

  readIndex(): Promise<number> {
    if (!this.hasLeader) return Promise.reject(new Problem('CLUSTER_NO_LEADER'))
    this.readRounds += 1
    for (const data of this.arriving.splice(0)) this.apply(data)
    return Promise.resolve(this.#machine.appliedIndex)
  }
}

/** Records changes and transfers; other tests check the decisions about changes. */
export class LocalMembership implements MembershipControl {
  readonly transfers: (string | null)[] = []
  readonly changes: { change: MembershipChange; confirmation: string | null }[] = []
  refusal: Problem | null = null

  plan(change: MembershipChange): Promise<ChangePlan> {
    if (this.refusal !== null) return Promise.reject(this.refusal)
    return Promise.resolve({
      change,
      isNeeded: true,
      votersBefore: ['ctrl1', 'ctrl2', 'ctrl3'],
      votersAfter: ['ctrl1', 'ctrl2'],
      toleranceBefore: 1,
      toleranceAfter: 0,
      warnings: ['2 voters tolerate no more failures than 1; prefer an odd number'],
      confirmation: 'remove ctrl3 and tolerate 0 failures',
    })
  }

  change(change: MembershipChange, confirmation: string | null): Promise<ChangePlan> {
    this.changes.push({ change, confirmation })
    return this.plan(change)
  }

  transferLeadership(target: string | null): Promise<string> {
    if (target === 'nobody') return Promise.reject(new Problem('NOT_FOUND'))
    this.transfers.push(target)
    return Promise.resolve(target ?? 'ctrl2')
  }
}

/**
 * Records the requests of joining controllers and operators, and returns fixed responses, or the
 * refusal that the test sets.
 */
export class TestAdmission implements ControllerAdmission {
  readonly invites: Parameters<ControllerAdmission['invite']>[0][] = []
  readonly requests: JoinRequest[] = []
  /** Revoked tickets, each with the actor. */
  readonly revoked: [string, string][] = []
  /** Error to throw instead of returning a response. */
  refusal: Problem | null = null

  invite(options: Parameters<ControllerAdmission['invite']>[0]): Promise<NewJoinTicket> {
    this.invites.push(options)
    return Promise.resolve({ ticket: 'flotilla-ticket-1.x.y', id: 'ticketId', expiresAtMs: 1 })
  }

  tickets(): Promise<readonly TicketView[]> {
    const ticket = { id: 'ticketId', isVoter: true, createdAtMs: 1, expiresAtMs: 2, usedBy: null }
    return Promise.resolve([ticket])
  }

  revoke(id: string, by: Actor): Promise<void> {
    if (this.refusal !== null) return Promise.reject(this.refusal)
    this.revoked.push([id, actorName(by)])
    return Promise.resolve()
  }

  admit(request: JoinRequest): Promise<JoinResponse> {
    this.requests.push(request)
    if (this.refusal !== null) return Promise.reject(this.refusal)
    return Promise.resolve({
      clusterId: 'cluster-1',
      generation: 3,
      trustDomain: 'test.internal',
      certificatePem: 'certificate',
      caPem: 'ca',
      configuration: Uint8Array.of(250, 251, 252),
      configurationIndex: 7,
      isVoter: true,
      nowMs: 1,
      sharedOptions: [{ name: 'oidc.enabled', value: 'false' }],
    })
  }
}

export interface TestController {
  readonly app: FastifyInstance
  /** Requests to this app count as requests at the admin socket. */
  readonly socket: FastifyInstance
  /** Folder that serves as the data folder. */
  readonly dir: string
  readonly parts: ApiDeps
  readonly machine: StateMachine
  /** The state within the state machine, so that tests can damage it. */
  readonly state: ClusterState
  readonly cluster: LocalCluster
  readonly activity: LocalTopic<number>
  readonly waitingDevices: LocalTopic<DeviceLogIn>
  readonly refreshes: LocalTopic<RefreshUse>
  readonly live: LiveTables
  /** The traffic counts of all controllers of the cluster. */
  readonly traffic: LocalTrafficCluster
  /** Posture records, encoded as controllers publish them. */
  readonly posture: LocalTopic<Uint8Array>
  readonly clock: ManualClock
  readonly scheduler: ManualScheduler
  readonly errors: string[]
  refusal: ProblemCode | null
  isHealthy: boolean
  /** Called when this controller requests the latest soft state of the others. */
  onReachLatest: () => void
  readonly transfers: (string | null)[]
  readonly members: LocalMembership
  readonly keys: TestTokenKeys
  readonly issuer: InlineIssuer
  readonly pki: LocalPki
  readonly backups: LocalBackups
  readonly events: ControllerEvents
  readonly admission: TestAdmission
  readonly authorities: TestAuthorities
  /** The token of a session, signed as every controller of the cluster would sign it. */
  tokenOf(sessionId: string): string
  /** Opens a session without a log-in, so that no password is hashed. @returns its token. */
  openSession(identityId: string): string
  close(): Promise<void>
}

const noKeyEndpoints: KeyFetchRules = {
  allowsReserved: false,
  allowsHttp: false,
  refusedNetworks: [],
  caPem: '',
}

/**
 * A controller of a new cluster, with an administrator, an ordinary identity and a disabled
 * administrator, all with passwords.
 * @param given components that replace the default ones.
 */
export async function startController(
  limits: Partial<ApiLimits> = {},
  keyEndpoints: KeyFetchRules = noKeyEndpoints,
  given: Partial<ApiDeps> = {},
  // The newest feature level, as in a new cluster; a test that simulates a newer release begins
  // with the level below.
  featureLevel = NEXT_LEVEL - 1,
): Promise<TestController> {
  const clock = new ManualClock()
  const scheduler = new ManualScheduler()
  let state: ClusterState | null = null
  const machine = await StateMachine.open({
    store: new MemoryStateStore(),
    clock,
    onState: (made) => {
      state = made
    },
  })
  const cluster = new LocalCluster(machine, clock)
  await form(cluster, featureLevel)
  const keys = new TestTokenKeys()
  const admission = new TestAdmission()
  const authorities = await ownAuthorities
  const errors: string[] = []
  const controller = {
    refusal: null as ProblemCode | null,
    isHealthy: true,
    onReachLatest: () => undefined as void,
  }
  const members = new LocalMembership()
  const { transfers } = members
  const pki = new LocalPki()
  const backups = new LocalBackups()
  const activity = new LocalTopic<number>(cluster.selfId)
  const refreshes = new LocalTopic<RefreshUse>(cluster.selfId)
  const posture = new LocalTopic<Uint8Array>(cluster.selfId)
  const waitingDevices = new LocalTopic<DeviceLogIn>(cluster.selfId)
  const traces = new LocalTopic<IdentityTrace>(cluster.selfId)
  const topics = { posture, 'failed-requests': new LocalTopic<Uint8Array>(cluster.selfId) }
  const soft = {
    open: (name: keyof typeof topics) => topics[name],
    reachLatest: () => Promise.resolve(controller.onReachLatest()),
  } as unknown as SoftState
  const baseUrl = 'https://localhost:1280'
  // The clock advances only when a test advances it, so a wait for a router would never end.
  const all = overrideApiLimits({ routerReturnMs: 0, ...limits })
  const events = eventsOf(machine, cluster, clock)
  const schemas = new SchemaWorker(all, systemClock)
  const settings = { ...all, trustDomain: testTrustDomain }
  const issuer = new InlineIssuer(authorities.issuing, settings, clock)
  // This folder is created when the first file is written into it.
  const dir = join(tmpdir(), `flotilla-api-${newShortId()}`)
  const live = liveTables(cluster.selfId)
  const traffic = new LocalTrafficCluster(cluster, {
    state: machine,
    circuit: (id) => live.circuits.get(id),
    clock,
  })
  const logger: ServiceLogger = {
    warn: () => undefined,
    error: (fields, message) => {
      errors.push(`${message}: ${String(fields['err'])}`)
    },
  }
  const parts: ApiDeps = {
    proposer: new CallerWriteLimiter(cluster, clock),
    cluster,
    state: machine,
    reads: new LinearizableReads(cluster, machine, all),
    schemas,
    processor: new ProcessorShare(all, systemClock),
    keys,
    authorities,
    jwt: signerOf(await ownLeaf, [await ownLeaf], () => clock.nowMs()),
    issuer,
    dataPath: { counts: new DataPathCounts(), ...fabricMetricSources(machine) },
    admission,
    activity,
    waitingDevices,
    traces: new TracedIdentities({ selfId: cluster.selfId, topic: traces, clock }),
    refreshes,
    posture: new ControllerPosture({
      soft,
      cluster,
      proposer: cluster,
      state: machine,
      clock,
      scheduler,
      limits: all,
      feed: machine,
      logger,
    }),
    ...live,
    traffic: traffic.exchange,
    restores: new LocalRestores(),
    routerInspections: {
      own: { 'connected-routers': () => [] },
      inspect: () => Promise.resolve({ values: [], errors: [] }),
      terminators: () => Promise.resolve(null),
    },
    clock,
    scheduler,
    limits: all,
    allowsReservedSignerHosts: false,
    keyEndpoints,
    version: {
      version: 'v1.2.3',
      revision: '0123456789ab',
      buildDate: '2026-01-02T03:04:05.000Z',
      runtimeVersion: 'node test',
    },
    instanceId: 'test-instance',
    logger,
    // This controller has no configuration file.
    reloads: { reload: () => Promise.reject(new Problem('CONFIGURATION_REFUSED')) },
    logLevel: new LogLevelSwitch(
      cluster.selfId,
      { level: 'info', warn: () => undefined },
      'info',
      new ClusterActionRecorder(cluster, { warn: () => undefined }),
    ),
    audit: {
      refused: (write) => cluster.audit?.refused(write),
      answered: (request) => cluster.audit?.answered(request),
    },
    bindings: {
      'edge-client': [baseUrl],
      'edge-management': [baseUrl],
      fabric: [baseUrl],
      'health-checks': [baseUrl],
      'edge-oidc': [baseUrl],
    },
    health: () => ({
      isHealthy: controller.isHealthy,
      checks: [{ id: 'store', healthy: controller.isHealthy, detail: 'kept inside' }],
      node: nodeHealthExample,
    }),
    vitals: () => vitalsExample,
    refusal: () => controller.refusal,
    membership: members,
    pki,
    backups,
    events: events.streams,
    publishFact: events.publishFact,
    snapshots: new SnapshotFolder({
      dir,
      cluster,
      machine,
      secrets: { refresh: () => Promise.resolve(), held: () => [] },
      clock,
      trustDomain: testTrustDomain,
      version: 'v1.2.3',
      caPem: authorities.anchorsPem,
      freeBytesMin: 0,
      refusal: () => controller.refusal,
    }),
    ...given,
  }
  const tokenOf = (sessionId: string): string => new SessionTokenSigner(keys).tokenOf(sessionId)
  const app = buildApi(parts)
  const socket = createApi(parts).listener({
    apis: ['client', 'management', 'fabric', 'host', 'oidc'],
    https: null,
    socketCaller: () => createSystemActor({ name: 'uid:1000 (op)' }),
  })
  await app.ready()
  let isClosed = false
  const replay = new Replay()
  const replayed = (isLast: boolean): Promise<void> =>
    replay.judge(cluster.entries, machine.digests(), isLast)
  appliedLogs.add({
    length: () => cluster.entries.length,
    judge: () => replayed(false),
    isEnded: () => isClosed,
  })
  return Object.assign(controller, {
    app,
    socket,
    dir,
    parts,
    machine,
    get state(): ClusterState {
      if (state === null) throw new Error('a machine has a state')
      return state
    },
    cluster,
    events,
    activity,
    waitingDevices,
    refreshes,
    live,
    traffic,
    posture,
    clock,
    scheduler,
    errors,
    transfers,
    members,
    keys,
    issuer,
    pki,
    backups,
    admission,
    authorities,
    tokenOf,
    openSession: (identityId: string) => {
      const id = newShortId()
      cluster.apply(sessionCommand(id, identityId))
      return tokenOf(id)
    },
    close: async () => {
      isClosed = true
      await events.stop()
      await app.close()
      await socket.close()
      await schemas.close()
      await rm(dir, { recursive: true, force: true })
      try {
        await replayed(true)
      } finally {
        await machine.close()
      }
    },
  })
}

/** The log entry of a log-in at any controller. */
export function sessionCommand(id: string, identityId: string, authenticatorId = ''): Uint8Array {
  const ipAddress = '10.0.0.9'
  const session = create(SessionCreateSchema, { id, identityId, authenticatorId, ipAddress })
  const payload = toBinary(SessionCreateSchema, session)
  return commandData(CommandKind.SESSION_CREATE, payload)
}

/** The actor with its name, as a controller records it in its own log entries. */
function named(actor: Actor): Actor {
  if (actor.case !== 'system' || actor.value.name !== '') return actor
  return createSystemActor({ ...actor.value, name: 'controller:ctrl1' })
}

async function form(cluster: LocalCluster, featureLevel: number): Promise<void> {
  const [adminHash, userHash] = await hashes
  const records = initialSeedRecords({
    adminId: 'admin-id',
    adminAuthenticatorId: 'admin-updb',
    adminName: admin.username,
    passwordHash: adminHash,
  })
  const seed = (entity: string, id: string, fields: Record<string, unknown>) => ({
    entity,
    id,
    json: new TextEncoder().encode(canonicalJson(fields)),
  })
  const message = create(FormSchema, {
    clusterId: cluster.clusterId,
    featureLevel,
    records: [
      ...records,
      seed('sharedSecret', 'factorKey', {
        versions: [
          {
            version: 1,
            certificatePem: '',
            createdAt: 0,
            overlapEndsAt: null,
            exposure: 'none',
            wrapped: {},
          },
        ],
      }),
      seed('identity', 'alice-id', { name: 'Alice', isAdmin: false, roleAttributes: ['staff'] }),
      seed('authenticator', 'alice-updb', {
        identityId: 'alice-id',
        method: 'updb',
        username: user.username,
        passwordHash: userHash,
      }),
      seed('identity', 'mallory-id', {
        name: 'Mallory',
        isAdmin: true,
        disabledAt: 1,
        disabledUntil: null,
      }),
      seed('authenticator', 'mallory-updb', {
        identityId: 'mallory-id',
        method: 'updb',
        username: 'mallory',
        passwordHash: userHash,
      }),
    ],
  })
  await cluster.propose({
    kind: CommandKind.FORM,
    payload: toBinary(FormSchema, message),
    actor: anySystem,
  })
}
