import type { Http2Server, ServerOptions } from 'node:http2'

import { type ConnectionInjector, type Server, ServerCredentials } from '@grpc/grpc-js'

import { assert } from '../../lib/assert.ts'

/**
 * Private members of `Server` in grpc-js 1.14 that no public option reaches. A test compares them
 * with the installed version; docs/internals/dependencies.md says what to check before an update.
 */
interface ServerInternals {
  /** Options for each HTTP/2 server that grpc-js creates. */
  commonServerOptions: ServerOptions
  createHttp2Server(credentials: ServerCredentials): Http2Server
}

/** The private members on which this file relies, with the `typeof` of each. */
export const grpcServerInternals = {
  commonServerOptions: 'object',
  createHttp2Server: 'function',
} as const satisfies Record<keyof ServerInternals, string>

/** The HTTP/2 server of a gRPC server, and the function that injects connections into it. */
interface InjectedHttp2 {
  readonly injector: ConnectionInjector
  readonly http2: Http2Server
}

/**
 * Creates the HTTP/2 server of a gRPC server that never listens. The TLS handshake of a connection
 * is complete before the connection is injected, so the server has no credentials; the socket
 * provides the peer certificate.
 * @param options for node:http2, in addition to those that grpc-js sets.
 */
export function createInjectedHttp2(server: Server, options: ServerOptions): InjectedHttp2 {
  const internals = server as unknown as ServerInternals
  for (const [name, type] of Object.entries(grpcServerInternals)) {
    const actual = typeof internals[name as keyof ServerInternals]
    assert(actual === type, `grpc-js has Server.${name}`)
  }
  Object.assign(internals.commonServerOptions, options)
  const create = internals.createHttp2Server.bind(server)
  const created: Http2Server[] = []
  internals.createHttp2Server = (credentials) => {
    const http2 = create(credentials)
    created.push(http2)
    return http2
  }
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure())
  const [http2] = created
  assert(http2 !== undefined, 'grpc-js creates an HTTP/2 server for an injector')
  return { injector, http2 }
}
