import { KeyFetcher } from '../auth/tokens/key-fetcher.ts'
import { SignerKeyCache } from '../auth/tokens/signer-key-cache.ts'
import { ExternalJwtFactor } from '../auth/principal/external-jwt-factor.ts'
import { ProviderLogIns } from '../auth/tokens/provider-log-ins.ts'
import { TokenVerifier } from '../auth/tokens/token-verifier.ts'
import { DeviceLogIns } from '../auth/oidc/device-log-ins.ts'
import { DeviceFlow } from '../auth/oidc/device-flow.ts'
import { FlowSessions } from '../auth/oidc/flow-sessions.ts'
import { LogInFlow } from '../auth/oidc/log-in-flow.ts'
import { TokenKeyBinding } from '../auth/oidc/token-key-binding.ts'
import { RefreshTokenReuse } from '../auth/sessions/refresh-token-reuse.ts'
import { FormerMemberTokens } from '../auth/sessions/former-member-tokens.ts'
import { OidcTokens } from '../auth/sessions/oidc-tokens.ts'
import { FlowStateEncryption } from '../auth/oidc/flow-state-encryption.ts'
import { LogInService } from '../auth/log-in/log-in.ts'
import { createLogInThrottle, type LogInThrottle } from '../auth/log-in/log-in-throttle.ts'
import { RequestAuthenticator } from '../auth/sessions/request-authenticator.ts'
import { PasswordRehasher } from '../auth/factors/password-rehasher.ts'
import { CertificateAdoption } from '../auth/certificates/certificate-adoption.ts'
import { PasswordLockout } from '../auth/factors/password-lockout.ts'
import { PasswordVerifier } from '../auth/factors/password-verifier.ts'
import { SecondFactors } from '../auth/factors/second-factors.ts'
import { SessionTracker } from '../auth/sessions/session-tracker.ts'
import { SessionTokenSigner } from '../auth/sessions/session-token-signer.ts'
import { AccessExpiryProposer } from './access/access-expiry-proposer.ts'
import { FactorReencrypter } from './mfa/factor-reencrypter.ts'
import { IntegrityRunner } from './host/integrity-runner.ts'
import { LargeBodyQueue } from './http/large-body-queue.ts'
import { ResponseCompression } from './http/responses/response-compression.ts'
import { ListResponseSerializer } from './http/responses/list-response-serializer.ts'
import { RequestBodyValidator } from './schemas/request-body-validator.ts'
import { WritePreparers } from './preparers/write-preparers.ts'
import { ZERO_CONSENSUS_STATS } from '../ports/stats.ts'
import { MetricHistory, type MetricHistoryTotals } from './metrics/metric-history.ts'
import { ControllerMetrics } from './metrics/metrics.ts'
import type { ApiDeps } from './api-deps.ts'
import { ConnectionCallers } from './http/transport/connection-callers.ts'
import type { ProcessorShare } from '../lib/bounds/processor-share.ts'
import { WindowedQuota } from '../lib/bounds/quota.ts'
import { refusedWriteLogQuota } from './http/refused-write-log-quota.ts'
import { UnreadResponses } from './http/transport/unread-responses.ts'
import { ProposalWriter } from './http/proposal-writer.ts'

/** Services that the operations of all listeners share. */
export interface ApiServices {
  readonly sessions: SessionTracker
  readonly tokens: SessionTokenSigner
  readonly gate: RequestAuthenticator
  /** Verifies tokens of identity providers. */
  readonly externalTokens: TokenVerifier
  /** Fetches documents of identity providers. */
  readonly keyEndpoint: KeyFetcher
  readonly providerLogIns: ProviderLogIns
  readonly tokenFactor: ExternalJwtFactor
  readonly passwords: PasswordVerifier
  readonly lockout: PasswordLockout
  readonly adoption: CertificateAdoption
  readonly throttle: LogInThrottle
  readonly logIns: LogInService
  readonly oidcTokens: OidcTokens
  readonly formerTokens: FormerMemberTokens
  readonly oidcFlow: LogInFlow
  readonly deviceFlow: DeviceFlow
  readonly deviceLogIns: DeviceLogIns
  readonly refreshUses: RefreshTokenReuse
  readonly writer: ProposalWriter
  readonly preparers: WritePreparers
  readonly secondFactors: SecondFactors
  readonly metrics: ControllerMetrics
  readonly history: MetricHistory
  /** Quota for log lines about refused writes, shared by all listeners. */
  readonly refusals: WindowedQuota
  /** Memory limit for large bodies, shared by all listeners. */
  readonly largeBodies: LargeBodyQueue
  readonly processor: ProcessorShare
  readonly callers: ConnectionCallers
  /** Compiled schemas of bodies, shared by all listeners. */
  readonly validator: RequestBodyValidator
  readonly lists: ListResponseSerializer
  /** Memory limit for responses that clients have not read, shared by all listeners. */
  readonly unsent: UnreadResponses
  readonly compression: ResponseCompression
  readonly integrity: IntegrityRunner
  readonly resealer: FactorReencrypter
  readonly accessEndProposer: AccessExpiryProposer
}

export function createServices(deps: ApiDeps): ApiServices {
  const { limits, processor } = deps
  const sessions = new SessionTracker(deps)
  const writer = new ProposalWriter(deps.proposer)
  const secondFactors = new SecondFactors({ ...deps, writer })
  const tokens = new SessionTokenSigner(deps.keys)
  const keyEndpoint = new KeyFetcher(limits, deps.keyEndpoints)
  const externalTokens = new TokenVerifier(
    deps,
    new SignerKeyCache(keyEndpoint, limits, deps),
    limits,
  )
  const tokenFactor = new ExternalJwtFactor(deps, externalTokens)
  const unsent = new UnreadResponses(limits)
  const passwords = new PasswordVerifier({
    atOnceMax: limits.passwordHashesMax,
    waitingMax: limits.passwordHashesWaitingMax,
  })
  const lockout = new PasswordLockout(deps)
  const throttle = createLogInThrottle(deps)
  const { state, clock, reads, authorities } = deps
  const adoption = new CertificateAdoption(deps)
  const logIns = new LogInService({
    state,
    clock,
    reads,
    authorities,
    adoption,
    rehasher: new PasswordRehasher({ ...deps, passwords }),
    limits,
    tokens,
    externalTokens,
    passwords,
    lockout,
    throttle,
    writer,
    sessions,
    tokenFactor,
  })
  const oidcTokens = new OidcTokens(deps)
  const refreshUses = new RefreshTokenReuse(deps)
  const seals = new FlowStateEncryption(deps)
  const flowDeps = {
    ...deps,
    logIns,
    oidcTokens,
    seals,
    flowSessions: new FlowSessions({ ...deps, logIns }),
  }
  const deviceFlow = new DeviceFlow(flowDeps)
  const oidcFlow = new LogInFlow({
    ...flowDeps,
    tokenFactor,
    sessions,
    refreshUses,
    keyBinding: new TokenKeyBinding({ ...deps, writer }),
  })
  const metrics = metricsOf(deps)
  return {
    sessions,
    tokens,
    gate: new RequestAuthenticator(deps, sessions, tokens, tokenFactor, oidcTokens),
    oidcTokens,
    formerTokens: new FormerMemberTokens(deps),
    refreshUses,
    oidcFlow,
    deviceFlow,
    deviceLogIns: new DeviceLogIns({ ...deps, topic: deps.waitingDevices, flow: deviceFlow }),
    externalTokens,
    keyEndpoint,
    providerLogIns: new ProviderLogIns({ ...deps, keyEndpoint }),
    tokenFactor,
    passwords,
    lockout,
    adoption,
    throttle,
    logIns,
    refusals: new WindowedQuota(refusedWriteLogQuota, deps.clock, (dropped) => {
      deps.logger.warn(
        { dropped },
        `suppressed ${dropped} lines about refused writes in the last minute`,
      )
    }),
    writer,
    preparers: new WritePreparers({ ...deps, passwords }),
    secondFactors,
    largeBodies: new LargeBodyQueue(limits),
    processor,
    callers: new ConnectionCallers(processor, deps.clock),
    validator: new RequestBodyValidator(),
    lists: new ListResponseSerializer(limits, processor, unsent),
    unsent,
    compression: new ResponseCompression(limits),
    integrity: new IntegrityRunner(deps),
    resealer: new FactorReencrypter(deps, secondFactors.vault),
    accessEndProposer: new AccessExpiryProposer(deps),
    metrics,
    history: historyOf(deps, metrics),
  }
}

function historyOf(
  { cluster, state, vitals, clock }: ApiDeps,
  metrics: ControllerMetrics,
): MetricHistory {
  const read = (): MetricHistoryTotals => {
    const { disk, leaderChanges } = vitals?.() ?? ZERO_CONSENSUS_STATS
    const self = cluster.members().find(({ id }) => id === cluster.selfId)
    const { appliedIndex } = state
    return {
      ...metrics.totals(),
      commitIndex: self?.progress?.commit ?? appliedIndex,
      appliedIndex,
      fsyncs: disk.fsync.count,
      fsyncP99Ms: disk.fsync.p99Ms,
      leaderChanges,
    }
  }
  return new MetricHistory(read, clock)
}

function metricsOf(deps: ApiDeps): ControllerMetrics {
  return new ControllerMetrics(
    deps.cluster,
    deps.state,
    {
      version: deps.version,
      count: (entity) => deps.state.count(entity),
      certificates: () => {
        const { cluster, authorities } = deps
        const self = cluster.members().find(({ id }) => id === cluster.selfId)
        const controller = self?.certificatePem ?? ''
        const issuing = authorities.intermediatesPem()
        return { controller, issuing, root: authorities.anchorsPem() }
      },
      serverEnds: () =>
        deps.pki
          .view()
          .serverCertificates.flatMap(({ path, certificate }) =>
            certificate === null
              ? []
              : [{ name: certificate.names[0] ?? path, notAfterMs: certificate.notAfterMs }],
          ),
    },
    deps.vitals === undefined
      ? null
      : {
          vitals: deps.vitals,
          node: () => deps.health().node,
          requestIds: () => deps.state.requestIds,
          lastBackupMs: deps.lastBackupMs ?? (() => null),
          softState: () => deps.softState?.() ?? null,
        },
    deps.dataPath === undefined
      ? null
      : {
          ...deps.dataPath,
          circuits: deps.circuits,
          channels: deps.channels,
          links: deps.links,
        },
  )
}
