import { randomInt } from 'node:crypto'

import type { Clock } from '../../lib/clock.ts'
import { FairShare } from '../../lib/bounds/fair-share.ts'
import { KeyedTokenBuckets, TokenBucket } from '../../lib/bounds/keyed-token-buckets.ts'
import { Problem } from '../../lib/problems.ts'
import type { ClusterView } from '../../ports/cluster-view.ts'
import type { OpenSoftTopic } from '../../ports/soft-topics.ts'
import type { LogInRequest } from '../log-in/log-in.ts'
import type { CallerCredentials } from '../principal/credentials.ts'
import type { MintedTokens } from '../sessions/oidc-tokens.ts'
import type { DeviceFlow } from './device-flow.ts'
import { invalidGrantError, OAuthError } from './oauth-error.ts'
import type { AuthorizationRequest } from './public-clients.ts'

export const deviceLogInLimits = {
  /** Lifetime of a device's codes. */
  deviceLogInMs: 10 * 60_000,
  /** Interval at which a device polls for approval. */
  devicePollMs: 5000,
  /**
   * Maximum device log-ins that wait for approval, and denials of device log-ins, at one
   * controller, shared fairly among sources; above the limit, the response is 429.
   */
  deviceLogInsMax: 1000,
  /** Maximum number of devices whose polls are counted. */
  devicePollsMax: 4096,
  /**
   * User codes that one source may enter in a burst; above the limit, the response is 429. Of
   * 25,600 million possible codes, up to `deviceLogInsMax` at each controller are valid at the same
   * time.
   */
  userCodesAtOnceMax: 20,
  /**
   * User codes that one source may enter per second once it has used the burst
   * `userCodesAtOnceMax`.
   */
  userCodesPerSecond: 0.2,
  /**
   * User codes that all sources together may enter in a burst; above the limit, the response is
   * 429. With `userCodesOfAllPerSecond`, users can enter about three thousand codes at one
   * controller during the lifetime of a code.
   */
  userCodesOfAllAtOnceMax: 200,
  /**
   * User codes that all sources together may enter per second once they have used the burst
   * `userCodesOfAllAtOnceMax`.
   */
  userCodesOfAllPerSecond: 5,
  /**
   * Maximum sources whose entered codes are counted; the least recently used source is evicted
   * first.
   */
  userCodeSourcesMax: 4096,
} as const

/** Consonants, which form no words and are not confused with each other (RFC 8628, 6.1). */
const ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ'
const CODE_CHARACTERS = 8

/** A device log-in that waits for approval. */
export interface PendingDeviceLogIn {
  readonly userCode: string
  /** Id of the flow that the user goes through. */
  readonly id: string
  readonly address: string
}

interface BegunDevice {
  /** Secret: the code that the device exchanges for tokens. */
  readonly deviceCode: string
  readonly userCode: string
}

interface DeviceLogInsDeps {
  readonly clock: Clock
  readonly cluster: Pick<ClusterView, 'members' | 'selfId'>
  readonly topic: OpenSoftTopic<'device-log-ins'>
  readonly flow: DeviceFlow
}

interface OwnDevice {
  readonly source: string
  readonly endsAtMs: number
}

/**
 * Device authorization grant (RFC 8628). The device has an encrypted code, which any controller can
 * decrypt. The user enters a short code, which the soft state maps to the flow. The session of the
 * flow, in the replicated state, records the approval.
 */
export class DeviceLogIns {
  readonly #deps: DeviceLogInsDeps
  /** Device log-ins and denials that this controller published, by user code, oldest first. */
  readonly #own = new Map<string, OwnDevice>()
  readonly #room = new FairShare(deviceLogInLimits.deviceLogInsMax)
  readonly #entries: KeyedTokenBuckets
  readonly #allEntries: TokenBucket
  readonly #polls: KeyedTokenBuckets

  constructor(deps: DeviceLogInsDeps) {
    this.#deps = deps
    const { clock } = deps
    this.#entries = new KeyedTokenBuckets(
      {
        burst: deviceLogInLimits.userCodesAtOnceMax,
        perSecond: deviceLogInLimits.userCodesPerSecond,
        keysMax: deviceLogInLimits.userCodeSourcesMax,
      },
      clock,
    )
    this.#allEntries = new TokenBucket(
      {
        burst: deviceLogInLimits.userCodesOfAllAtOnceMax,
        perSecond: deviceLogInLimits.userCodesOfAllPerSecond,
      },
      clock,
    )
    this.#polls = new KeyedTokenBuckets(
      // The burst of two tolerates a poll that arrives early by the network delay of the previous
      // poll.
      {
        burst: 2,
        perSecond: 1000 / deviceLogInLimits.devicePollMs,
        keysMax: deviceLogInLimits.devicePollsMax,
      },
      clock,
    )
  }

  /**
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS while too many devices wait, of that source or in
   * total.
   */
  async begin(
    request: Pick<AuthorizationRequest, 'clientId' | 'scopes'>,
    issuer: string,
    { address, source }: Pick<CallerCredentials, 'address' | 'source'>,
  ): Promise<BegunDevice> {
    const { flow, topic, clock } = this.#deps
    this.#forgetEnded()
    // @guard device-codes--room
    if (!this.#room.hasRoomFor(source)) throw tooMany('too many devices wait to be allowed')
    this.#room.take(source)
    const userCode = newUserCode()
    try {
      const { id, deviceCode } = await flow.begin(request, issuer, userCode)
      if (!topic.publish(userCode, topicValue(id, address))) {
        throw tooMany('too many devices wait to be allowed')
      }
      this.#own.set(userCode, { source, endsAtMs: clock.nowMs() + deviceLogInLimits.deviceLogInMs })
      return { deviceCode, userCode: shownCode(userCode) }
    } catch (error) {
      this.#room.giveBack(source)
      throw error
    }
  }

  /**
   * Finds the log-in for a user code as the user typed it.
   * @returns null if no waiting log-in has that code.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS after many codes. Correct codes count too: otherwise
   * an attacker could mix guesses with codes of devices that belong to the attacker.
   */
  async find(typed: string, source: string): Promise<PendingDeviceLogIn | null> {
    // @guard device-codes--all, device-codes--guesses
    if (!this.#entries.take(source) || !this.#allEntries.take()) {
      throw tooMany('too many codes were entered')
    }
    const key = keyOf(typed)
    const found = this.#values(key)
    const [waiting] = found
    if (waiting === undefined || found.some(({ request }) => request === '')) return null
    const { request: id, address } = waiting
    if (await this.#deps.flow.isTaken(id)) return null
    return { userCode: shownCode(key), id, address }
  }

  /**
   * Ends the log-in of the device, because the user denied it.
   * @returns false if no waiting log-in has that code.
   * @throws {Problem} SERVER_TOO_MANY_REQUESTS after many codes, and if this controller has no room
   * to publish the denial.
   */
  async deny(typed: string, source: string): Promise<boolean> {
    const waiting = await this.find(typed, source)
    if (waiting === null) return false
    const { topic, clock } = this.#deps
    const key = keyOf(typed)
    this.#forgetEnded()
    const isOwn = this.#own.has(key)
    if (!isOwn && !this.#room.hasRoomFor(source)) throw tooMany('too many devices wait')
    if (!topic.publish(key, topicValue('', ''))) throw tooMany('too many devices wait')
    if (!isOwn) {
      this.#room.take(source)
      this.#own.set(key, { source, endsAtMs: clock.nowMs() + deviceLogInLimits.deviceLogInMs })
    }
    return true
  }

  /**
   * Tokens for an approved device.
   * @throws {OAuthError} with the codes of RFC 8628, 3.5.
   */
  async redeem(
    given: { readonly deviceCode: string; readonly clientId: string; readonly issuer: string },
    shown: CallerCredentials,
    request: LogInRequest,
  ): Promise<MintedTokens> {
    const { flow } = this.#deps
    const { deviceCode, clientId } = given
    const found = await flow.open(deviceCode)
    // @guard device-codes--client
    if (found?.clientId !== clientId) {
      throw invalidGrantError('the device code is unknown, or of another client')
    }
    if (found.isOver) throw new OAuthError('expired_token', 'the device code has expired')
    // @guard device-codes--polls
    if (!this.#polls.take(found.sessionId)) {
      const seconds = deviceLogInLimits.devicePollMs / 1000
      throw new OAuthError('slow_down', `ask every ${seconds} seconds`)
    }
    // @guard device-codes--denied
    if (this.#values(found.userCode).some(({ request: id }) => id === '')) {
      throw new OAuthError('access_denied', 'the log-in was denied')
    }
    const tokens = await flow.redeem(found, given, shown, request)
    if (tokens !== null) {
      this.#forget(found.userCode)
      return tokens
    }
    throw new OAuthError('authorization_pending', 'nobody has allowed the log-in yet')
  }

  /** The values that all controllers published under this key. */
  #values(key: string): { readonly request: string; readonly address: string }[] {
    const { cluster, topic } = this.#deps
    const owners = new Set([cluster.selfId, ...cluster.members().map(({ id }) => id)])
    return [...owners].flatMap((owner) => topic.get(owner, key) ?? [])
  }

  #forgetEnded(): void {
    const nowMs = this.#deps.clock.nowMs()
    for (const [userCode, { endsAtMs }] of this.#own) {
      if (nowMs < endsAtMs) return
      this.#forget(userCode)
    }
  }

  #forget(userCode: string): void {
    const own = this.#own.get(userCode)
    if (own === undefined) return
    this.#own.delete(userCode)
    this.#deps.topic.withdraw(userCode)
    this.#room.giveBack(own.source)
  }
}

function topicValue(request: string, address: string) {
  return { $typeName: 'flotilla.soft.v1.DeviceLogIn' as const, request, address }
}

function newUserCode(): string {
  return Array.from({ length: CODE_CHARACTERS }, () => ALPHABET[randomInt(ALPHABET.length)]).join(
    '',
  )
}

/** The key for a typed code: only its letters, in upper case. */
function keyOf(typed: string): string {
  return typed
    .slice(0, 64)
    .toUpperCase()
    .replace(/[^A-Z]/g, '')
    .slice(0, CODE_CHARACTERS + 1)
}

/** The code in two halves for easier reading. */
function shownCode(key: string): string {
  return `${key.slice(0, CODE_CHARACTERS / 2)}-${key.slice(CODE_CHARACTERS / 2)}`
}

function tooMany(what: string): Problem {
  const detail = `${what}; retry in a minute`
  return new Problem('SERVER_TOO_MANY_REQUESTS', { retryAfterSeconds: 60, detail })
}
