import type { Http2Server, ServerHttp2Session, ServerHttp2Stream, ServerOptions } from 'node:http2'
import type { TLSSocket } from 'node:tls'

import {
  type ConnectionInjector,
  Server,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'

import { assert } from '../../lib/assert.ts'
import { createInjectedHttp2 } from './grpc-internals.ts'
import { meshLimits } from './limits.ts'
import { grpcServerOptions, MESH_STREAM_WINDOW_BYTES } from './mesh-service.ts'

/** Whether the session may open another stream. */
type StreamGuard = (session: ServerHttp2Session, stream: ServerHttp2Stream) => boolean

/** Serves gRPC on connections whose TLS handshake is complete. It does not listen itself. */
export class GrpcServer {
  readonly #server = new Server(grpcServerOptions)
  readonly #injector: ConnectionInjector
  readonly #http2: Http2Server

  /** @param mayOpen called for each stream; the session is closed if it returns false. */
  constructor(
    service: ServiceDefinition,
    implementation: UntypedServiceImplementation,
    mayOpen: StreamGuard,
  ) {
    this.#server.addService(service, implementation)
    const { injector, http2 } = createInjectedHttp2(this.#server, http2Options)
    this.#injector = injector
    this.#http2 = http2
    this.#guardStreams(mayOpen)
  }

  #guardStreams(mayOpen: StreamGuard): void {
    const serving = this.#http2.listeners('stream') as ((...given: unknown[]) => void)[]
    this.#http2.removeAllListeners('stream')
    this.#http2.on('stream', (stream: ServerHttp2Stream, ...more: unknown[]) => {
      const { session } = stream
      // This check comes first, because grpc-js throws for a stream of a session that has just
      // closed.
      if (
        session === undefined ||
        session.destroyed ||
        !mayOpen(session as ServerHttp2Session, stream)
      ) {
        session?.destroy()
        return
      }
      for (const serve of serving) serve.call(this.#http2, stream, ...more)
    })
  }

  serve(socket: TLSSocket): ServerHttp2Session {
    const sessions: ServerHttp2Session[] = []
    this.#http2.once('session', (session) => sessions.push(session))
    this.#injector.injectConnection(socket)
    const [session] = sessions
    assert(session !== undefined, 'a connection of HTTP/2 has a session at once')
    return session
  }

  close(): void {
    this.#injector.destroy()
    this.#server.forceShutdown()
  }
}

const http2Options: ServerOptions = {
  maxSessionInvalidFrames: meshLimits.meshInvalidFramesMax,
  maxSessionRejectedStreams: meshLimits.meshInvalidFramesMax,
  streamResetBurst: meshLimits.meshStreamsBurst,
  streamResetRate: meshLimits.meshStreamsPerSecond,
  // The flow-control window holds a batch of entries, unless a single entry is larger, so that a
  // batch needs one round trip. A peer has two streams, and a few more while its old streams close.
  settings: {
    initialWindowSize: MESH_STREAM_WINDOW_BYTES,
    maxConcurrentStreams: meshLimits.meshStreamsMax,
  },
}
