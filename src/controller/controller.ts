import { RouterNamingRules } from '../auth/certificates/router-naming-rules.ts'
import type { Configuration } from '../../proto/gen/membership_pb.ts'
import { ClusterActionRecorder } from '../cluster/action-recorder.ts'
import type { ClusterNode } from '../cluster/cluster-node.ts'
import type { JoinTickets } from '../cluster/membership/join-tickets.ts'
import { isPermanentlyRefused, type ClusterRefusal } from '../cluster/thread-channel.ts'
import type { MemberManagement } from '../cluster/membership/manage.ts'
import { Keyring } from '../cluster/secrets/keyring.ts'
import { installIssuingAuthority } from '../cluster/secrets/secret-rotation.ts'
import type { MeshIdentity } from '../cluster/mesh/mesh-service.ts'
import type { StateMachine } from '../fsm/state-machine.ts'
import { requirePresent } from '../lib/assert.ts'
import { systemClock } from '../lib/clock.ts'
import type { ProblemCode } from '../lib/problems.ts'
import { CallerWriteLimiter } from '../api/http/caller-write-limiter.ts'
import { SYSTEM_ACTOR } from '../ports/actor.ts'
import type { Proposer } from '../ports/proposer.ts'
import type { MembershipRecord } from '../ports/membership-cache.ts'
import { lockDataFolder } from '../store/folder/folder-lock.ts'
import { type DataIdentity, readDataIdentity } from '../store/log/data-identity.ts'
import { readMembershipCacheFile } from '../store/folder/membership-cache-file.ts'
import { lowerPoolPriority } from '../threads/pool-priority.ts'
import { AdminSocket } from './admin/socket.ts'
import { createControllerApi } from './service/api.ts'
import { type ControllerEvents, openEvents, startEvents } from './service/events.ts'
import { openBackups } from './backups/open-backups.ts'
import { ControllerCertificates } from './service/controller-certificates.ts'
import { openClusterNode } from './membership/cluster-node.ts'
import type { ControllerDeps } from './controller-deps.ts'
import { handOverLeadership } from './membership/hand-over.ts'
import { ActiveIdentity } from './active-identity.ts'
import { createNetworkAuthorities, openIssuer } from './service/certificate-issuing.ts'
import { openTlsPorts } from './service/ports.ts'
import { type SniContextLookup, HttpsListeners } from './service/listeners.ts'
import { type MembershipDeps, createJoinTickets, startMembership } from './membership/members.ts'
import { ConfigurationReload } from './configuration-reload.ts'
import { RunningOptions } from './running-options.ts'
import { ReleaseStack } from './release-stack.ts'
import { countObservations } from './service/fabric-metric-sources.ts'
import { openLiveData } from './service/live-data.ts'
import { ProcessorShare } from '../lib/bounds/processor-share.ts'
import { RouterCertificateWatch } from './service/router-certificates.ts'
import { RouterService } from './service/routers.ts'
import { configuredApiLimits } from './settings.ts'
import { StateReadiness } from './service/state-readiness.ts'
import { openSnapshotFolder } from './backups/snapshot-folder.ts'
import { hasOtherVoters, membershipFromRecord } from './start/known-voters.ts'
import {
  removalActionAfterAdmission,
  removalActionAfterRefusal,
  type RemovalAction,
} from './start/removal-action.ts'
import { checkMemberKey, type MemberKeyDeps, watchMemberKey } from './start/member-key.ts'
import { openState } from './start/open-state.ts'
import { programVersion } from './version.ts'
import { unsupportedNodeReason } from '../lib/runtime/unsupported-node.ts'

/** Components that are open before the controller serves requests. */
interface Opened {
  readonly clusterNode: ClusterNode
  readonly machine: StateMachine
  readonly secrets: Keyring
  readonly events: ControllerEvents
  /** Store id of the data folder. */
  readonly storeId: Uint8Array
}

/** A running controller with all its components, from the data folder to the listeners. */
export class Controller {
  readonly #deps: ControllerDeps
  readonly #releases: ReleaseStack
  readonly #startedAtMs: number
  readonly #inForce: ActiveIdentity
  readonly #running: RunningOptions
  #clusterNode: ClusterNode | null = null
  #membership: ReturnType<typeof startMembership> | null = null
  #secrets: Keyring | null = null
  #reloads: ConfigurationReload | null = null
  /** Members in the membership cache at the start. */
  #roster: MembershipRecord | null = null
  #hasDroppedState = false
  /**
   * If a damaged state was discarded: the commit index at the start, which the new state must reach
   * before the controller serves requests. Otherwise 0.
   */
  #lostIndex = 0
  #hasFailed = false
  #isOusted = false

  private constructor(parts: ControllerDeps) {
    this.#deps = parts
    this.#startedAtMs = parts.startedAtMs ?? systemClock.nowMs()
    this.#releases = new ReleaseStack(parts.log)
    this.#inForce = new ActiveIdentity(parts.credentials)
    this.#running = new RunningOptions(parts.config)
  }

  /**
   * Starts a controller.
   * @throws the error that prevents the start, such as {StoreError} or the error of a listener,
   * after everything that was opened is closed again.
   */
  static async start(parts: ControllerDeps): Promise<Controller> {
    const controller = new Controller(parts)
    try {
      await controller.#open()
      return controller
    } catch (error) {
      await controller.#releases.releaseAll()
      throw error
    }
  }

  /** Proposes writes; for programs that embed a controller. */
  get proposer(): Proposer {
    return requirePresent(this.#clusterNode, 'a started controller has a clusterNode')
  }

  /**
   * Reads the configuration and the certificate files again. Never rejects: the reload logs each
   * error.
   */
  async reload(): Promise<void> {
    await this.#reloads?.reload(SYSTEM_ACTOR).catch(() => undefined)
  }

  /**
   * Transfers leadership while the controller still serves requests, then finishes requests in
   * progress and releases the data folder. Clients send new requests to the next leader, so that a
   * planned stop normally makes no request fail.
   */
  async stop(): Promise<void> {
    this.#clusterNode?.announceLeave()
    await this.#handOver()
    await this.#releases.releaseAll()
  }

  async #open(): Promise<void> {
    const { config } = this.#deps
    const identity = readDataIdentity(config.data)
    const lock = await lockDataFolder(config.data)
    this.#releases.push(() => lock.release())
    this.#roster = this.#readRoster()
    const machine = await this.#openState()
    const events = openEvents(this.#deps, identity, machine, this.#startedAtMs)
    // The priority is lowered after the store's first jobs, because they start the threads of the
    // pool.
    const threads = lowerPoolPriority()
    if (threads === 0)
      this.#deps.log.warn(
        'cannot lower the priority of the thread pool; password hashing may slow writes',
      )
    const memberKey = this.#memberKeyParts(identity, machine)
    const isChecked = checkMemberKey(memberKey)
    const clusterNode = await this.#joinCluster(identity, machine)
    if (!isChecked) this.#releases.push(watchMemberKey(memberKey, this.#deps.onFatal))
    const secrets = await this.#keepSecrets(machine)
    this.#releases.push(startEvents(events, clusterNode, config))
    await this.#serve({ clusterNode, machine, secrets, events, storeId: identity.storeId })
  }

  #memberKeyParts(identity: DataIdentity, machine: StateMachine): MemberKeyDeps {
    const { config, credentials } = this.#deps
    const configuration = (): Configuration => machine.persistedMark().configuration
    return { config, credentials, identity, configuration }
  }

  async #openState(): Promise<StateMachine> {
    const { config, log } = this.#deps
    const known = membershipFromRecord(this.#roster)
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

  async #joinCluster(folder: DataIdentity, machine: StateMachine): Promise<ClusterNode> {
    const fatal = Promise.withResolvers<never>()
    // After the start, a failure is reported only through onFatal.
    fatal.promise.catch(() => undefined)
    const { clusterNode, committedIndex } = await openClusterNode({
      controller: this.#deps,
      running: this.#running,
      startedAtMs: this.#startedAtMs,
      folder,
      machine,
      roster: this.#roster,
      inForce: this.#inForce,
      releases: this.#releases,
      onFatal: (error) => {
        this.#hasFailed = true
        fatal.reject(error)
        this.#deps.onFatal(error)
      },
      onStateReplaced: async () => await this.#secrets?.refresh(),
      onSelfRefused: (refusal) => this.#onSelfRefused(refusal),
    })
    if (this.#hasDroppedState) this.#lostIndex = committedIndex
    this.#clusterNode = clusterNode
    this.#releases.push(() => (this.#hasFailed ? undefined : clusterNode.stop()))
    await Promise.race([clusterNode.start(), fatal.promise])
    const unsupported = unsupportedNodeReason()
    if (unsupported !== null)
      clusterNode.alarms.raise('NODE_UNSUPPORTED', { sentence: unsupported })
    return clusterNode
  }

  #onSelfRefused(refusal: ClusterRefusal): void {
    if (isPermanentlyRefused(refusal)) {
      this.#isOusted = true
      this.#membership?.management.onSelfRemoved()
    }
    if (refusal.reason === 'not-yet-a-member') this.#membership?.entrance.onRefused()
    this.#meet(removalActionAfterRefusal(this.#deps.config.id, refusal))
  }

  #meet(fate: RemovalAction | null): void {
    if (fate === null) return
    const addresses = this.#clusterNode?.peerStatuses().map(({ address }) => address) ?? []
    this.#deps.onOusted?.(fate, addresses)
  }

  /**
   * Reads the membership cache. A damaged cache does not prevent the start: any peer at an address
   * in the log can send the members again.
   */
  #readRoster(): MembershipRecord | null {
    try {
      return readMembershipCacheFile(this.#deps.config.data)
    } catch (err) {
      this.#deps.log.warn({ err }, 'cannot read the membership cache (ROSTER)')
      return null
    }
  }

  async #serve(opened: Opened): Promise<void> {
    const { config, credentials, log } = this.#deps
    const { clusterNode, machine, secrets, events } = opened
    const { management, admission } = this.#startMembership(opened)
    const requestRefusal = this.#requestRefusal(opened)
    const refusal = (): ProblemCode | null =>
      this.#isFailedOrQuarantined ? 'NODE_QUARANTINED' : null
    const caPem = (): string => this.#inForce.caPem
    const processor = new ProcessorShare(configuredApiLimits(config), systemClock)
    const proposer = new CallerWriteLimiter(clusterNode, systemClock)
    const counted = countObservations(machine, () => routers.circuits)
    const routers = new RouterService({
      config,
      log,
      clusterNode,
      machine,
      processor,
      publishFact: (fact) => {
        counted.note(fact)
        events.publishFact(fact)
      },
      authorities: createNetworkAuthorities(secrets, caPem),
      isOutOfService: () => this.#isFailedOrQuarantined,
      isOusted: () => this.#isOusted,
      isReady: () => requestRefusal() !== 'CLUSTER_NO_LEADER',
    })
    const backedUp = {
      cluster: clusterNode,
      machine,
      secrets,
      clock: systemClock,
      caPem,
      refusal,
      trustDomain: config.trustDomain,
      version: `v${programVersion()}`,
    }
    const snapshots = await openSnapshotFolder(config, log, backedUp)
    const backups = openBackups(this.#running, clusterNode, log, backedUp)
    const renewals: ((identity: MeshIdentity) => void)[] = []
    const certificates = this.#certify(opened, renewals)
    const reloads = this.#openReloads(clusterNode, certificates)
    const issuer = openIssuer(secrets, configuredApiLimits(config), config.trustDomain)
    this.#releases.push(() => issuer.close())
    const api = createControllerApi({
      controller: this.#deps,
      running: this.#running,
      clusterNode,
      machine,
      secrets,
      admission,
      membership: management.control,
      inForce: this.#inForce,
      releases: this.#releases,
      local: {
        ...openLiveData({ config, clusterNode, machine, routers, log, counted }),
        issuer,
        snapshots,
        lastBackupMs: backups.lastTakenMs,
        refusal: requestRefusal,
        pki: certificates.control,
        reloads,
        backups: backups.control,
        restores: backups.restores,
        events: events.streams,
        publishFact: events.publishFact,
        processor,
        proposer,
      },
    })
    api.start()
    const { servers } = certificates
    const byName: SniContextLookup = (name) => servers.contextFor(name)
    const ports = await openTlsPorts(config, log)
    const listeners = await HttpsListeners.open({ api, config, credentials, ports, byName })
    this.#releases.push(async () => {
      events.closeStreams()
      await listeners.close()
      await api.stop()
    })
    const certifier = { issuer, state: machine, cluster: clusterNode, logger: log }
    const served = {
      clients: api.routerClients(machine),
      tunnels: api.routerTunnels(machine),
      terminators: api.hostedTerminators(machine),
      reads: api.reads,
    }
    this.#watchRouterCertificates(opened)
    routers.serve(served, new RouterNamingRules(certifier), proposer)
    await routers.open(credentials, ports)
    this.#releases.push(() => routers.close())
    // The snapshots are registered after the listeners and so closed before them: closing a
    // listener waits for requests in progress, which may wait for a snapshot.
    this.#releases.push(() => snapshots.close())
    renewals.push((identity) => listeners.renew(identity))
    renewals.push((identity) => routers.renew(identity))
    certificates.start()
    const admin = await AdminSocket.open(api, config.data, `v${programVersion()}`)
    this.#releases.push(() => admin.close())
    backups.start()
    this.#releases.push(() => backups.close())
  }

  #watchRouterCertificates({ clusterNode, machine }: Opened): void {
    const { alarms } = clusterNode
    const statuses = { of: (id: string) => machine.routers.of(id) }
    const watch = new RouterCertificateWatch({
      alarms,
      clock: systemClock,
      routers: machine,
      statuses,
    })
    watch.start()
    this.#releases.push(() => watch.stop())
  }

  #startMembership(opened: Opened): {
    readonly management: MemberManagement
    readonly admission: JoinTickets
  } {
    const { config, credentials, log } = this.#deps
    const parts: MembershipDeps = {
      config,
      running: this.#running,
      credentials,
      log,
      ...opened,
      startedAtMs: this.#startedAtMs,
      releases: this.#releases,
      onAnswer: (answer) => this.#meet(removalActionAfterAdmission(answer)),
    }
    this.#membership = startMembership(parts)
    const { management } = this.#membership
    return { management, admission: createJoinTickets(parts, this.#inForce) }
  }

  /**
   * Creates the component that manages the certificates of mesh and listeners, without starting it.
   * @param renewals called at each renewal.
   */
  #certify(
    opened: Opened,
    renewals: readonly ((identity: MeshIdentity) => void)[],
  ): ControllerCertificates {
    const { clusterNode, machine, secrets } = opened
    const { config, credentials, log } = this.#deps
    const overlapMs = config.api.sessionTimeoutMs
    const rotation = { proposer: clusterNode, state: machine, keyring: secrets, log, overlapMs }
    const certificates = new ControllerCertificates({
      actions: new ClusterActionRecorder(clusterNode, log),
      config,
      credentials,
      log,
      alarms: clusterNode.alarms,
      authority: {
        issuing: () => secrets.issuing(),
        install: (authority) => installIssuingAuthority(rotation, authority),
      },
      onRenewed: (identity) => {
        this.#inForce.renew(identity)
        clusterNode.setIdentity(identity)
        for (const renew of renewals) renew(identity)
      },
      memberKeySha256: (id) =>
        clusterNode.configuration().record.members.find((member) => member.id === id)
          ?.publicKeySha256 ?? null,
    })
    secrets.onChange(() => certificates.look())
    this.#releases.push(() => certificates.stop())
    return certificates
  }

  #openReloads(
    clusterNode: ClusterNode,
    certificates: ControllerCertificates,
  ): ConfigurationReload {
    const { configPath: path, log } = this.#deps
    this.#running.onReload((next) => certificates.configure(next))
    this.#reloads = new ConfigurationReload({
      path,
      environment: process.env,
      running: this.#running,
      certificates: () => certificates.reload(),
      actions: new ClusterActionRecorder(clusterNode, log),
      log,
    })
    return this.#reloads
  }

  /** Decrypts the shared secrets with this controller's key, before the first request arrives. */
  async #keepSecrets(machine: StateMachine): Promise<Keyring> {
    const { config, credentials, log } = this.#deps
    const keyring = new Keyring({
      state: machine,
      selfId: config.id,
      privateKeyPem: () => credentials.privateKeyPem,
      log,
    })
    this.#secrets = keyring
    await keyring.refresh()
    keyring.start(machine)
    this.#releases.push(() => keyring.stop())
    return keyring
  }

  get #isFailedOrQuarantined(): boolean {
    return this.#hasFailed || this.#clusterNode?.isQuarantined === true
  }

  /**
   * Returns a function whose result is null while the controller serves requests. Otherwise the
   * result is the code of the problem with which the controller refuses all requests, except
   * requests about this controller itself.
   */
  #requestRefusal({ clusterNode, machine, storeId }: Opened): () => ProblemCode | null {
    const settled = new StateReadiness({
      selfId: this.#deps.config.id,
      storeId,
      persisted: machine.persistedMark().configuration,
      lostIndex: this.#lostIndex,
      configuration: () => clusterNode.configuration(),
      appliedIndex: () => machine.appliedIndex,
    })
    return () => {
      if (this.#isFailedOrQuarantined) return 'NODE_QUARANTINED'
      return settled.is ? null : 'CLUSTER_NO_LEADER'
    }
  }

  async #handOver(): Promise<void> {
    if (this.#clusterNode === null || this.#hasFailed) return
    await handOverLeadership(this.#clusterNode, this.#deps.log)
  }
}
