/** What the machines of an identity tell of themselves. All of it is their own word: nothing here is proven. */
export interface Posture {
  readonly os: OsReport | null
  readonly domain: DomainReport | null
  readonly mac: MacReport | null
  /** One a path, or one a check where no path was said; the last one told comes last. */
  readonly processes: readonly ProcessReport[]
  /** Of one API session; absent: of none, which has shown no second factor. */
  readonly factor?: ShownFactor
}

/** What an API session has shown of its second factor, to be judged at a time; all UTC ms. */
export interface ShownFactor extends EndpointState {
  /** When the last code that was right was given in it. */
  readonly passedAtMs: number | null
  readonly nowMs: number
  /** Its client knows no timeouts of second factors. */
  readonly isLegacyClient: boolean
}

interface Told {
  /** The posture check it answers, as the client says; '' where it said none. */
  readonly checkId: string
  /** When it was told, by the clock of the controller that it was told to, UTC ms. */
  readonly atMs: number
}

export interface OsReport extends Told {
  readonly type: string
  readonly version: string
  readonly build: string
}

export interface DomainReport extends Told {
  readonly domain: string
}

export interface MacReport extends Told {
  /** Lower-case hex digits. */
  readonly addresses: readonly string[]
}

export interface ProcessReport extends Told {
  /** '' where none was said. */
  readonly path: string
  readonly isRunning: boolean
  /** Lower-case hex digits, as are the fingerprints. */
  readonly hash: string
  readonly signerFingerprints: readonly string[]
}

/** When the machine of an API session last woke or was unlocked, by the clock of the controller it told, UTC ms. */
export interface EndpointState {
  readonly wokenAtMs: number | null
  readonly unlockedAtMs: number | null
}

/** One thing that a machine tells. */
export type PostureReport =
  | ({ readonly kind: 'os' } & Omit<OsReport, 'atMs'>)
  | ({ readonly kind: 'domain' } & Omit<DomainReport, 'atMs'>)
  | ({ readonly kind: 'mac' } & Omit<MacReport, 'atMs'>)
  | ({ readonly kind: 'process' } & Omit<ProcessReport, 'atMs'>)
  | { readonly kind: 'endpoint'; readonly isWoken: boolean; readonly isUnlocked: boolean }

/**
 * `same`: all of it was known. `tooLarge`: it would not fit even in place of all that was told before. `full`: this controller
 * has no room left.
 */
export type ReportOutcome = 'taken' | 'same' | 'tooLarge' | 'full'

/**
 * What was told on any controller, in memory alone: it is gone when the controller that was told it stops, and the machines
 * tell it again. Of two words on one thing, the later one counts, whichever controllers they were told to.
 */
export interface PostureReports {
  of(identityId: string): Posture
  /** By API session. */
  endpointsOf(identityId: string): ReadonlyMap<string, EndpointState>
  /** All that one request tells, or nothing of it. */
  tell(identityId: string, apiSessionId: string, reports: readonly PostureReport[]): ReportOutcome
  /** How often what was told of an identity has changed what it passes; only grows as long as the controllers run. */
  moves(identityId: string): number
  noteMove(identityId: string): void
  /** What another controller was told of the identity has gone with it. */
  onLost(listener: (identityId: string) => void): void
  /** Identities that were told of here, those not looked at for longest first; at most `max`. */
  toldHere(max: number): readonly string[]
  /** Forgets what was told here of an identity and is of none of these API sessions; without any, all of it. */
  keepOnly(identityId: string, apiSessionIds: ReadonlySet<string>): void
}

export const nothingTold: Posture = { os: null, domain: null, mac: null, processes: [] }

/** A session that an identity was refused because of posture. */
export interface FailedRequest {
  readonly atMs: number
  readonly apiSessionId: string
  readonly serviceId: string
  readonly serviceName: string
  readonly sessionType: string
  /** As responses show it. */
  readonly policyFailures: readonly Readonly<Record<string, unknown>>[]
}

/** In memory alone; those of other controllers too. */
export interface FailedRequests {
  note(identityId: string, request: FailedRequest): void
  /** The newest first. */
  of(identityId: string): readonly FailedRequest[]
}
