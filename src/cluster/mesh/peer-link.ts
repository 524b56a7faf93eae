import { Client, type ClientDuplexStream, credentials, type ServiceError } from '@grpc/grpc-js'
import type { SecureContext } from 'node:tls'

import type { ForwardFrame, Hello } from '../../../proto/gen/mesh_pb.ts'
import type { Random } from '../../lib/random.ts'
import type { NodeId } from '../../raft/types.ts'
import type { Verdict } from './handshake.ts'
import { decodeForward, decodeRaft, encodeForward, encodeRaftHello } from '../message-codec.ts'
import { type MeshRefusal, meshRefusalIn } from './mesh-refusal.ts'
import { clientOptions, meshService } from './mesh-service.ts'
import { OutboundStream } from './outbound-stream.ts'

const HELLO_TIMEOUT_MS = 5000
/** Wait for a silent address where there is another one to try. */
const HELLO_TIMEOUT_MS_OF_MANY = 2500
/** Time that what was handed over before a farewell has to leave. */
const DRAIN_MS = 1000
const BACKOFF_MIN_MS = 50
const BACKOFF_MAX_MS = 1000

export interface PeerLinkParts {
  readonly selfId: NodeId
  readonly hello: () => Hello
  /** Whether `hello` says all that has been promised; tried again soon if not. */
  readonly canDial: () => boolean
  /** host:port with an IP address each, of one with a name; null: gRPC finds out by itself. */
  readonly resolve: ((address: string) => Promise<readonly string[]>) | null
  readonly secureContext: () => SecureContext
  /** `hello` undefined: the certificate alone. */
  readonly judge: (leafDer: Uint8Array | null, hello: Hello | null | undefined) => Verdict
  readonly random: Random
  /** Both streams stand and the peer has proven itself. */
  readonly onReady: (hello: Hello, leafPem: string) => void
  /** It was ready before. What was forwarded and not answered may or may not have arrived. */
  readonly onLost: () => void
  readonly onForward: (frame: ForwardFrame['frame']) => void
  readonly onHeard: () => void
  readonly onRefused: (verdict: Verdict & { ok: false }) => void
  /** Judges as `judge`, and whether the peer may be talked to after all that it said before. */
  readonly greet: (leafDer: Uint8Array | null, hello: Hello | null) => Verdict
  /** The callee, whose key is the one pinned, does not let this member in. */
  readonly onRefusedByPeer: (refusal: MeshRefusal) => void
  /** The attempt failed for another reason than a refusal of ours. */
  readonly onFailed: (because: string) => void
}

type FrameStream = ClientDuplexStream<Buffer, Buffer>

/**
 * One connection with its two streams, from dialling to its end; a link makes one after the other.
 */
interface Attempt {
  readonly address: string
  /** Target that was dialled for it. */
  readonly target: string
  readonly client: Client
  readonly raft: FrameStream
  readonly forward: FrameStream
  readonly raftOut: OutboundStream
  readonly forwardOut: OutboundStream
  readonly helloTimer: NodeJS.Timeout
  /** The callee has proven to be who was expected; what it will say of itself is still to come. */
  readonly proof: { isGiven: boolean }
  raftHello: Hello | null
  isForwardProven: boolean
  isReady: boolean
}

/**
 * The streams that this member dials to one peer: Raft messages go out on one, proposals, reads and
 * presence on the other. Redials with backoff (50 ms to 1 s, with jitter) until stopped. The two
 * streams live and die together.
 */
export class PeerLink {
  readonly peerId: NodeId
  readonly #parts: PeerLinkParts
  #addresses: readonly string[]
  /** Number of the address that is dialled, counted on with each attempt that fails. */
  #turn = 0
  #attempt: Attempt | null = null
  #redialTimer: NodeJS.Timeout | null = null
  /**
   * A name that is being resolved, to be dialled after that; counted, as a later one takes its
   * place.
   */
  #resolving: number | null = null
  #resolved = 0
  #failures = 0
  #isStopped = true

  /** @param addresses host:port each, best first; they are tried in turn. */
  constructor(peerId: NodeId, addresses: readonly string[], parts: PeerLinkParts) {
    this.peerId = peerId
    this.#addresses = addresses
    this.#parts = parts
  }

  /** Address where it is connected or being dialled, or will be dialled next. */
  get address(): string {
    return this.#attempt?.address ?? this.#nextAddress
  }

  get #nextAddress(): string {
    return this.#addresses[this.#turn % this.#addresses.length] ?? ''
  }

  /** Whether it is connected there. */
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

  /** An address is a hint: the standing connection, proven by key, is kept. */
  setAddresses(addresses: readonly string[]): void {
    if (addresses.join(' ') === this.#addresses.join(' ')) return
    this.#addresses = addresses
    const current = this.#attempt?.address ?? null
    if (this.#attempt?.proof.isGiven === true) {
      // It is where it is; the list is for the time after.
      this.#turn = Math.max(0, addresses.indexOf(current ?? ''))
      return
    }
    this.#turn = 0
    if (this.#isStopped || current === this.#nextAddress) return
    // An attempt that waits for an answer from where the peer no longer is could wait long.
    this.#end(this.#attempt)
    if (this.#redialTimer !== null) clearTimeout(this.#redialTimer)
    this.#redialTimer = null
    this.#failures = 0
    this.#dial()
  }

  /**
   * Stops once all that was handed over has left, or soon: a peer that is let go still hears why.
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

  /** The peer has just been heard from by another way: no need to sit out the backoff. */
  redialNow(): void {
    if (this.#isStopped || this.#redialTimer === null) return
    clearTimeout(this.#redialTimer)
    this.#redialTimer = null
    this.#failures = 0
    this.#dial()
  }

  /**
   * The roster has changed: a standing connection that it no longer bears out ends, and another
   * attempt follows.
   */
  judgeAgain(): void {
    const attempt = this.#attempt
    if (attempt?.isReady !== true) return
    const verdict = this.#parts.judge(leafOf(attempt.raft), attempt.raftHello)
    if (!verdict.ok) this.#onUnproven(attempt, verdict)
  }

  /** @returns false when nothing was sent: not connected, or the queue is full. */
  sendRaft(frame: Uint8Array, queueBytesMax: number): boolean {
    const attempt = this.#attempt
    return attempt?.isReady === true && attempt.raftOut.write(frame, queueBytesMax)
  }

  /** @returns as {@link sendRaft}. */
  sendForward(frame: Uint8Array, queueBytesMax: number): boolean {
    const attempt = this.#attempt
    return attempt?.isReady === true && attempt.forwardOut.write(frame, queueBytesMax)
  }

  #dial(): void {
    const address = this.#nextAddress
    this.#resolving = null
    if (address === '') this.#redialLater()
    else if (this.#parts.resolve === null) this.#connect(address, address)
    else void this.#dialName(address, this.#parts.resolve)
  }

  async #dialName(address: string, resolve: NonNullable<PeerLinkParts['resolve']>): Promise<void> {
    this.#resolved += 1
    const mine = this.#resolved
    this.#resolving = mine
    const found = await resolve(address)
    if (this.#resolving !== mine) return
    this.#resolving = null
    // Each round of the addresses tries another one behind the name.
    const round = Math.floor(this.#turn / this.#addresses.length)
    const target = found[round % found.length]
    if (target !== undefined) {
      this.#connect(address, target)
      return
    }
    this.#parts.onFailed('DNS lookup failed')
    this.#turn += 1
    this.#redialLater()
  }

  #connect(address: string, target: string): void {
    // A Hello is made below: not while it would say less than was promised.
    if (!this.#parts.canDial()) {
      this.#redialLater()
      return
    }
    const proof = { isGiven: false }
    const client = new Client(
      target,
      credentials.createFromSecureContext(this.#parts.secureContext(), {
        // Names and addresses prove nothing here; the SPIFFE id and the pinned key do.
        checkServerIdentity: (_host, { raw }) => {
          const fault = this.#checkCallee(raw)
          proof.isGiven = fault === undefined
          return fault
        },
      }),
      clientOptions,
    )
    const open = ({ path, requestSerialize, responseDeserialize }: typeof meshService.raft) =>
      client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
    const raft = open(meshService.raft)
    const forward = open(meshService.forward)
    const attempt: Attempt = {
      address,
      target,
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
    const hello = this.#parts.hello()
    raft.write(Buffer.from(encodeRaftHello(hello)))
    forward.write(Buffer.from(encodeForward({ case: 'hello', value: hello })))
  }

  #checkCallee(leafDer: Uint8Array): Error | undefined {
    const verdict = this.#parts.judge(leafDer, undefined)
    if (verdict.ok) return undefined
    this.#parts.onRefused(verdict)
    return new Error(verdict.because)
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
      const refusal = this.#attempt === attempt ? meshRefusalIn(error.metadata) : null
      this.#fail(attempt, error.message.slice(0, 300))
      if (refusal !== null) this.#parts.onRefusedByPeer(refusal)
    })
    stream.on('end', () => this.#fail(attempt, 'it closed the stream'))
  }

  #onRaft(attempt: Attempt, bytes: Buffer): void {
    this.#parts.onHeard()
    const content = decodeRaft(bytes, this.peerId, this.#parts.selfId)
    if (attempt.raftHello !== null) {
      // A callee answers with its Hello only; a newer release may say more, in kinds we pass over.
      if (content.kind !== 'unknown') this.#fail(attempt, 'it sent more than its Hello')
      return
    }
    const hello = content.kind === 'hello' ? content.hello : null
    if (!this.#isProven(attempt, attempt.raft, hello)) return
    attempt.raftHello = hello
    this.#settle(attempt)
  }

  #onForward(attempt: Attempt, bytes: Buffer): void {
    this.#parts.onHeard()
    const frame = decodeForward(bytes)
    if (attempt.isForwardProven) {
      if (frame.case === 'hello') this.#fail(attempt, 'it sent Hello twice')
      else this.#parts.onForward(frame)
      return
    }
    const hello = frame.case === 'hello' ? frame.value : null
    if (!this.#isProven(attempt, attempt.forward, hello)) return
    attempt.isForwardProven = true
    this.#settle(attempt)
  }

  #isProven(attempt: Attempt, stream: FrameStream, hello: Hello | null): boolean {
    const verdict = this.#parts.greet(leafOf(stream), hello)
    if (verdict.ok) return true
    this.#onUnproven(attempt, verdict)
    return false
  }

  #onUnproven(attempt: Attempt, verdict: Verdict & { ok: false }): void {
    this.#parts.onRefused(verdict)
    this.#fail(attempt, null)
  }

  #settle(attempt: Attempt): void {
    if (attempt.raftHello === null || !attempt.isForwardProven) return
    clearTimeout(attempt.helloTimer)
    attempt.isReady = true
    this.#failures = 0
    const verdict = this.#parts.judge(leafOf(attempt.raft), undefined)
    this.#parts.onReady(attempt.raftHello, verdict.ok ? verdict.leafPem : '')
  }

  /** @param because null when the reason was reported already. */
  #fail(attempt: Attempt, because: string | null): void {
    if (this.#attempt !== attempt) return
    const wasReady = attempt.isReady
    this.#end(attempt)
    if (because !== null) this.#parts.onFailed(because)
    if (wasReady) this.#parts.onLost()
    if (this.#isStopped || this.#redialTimer !== null) return
    // The peer is looked for first at the address where it was reached.
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
      this.#parts.random.integer(Math.ceil(ceiling / 2), ceiling),
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
