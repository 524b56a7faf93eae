import { Client, type ClientDuplexStream, credentials, type ServiceError } from '@grpc/grpc-js'
import type { SecureContext } from 'node:tls'

import type { ForwardFrame, Hello } from '../../../proto/gen/mesh_pb.ts'
import type { Random } from '../../lib/random.ts'
import type { Resolution } from '../../lib/runtime/cached-resolver.ts'
import type { NodeId } from '../../raft/types.ts'
import type { PeerVerdict } from './handshake.ts'
import {
  decodeForwardFrame,
  decodeRaftFrame,
  encodeForwardFrame,
  encodeRaftHello,
} from '../message-codec.ts'
import { type MeshRefusal, readMeshRefusal } from './mesh-refusal.ts'
import { grpcClientOptions, meshService } from './mesh-service.ts'
import { OutboundStream } from './outbound-stream.ts'

const HELLO_TIMEOUT_MS = 5000
/** Timeout for the Hello when there is another address to try. */
const HELLO_TIMEOUT_MS_OF_MANY = 2500
/** Maximum time to send the written frames before the connection is closed. */
const DRAIN_MS = 1000
const BACKOFF_MIN_MS = 50
const BACKOFF_MAX_MS = 1000

interface PeerLinkDeps {
  readonly selfId: NodeId
  readonly hello: () => Hello
  /**
   * Whether `hello` reports everything that this member has acknowledged. If not, the link does not
   * dial yet and checks again soon.
   */
  readonly canDial: () => boolean
  /** Resolves a name to host:port with IP addresses; null for tests without names. */
  readonly resolve: ((address: string) => Promise<Resolution>) | null
  readonly secureContext: () => SecureContext
  /**
   * Decides whether to trust the peer. If `hello` is undefined, checks everything except the Hello.
   */
  readonly judge: (leafDer: Uint8Array | null, hello: Hello | null | undefined) => PeerVerdict
  readonly random: Random
  /** Called when both streams are open and the peer is authenticated. */
  readonly onReady: (hello: Hello, leafPem: string) => void
  /**
   * Called when a ready link has closed, except by `stop` or `drain`. Frames without a response may
   * or may not have arrived.
   */
  readonly onLost: () => void
  readonly onForward: (frame: ForwardFrame['frame']) => void
  readonly onHeard: () => void
  /**
   * Called when this member refuses the callee. `dnsFault`: why the tried address is not current;
   * null if it is.
   */
  readonly onRefused: (verdict: PeerVerdict & { ok: false }, dnsFault: string | null) => void
  /** Decides like `judge`, and also compares the Hello with the peer's earlier reports. */
  readonly greet: (leafDer: Uint8Array | null, hello: Hello | null) => PeerVerdict
  /** Called when the callee, authenticated by its pinned key, refuses this member. */
  readonly onRefusedByPeer: (refusal: MeshRefusal) => void
  /**
   * Called when the attempt failed, except when `onRefused` was called with the reason.
   * `dnsFault`: why the tried address is not current, or why there was no address; null if a name
   * server has responded.
   */
  readonly onFailed: (reason: string | null, dnsFault: string | null) => void
}

type FrameStream = ClientDuplexStream<Buffer, Buffer>

/** One connection with its two streams, from dialing to closing. */
interface Attempt {
  readonly address: string
  /** Resolved target of the address. */
  readonly target: string
  /** Reason why the target is an earlier address of the name; null if the target is current. */
  readonly dnsFault: string | null
  readonly client: Client
  readonly raft: FrameStream
  readonly forward: FrameStream
  readonly raftOut: OutboundStream
  readonly forwardOut: OutboundStream
  readonly helloTimer: NodeJS.Timeout
  /**
   * `isGiven` becomes true when the callee has proven the expected certificate; its Hello may still
   * be missing. `refusal`: why its certificate was refused; null if it was not.
   */
  readonly proof: { isGiven: boolean; refusal: string | null }
  raftHello: Hello | null
  isForwardProven: boolean
  isReady: boolean
}

/**
 * The streams that this member dials to one peer: one for Raft messages, one for proposals, reads,
 * notes and calls. Redials with backoff (at first 25 to 50 ms, at most 1 s) until stopped. The two
 * streams always close together.
 */
export class PeerLink {
  readonly peerId: NodeId
  readonly #deps: PeerLinkDeps
  #addresses: readonly string[]
  /** Selects the address to dial. Each attempt that did not become ready increments the number. */
  #turn = 0
  #attempt: Attempt | null = null
  #redialTimer: NodeJS.Timeout | null = null
  /** Number of the DNS lookup in progress; the result of an earlier lookup is ignored. */
  #resolving: number | null = null
  #resolved = 0
  #failures = 0
  #isStopped = true

  /** @param addresses host:port, best first; the link tries them in order. */
  constructor(peerId: NodeId, addresses: readonly string[], deps: PeerLinkDeps) {
    this.peerId = peerId
    this.#addresses = addresses
    this.#deps = deps
  }

  /**
   * The address to which the link is connected or which it is dialing; otherwise the one that it
   * will dial next.
   */
  get address(): string {
    return this.#attempt?.address ?? this.#nextAddress
  }

  get #nextAddress(): string {
    return this.#addresses[this.#turn % this.#addresses.length] ?? ''
  }

  /** Whether the link is connected to this address. */
  isAt(address: string): boolean {
    const attempt = this.#attempt
    return attempt?.isReady === true && [attempt.address, attempt.target].includes(address)
  }

  get isReady(): boolean {
    return this.#attempt?.isReady ?? false
  }

  get queuedBytes(): number {
    return this.#attempt?.raftOut.queuedBytes ?? 0
  }

  start(): void {
    this.#isStopped = false
    this.#dial()
  }

  stop(): void {
    this.#isStopped = true
    this.#resolving = null
    this.#end(this.#attempt)
    if (this.#redialTimer !== null) clearTimeout(this.#redialTimer)
    this.#redialTimer = null
  }

  /**
   * Replaces the addresses. An authenticated connection continues, because an address is only a
   * hint.
   */
  setAddresses(addresses: readonly string[]): void {
    if (addresses.join(' ') === this.#addresses.join(' ')) return
    this.#addresses = addresses
    const current = this.#attempt?.address ?? null
    if (this.#attempt?.proof.isGiven === true) {
      // The link uses the new list only after the current connection has closed.
      this.#turn = Math.max(0, addresses.indexOf(current ?? ''))
      return
    }
    this.#turn = 0
    if (this.#isStopped || current === this.#nextAddress) return
    // An attempt at a former address of the peer is abandoned, because it could last until its
    // timeout.
    this.#end(this.#attempt)
    if (this.#redialTimer !== null) clearTimeout(this.#redialTimer)
    this.#redialTimer = null
    this.#failures = 0
    this.#dial()
  }

  /**
   * Ends each stream after its written frames, and closes the connection after `DRAIN_MS`, so that
   * a removed peer still receives the log entry that removes it.
   */
  drain(): void {
    const attempt = this.#attempt
    if (attempt?.isReady !== true) {
      this.stop()
      return
    }
    this.#isStopped = true
    this.#attempt = null
    attempt.isReady = false
    attempt.raft.end()
    attempt.forward.end()
    setTimeout(() => this.#end(attempt), DRAIN_MS).unref()
  }

  /**
   * Skips the rest of the backoff, because the peer has just contacted this member, or a probe of a
   * seed has found the peer.
   */
  redialNow(): void {
    if (this.#isStopped || this.#redialTimer === null) return
    clearTimeout(this.#redialTimer)
    this.#redialTimer = null
    this.#failures = 0
    this.#dial()
  }

  /**
   * Checks the peer again after a change of members. If the link no longer accepts the peer, it
   * closes the connection and retries.
   */
  judgeAgain(): void {
    const attempt = this.#attempt
    if (attempt?.isReady !== true) return
    const verdict = this.#deps.judge(leafOf(attempt.raft), attempt.raftHello)
    if (!verdict.ok) this.#onUnproven(attempt, verdict)
  }

  /**
   * Sends a frame on the Raft stream.
   * @returns false when nothing was sent, because the link is not connected or the queue is full.
   */
  sendRaft(frame: Uint8Array, queueBytesMax: number): boolean {
    const attempt = this.#attempt
    return attempt?.isReady === true && attempt.raftOut.write(frame, queueBytesMax)
  }

  /**
   * Sends a frame on the forward stream.
   * @returns false in the same cases as {@link sendRaft}.
   */
  sendForward(frame: Uint8Array, queueBytesMax: number): boolean {
    const attempt = this.#attempt
    return attempt?.isReady === true && attempt.forwardOut.write(frame, queueBytesMax)
  }

  #dial(): void {
    const address = this.#nextAddress
    this.#resolving = null
    if (address === '') this.#redialLater()
    else if (this.#deps.resolve === null) this.#connect(address, address, null)
    else void this.#dialName(address, this.#deps.resolve)
  }

  async #dialName(address: string, resolve: NonNullable<PeerLinkDeps['resolve']>): Promise<void> {
    this.#resolved += 1
    const mine = this.#resolved
    this.#resolving = mine
    const { addresses, fault } = await resolve(address)
    if (this.#resolving !== mine) return
    this.#resolving = null
    // Each round over the addresses tries another IP address of the name.
    const round = Math.floor(this.#turn / this.#addresses.length)
    const target = addresses[round % addresses.length]
    if (target !== undefined) {
      this.#connect(address, target, fault)
      return
    }
    this.#deps.onFailed(null, fault)
    this.#turn += 1
    this.#redialLater()
  }

  #connect(address: string, target: string, dnsFault: string | null): void {
    // The link waits, because a Hello must not report less than this member has acknowledged.
    if (!this.#deps.canDial()) {
      this.#redialLater()
      return
    }
    const proof: Attempt['proof'] = { isGiven: false, refusal: null }
    const client = new Client(
      target,
      credentials.createFromSecureContext(this.#deps.secureContext(), {
        // Host names and addresses prove nothing here. Instead, the SPIFFE id and the pinned key
        // identify the callee.
        checkServerIdentity: (_host, { raw }) => {
          const verdict = this.#deps.judge(raw, undefined)
          proof.isGiven = verdict.ok
          if (verdict.ok) return undefined
          proof.refusal = verdict.detail
          this.#deps.onRefused(verdict, dnsFault)
          return new Error(verdict.detail)
        },
      }),
      grpcClientOptions,
    )
    const open = ({ path, requestSerialize, responseDeserialize }: typeof meshService.raft) =>
      client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
    const raft = open(meshService.raft)
    const forward = open(meshService.forward)
    const attempt: Attempt = {
      address,
      target,
      dnsFault,
      client,
      raft,
      forward,
      raftOut: new OutboundStream(raft),
      forwardOut: new OutboundStream(forward),
      helloTimer: setTimeout(
        () => this.#fail(attempt, 'it sent no Hello'),
        this.#addresses.length > 1 ? HELLO_TIMEOUT_MS_OF_MANY : HELLO_TIMEOUT_MS,
      ),
      proof,
      raftHello: null,
      isForwardProven: false,
      isReady: false,
    }
    this.#attempt = attempt
    this.#listen(attempt, raft, (bytes) => this.#onRaft(attempt, bytes))
    this.#listen(attempt, forward, (bytes) => this.#onForward(attempt, bytes))
    const hello = this.#deps.hello()
    raft.write(Buffer.from(encodeRaftHello(hello)))
    forward.write(Buffer.from(encodeForwardFrame({ case: 'hello', value: hello })))
  }

  #listen(attempt: Attempt, stream: FrameStream, onFrame: (bytes: Buffer) => void): void {
    stream.on('data', (bytes: Buffer) => {
      if (this.#attempt !== attempt) return
      try {
        onFrame(bytes)
      } catch (error) {
        this.#fail(attempt, `it sent a malformed frame (${String(error).slice(0, 120)})`)
      }
    })
    stream.on('error', (error: ServiceError) => {
      const refusal = this.#attempt === attempt ? readMeshRefusal(error.metadata) : null
      // gRPC repeats the reason for which this member has refused the callee's certificate.
      const { refusal: reported } = attempt.proof
      const isReported = reported !== null && error.message.includes(reported)
      this.#fail(attempt, isReported ? null : error.message.slice(0, 300))
      if (refusal !== null) this.#deps.onRefusedByPeer(refusal)
    })
    stream.on('end', () => this.#fail(attempt, 'it closed the stream'))
  }

  #onRaft(attempt: Attempt, bytes: Buffer): void {
    this.#deps.onHeard()
    const content = decodeRaftFrame(bytes, this.peerId, this.#deps.selfId)
    if (attempt.raftHello !== null) {
      // On this stream, the callee sends only its Hello. A newer release may send other frames,
      // which are ignored.
      if (content.kind !== 'unknown') this.#fail(attempt, 'it sent more than its Hello')
      return
    }
    const hello = content.kind === 'hello' ? content.hello : null
    if (!this.#isProven(attempt, attempt.raft, hello)) return
    attempt.raftHello = hello
    this.#settle(attempt)
  }

  #onForward(attempt: Attempt, bytes: Buffer): void {
    this.#deps.onHeard()
    const frame = decodeForwardFrame(bytes)
    if (attempt.isForwardProven) {
      if (frame.case === 'hello') this.#fail(attempt, 'it sent Hello twice')
      else this.#deps.onForward(frame)
      return
    }
    const hello = frame.case === 'hello' ? frame.value : null
    if (!this.#isProven(attempt, attempt.forward, hello)) return
    attempt.isForwardProven = true
    this.#settle(attempt)
  }

  #isProven(attempt: Attempt, stream: FrameStream, hello: Hello | null): boolean {
    const verdict = this.#deps.greet(leafOf(stream), hello)
    if (verdict.ok) return true
    this.#onUnproven(attempt, verdict)
    return false
  }

  #onUnproven(attempt: Attempt, verdict: PeerVerdict & { ok: false }): void {
    this.#deps.onRefused(verdict, attempt.dnsFault)
    this.#fail(attempt, null)
  }

  #settle(attempt: Attempt): void {
    if (attempt.raftHello === null || !attempt.isForwardProven) return
    clearTimeout(attempt.helloTimer)
    attempt.isReady = true
    this.#failures = 0
    const verdict = this.#deps.judge(leafOf(attempt.raft), undefined)
    this.#deps.onReady(attempt.raftHello, verdict.ok ? verdict.leafPem : '')
  }

  /**
   * Closes the attempt and dials again later.
   * @param reason null if it was already reported.
   */
  #fail(attempt: Attempt, reason: string | null): void {
    if (this.#attempt !== attempt) return
    const wasReady = attempt.isReady
    this.#end(attempt)
    if (reason !== null) this.#deps.onFailed(reason, attempt.dnsFault)
    if (wasReady) this.#deps.onLost()
    if (this.#isStopped || this.#redialTimer !== null) return
    // After a connection that worked, the link first tries the same address.
    if (!wasReady) this.#turn += 1
    this.#redialLater()
  }

  #redialLater(): void {
    const ceiling = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** this.#failures)
    this.#failures = Math.min(this.#failures + 1, 10)
    this.#redialTimer = setTimeout(
      () => {
        this.#redialTimer = null
        this.#dial()
      },
      this.#deps.random.integer(Math.ceil(ceiling / 2), ceiling),
    )
  }

  #end(attempt: Attempt | null): void {
    if (attempt === null) return
    if (this.#attempt === attempt) this.#attempt = null
    clearTimeout(attempt.helloTimer)
    attempt.isReady = false
    attempt.raft.cancel()
    attempt.forward.cancel()
    attempt.client.close()
  }
}

function leafOf(stream: FrameStream): Uint8Array | null {
  return stream.getAuthContext()?.sslPeerCertificate?.raw ?? null
}
