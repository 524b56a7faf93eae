import type { RecordOf } from '../entities/kind-records.ts'
import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { Problem } from '../lib/problems.ts'
import type { DialBind, EvaluatedPostureCheck, PromptedService, CodePrompts } from './state-view.ts'
import type { EvaluatedPosture } from './evaluated-posture.ts'

/**
 * Reports of an identity's devices about themselves, which are not verified, and the second factor
 * of a session.
 */
export interface Posture {
  readonly os: OsReport | null
  readonly domain: DomainReport | null
  readonly mac: MacReport | null
  /**
   * Reports about processes: one for each path, or for each check without a path. The most recent
   * report comes last.
   */
  readonly processes: readonly ProcessReport[]
  /** Second factor of one API session; absent: the session has not provided one. */
  readonly factor?: StoredFactor
  /** Kinds of facts that a router evaluates instead of the controllers; absent: none. */
  readonly judgedByRouter?: ReadonlySet<DeviceFactKind>
}

/** Kinds of facts about a device that only the device can report. */
export type DeviceFactKind = 'os' | 'domain' | 'mac' | 'process'

/** All kinds of facts about a device that only the device can report. */
export const deviceFactKinds: ReadonlySet<DeviceFactKind> = new Set([
  'os',
  'domain',
  'mac',
  'process',
])

/** Second factor of an API session, stored for a later evaluation; all times in UTC ms. */
export interface StoredFactor extends EndpointState {
  /** Time of the last valid code in the session. */
  readonly passedAtMs: number | null
  readonly nowMs: number
  /** True if the client does not support timeouts of second factors. */
  readonly isLegacyClient: boolean
}

interface Reported {
  /** The posture check to which the report belongs, as the client claims; '' without one. */
  readonly checkId: string
  /** Time of the report, by the clock of the receiving controller, UTC ms. */
  readonly atMs: number
}

interface OsReport extends Reported {
  readonly type: string
  readonly version: string
  readonly build: string
}

interface DomainReport extends Reported {
  readonly domain: string
}

interface MacReport extends Reported {
  /** Hardware addresses (MAC) of the device, as lower-case hex digits. */
  readonly addresses: readonly string[]
}

/** A process on a device, as its client reports it. */
export interface ProcessReport extends Reported {
  /** Path of the program; '' if the client does not report it. */
  readonly path: string
  readonly isRunning: boolean
  /** Hash of the program, as lower-case hex digits; fingerprints have the same form. */
  readonly hash: string
  readonly signerFingerprints: readonly string[]
}

/**
 * Times at which the device of an API session last woke or was unlocked, by the clock of the
 * receiving controller, UTC ms.
 */
export interface EndpointState {
  readonly wokenAtMs: number | null
  readonly unlockedAtMs: number | null
}

/** One item of a device's report. */
export type PostureReport =
  | ({ readonly kind: 'os' } & Omit<OsReport, 'atMs'>)
  | ({ readonly kind: 'domain' } & Omit<DomainReport, 'atMs'>)
  | ({ readonly kind: 'mac' } & Omit<MacReport, 'atMs'>)
  | ({ readonly kind: 'process' } & Omit<ProcessReport, 'atMs'>)
  | { readonly kind: 'endpoint'; readonly isWoken: boolean; readonly isUnlocked: boolean }
  | { readonly kind: 'router'; readonly routerId: string }

/**
 * `taken`: stored. `same`: the report contains nothing new. `tooLarge`: the report would exceed the
 * limit of its identity even if it replaced all earlier reports. `full`: this controller has no
 * room.
 */
export type PostureReportOutcome = 'taken' | 'same' | 'tooLarge' | 'full'

/** A service session that a controller refused because of the identity's posture. */
export interface FailedRequest {
  readonly atMs: number
  readonly apiSessionId: string
  readonly serviceId: string
  readonly serviceName: string
  readonly sessionType: string
  /** The failed policies and checks, with the fields of the API response. */
  readonly policyFailures: readonly Readonly<Record<string, unknown>>[]
}

/** Right that a policy would grant. */
export interface GrantedRight {
  readonly identityId: string
  readonly serviceId: string
  readonly type: DialBind
}

/** A policy with its failing posture checks. */
export interface PostureFailure {
  readonly policyId: string
  readonly policyName: string
  readonly checks: readonly {
    readonly id: string
    readonly name: string
    readonly typeId: string
    /**
     * The values that the check expects and the values that the client has. The members of the
     * object depend on the type of the check.
     */
    readonly values: JsonObject
  }[]
}

/**
 * Posture that devices reported to any controller, whether it passes the checks of policies, and
 * the consequences if it does not. Reports exist only in memory: they are lost when the controller
 * that received them stops, and devices report again. Of two reports on the same item, the later
 * one counts, even if different controllers received them.
 */
export interface PostureService {
  of(identityId: string): Posture
  /**
   * Times at which the identity's devices last woke and were unlocked, by id of the API session.
   */
  endpointsOf(identityId: string): ReadonlyMap<string, EndpointState>
  /** Second factor of an API session. */
  factorOf(session: RecordOf<'apiSession'>): StoredFactor
  /** Posture without an API session, and so without a second factor. */
  ofIdentity(identityId: string): EvaluatedPosture
  /** Posture that the identity of the session reported, and the second factor of the session. */
  ofSession(session: RecordOf<'apiSession'>): EvaluatedPosture
  /**
   * Like `ofSession`, for a client of a router that evaluates posture itself: facts that only
   * devices know count as passed, and the controller evaluates the second factor.
   */
  ofSessionAtJudge(session: RecordOf<'apiSession'>): EvaluatedPosture
  /**
   * Records that a router that evaluates posture has admitted the client of the session to dial or
   * host. Facts that the device reports only to that router then do not end the session. Call
   * `reachLatest` before: earlier reports of the device to other controllers would otherwise count
   * as later.
   */
  notedAtJudge(session: RecordOf<'apiSession'>, routerId: string): void
  /** Whether a call of `notedAtJudge` would change nothing. */
  isNotedAtJudge(session: RecordOf<'apiSession'>, routerId: string): boolean
  /**
   * Counts the changes of the checks that the identity passes: by reports, by changes of its second
   * factor, and by wake-ups after which a check requires a new code. The count decreases only if a
   * controller fails, or drops its reports because the identity has no API session.
   */
  moves(identityId: string): number
  /** Time when a check of the session last began to fail because of a timeout, UTC ms; 0: never. */
  lapsedAt(session: RecordOf<'apiSession'>): number
  /**
   * Accepts all reports of a request or none. Resolves once the sessions that fail because of these
   * reports have ended, if there is a leader to end them.
   * @throws {Problem} COULD_NOT_VALIDATE above the limit of one identity; SERVER_TOO_MANY_REQUESTS
   * when this controller has no room for the reports.
   */
  report(session: RecordOf<'apiSession'>, reports: readonly PostureReport[]): Promise<void>
  /**
   * Resolves when this controller has all reports that clients made to reachable controllers before
   * the call, or after a short time.
   */
  reachLatest(): Promise<void>
  /**
   * Call this method when a code was verified, or MFA ended: checks of the second factor may then
   * pass or fail.
   */
  factorMoved(identityId: string): Promise<void>
  /**
   * The policies that would grant the right, but fail for this posture. [] when a policy grants the
   * right for this posture, or when no policy would grant it.
   */
  failures(wanted: GrantedRight, posture: EvaluatedPosture): readonly PostureFailure[]
  /**
   * The checks of the first policy whose checks all pass; [] if there is none. A service session is
   * admitted because of this policy.
   */
  grantingChecks(wanted: GrantedRight, posture: EvaluatedPosture): readonly EvaluatedPostureCheck[]
  /**
   * The services that soon require a new MFA code because the session's device woke
   * (`prompts.isWoken`) or was unlocked (`prompts.isUnlocked`): in ID order, at most 1,000.
   */
  promptedServices(
    session: RecordOf<'apiSession'>,
    prompts: CodePrompts,
  ): readonly PromptedService[]
  /**
   * Records that posture checks refused a session.
   * @returns the error for its client.
   */
  refused(
    wanted: GrantedRight & { readonly apiSessionId: string },
    failures: readonly PostureFailure[],
    cause: Problem,
  ): Problem
  /** Failed requests at all controllers, the newest first. */
  failedRequests(identityId: string): readonly FailedRequest[]
  start(): void
  stop(): void
}
