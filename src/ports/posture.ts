import type { RecordOf } from '../entities/kind-records.ts'
import type { JsonObject } from '../lib/text/canonical-json.ts'
import type { Problem } from '../lib/problems.ts'
import type { DialBind, JudgedCheck, PromptedService, Prompts } from './state-view.ts'
import type { JudgedPosture } from './judged-posture.ts'

/** Reports of the devices of an identity on themselves. Nothing of them is proven. */
export interface Posture {
  readonly os: OsReport | null
  readonly domain: DomainReport | null
  readonly mac: MacReport | null
  /** One a path, or one a check where no path was said; the last one reported comes last. */
  readonly processes: readonly ProcessReport[]
  /** Factor of one API session; absent: of none, which has shown no second factor. */
  readonly factor?: ShownFactor
  /** A router has judged these in place of the controllers; absent: nothing. */
  readonly judgedByRouter?: ReadonlySet<DeviceKind>
}

/** Kinds of facts that a device alone knows. */
export type DeviceKind = 'os' | 'domain' | 'mac' | 'process'

/** Clients report all of these to a router that evaluates posture. */
export const deviceKinds: ReadonlySet<DeviceKind> = new Set(['os', 'domain', 'mac', 'process'])

/** Second factor that an API session has shown, to be judged at a time; all UTC ms. */
export interface ShownFactor extends EndpointState {
  /** When the last code that was right was given in it. */
  readonly passedAtMs: number | null
  readonly nowMs: number
  /** Its client knows no timeouts of second factors. */
  readonly isLegacyClient: boolean
}

interface Reported {
  /** The posture check it answers, as the client says; '' where it said none. */
  readonly checkId: string
  /** When it was reported, by the clock of the controller that it was reported to, UTC ms. */
  readonly atMs: number
}

export interface OsReport extends Reported {
  readonly type: string
  readonly version: string
  readonly build: string
}

export interface DomainReport extends Reported {
  readonly domain: string
}

export interface MacReport extends Reported {
  /** Lower-case hex digits. */
  readonly addresses: readonly string[]
}

export interface ProcessReport extends Reported {
  /** '' where none was said. */
  readonly path: string
  readonly isRunning: boolean
  /** Lower-case hex digits, as are the fingerprints. */
  readonly hash: string
  readonly signerFingerprints: readonly string[]
}

/**
 * When the device of an API session last woke or was unlocked, by the clock of the controller that
 * it reported to, UTC ms.
 */
export interface EndpointState {
  readonly wokenAtMs: number | null
  readonly unlockedAtMs: number | null
}

/** One thing that a device reports. */
export type PostureReport =
  | ({ readonly kind: 'os' } & Omit<OsReport, 'atMs'>)
  | ({ readonly kind: 'domain' } & Omit<DomainReport, 'atMs'>)
  | ({ readonly kind: 'mac' } & Omit<MacReport, 'atMs'>)
  | ({ readonly kind: 'process' } & Omit<ProcessReport, 'atMs'>)
  | { readonly kind: 'endpoint'; readonly isWoken: boolean; readonly isUnlocked: boolean }
  | { readonly kind: 'router'; readonly routerId: string }

/**
 * `same`: all of it was known. `tooLarge`: it would not fit even in place of all earlier reports.
 * `full`: this controller has no room left.
 */
export type ReportOutcome = 'taken' | 'same' | 'tooLarge' | 'full'

/** A session that an identity was refused because of posture. */
export interface FailedRequest {
  readonly atMs: number
  readonly apiSessionId: string
  readonly serviceId: string
  readonly serviceName: string
  readonly sessionType: string
  /** Failures as responses show them. */
  readonly policyFailures: readonly Readonly<Record<string, unknown>>[]
}

/** Grant that a policy would give. */
export interface Granted {
  readonly identityId: string
  readonly serviceId: string
  readonly type: DialBind
}

/** A policy with those of its posture checks that do not pass. */
export interface PostureFailure {
  readonly policyId: string
  readonly policyName: string
  readonly checks: readonly {
    readonly id: string
    readonly name: string
    readonly typeId: string
    /** Values that it asked for and what it got, by its type. */
    readonly values: JsonObject
  }[]
}

/**
 * Posture that devices reported to any controller, whether it passes the checks of policies, and
 * the consequences if it does not. Reports are kept in memory only: they are lost when the
 * controller that received them stops, and devices report again. Of two reports on the same item,
 * the later one counts, even if different controllers received them.
 */
export interface PostureService {
  of(identityId: string): Posture
  /** States of endpoints by API session. */
  endpointsOf(identityId: string): ReadonlyMap<string, EndpointState>
  /** Second factor that was shown in an API session. */
  factorOf(session: RecordOf<'apiSession'>): ShownFactor
  /** Rests on no API session: no second factor counts. */
  ofIdentity(identityId: string): JudgedPosture
  /** Posture that its identity reported, and the factor shown in the session. */
  ofSession(session: RecordOf<'apiSession'>): JudgedPosture
  /**
   * The same for a router that judges posture itself: what devices alone know of themselves passes,
   * and a second factor is judged here.
   */
  ofSessionAtJudge(session: RecordOf<'apiSession'>): JudgedPosture
  /**
   * Notes that a router that evaluates posture has admitted the client of the session to dial or
   * host. The session then does not end because of facts that its device reports only to that
   * router.
   */
  notedAtJudge(session: RecordOf<'apiSession'>, routerId: string): void
  /**
   * How often reports on an identity changed what it passes; only grows as long as the controllers
   * run.
   */
  moves(identityId: string): number
  /**
   * When a check of the session last stopped passing because time went by, UTC ms; 0: none did.
   */
  lapsedAt(session: RecordOf<'apiSession'>): number
  /**
   * Takes all that one request reports, or nothing of it. Resolves when the sessions that it costs
   * the caller are ended, as far as there is a leader to end them.
   * @throws {Problem} COULD_NOT_VALIDATE for more than is kept of one identity;
   * SERVER_TOO_MANY_REQUESTS when this controller has no room for it.
   */
  report(session: RecordOf<'apiSession'>, reports: readonly PostureReport[]): Promise<void>
  /** A code was given, or MFA ended: checks that ask for a second factor may pass now, or fail. */
  factorMoved(identityId: string): Promise<void>
  /**
   * The policies that grant nothing for such a posture; [] when one of them grants, or there is
   * none.
   */
  failures(wanted: Granted, posture: JudgedPosture): readonly PostureFailure[]
  /**
   * The checks of the first policy whose checks all pass: the reason why a service session is
   * admitted.
   */
  grantingChecks(wanted: Granted, posture: JudgedPosture): readonly JudgedCheck[]
  /**
   * The services for which a code must be given again soon, as the device of the session has woken;
   * in id order.
   */
  promptedServices(session: RecordOf<'apiSession'>, prompts: Prompts): readonly PromptedService[]
  /**
   * Takes note of a session that posture checks stood against.
   * @returns what its client is answered.
   */
  refused(
    wanted: Granted & { readonly apiSessionId: string },
    failures: readonly PostureFailure[],
    cause: Problem,
  ): Problem
  /** Failed requests at all controllers, the newest first. */
  failedRequests(identityId: string): readonly FailedRequest[]
  start(): void
  stop(): void
}
