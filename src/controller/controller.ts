import { toBinary } from '@bufbuild/protobuf'
import type { Logger } from 'pino'

import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { systemScheduler } from '../api/parts.ts'
import { createApi } from '../api/server.ts'
import type { Api } from '../api/server.ts'
import type { ApiParts } from '../api/parts.ts'
import type { CertificateKeeper } from '../cluster/secrets/certificate-keeper.ts'
import { defaultGatewayOptions, Gateway } from '../cluster/gateway.ts'
import { FailedRequestBoard, failedRequestsTopic } from '../cluster/soft-state/failed-requests.ts'
import { PostureBoard, postureTopic } from '../cluster/soft-state/posture-board.ts'
import { sessionActivity } from '../cluster/soft-state/session-activity.ts'
import type { HostOptions } from '../cluster/host.ts'
import { ActionLog } from '../cluster/action-recorder.ts'
import { AdmissionDesk } from '../cluster/entrance/admission.ts'
import { raiseFeatureLevel } from '../cluster/feature-level.ts'
import { enterCluster } from '../cluster/entrance/enter-cluster.ts'
import { Entrance } from '../cluster/entrance/entrance.ts'
import type { EntryAnswer } from '../cluster/entrance/entry.ts'
import { manageMembers } from '../cluster/membership/manage.ts'
import type { MemberManagement } from '../cluster/membership/manage.ts'
import {
  afterRemoval,
  isRotationDue,
  membersLackingSecrets,
  rotateIfDue,
  shareMissing,
  installIssuing,
} from '../cluster/secrets/secret-rotation.ts'
import { SecretKeeper } from '../cluster/secrets/secret-keeper.ts'
import { sharedOptionsSha256 } from '../config/fingerprint.ts'
import type { ControllerConfig } from '../config/options.ts'
import type { StateMachine } from '../fsm/machine.ts'
import { present } from '../lib/assert.ts'
import { systemClock } from '../lib/clock.ts'
import type { ProblemCode } from '../lib/problems.ts'
import { newShortId } from '../lib/random.ts'
import type { AuditTrail } from '../ports/audit.ts'
import { FEATURE_LEVEL } from '../ports/feature-level.ts'
import type { MembershipControl } from '../ports/membership.ts'
import type { Proposer } from '../ports/proposer.ts'
import type { RosterRecord } from '../ports/roster.ts'
import { parseCertificates } from '../pki/certificate.ts'
import { lockDataFolder } from '../store/folder-lock.ts'
import { readIdentity } from '../store/identity.ts'
import { KnownMembersFile } from '../store/known-members-file.ts'
import { QuarantineFile } from '../store/quarantine-file.ts'
import type { DataIdentity } from '../store/identity.ts'
import { readRosterFile, RosterWriter } from '../store/roster-file.ts'
import { SchemaWorker } from '../threads/schema-worker.ts'
import { lowerPoolPriority } from '../threads/pool-priority.ts'
import { startInline, startThreads } from '../threads/start-threads.ts'
import type { StartedHost } from '../threads/start-threads.ts'
import { recoveryVerbs } from './admin/recovery.ts'
import { AdminServer } from './admin/server.ts'
import type { AdminVerbs } from './admin/server.ts'
import { adminVerbs } from './admin/verbs.ts'
import type { Credentials } from './start/check.ts'
import { keepCertificates } from './certificates.ts'
import { isOut } from '../cluster/link.ts'
import { jwtSignerOf, networkAuthoritiesOf, openIssuer } from './issuing.ts'
import { healthOf } from './health.ts'
import { Listeners } from './listeners.ts'
import { RouterService } from './routers.ts'
import { openSnapshots } from './snapshots.ts'
import {
  apiAddressesOf,
  apiLimitsOf,
  bindingsOf,
  coreOptionsOf,
  keyEndpointRulesOf,
} from './settings.ts'
import { CommandFailure, EXIT_FAILED, sentenceOf } from './failure.ts'
import { openBackups } from './backups/open-backups.ts'
import type { Backups } from './backups/open-backups.ts'
import { handOverLeadership } from './hand-over.ts'
import { watchLeadership } from './leadership.ts'
import { hasOtherVoters, membersOfRoster } from './start/known-voters.ts'
import { fateOfAnswer, fateOfRefusal } from './start/member-fate.ts'
import type { Fate } from './start/member-fate.ts'
import { LogLevelSwitch } from './log-level.ts'
import { openState } from './start/open-state.ts'
import { Settled } from './settled.ts'
import { API_FAMILY_VERSION, programDate, programRevision, programVersion } from './version.ts'

/** For each member that is asked to let this controller in; it takes a commit or two. */
const ENTER_TIMEOUT_MS = 10_000
const MEMBER_POLL_MS = 200

export interface ControllerParts {
  readonly config: ControllerConfig
  readonly credentials: Credentials
  readonly log: Logger
  /** null: nothing is told of writes. */
  readonly audit?: AuditTrail | null
  /** Called at most once, at any time: nothing works any more and the process must end. */
  readonly onFatal: (error: Error) => void
  /** Of the process, UTC ms. */
  readonly startedAtMs?: number
  /** The cluster no longer takes this controller as it is; with the meshes of the members known then. May be repeated. */
  readonly onOusted?: (fate: Fate, addresses: readonly string[]) => void
}

interface ApiInputs {
  readonly keeper: SecretKeeper
  readonly admission: AdmissionDesk
  readonly membership: MembershipControl
  readonly storeId: Uint8Array
}

/** Gives back what was opened, last first; the steps of a failed start as well as those of a stop. */
type Release = () => Promise<void>

/** One controller: everything from the data folder to the listeners. */
export class Controller {
  readonly #releases: Release[] = []
  readonly #parts: ControllerParts
  readonly #startedAtMs: number
  #gateway: Gateway | null = null
  #management: MemberManagement | null = null
  #entrance: Entrance | null = null
  #certificates: CertificateKeeper | null = null
  #secrets: SecretKeeper | null = null
  /** In force; both change when certificates are renewed or read again. */
  #caPem: string
  #leafPem: string
  /** As it stood beside the log at the start. */
  #roster: RosterRecord | null = null
  #hasDroppedState = false
  /** Where a state that was given up had been at least. */
  #lostIndex = 0
  #hasFailed = false

  private constructor(parts: ControllerParts) {
    this.#parts = parts
    this.#startedAtMs = parts.startedAtMs ?? systemClock.nowMs()
    this.#caPem = parts.credentials.caPem
    this.#leafPem = parts.credentials.chain[0].pem
  }

  /** @throws StoreError, or what listening throws; everything is closed again then. */
  static async start(parts: ControllerParts): Promise<Controller> {
    const controller = new Controller(parts)
    try {
      await controller.#open()
      return controller
    } catch (error) {
      await controller.#releaseAll()
      throw error
    }
  }

  /** The way of every write, for programs that embed a controller. */
  get proposer(): Proposer {
    return present(this.#gateway, 'a started controller has a gateway')
  }

  /** Reads certificate, key and CA files again; a set that is not good is told to the log, and the one in force stays so. */
  async reloadCertificates(): Promise<void> {
    try {
      await this.#certificates?.reload()
    } catch (error) {
      this.#parts.log.error(
        { err: error },
        `certificate files rejected: ${sentenceOf(error)}; keeping the current ones`,
      )
    }
  }

  /**
   * Hands leadership over while it still serves, answers what is under way, and lets go of the data folder.
   * Requests in these moments find the next leader, so a planned stop fails none.
   */
  async stop(): Promise<void> {
    this.#gateway?.announceLeave()
    await this.#handOver()
    await this.#releaseAll()
  }

  async #open(): Promise<void> {
    const { config } = this.#parts
    const identity = readIdentity(config.data)
    const lock = await lockDataFolder(config.data)
    this.#releases.push(() => lock.release())
    this.#roster = this.#readRoster()
    const machine = await this.#openState()
    // The store's first jobs have started the pool.
    const threads = lowerPoolPriority()
    if (threads === 0)
      this.#parts.log.warn(
        'cannot lower the priority of the thread pool; password hashing may slow writes',
      )
    const isChecked = this.#checkMember(identity, machine)
    const gateway = await this.#joinCluster(identity, machine)
    if (!isChecked) this.#watchMember(identity, machine)
    const keeper = await this.#keepSecrets(machine)
    const membership = this.#manageMembers(gateway, machine, keeper, identity)
    const admission = this.#admit(gateway, machine, keeper)
    const { storeId } = identity
    await this.#serve(gateway, machine, { keeper, admission, membership, storeId })
  }

  async #openState(): Promise<StateMachine> {
    const { config, log } = this.#parts
    const known = membersOfRoster(this.#roster)
    const canRefill = hasOtherVoters(config.id, [known])
    const { lowSpaceBytes } = config.log
    const { machine, dropped } = await openState(config.data, lowSpaceBytes, canRefill)
    this.#releases.push(() => machine.close())
    if (dropped !== null) {
      this.#hasDroppedState = true
      const { finding, aside } = dropped
      log.error({ aside }, `${finding}: discarded; will be rebuilt from the log or peers`)
    }
    return machine
  }

  /**
   * A folder whose members know another key by this name would be refused by every peer.
   * @returns whether the member record was there to compare with; a folder that has never run has it in its log alone.
   * @throws {CommandFailure}
   */
  #checkMember(identity: DataIdentity, machine: StateMachine): boolean {
    const { config, credentials } = this.#parts
    const { configuration } = machine.persistedMark()
    const member = configuration.members.find(({ id }) => id === config.id)
    if (member === undefined) return false
    // A disk that is new here is listed once the log has come that far; a stranger's is for the peers to refuse.
    if (Buffer.compare(member.storeId, identity.storeId) !== 0) return false
    if (Buffer.compare(member.publicKeySha256, credentials.chain[0].publicKeySha256) !== 0) {
      throw new CommandFailure(
        EXIT_FAILED,
        `${config.identity.cert} has another key than the member record of ${config.id} in ${config.data}; name the certificate of that cluster, or the data folder of this one`,
      )
    }
    return true
  }

  /** For a folder on its first run: its member record is known once the log's beginning is applied and persisted. */
  #watchMember(identity: DataIdentity, machine: StateMachine): void {
    const timer = setInterval(() => {
      try {
        if (this.#checkMember(identity, machine)) clearInterval(timer)
      } catch (error) {
        clearInterval(timer)
        this.#parts.onFatal(error instanceof Error ? error : new Error(String(error)))
      }
    }, MEMBER_POLL_MS)
    this.#releases.push(() => {
      clearInterval(timer)
      return Promise.resolve()
    })
  }

  async #joinCluster(identity: DataIdentity, machine: StateMachine): Promise<Gateway> {
    const { config, log } = this.#parts
    const fatal = Promise.withResolvers<never>()
    const onFatal = (error: Error): void => {
      this.#hasFailed = true
      fatal.reject(error)
      this.#parts.onFatal(error)
    }
    // Once started, the failure is told by onFatal alone.
    fatal.promise.catch(() => undefined)
    const host = this.#hostOptions(identity, machine)
    const leafPem = (): string => this.#leafPem
    const consensus = await this.#startHost(host, machine)
    this.#releases.push(() => consensus.close())
    if (consensus.cutBytes > 0) {
      log.warn({ bytes: consensus.cutBytes }, 'truncated a torn write at the tail of the log')
    }
    if (this.#hasDroppedState) this.#lostIndex = consensus.committedIndex
    if (consensus.repair !== null) {
      const { finding, ...repair } = consensus.repair
      log.error(
        repair,
        `${finding}: log restarted after the applied state; missing entries will be re-replicated`,
      )
    }
    const roster = new RosterWriter(config.data, (err) =>
      log.warn({ err }, 'cannot write the membership cache (ROSTER)'),
    )
    this.#releases.push(() => roster.settled())
    const gateway = new Gateway(
      {
        ...defaultGatewayOptions,
        self: {
          id: config.id,
          version: host.version,
          startedAtMs: host.startedAtMs,
          apiAddresses: host.apiAddresses,
          address: config.cluster.advertise,
          get certificatePem() {
            return leafPem()
          },
          priority: config.cluster.priority,
        },
        clusterId: identity.clusterId,
        generation: identity.generation,
        storeId: identity.storeId,
        boot: consensus.boot,
        proposeTimeoutMs: config.limits.writeTimeoutMs,
        outstandingMax: config.limits.outstandingWritesMax,
        // Long before the guard of the log stops this controller.
        lowSpaceBytes: 8 * config.log.lowSpaceBytes,
        retention: {
          entries: config.log.retainEntries,
          bytes: config.log.retainBytes,
          catchUpBytes: config.log.catchUpBytes,
        },
      },
      {
        ...{ link: consensus.link, machine, clock: systemClock, log, onFatal, ...this.#auditing() },
        memory: new KnownMembersFile(config.data),
        quarantineMark: new QuarantineFile(config.data),
        onStateReplaced: async () => await this.#secrets?.refresh(),
        onRoster: (record) => roster.write(record),
        onSelfRefused: (refusal) => {
          if (isOut(refusal)) this.#management?.onSelfRemoved()
          if (refusal.reason === 'not-yet-a-member') this.#entrance?.onRefused()
          this.#meet(fateOfRefusal(config.id, refusal))
        },
      },
    )
    this.#gateway = gateway
    this.#releases.push(() => (this.#hasFailed ? Promise.resolve() : gateway.stop()))
    await Promise.race([gateway.start(), fatal.promise])
    return gateway
  }

  async #startHost(host: HostOptions, machine: StateMachine): Promise<StartedHost> {
    const { config } = this.#parts
    const { position, configuration, cameBySnapshot } = machine.persistedMark()
    const ofState = { configuration, index: position.index }
    const known = [ofState, membersOfRoster(this.#roster)]
    const log = {
      segmentBytes: config.log.segmentBytes,
      freeBytesMin: config.log.lowSpaceBytes,
      statePosition: position.index === 0 ? null : position,
      stateCameBySnapshot: cameBySnapshot,
      hasOtherVoters: hasOtherVoters(config.id, known),
    }
    const start = { dir: config.data, log, host }
    return config.threads ? await startThreads(start) : startInline(start)
  }

  #hostOptions(identity: DataIdentity, machine: StateMachine): HostOptions {
    const { config, credentials } = this.#parts
    const { certificatePem, privateKeyPem, caPem } = credentials
    const mark = machine.persistedMark()
    return {
      selfId: config.id,
      clusterId: identity.clusterId,
      generation: identity.generation,
      storeId: identity.storeId,
      trustDomain: config.trustDomain,
      identity: { certificatePem, privateKeyPem, caPem },
      bind: config.cluster.bind,
      advertise: config.cluster.advertise,
      addressHints: [],
      version: `v${programVersion()}`,
      startedAtMs: this.#startedAtMs,
      apiAddresses: apiAddressesOf(config),
      applied: mark.position,
      appliedTimeMs: machine.logTimeMs,
      configuration: toBinary(ConfigurationSchema, mark.configuration),
      roster: this.#roster,
      seeds: config.cluster.seeds,
      resolvers: config.cluster.resolvers,
      sharedOptionsSha256: sharedOptionsSha256(config),
      tickMs: config.raft.tickMs,
      core: coreOptionsOf(config),
      snapshots: { bytesPerSecond: config.cluster.snapshotBytesPerSecond },
    }
  }

  #meet(fate: Fate | null): void {
    if (fate === null) return
    const addresses = this.#gateway?.peerStatuses().map(({ address }) => address) ?? []
    this.#parts.onOusted?.(fate, addresses)
  }

  /** What is in it can be learned again from any peer that is still where the log says, so damage to it is no reason to stop. */
  #readRoster(): RosterRecord | null {
    try {
      return readRosterFile(this.#parts.config.data)
    } catch (err) {
      this.#parts.log.warn({ err }, 'cannot read the membership cache (ROSTER)')
      return null
    }
  }

  async #serve(gateway: Gateway, machine: StateMachine, inputs: ApiInputs): Promise<void> {
    const { config, credentials, log } = this.#parts
    const { admission, membership } = inputs
    const snapshots = await openSnapshots(config, log, {
      machine,
      refusal: () => (this.#isOut ? 'NODE_QUARANTINED' : null),
    })
    const routers = new RouterService({
      ...{ config, log, gateway, machine },
      authorities: networkAuthoritiesOf(inputs.keeper, () => this.#caPem),
      isOut: () => this.#isOut,
    })
    const backups = this.#openBackups(gateway, machine, inputs.keeper)
    const issuer = openIssuer(inputs.keeper, apiLimitsOf(config), config.trustDomain)
    this.#releases.push(() => issuer.close())
    const api = this.#createApi(gateway, machine, inputs, {
      issuer,
      ...{ snapshots, links: routers.links, circuits: routers.circuits },
      routerInspections: routers.inspections,
      lastBackupMs: backups.lastTakenMs,
    })
    api.start()
    const listeners = await Listeners.open(api, config, credentials)
    this.#releases.push(async () => {
      await listeners.close()
      await api.stop()
    })
    routers.serve(api.routerClients(machine), issuer)
    await routers.open(credentials)
    this.#releases.push(() => routers.close())
    // Before the listeners, which wait for what is under way.
    this.#releases.push(() => snapshots.close())
    const admin = new AdminServer(
      {
        ...adminVerbs({
          cluster: gateway,
          membership,
          admission,
          health: () => gateway.health(),
        }),
        ...recoveryVerbs({ proposer: gateway, state: machine }),
        ...backups.verbs,
        ...this.#certify({ gateway, listeners, routers, machine, secrets: inputs.keeper }),
      },
      (verb, error) => log.error({ verb, err: error }, 'admin request failed'),
    )
    await admin.listen(config.data)
    this.#releases.push(() => admin.close())
    backups.start()
    this.#releases.push(() => backups.close())
  }

  #openBackups(gateway: Gateway, machine: StateMachine, secrets: SecretKeeper): Backups {
    const { config, log } = this.#parts
    return openBackups(config, gateway, log, {
      ...{ cluster: gateway, machine, secrets, clock: systemClock },
      ...{ trustDomain: config.trustDomain, version: `v${programVersion()}` },
      caPem: () => this.#caPem,
      refusal: () => (this.#isOut ? 'NODE_QUARANTINED' : null),
    })
  }

  /** Looks after the certificates of mesh and listeners. @returns the verbs about them. */
  #certify(parts: {
    readonly gateway: Gateway
    readonly listeners: Listeners
    readonly routers: RouterService
    readonly machine: StateMachine
    readonly secrets: SecretKeeper
  }): AdminVerbs {
    const { gateway, listeners, routers, machine, secrets } = parts
    const { config, credentials, log } = this.#parts
    const overlapMs = config.api.sessionTimeoutMs
    const rotation = { proposer: gateway, state: machine, keeper: secrets, log, overlapMs }
    const { keeper, verbs } = keepCertificates({
      actions: new ActionLog(gateway, log),
      config,
      credentials,
      log,
      authority: {
        issuing: () => secrets.issuing(),
        install: (authority) => installIssuing(rotation, authority),
      },
      onRenewed: (identity) => {
        this.#caPem = identity.caPem
        this.#leafPem = parseCertificates(identity.certificatePem)[0].pem
        gateway.setIdentity(identity)
        listeners.renew(identity)
        routers.renew(identity)
      },
      memberKeySha256: (id) =>
        gateway.configuration().record.members.find((member) => member.id === id)
          ?.publicKeySha256 ?? null,
      alarms: gateway.alarms,
    })
    this.#certificates = keeper
    secrets.onChange(() => void keeper.look())
    keeper.start()
    this.#releases.push(() => keeper.stop())
    return verbs
  }

  /** The shared secrets, opened with the key of this controller; in force before the first request. */
  async #keepSecrets(machine: StateMachine): Promise<SecretKeeper> {
    const { config, credentials, log } = this.#parts
    const keeper = new SecretKeeper({
      state: machine,
      selfId: config.id,
      privateKeyPem: () => credentials.privateKeyPem,
      log,
    })
    this.#secrets = keeper
    await keeper.refresh()
    keeper.start()
    this.#releases.push(() => {
      keeper.stop()
      return Promise.resolve()
    })
    return keeper
  }

  #admit(gateway: Gateway, machine: StateMachine, keeper: SecretKeeper): AdmissionDesk {
    const { config, log } = this.#parts
    return new AdmissionDesk({
      cluster: gateway,
      proposer: gateway,
      state: machine,
      keeper,
      clock: systemClock,
      log,
      trustDomain: config.trustDomain,
      addressOf: (id) => this.#meshOf(gateway, id),
      caPem: () => this.#caPem,
    })
  }

  #meshOf(gateway: Gateway, id: string): string | null {
    const { config } = this.#parts
    if (id === config.id) return config.cluster.advertise
    const peer = gateway.peerStatuses().find((one) => one.id === id)
    return peer?.isConnected === true ? peer.address : null
  }

  #createApi(
    gateway: Gateway,
    machine: StateMachine,
    inputs: ApiInputs,
    local: Pick<
      ApiParts,
      'circuits' | 'issuer' | 'lastBackupMs' | 'links' | 'routerInspections' | 'snapshots'
    >,
  ): Api {
    const { keeper, admission, membership } = inputs
    const { config, log } = this.#parts
    const settled = new Settled({
      ...{ selfId: config.id, storeId: inputs.storeId },
      persisted: machine.persistedMark().configuration,
      lostIndex: this.#lostIndex,
      configuration: () => gateway.configuration(),
      appliedIndex: () => machine.appliedIndex,
    })
    const limits = apiLimitsOf(config)
    const schemas = new SchemaWorker(limits, systemClock)
    this.#releases.push(() => schemas.close())
    return createApi({
      proposer: gateway,
      cluster: gateway,
      state: machine,
      schemas,
      keys: keeper,
      jwt: jwtSignerOf(gateway, this.#parts.credentials.privateKeyPem, () => this.#leafPem),
      authorities: networkAuthoritiesOf(keeper, () => this.#caPem),
      admission,
      activity: sessionActivity(gateway.soft),
      posture: new PostureBoard(config.id, postureTopic(gateway.soft), systemClock),
      failedRequests: new FailedRequestBoard(config.id, failedRequestsTopic(gateway.soft)),
      clock: systemClock,
      scheduler: systemScheduler,
      limits,
      allowsReservedSignerHosts: config.api.reservedSignerHosts,
      keyEndpoints: keyEndpointRulesOf(config, this.#parts.credentials.signerCaPem),
      version: {
        version: API_FAMILY_VERSION,
        revision: programRevision(),
        buildDate: programDate(),
        runtimeVersion: `flotilla v${programVersion()}, node ${process.version}`,
      },
      instanceId: newShortId(),
      logger: log,
      logLevel: new LogLevelSwitch(config.id, log, config.logLevel, new ActionLog(gateway, log)),
      ...this.#auditing(),
      bindings: bindingsOf(config),
      health: () => healthOf(gateway.health()),
      vitals: () => gateway.vitals,
      refusal: () => this.#refusal(settled),
      membership,
      ...local,
    })
  }

  #auditing(): { readonly audit?: AuditTrail } {
    const { audit = null } = this.#parts
    return audit === null ? {} : { audit }
  }

  get #isOut(): boolean {
    return this.#hasFailed || this.#gateway?.isQuarantined === true
  }

  /** What every request is answered with, but for those about this controller itself. */
  #refusal(settled: Settled): ProblemCode | null {
    if (this.#isOut) return 'NODE_QUARANTINED'
    return settled.is ? null : 'CLUSTER_NO_LEADER'
  }

  #manageMembers(
    gateway: Gateway,
    machine: StateMachine,
    keeper: SecretKeeper,
    { storeId }: DataIdentity,
  ): MembershipControl {
    const { config, log } = this.#parts
    const rotation = {
      ...{ proposer: gateway, state: machine, keeper, log },
      overlapMs: config.api.sessionTimeoutMs,
    }
    const { clusterId, generation } = gateway
    const consensus = gateway
    const actions = new ActionLog(gateway, log)
    const leadership = watchLeadership(config, gateway, actions, log)
    this.#releases.push(() => Promise.resolve(leadership.stop()))
    const management = manageMembers({
      onTransferred: () => leadership.pin(),
      consensus,
      actions,
      state: machine,
      clusterId,
      generation,
      clock: systemClock,
      log,
      secrets: {
        afterRemoval: (id, removal) => afterRemoval(rotation, id, removal),
        isRotationDue: () => isRotationDue(machine),
        rotateIfDue: (reason) => rotateIfDue(rotation, reason),
        membersLackingSecrets: () => membersLackingSecrets(machine),
        shareMissing: () => shareMissing(rotation),
      },
      featureLevel: { own: FEATURE_LEVEL, raise: (level) => raiseFeatureLevel(gateway, level) },
    })
    const entrance = new Entrance({
      consensus,
      storeId,
      seeds: () => config.cluster.seeds,
      enter: (addresses) => this.#enter(addresses, clusterId, storeId),
      onAnswer: (answer) => this.#meet(fateOfAnswer(answer)),
      clock: systemClock,
      log,
    })
    this.#management = management
    this.#entrance = entrance
    management.start()
    entrance.start()
    this.#releases.push(() => {
      entrance.stop()
      management.stop()
      return Promise.resolve()
    })
    return management.control
  }

  #enter(
    addresses: readonly string[],
    clusterId: string,
    storeId: Uint8Array,
  ): Promise<EntryAnswer> {
    const { config, credentials } = this.#parts
    const { certificatePem, privateKeyPem, caPem } = credentials
    return enterCluster({
      addresses,
      resolvers: config.cluster.resolvers,
      identity: { certificatePem, privateKeyPem, caPem },
      trustDomain: config.trustDomain,
      clusterId,
      storeId,
      address: config.cluster.advertise,
      version: `v${programVersion()}`,
      featureLevel: FEATURE_LEVEL,
      startedAtMs: this.#startedAtMs,
      timeoutMs: ENTER_TIMEOUT_MS,
    })
  }

  async #handOver(): Promise<void> {
    if (this.#gateway === null || this.#hasFailed) return
    await handOverLeadership(this.#gateway, this.#parts.log)
  }

  async #releaseAll(): Promise<void> {
    for (
      let release = this.#releases.pop();
      release !== undefined;
      release = this.#releases.pop()
    ) {
      try {
        await release()
      } catch (error) {
        this.#parts.log.error({ err: error }, 'a component failed to stop')
      }
    }
  }
}
