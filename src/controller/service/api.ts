import { LinearizableReads } from '../../api/http/linearizable-reads.ts'
import type { ApiDeps, HealthReport } from '../../api/api-deps.ts'
import { type Api, createApi } from '../../api/server.ts'
import type { ClusterNode } from '../../cluster/cluster-node.ts'
import type { JoinTickets } from '../../cluster/membership/join-tickets.ts'
import type { Keyring } from '../../cluster/secrets/keyring.ts'
import type { StateMachine } from '../../fsm/state-machine.ts'
import { systemClock } from '../../lib/clock.ts'
import { newShortId } from '../../lib/random.ts'
import type { MembershipControl } from '../../ports/membership.ts'
import { SchemaWorker } from '../../threads/schema-worker.ts'
import type { ControllerDeps } from '../controller-deps.ts'
import type { ActiveIdentity } from '../active-identity.ts'
import { createJwtSigner, createNetworkAuthorities } from './certificate-issuing.ts'
import type { LiveDataDeps } from './live-data.ts'
import type { ReleaseStack } from '../release-stack.ts'
import { configuredApiLimits, apiBaseUrls, configuredKeyFetchRules } from '../settings.ts'
import { createLogLevelControl, type LogLevelSwitch } from '../log-level.ts'
import type { RunningOptions } from '../running-options.ts'
import {
  OPENZITI_API_VERSION,
  programBuildDate,
  programRevision,
  programVersion,
} from '../version.ts'
import type { NodeHealth } from '../../ports/node-health.ts'

interface ApiSources {
  readonly controller: ControllerDeps
  readonly running: RunningOptions
  readonly clusterNode: ClusterNode
  readonly machine: StateMachine
  readonly secrets: Keyring
  readonly admission: JoinTickets
  readonly membership: MembershipControl
  readonly inForce: ActiveIdentity
  readonly releases: ReleaseStack
  /** Components of this controller that the caller has already created. */
  readonly local: LiveDataDeps &
    Pick<
      ApiDeps,
      | 'backups'
      | 'events'
      | 'issuer'
      | 'lastBackupMs'
      | 'pki'
      | 'processor'
      | 'proposer'
      | 'refusal'
      | 'reloads'
      | 'restores'
      | 'snapshots'
      | 'publishFact'
    >
}

/** Creates the API of a controller, without starting it. */
export function createControllerApi(sources: ApiSources): Api {
  const { controller, clusterNode, machine, secrets, admission, membership, local } = sources
  const { config, credentials, log, audit = null } = controller
  const limits = { ...configuredApiLimits(config) }
  sources.running.onReload((next) => void Object.assign(limits, configuredApiLimits(next)))
  const schemas = new SchemaWorker(limits, systemClock)
  sources.releases.push(() => schemas.close())
  const caPem = (): string => sources.inForce.caPem
  const leafPem = (): string => sources.inForce.leafPem
  return createApi({
    cluster: clusterNode,
    state: machine,
    reads: new LinearizableReads(clusterNode, machine, limits),
    schemas,
    keys: secrets,
    jwt: createJwtSigner(clusterNode, credentials.privateKeyPem, leafPem),
    authorities: createNetworkAuthorities(secrets, caPem),
    admission,
    clock: systemClock,
    limits,
    allowsReservedSignerHosts: config.api.reservedSignerHosts,
    keyEndpoints: configuredKeyFetchRules(config, credentials.signerCaPem),
    version: {
      version: OPENZITI_API_VERSION,
      revision: programRevision(),
      buildDate: programBuildDate(),
      runtimeVersion: `flotilla v${programVersion()}, node ${process.version}`,
    },
    instanceId: newShortId(),
    logger: log,
    logLevel: logLevelControl(sources),
    ...(audit === null ? {} : { audit }),
    bindings: apiBaseUrls(config),
    health: () => healthOf(clusterNode.health()),
    vitals: () => clusterNode.vitals,
    membership,
    ...local,
  })
}

function logLevelControl({ controller, running, clusterNode }: ApiSources): LogLevelSwitch {
  const control = createLogLevelControl(controller, clusterNode)
  running.onReload(({ logLevel }, before) => {
    if (logLevel !== before.logLevel) control.configure(logLevel)
  })
  return control
}

/**
 * Health of a controller. Without a leader the controller still serves reads, so it counts as alive
 * and must not be restarted. Only critical alarms make it unhealthy: other alarms can appear on all
 * controllers at the same time, and would take the whole cluster out of service.
 */
function healthOf(node: NodeHealth): HealthReport {
  const critical = node.alarms.filter(({ isCritical }) => isCritical)
  const isHealthy = critical.length === 0
  const detail = critical.map(({ text }) => text).join('; ')
  return {
    isHealthy,
    checks: [
      { id: 'state', healthy: isHealthy, ...(isHealthy ? {} : { detail }) },
      { id: 'leader', healthy: node.leaderId !== null },
    ],
    node,
  }
}
