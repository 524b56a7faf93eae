import type { Clock } from '../lib/clock.ts'
import type { ProblemCode } from '../lib/problems.ts'
import type { ProcessorShare } from '../lib/bounds/processor-share.ts'
import type { AuditTrail } from '../ports/audit.ts'
import type { CertificateIssuer } from '../ports/certificate-issuer.ts'
import type { ClusterView } from '../ports/cluster-view.ts'
import type { BackupControl } from './backups/backup-control.ts'
import type { DatabaseSnapshots } from '../ports/database-snapshots.ts'
import type { Admission, MembershipControl } from '../ports/membership.ts'
import type { LogLevelControl } from './host/log-level-control.ts'
import type { JwtSigner } from '../auth/sessions/jwt-signer.ts'
import type { NetworkAuthorities } from '../auth/certificates/network-authorities.ts'
import type { SchemaJudge } from './schemas/schema-judge.ts'
import type { EventStreams } from '../ports/events.ts'
import type { IdentityTraces } from '../ports/identity-traces.ts'
import type { PublishFact } from '../ports/live-facts.ts'
import type { LiveTable, LiveChannel, LiveCircuit, LiveLinks } from '../ports/live-table.ts'
import type { DataPathSources } from './metrics/data-path-metrics.ts'
import type { RestoreControl } from './backups/restore-control.ts'
import type { RouterInspections } from '../ports/router-inspections.ts'
import type { NodeHealth } from '../ports/node-health.ts'
import type { Proposer } from '../ports/proposer.ts'
import type { PkiControl } from './cluster/pki-control.ts'
import type { PostureService } from '../ports/posture.ts'
import type { SoftStateCounts } from '../ports/soft-state.ts'
import type { OpenTopic } from '../ports/soft-topics.ts'
import type { StateReader } from '../fsm/reader.ts'
import type { StateView } from '../ports/state-view.ts'
import type { TokenKeys } from '../ports/token-keys.ts'
import type { HostStats } from '../ports/stats.ts'
import type { KeyEndpointRules } from '../auth/tokens/key-endpoint.ts'
import type { ConfirmedReads } from './http/consistency.ts'
import type { ApiLimits } from './limits.ts'
import type { ServiceLogger } from '../ports/logger.ts'
import type { PeriodicScheduler } from '../lib/periodic-scheduler.ts'

/** Names of `apiVersions` in the version answer. */
export type ApiBindingName =
  | 'edge-client'
  | 'edge-management'
  | 'fabric'
  | 'health-checks'
  | 'edge-oidc'

/** Version and build of this program, and its runtime. */
export interface VersionInfo {
  /** Like `v1.2.3`; clients read it as semver. */
  readonly version: string
  readonly revision: string
  /** RFC 3339. */
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
  /** For those who may know all of it. */
  readonly node?: NodeHealth
}

/** The state as all rooms read it, and reads that the API alone asks for. */
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

/** Everything the HTTP side is built from. */
export interface ApiDeps {
  readonly proposer: Proposer
  readonly cluster: ClusterView
  readonly state: ApiState
  readonly reads: ConfirmedReads
  readonly schemas: SchemaJudge
  /** Last uses of sessions, UTC ms by session id, shared with the other controllers. */
  readonly activity: OpenTopic<'activity'>
  readonly refreshes: OpenTopic<'refreshes'>
  /** Posture of devices, and what follows from it; started and stopped with the API. */
  readonly posture: PostureService
  /** Between the routers that are connected to this controller. */
  readonly links: LiveLinks
  /** That this controller has laid. */
  readonly circuits: LiveTable<LiveCircuit>
  /** Channels of the routers that are connected to this controller. */
  readonly channels: LiveTable<LiveChannel>
  readonly routerInspections: RouterInspections
  /** Asked at each use: a rotated key is in force at once. */
  readonly keys: TokenKeys
  /** Tokens that others than the controllers read. */
  readonly jwt: JwtSigner
  /** Asked at each use, as certificates are renewed. */
  readonly authorities: NetworkAuthorities
  /** Certificates of identities, sessions and routers. */
  readonly issuer: CertificateIssuer
  /** Lets new controllers in. */
  readonly admission: Admission
  readonly clock: Clock
  readonly scheduler: PeriodicScheduler
  readonly limits: ApiLimits
  /** Processor time of the main thread, shared with the routers that are connected here. */
  readonly processor: ProcessorShare
  /** Addresses of JWT signers may lead to this host, its link and metadata services. */
  readonly allowsReservedSignerHosts: boolean
  /** Places where keys of JWT signers may be fetched from. */
  readonly keyEndpoints: KeyEndpointRules
  readonly version: VersionInfo
  /** Fresh in each process: clients notice a restart by it. */
  readonly instanceId: string
  readonly logger: ServiceLogger
  readonly logLevel: LogLevelControl
  /** Absent: refused writes are not logged. */
  readonly audit?: Pick<AuditTrail, 'refused' | 'answered'>
  /** Events of this controller, for those who read them over HTTP. */
  readonly events: EventStreams
  /** Called with refused log-ins. */
  readonly publishFact: PublishFact
  /**
   * APIs that are served, on whichever listener: binding to base URLs (`https://host:port`), the
   * first one preferred.
   */
  readonly bindings: Readonly<Partial<Record<ApiBindingName, readonly string[]>>>
  /** A cheap look at this process; called for each health request. */
  readonly health: () => HealthReport
  /** Numbers of consensus, mesh and disk for `/metrics`. */
  readonly vitals?: () => HostStats
  /** Sources of `/metrics` about routers, circuits and services. */
  readonly dataPath?: Pick<DataPathSources, 'counts' | 'routers' | 'services'>
  /** Identities whose circuits are logged. */
  readonly traces: IdentityTraces
  /** Log-ins by device code that wait for a person. */
  readonly waitingDevices: OpenTopic<'device-log-ins'>
  /** Counts of the soft state, for `/metrics`. */
  readonly softState?: () => SoftStateCounts
  /** When the newest backup was taken here by schedule, UTC ms; 0: none was; null: none are. */
  readonly lastBackupMs?: () => number | null
  /** A code while this controller must not answer from its state (NODE_QUARANTINED), else null. */
  readonly refusal: () => ProblemCode | null
  /** Works at any controller: it forwards to the leader where needed. */
  readonly membership: MembershipControl
  /** Snapshots on the disk of this controller. */
  readonly snapshots: DatabaseSnapshots
  readonly pki: PkiControl
  readonly backups: BackupControl
  readonly restores: RestoreControl
}
