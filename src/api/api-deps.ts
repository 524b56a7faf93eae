import type { Clock } from '../lib/clock.ts'
import type { ProblemCode } from '../lib/problems.ts'
import type { ProcessorShare } from '../lib/bounds/processor-share.ts'
import type { AuditTrail } from '../ports/audit.ts'
import type { CertificateIssuer } from '../ports/certificate-issuer.ts'
import type { ClusterView } from '../ports/cluster-view.ts'
import type { BackupControl } from './backups/backup-control.ts'
import type { DatabaseSnapshots } from '../ports/database-snapshots.ts'
import type { ControllerAdmission, MembershipControl } from '../ports/membership.ts'
import type { ReloadControl } from './host/reload-control.ts'
import type { LogLevelControl } from './host/log-level-control.ts'
import type { JwtSigner } from '../auth/sessions/jwt-signer.ts'
import type { NetworkAuthorities } from '../auth/certificates/network-authorities.ts'
import type { SchemaValidator } from './schemas/schema-validator.ts'
import type { EventStreams } from '../ports/events.ts'
import type { IdentityTraces } from '../ports/identity-traces.ts'
import type { ObservationSink } from '../ports/observations.ts'
import type { LiveTable, LiveChannel, LiveCircuit, LiveLinks } from '../ports/live-table.ts'
import type { DataPathMetricsSources } from './metrics/data-path-metrics.ts'
import type { RestoreControl } from './backups/restore-control.ts'
import type { RouterInspections } from '../ports/router-inspections.ts'
import type { NodeHealth } from '../ports/node-health.ts'
import type { Proposer } from '../ports/proposer.ts'
import type { PkiControl } from './cluster/pki-control.ts'
import type { PostureService } from '../ports/posture.ts'
import type { SoftStateCounts } from '../ports/soft-state.ts'
import type { OpenSoftTopic } from '../ports/soft-topics.ts'
import type { StateReader } from '../fsm/state-reader.ts'
import type { StateView } from '../ports/state-view.ts'
import type { ClusterTraffic } from '../ports/traffic.ts'
import type { TokenKeys } from '../ports/token-keys.ts'
import type { ConsensusStats } from '../ports/stats.ts'
import type { KeyFetchRules } from '../auth/tokens/key-fetcher.ts'
import type { LinearizableReads } from './http/linearizable-reads.ts'
import type { ApiLimits } from './limits.ts'
import type { ServiceLogger } from '../ports/logger.ts'
import type { PeriodicScheduler } from '../lib/periodic-scheduler.ts'

/** Name of an API in the member `apiVersions` of the version response. */
export type ApiVersionsKey =
  | 'edge-client'
  | 'edge-management'
  | 'fabric'
  | 'health-checks'
  | 'edge-oidc'

/** Version and build of this program, and its runtime. */
export interface VersionInfo {
  /** Such as `v1.2.3`; clients parse it as semver. */
  readonly version: string
  readonly revision: string
  /** Time of the build in the format of RFC 3339. */
  readonly buildDate: string
  readonly runtimeVersion: string
}

/** Results of the health checks of this controller. */
export interface HealthReport {
  readonly isHealthy: boolean
  readonly checks: readonly {
    readonly id: string
    readonly healthy: boolean
    readonly detail?: string
  }[]
  /** State of the node; shown only to callers with the permission to see all details. */
  readonly node?: NodeHealth
}

/** The state view for all folders of the API. The view includes reads that only the API needs. */
type ApiState = StateView &
  Pick<
    StateReader,
    | 'explainAccess'
    | 'previewAccess'
    | 'roleAttributeUsage'
    | 'roleAttributes'
    | 'roleCounts'
    | 'scanIntegrity'
  >

/** Dependencies of the whole HTTP API. */
export interface ApiDeps {
  readonly proposer: Proposer
  readonly cluster: ClusterView
  readonly state: ApiState
  readonly reads: LinearizableReads
  readonly schemas: SchemaValidator
  /**
   * Last use of each session, UTC ms by session id; shared with the other controllers as soft
   * state.
   */
  readonly activity: OpenSoftTopic<'activity'>
  readonly refreshes: OpenSoftTopic<'refreshes'>
  /** Evaluates the posture of devices and enforces the results; starts and stops with the API. */
  readonly posture: PostureService
  /** Links between the routers that are connected to this controller. */
  readonly links: LiveLinks
  /** Circuits that this controller owns. */
  readonly circuits: LiveTable<LiveCircuit>
  /** Traffic of services and routers, as all controllers have counted it. */
  readonly traffic: ClusterTraffic
  /** Channels of the routers that are connected to this controller. */
  readonly channels: LiveTable<LiveChannel>
  readonly routerInspections: RouterInspections
  /** Token keys; read at each use, so that a rotated key takes effect immediately. */
  readonly keys: TokenKeys
  /** Signs JWTs, which parties other than the controllers can verify. */
  readonly jwt: JwtSigner
  /**
   * CA certificates of the network; read at each use, because the network may renew a certificate
   * while the process runs.
   */
  readonly authorities: NetworkAuthorities
  /** Issues certificates of identities, sessions and routers. */
  readonly issuer: CertificateIssuer
  /** Admits new controllers to the cluster. */
  readonly admission: ControllerAdmission
  readonly clock: Clock
  readonly scheduler: PeriodicScheduler
  readonly limits: ApiLimits
  /** Shares the main thread's processor time fairly among API callers and connected routers. */
  readonly processor: ProcessorShare
  /**
   * True: URLs of external JWT signers may point to loopback and unspecified addresses. Link-local
   * addresses and metadata services are refused in any case.
   */
  readonly allowsReservedSignerHosts: boolean
  /** Rules for the URLs from which keys and documents of external JWT signers are fetched. */
  readonly keyEndpoints: KeyFetchRules
  readonly version: VersionInfo
  /** Id that is new for each process, so that clients can detect a restart. */
  readonly instanceId: string
  readonly logger: ServiceLogger
  readonly logLevel: LogLevelControl
  readonly reloads: ReloadControl
  /**
   * Logs refused writes, and requests (the traced ones, or all at the log level debug); absent:
   * neither is logged.
   */
  readonly audit?: Pick<AuditTrail, 'refused' | 'answered'>
  /** Events of this controller for HTTP clients. */
  readonly events: EventStreams
  /** Publishes events about refused log-ins. */
  readonly publishFact: ObservationSink
  /**
   * Base URLs (`https://host:port`) of each served API, from all listeners; the preferred URL
   * first.
   */
  readonly bindings: Readonly<Partial<Record<ApiVersionsKey, readonly string[]>>>
  /** Called for each health request, so it must be fast. */
  readonly health: () => HealthReport
  /** Metrics of consensus, mesh and disk for `/metrics` and the metric history. */
  readonly vitals?: () => ConsensusStats
  /** Sources of the metrics about routers, circuits and services for `/metrics`. */
  readonly dataPath?: Pick<DataPathMetricsSources, 'counts' | 'routers' | 'services'>
  /** Identities whose circuits are logged. */
  readonly traces: IdentityTraces
  /** Log-ins by device code that wait for approval. */
  readonly waitingDevices: OpenSoftTopic<'device-log-ins'>
  /** Counts of the soft state (state that is exchanged outside of the log), for `/metrics`. */
  readonly softState?: () => SoftStateCounts
  /**
   * Time of the newest scheduled backup of this controller, UTC ms; 0: none yet; null: this
   * controller makes no scheduled backups.
   */
  readonly lastBackupMs?: () => number | null
  /**
   * The error code for requests while this controller must not serve requests from its state, for
   * example NODE_QUARANTINED or CLUSTER_NO_LEADER; otherwise null.
   */
  readonly refusal: () => ProblemCode | null
  /**
   * Changes the members of the cluster; works on any controller, because requests are forwarded to
   * the leader where needed.
   */
  readonly membership: MembershipControl
  /** Database snapshots on the disk of this controller. */
  readonly snapshots: DatabaseSnapshots
  readonly pki: PkiControl
  readonly backups: BackupControl
  readonly restores: RestoreControl
}
