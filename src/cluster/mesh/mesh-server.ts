import {
  type Metadata,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerUnaryCall,
  status as Status,
} from '@grpc/grpc-js'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'

import {
  type CallRequest,
  CallRequestSchema,
  type CallResponse,
  CallResponseSchema,
  type ForwardFrame,
  type Hello,
} from '../../../proto/gen/mesh_pb.ts'
import { requirePresent } from '../../lib/assert.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Index, NodeId } from '../../raft/types.ts'
import type { PeerVerdict } from './handshake.ts'
import {
  decodeForwardFrame,
  decodeRaftFrame,
  encodeForwardFrame,
  encodeRaftHello,
  type RaftStreamFrame,
} from '../message-codec.ts'
import { refusalMetadata } from './mesh-refusal.ts'
import { GrpcServer } from './grpc-server.ts'
import { MeshListener } from './mesh-listener.ts'
import { type MeshIdentity, meshService } from './mesh-service.ts'
import { type CallerMembership, MeshSessions } from './mesh-sessions.ts'
import { OutboundStream } from './outbound-stream.ts'

const HELLO_TIMEOUT_MS = 5000

interface MeshServerDeps {
  readonly clock: Clock
  readonly selfId: NodeId
  readonly hello: () => Hello
  /** Decides about a connection by its certificate, before the first byte of HTTP/2. */
  readonly standing: (leafDer: Uint8Array, remote: string) => CallerMembership
  readonly judge: (leafDer: Uint8Array | null, hello: Hello | null | undefined) => PeerVerdict
  /**
   * Decides like `judge`, and also compares the first Hello of a stream with the peer's earlier
   * reports.
   */
  readonly greet: (leafDer: Uint8Array | null, hello: Hello | null) => PeerVerdict
  /** Index of the newest configuration known to be committed; refused peers receive it. */
  readonly configurationIndex: () => Index
  /** Generation of the cluster; refused peers receive it too. */
  readonly generation: number
  readonly onRefused: (verdict: PeerVerdict & { ok: false }, remote: string) => void
  /**
   * Called when a stream of the caller was accepted. Called for each stream, so the caller's other
   * stream may still be missing.
   */
  readonly onCaller: (from: NodeId) => void
  readonly onHeard: (from: NodeId) => void
  /**
   * Called with each message on a Raft stream. `storeId`: the disk to which the stream is bound.
   */
  readonly onRaft: (from: NodeId, content: RaftStreamFrame, storeId: Uint8Array) => void
  readonly onForward: (from: NodeId, frame: ForwardFrame['frame']) => void
  /**
   * Called with a single request, outside of streams, from a caller that has only proven its
   * certificate.
   */
  readonly onCall: (
    leafDer: Uint8Array | null,
    request: CallRequest,
    answer: (response: CallResponse) => void,
  ) => void
  /** Called when one of the caller's streams has closed. */
  readonly onGone: (from: NodeId) => void
}

type Kind = 'raft' | 'forward'
type FrameCall = ServerDuplexStream<Buffer, Buffer>
type UnaryCall = ServerUnaryCall<Buffer, Buffer>

interface Inbound {
  readonly kind: Kind
  readonly call: FrameCall
  readonly out: OutboundStream
  readonly leafDer: Uint8Array | null
  /** Id of the caller; null until its Hello is accepted. */
  peerId: NodeId | null
  hello: Hello | null
  isOver: boolean
}

/**
 * Streams that peers dial to this member. A peer has one stream of each kind; a newer one replaces
 * the older.
 */
export class MeshServer {
  readonly #deps: MeshServerDeps
  readonly #listener: MeshListener
  readonly #sessions: MeshSessions
  readonly #grpc: GrpcServer
  readonly #bound: Readonly<Record<Kind, Map<NodeId, Inbound>>> = {
    raft: new Map(),
    forward: new Map(),
  }
  readonly #all = new Set<Inbound>()

  constructor(identity: MeshIdentity, deps: MeshServerDeps) {
    this.#deps = deps
    const sessions = new MeshSessions(deps)
    const methods = {
      raft: (call: FrameCall) => this.#accept('raft', call),
      forward: (call: FrameCall) => this.#accept('forward', call),
      call: (call: UnaryCall, done: sendUnaryData<Buffer>) => this.#onCall(call, done),
    }
    const grpc = new GrpcServer(meshService, methods, sessions.mayOpen)
    this.#sessions = sessions
    this.#grpc = grpc
    this.#listener = new MeshListener(identity, {
      clock: deps.clock,
      onConnection: (socket) => {
        if (sessions.admit(socket)) sessions.guard(grpc.serve(socket), socket)
      },
    })
  }

  /**
   * Starts to listen.
   * @param bind host:port; port 0 selects a free one.
   * @returns the port. Rejects with the system's reason when it cannot listen.
   */
  async listen(bind: string): Promise<number> {
    return await this.#listener.listen(bind)
  }

  setIdentity(identity: MeshIdentity): void {
    this.#listener.setIdentity(identity)
  }

  close(): void {
    for (const inbound of this.#all) inbound.isOver = true
    this.#all.clear()
    this.#bound.raft.clear()
    this.#bound.forward.clear()
    this.#listener.close()
    this.#grpc.close()
    this.#sessions.close()
  }

  hasCaller(id: NodeId): boolean {
    return this.#bound.raft.has(id) && this.#bound.forward.has(id)
  }

  /** The leaf certificate of a caller's open forward stream; null if it has none. */
  leafOf(id: NodeId): Uint8Array | null {
    return this.#bound.forward.get(id)?.leafDer ?? null
  }

  /**
   * Sends a response on the stream that the peer dialed.
   * @returns false when there is no such stream or its queue is full.
   */
  answer(to: NodeId, frame: Uint8Array, queueBytesMax: number): boolean {
    return this.#bound.forward.get(to)?.out.write(frame, queueBytesMax) ?? false
  }

  /** Closes a peer's streams and sends the peer the reason. */
  drop(id: NodeId, code: Status, reason: string): void {
    for (const kind of ['raft', 'forward'] as const) {
      const inbound = this.#bound[kind].get(id)
      if (inbound !== undefined) this.#end(inbound, code, reason)
    }
  }

  /** Checks the peer of every open stream again; called after a change of the members. */
  judgeAgain(): void {
    for (const inbound of Array.from(this.#all)) {
      if (inbound.hello === null) continue
      const verdict = this.#deps.judge(inbound.leafDer, inbound.hello)
      if (!verdict.ok) this.#refuse(inbound, verdict)
    }
    this.#sessions.judgeAgain()
  }

  #accept(kind: Kind, call: FrameCall): void {
    const inbound: Inbound = {
      kind,
      call,
      out: new OutboundStream(call),
      leafDer: call.getAuthContext().sslPeerCertificate?.raw ?? null,
      peerId: null,
      hello: null,
      isOver: false,
    }
    this.#all.add(inbound)
    const helloTimer = setTimeout(() => {
      if (inbound.hello === null) this.#refuseUnlessProven(inbound, null)
    }, HELLO_TIMEOUT_MS)
    call.on('data', (bytes: Buffer) => this.#onFrame(inbound, bytes))
    const over = (): void => {
      clearTimeout(helloTimer)
      this.#forget(inbound)
    }
    call.on('error', over)
    call.on('cancelled', over)
    call.on('close', over)
    call.on('end', () => {
      over()
      if (call.writable) call.end()
    })
  }

  #onCall(call: UnaryCall, done: sendUnaryData<Buffer>): void {
    const leafDer = call.getAuthContext().sslPeerCertificate?.raw ?? null
    const answer = (response: CallResponse): void =>
      done(null, Buffer.from(toBinary(CallResponseSchema, response)))
    try {
      this.#deps.onCall(leafDer, fromBinary(CallRequestSchema, call.request), answer)
    } catch {
      const failure = { code: 'COULD_NOT_VALIDATE', reason: 'the request cannot be read' }
      answer(create(CallResponseSchema, { failure }))
    }
  }

  #onFrame(inbound: Inbound, bytes: Buffer): void {
    if (inbound.isOver) return
    try {
      if (inbound.kind === 'raft') this.#onRaft(inbound, bytes)
      else this.#onForward(inbound, bytes)
    } catch (error) {
      this.#end(
        inbound,
        Status.INVALID_ARGUMENT,
        `malformed frame (${String(error).slice(0, 120)})`,
      )
    }
  }

  #onRaft(inbound: Inbound, bytes: Buffer): void {
    const content = decodeRaftFrame(bytes, inbound.peerId ?? '', this.#deps.selfId)
    if (inbound.peerId === null || inbound.hello === null) {
      this.#greet(inbound, content.kind === 'hello' ? content.hello : null)
    } else if (content.kind === 'hello') {
      this.#end(inbound, Status.INVALID_ARGUMENT, 'it sent Hello twice')
    } else {
      this.#deps.onHeard(inbound.peerId)
      if (content.kind === 'unknown') return
      this.#deps.onRaft(inbound.peerId, content, inbound.hello.storeId)
    }
  }

  #onForward(inbound: Inbound, bytes: Buffer): void {
    const frame = decodeForwardFrame(bytes)
    if (inbound.peerId === null) {
      this.#greet(inbound, frame.case === 'hello' ? frame.value : null)
    } else if (frame.case === 'hello') {
      this.#end(inbound, Status.INVALID_ARGUMENT, 'it sent Hello twice')
    } else {
      this.#deps.onHeard(inbound.peerId)
      if (frame.case !== undefined) this.#deps.onForward(inbound.peerId, frame)
    }
  }

  #greet(inbound: Inbound, hello: Hello | null): void {
    const peerId = this.#refuseUnlessProven(inbound, hello)
    if (peerId === null) return
    inbound.peerId = peerId
    inbound.hello = requirePresent(hello, 'a caller is proven by its Hello')
    const older = this.#bound[inbound.kind].get(peerId)
    this.#bound[inbound.kind].set(peerId, inbound)
    if (older !== undefined) this.#end(older, Status.ABORTED, 'replaced by a newer stream')
    this.#endOtherLives(inbound)
    const own = this.#deps.hello()
    inbound.call.write(
      Buffer.from(
        inbound.kind === 'raft'
          ? encodeRaftHello(own)
          : encodeForwardFrame({ case: 'hello', value: own }),
      ),
    )
    this.#deps.onHeard(peerId)
    this.#deps.onCaller(peerId)
  }

  /**
   * Closes streams of another process with the same id, for example one that uses a copy of the
   * data folder. The two processes must never share a pair of streams.
   */
  #endOtherLives({ peerId, hello }: Inbound): void {
    for (const other of Array.from(this.#all)) {
      if (other.peerId !== peerId || other.hello === null) continue
      const isSame =
        other.hello.boot === hello?.boot && other.hello.startedAtMs === hello.startedAtMs
      if (!isSame) this.#end(other, Status.ABORTED, 'a newer process of this member connected')
    }
  }

  #refuseUnlessProven(inbound: Inbound, hello: Hello | null): NodeId | null {
    const verdict = this.#deps.greet(inbound.leafDer, hello)
    if (verdict.ok) return verdict.id
    this.#refuse(inbound, verdict)
    return null
  }

  #refuse(inbound: Inbound, verdict: PeerVerdict & { ok: false }): void {
    this.#deps.onRefused(verdict, inbound.call.getPeer())
    this.#end(
      inbound,
      verdict.status,
      `${this.#deps.selfId} refuses this peer: ${verdict.detail}`,
      refusalMetadata({
        reason: verdict.reason,
        configurationIndex: this.#deps.configurationIndex(),
        generation: this.#deps.generation,
      }),
    )
  }

  #end(inbound: Inbound, code: Status, details: string, metadata?: Metadata): void {
    if (inbound.isOver) return
    this.#forget(inbound)
    // grpc-js closes a stream with a status when it emits 'error'.
    inbound.call.emit('error', { code, details, ...(metadata === undefined ? {} : { metadata }) })
  }

  #forget(inbound: Inbound): void {
    if (inbound.isOver) return
    inbound.isOver = true
    this.#all.delete(inbound)
    const { peerId, kind } = inbound
    if (peerId === null) return
    if (this.#bound[kind].get(peerId) === inbound) {
      this.#bound[kind].delete(peerId)
      this.#deps.onGone(peerId)
    }
  }
}
