import type { Hello } from '../../../proto/gen/mesh_pb.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NodeId } from '../../raft/types.ts'
import type { PeerVerdict } from './handshake.ts'
import { type Logger, LogThrottle } from '../logger.ts'

const LOGGED_MAX = 1000
/** Timestamps in gRPC errors. They are removed, so that equal errors have equal text. */
const TIME_IN_TEXT = / \(\d{4}-\d{2}-\d{2}T[\d:.]+Z\)/g

/** Text that gRPC adds before the reason of a failure: the status and the attempted address. */
const AROUND_REASON = [/^\d{1,2} [A-Z_]+: /, /No connection established\. Last error: (Error: )?/]
const AFTER_REASON = /\.? Resolution note: ?$/
const systemWords: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'host unreachable',
  ENETUNREACH: 'network unreachable',
  ETIMEDOUT: 'timed out',
}

const caWords = /issuer certificate|self-signed certificate|unable to verify/
/**
 * OpenSSL's words for a port that requires another protocol than the mesh: an HTTPS or router port,
 * or a port without TLS.
 */
const wrongPortWords = /no application protocol|wrong version number|packet length too long/
const WRONG_PORT =
  'it does not accept connections of controllers; use the cluster port of that controller (cluster.bind, default 1480)'

/**
 * Removes constant text and the address from a gRPC error, because the log line already has the
 * `address`, and replaces some errors by clearer words.
 * @returns the reason.
 */
export function grpcFailureReason(reason: string, address: string): string {
  const bare = AROUND_REASON.reduce((text, around) => text.replace(around, ''), reason)
    .replace(AFTER_REASON, '')
    .replaceAll(TIME_IN_TEXT, '')
    .replace(` ${address}`, '')
  const named = bare.replace(/^(?:connect|read) (E[A-Z]+)$/, (whole, code: string) => {
    return systemWords[code] ?? whole
  })
  if (wrongPortWords.test(named)) return WRONG_PORT
  return caWords.test(named) ? `its certificate is of another CA (${named})` : named
}

/**
 * Logs events about peers for an operator. Refusals, failed connections and different options are
 * logged only once or at a limited rate.
 */
export class MeshEventLogger {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #throttle = new LogThrottle({ windowMs: 60_000, keysMax: 1000 })
  /** Events that are logged only once per process. */
  readonly #logged = new Set<string>()

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock
    this.#log = log
  }

  connected(id: NodeId, isConnected: boolean): void {
    this.#log.info({ peer: id }, `peer ${id} is ${isConnected ? '' : 'dis'}connected`)
  }

  /** Logs that this member refused a caller. */
  refusedCaller(verdict: PeerVerdict & { ok: false }, remote: string): void {
    const name = verdict.id ?? remote
    this.#refused(verdict, remote, `${name}: ${verdict.detail}`)
  }

  /**
   * Logs that this member refused the controller that answered at a peer's address.
   * @param id the expected peer.
   * @param dnsFault why the tried address is not current; null if it is.
   */
  refusedCallee(
    verdict: PeerVerdict & { ok: false },
    id: NodeId,
    address: string,
    dnsFault: string | null,
  ): void {
    const detail = dnsFault === null ? verdict.detail : `${dnsFault}: ${verdict.detail}`
    this.#refused(verdict, `${id} at ${address}`, `${verdict.id ?? id} at ${address}: ${detail}`)
  }

  #refused(verdict: PeerVerdict & { ok: false }, remote: string, text: string): void {
    const { id: peer, reason } = verdict
    if (!this.#throttle.allow(`${peer ?? remote} ${reason}`, this.#clock.monotonicMs())) return
    this.#log.warn({ peer, remote, reason }, `refused peer ${text}`)
  }

  /**
   * Logs that a peer is unreachable.
   * @param reason null if no address was tried.
   * @param dnsFault why the tried address is not current; null if it is.
   */
  unreachable(id: NodeId, address: string, reason: string | null, dnsFault: string | null): void {
    const plain = reason === null ? null : grpcFailureReason(reason, address)
    const detail = [dnsFault, plain].filter((one) => one !== null).join(': ')
    const key = `${id} ${detail.slice(0, 100)}`
    if (!this.#throttle.allow(key, this.#clock.monotonicMs())) return
    this.#log.warn({ peer: id, address }, `no connection to ${id} at ${address}: ${detail}`)
  }

  /**
   * Warns about options that differ from those of a peer. They do not prevent a connection, because
   * operators change an option on one controller after another.
   */
  compareOptions(
    id: NodeId,
    { sharedOptionsSha256: theirs }: Hello,
    { sharedOptionsSha256: ours }: Hello,
  ): void {
    if (ours.length === 0 || theirs.length === 0 || Buffer.compare(ours, theirs) === 0) return
    const key = `options ${id} ${Buffer.from(theirs.subarray(0, 32)).toString('hex')}`
    if (this.#logged.has(key) || this.#logged.size >= LOGGED_MAX) return
    this.#logged.add(key)
    this.#log.warn(
      { peer: id },
      `${id} has different values for options that must be equal on every controller; compare the two configurations and correct one`,
    )
  }
}
