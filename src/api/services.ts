import { KeyEndpoint } from '../auth/tokens/key-endpoint.ts'
import { KeySets } from '../auth/tokens/key-sets.ts'
import { TokenFactor } from '../auth/principal/token-factor.ts'
import { TokenJudge } from '../auth/tokens/token-judge.ts'
import { DeviceLogIns } from '../auth/oidc/device-log-ins.ts'
import { LogInFlow } from '../auth/oidc/log-in-flow.ts'
import { KeyBinding } from '../auth/oidc/key-binding.ts'
import { RefreshUses } from '../auth/sessions/refresh-uses.ts'
import { OidcTokens } from '../auth/sessions/oidc-tokens.ts'
import { SealedTexts } from '../auth/oidc/sealed-texts.ts'
import { LogIns } from '../auth/log-in/log-in.ts'
import { LogInThrottle } from '../auth/log-in/log-in-throttle.ts'
import { SessionGuard } from '../auth/sessions/session-guard.ts'
import { PasswordLockout } from '../auth/factors/password-lockout.ts'
import { PasswordVerifier } from '../auth/factors/password-verifier.ts'
import { SecondFactors } from '../auth/factors/second-factors.ts'
import { SessionTracker } from '../auth/sessions/session-tracker.ts'
import { TokenSigner } from '../auth/sessions/token-signer.ts'
import { FactorResealer } from './mfa/factor-resealer.ts'
import { IntegrityRunner } from './host/integrity-runner.ts'
import { LargeBodies } from './answers/large-bodies.ts'
import { ListAnswers } from './answers/list-answers.ts'
import { Validator } from './schemas/validation.ts'
import { Preparers } from './preparers/preparers.ts'
import { NO_VITALS } from '../ports/stats.ts'
import { FigureHistory, type HistoryTotals } from './metrics/figure-history.ts'
import { ApiMetrics } from './metrics/metrics.ts'
import type { ApiParts } from './parts.ts'
import { ConnectionCallers } from './transport/connection-callers.ts'
import type { ProcessorShare } from '../lib/bounds/processor-share.ts'
import { Quota } from '../lib/bounds/quota.ts'
import { refusalQuota } from './refusal-quota.ts'
import { UnsentAnswers } from './transport/unsent-answers.ts'
import { Writer } from './writes.ts'

/** Services that the operations of all listeners share. */
export interface ApiServices {
  readonly sessions: SessionTracker
  readonly tokens: TokenSigner
  readonly gate: SessionGuard
  /** Tokens of identity providers. */
  readonly externalTokens: TokenJudge
  readonly tokenFactor: TokenFactor
  readonly passwords: PasswordVerifier
  readonly lockout: PasswordLockout
  readonly throttle: LogInThrottle
  readonly logIns: LogIns
  readonly oidcTokens: OidcTokens
  readonly oidcFlow: LogInFlow
  readonly deviceLogIns: DeviceLogIns
  readonly refreshUses: RefreshUses
  readonly writer: Writer
  readonly preparers: Preparers
  readonly secondFactors: SecondFactors
  readonly metrics: ApiMetrics
  readonly history: FigureHistory
  /** Quota of lines about refused writes, on all listeners. */
  readonly refusals: Quota
  /** Large bodies of all listeners. */
  readonly largeBodies: LargeBodies
  readonly processor: ProcessorShare
  readonly callers: ConnectionCallers
  /** Schemas of bodies, compiled once for all listeners. */
  readonly validator: Validator
  readonly lists: ListAnswers
  /** Unsent answers of all listeners. */
  readonly unsent: UnsentAnswers
  readonly integrity: IntegrityRunner
  readonly resealer: FactorResealer
}

export function createServices(parts: ApiParts): ApiServices {
  const { limits, processor } = parts
  const sessions = new SessionTracker(parts)
  const writer = new Writer(parts.proposer)
  const secondFactors = new SecondFactors({ ...parts, writer })
  const tokens = new TokenSigner(parts.keys)
  const endpoint = new KeyEndpoint(limits, parts.keyEndpoints)
  const externalTokens = new TokenJudge(parts, new KeySets(endpoint, limits, parts), limits)
  const tokenFactor = new TokenFactor(parts, externalTokens)
  const unsent = new UnsentAnswers(limits)
  const passwords = new PasswordVerifier({
    atOnceMax: limits.passwordHashesMax,
    waitingMax: limits.passwordHashesWaitingMax,
  })
  const lockout = new PasswordLockout(parts)
  const throttle = new LogInThrottle(
    {
      failuresMax: limits.logInFailuresMax,
      pauseMsMin: limits.logInPauseMsMin,
      pauseMsMax: limits.logInPauseMsMax,
      sourcesMax: limits.logInSourcesMax,
      attemptsMax: limits.logInsMax,
    },
    parts.clock,
  )
  const { state, clock, reads, authorities } = parts
  const logIns = new LogIns({
    state,
    clock,
    reads,
    authorities,
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
  const oidcTokens = new OidcTokens(parts)
  const refreshUses = new RefreshUses(parts)
  const seals = new SealedTexts(parts)
  const oidcFlow = new LogInFlow({
    ...parts,
    logIns,
    tokenFactor,
    sessions,
    refreshUses,
    oidcTokens,
    seals,
    keyBinding: new KeyBinding({ ...parts, writer }),
  })
  const metrics = metricsOf(parts)
  return {
    sessions,
    tokens,
    gate: new SessionGuard(parts, sessions, tokens, tokenFactor, oidcTokens),
    oidcTokens,
    refreshUses,
    oidcFlow,
    deviceLogIns: new DeviceLogIns({ ...parts, topic: parts.waitingDevices, flow: oidcFlow }),
    externalTokens,
    tokenFactor,
    passwords,
    lockout,
    throttle,
    logIns,
    refusals: new Quota(refusalQuota, parts.clock, (dropped) => {
      parts.logger.warn(
        { dropped },
        `suppressed ${dropped} lines about refused writes in the last minute`,
      )
    }),
    writer,
    preparers: new Preparers({ ...parts, passwords }),
    secondFactors,
    largeBodies: new LargeBodies(limits),
    processor,
    callers: new ConnectionCallers(processor, parts.clock),
    validator: new Validator(),
    lists: new ListAnswers(limits, processor, unsent),
    unsent,
    integrity: new IntegrityRunner(parts),
    resealer: new FactorResealer(parts, secondFactors.vault),
    metrics,
    history: historyOf(parts, metrics),
  }
}

function historyOf(
  { cluster, state, vitals, clock }: ApiParts,
  metrics: ApiMetrics,
): FigureHistory {
  const read = (): HistoryTotals => {
    const { disk, leaderChanges } = vitals?.() ?? NO_VITALS
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
  return new FigureHistory(read, clock)
}

function metricsOf(parts: ApiParts): ApiMetrics {
  return new ApiMetrics(
    parts.cluster,
    parts.state,
    {
      version: parts.version,
      count: (entity) => parts.state.count(entity),
      certificates: () => {
        const { cluster, authorities } = parts
        const self = cluster.members().find(({ id }) => id === cluster.selfId)
        const controller = self?.certificatePem ?? ''
        const issuing = authorities.intermediatesPem()
        return { controller, issuing, root: authorities.anchorsPem() }
      },
      serverEnds: () =>
        parts.pki
          .view()
          .serverCertificates.flatMap(({ path, certificate }) =>
            certificate === null
              ? []
              : [{ name: certificate.names[0] ?? path, notAfterMs: certificate.notAfterMs }],
          ),
    },
    parts.vitals === undefined
      ? null
      : {
          vitals: parts.vitals,
          node: () => parts.health().node,
          requestIds: () => parts.state.requestIds,
          lastBackupMs: parts.lastBackupMs ?? (() => null),
          softState: () => parts.softState?.() ?? null,
        },
  )
}
