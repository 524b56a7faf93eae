import { createServer as createHttpServer } from '../lib/runtime/node-http.ts'
import type { RequestListener, Server } from 'node:http'
import type { Socket } from 'node:net'
import {
  createServer as createHttpsServer,
  type Server as HttpsServer,
  type ServerOptions,
} from 'node:https'
import fastify, { type FastifyInstance } from 'fastify'
import { assert } from '../lib/assert.ts'
import { limitConnections } from '../lib/bounds/connections.ts'
import { clientSocketShare } from '../lib/bounds/file-descriptors.ts'
import { Problem } from '../lib/problems.ts'
import { ReplyWriter } from './http/responses/reply-writer.ts'
import type { AdminSocketCallerFinder } from './http/transport/request-head.ts'
import { bodyParser } from './http/body-parser.ts'
import { isEventSocket, serveEventSockets } from './events/event-socket.ts'
import { type ApiServices, createServices } from './services.ts'
import type { Operation, OperationCall } from './http/operation.ts'
import { type ApiName, isPermission } from '../auth/principal/permissions.ts'
import { allOperations } from './operations.ts'
import { type FileMount, fileMountOperation } from './files/file-mount.ts'
import type { HostedTerminators } from '../ports/hosted-terminators.ts'
import type { LatestReads } from '../ports/latest-reads.ts'
import type { RouterClients } from '../ports/router-clients.ts'
import type { RouterTunnels } from '../ports/router-tunnels.ts'
import { HostedTerminatorFinder } from './fabric/hosted-terminator-finder.ts'
import {
  RouterClientAuthorizer,
  type ClientSessionRecords,
} from './fabric/router-client-authorizer.ts'
import { RouterTunnelAuthorizer } from './fabric/router-tunnel-authorizer.ts'
import type { ApiDeps } from './api-deps.ts'
import {
  basePaths,
  createUrlCanonicalizer,
  isBelowFileMount,
  fastifyRoutePath,
} from './http/paths.ts'
import { ServedPaths } from './http/served-paths.ts'
import { RequestPipeline } from './http/request-pipeline.ts'
import { handleExpectRequests } from './http/transport/expect-continue.ts'
import { makeCloseGraceful } from './http/transport/graceful-close.ts'
import { PipelinedRequests } from './http/transport/pipelined-requests.ts'
import { listenerTlsOptions } from './http/transport/tls.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The context of the request; the first hook sets it. */
    call: OperationCall | null
  }
  interface FastifyContextConfig {
    operation?: Operation
    api?: ApiName
  }
}

interface ListenerOptions {
  /** APIs that the listener serves; `host` is health checks and metrics, at the root. */
  readonly apis: readonly ApiName[]
  /**
   * True: serves metrics and health checks without authentication. Use it only for an address that
   * only monitoring systems can reach.
   */
  readonly hasOpenMetrics?: boolean
  /** Folders of static files that are served in addition to the APIs. */
  readonly mounts?: readonly FileMount[]
  /** TLS settings; null: plain HTTP without TLS, for the admin socket and for tests. */
  readonly https: ServerOptions | null
  /**
   * Determines the callers of requests without a session. Only for the admin socket: never set it
   * on a listener that other hosts can reach.
   */
  readonly socketCaller?: AdminSocketCallerFinder
  /**
   * Called when a connection fails, sends bytes that are not valid HTTP, or exceeds a limit on
   * headers or time.
   * @returns true if it has sent the response.
   */
  readonly onClientError?: (error: Error, socket: Socket) => boolean
  /**
   * Called for each HTTPS server that the listener creates: one, or two if the listener is opened
   * at the name `localhost`, and that name resolves to an IPv4 and an IPv6 address.
   */
  readonly onHttpsServer?: (server: HttpsServer) => void
  /**
   * Stops accepting connections, and resolves when the last connection has closed. Only for a
   * listener that gets its connections from another server.
   */
  readonly stopAccepting?: () => Promise<void>
}

/**
 * HTTP API of one controller: the components that its listeners share, and a factory for listeners.
 */
export interface Api {
  readonly reads: LatestReads
  /** Creates the source from which routers get the sessions of their clients. */
  routerClients(records: ClientSessionRecords): RouterClients
  /** Creates the component that finds the terminators hosted by clients of routers. */
  hostedTerminators(records: ClientSessionRecords): HostedTerminators
  /** Creates the component that decides about dialing and hosting by the tunnels of routers. */
  routerTunnels(records: ClientSessionRecords): RouterTunnels
  /**
   * Creates a Fastify app that does not listen yet. The app's routes are created when it becomes
   * ready.
   */
  listener(options: ListenerOptions): FastifyInstance
  /** Starts periodic work, such as sending session activity and ending expired access. */
  start(): void
  /** Sends the remaining session activity to the other controllers and stops. */
  stop(): Promise<void>
}

/**
 * Builds the API with all its services. No address is opened until `listen` of a listener is
 * called.
 */
export function createApi(deps: ApiDeps): Api {
  const services = createServices(deps)
  // All dependencies; the operations of each folder declare those that they use.
  const all = { ...deps, ...services }
  const operations = allOperations(all)
  return {
    reads: deps.reads,
    routerClients: (records) => new RouterClientAuthorizer(all, records),
    hostedTerminators: (records) => new HostedTerminatorFinder(all, records),
    routerTunnels: (records) => new RouterTunnelAuthorizer(all, records),
    listener: (options) => buildListener(all, operations, options),
    start: () => {
      services.sessions.start()
      services.history.start(deps.scheduler)
      services.refreshUses.start()
      services.integrity.start()
      services.resealer.start()
      services.accessEndProposer.start()
      deps.posture.start()
    },
    stop: () => {
      services.sessions.stop()
      services.history.stop()
      services.refreshUses.stop()
      services.integrity.stop()
      services.resealer.stop()
      services.accessEndProposer.stop()
      deps.posture.stop()
      return Promise.resolve()
    },
  }
}

function buildListener(
  all: ApiDeps & ApiServices,
  operations: readonly Operation[],
  options: ListenerOptions,
): FastifyInstance {
  const answerer = new ReplyWriter(all)
  const pipeline = new RequestPipeline(all, answerer, options.socketCaller)
  const app = newApp(all, options, answerer, pipeline)
  app.decorateRequest('call', null)
  app.addHook('onRoute', (route) => {
    const operation = route.config?.operation
    assert(
      isPermission(operation?.permission),
      `${String(route.method)} ${route.url} declares no permission: a route without one does not start`,
    )
  })
  app.addHook('onRequest', pipeline.judge)
  // Allows a body with GET, because one GET operation of OpenZiti's API takes a code in its body.
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', bodyParser(all))
  app.setErrorHandler((error, request, reply) => {
    answerer.fail(reply, pipeline.callOf(request), error)
  })
  const served = new ServedPaths()
  const { mounts = [] } = options
  app.setNotFoundHandler((request, reply) => {
    const url = request.raw.url ?? '/'
    const isServed = mounts.some((mount) => isBelowFileMount(mount, url)) || served.has(url)
    answerer.fail(reply, pipeline.callOf(request), unmatched(url, isServed))
  })
  app.register((routes, _, done) => {
    for (const api of options.apis) addRoutes(routes, api, operations, pipeline, served)
    if (options.hasOpenMetrics === true) {
      addRoutes(routes, 'host', openForMonitors(operations), pipeline, served)
    }
    for (const mount of mounts) addMount(routes, fileMountOperation(all, mount), pipeline)
    done()
  })
  return app
}

function unmatched(url: string, isServed: boolean): Problem {
  if (isServed) return new Problem('METHOD_NOT_ALLOWED')
  return new Problem('NOT_FOUND', { detail: `path ${url.split('?')[0] ?? ''} was not found` })
}

function newApp(
  all: ApiDeps & ApiServices,
  options: ListenerOptions,
  answerer: ReplyWriter,
  pipeline: RequestPipeline,
): FastifyInstance {
  const { limits } = all
  const serverOptions = {
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    shouldUpgradeCallback: isEventSocket,
    // Interval at which timeouts are enforced; the default of Node.js is 30 s.
    connectionsCheckingInterval: limits.timeoutCheckMs,
    // The pipeline later refuses a request without a Host header, with the usual error envelope.
    // @guard header-smuggling--framing
    requireHostHeader: false,
  }
  const pipelined = new PipelinedRequests(limits.pipelinedRequestsMax, all.unsent)
  const { callers } = all
  const { https } = options
  const app = fastify<Server>({
    logger: false,
    bodyLimit: limits.bodyBytesMax,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    exposeHeadRoutes: false,
    // During shutdown, requests on open connections are still served, instead of being refused with
    // 503.
    return503OnClosing: false,
    forceCloseConnections: false,
    rewriteUrl: createUrlCanonicalizer(options.mounts ?? []),
    routerOptions: { maxParamLength: limits.pathParameterCharactersMax },
    frameworkErrors: (error, request, reply) => {
      answerer.fail(reply, pipeline.callOf(request), error)
    },
    clientErrorHandler: (error, socket) => {
      if (options.onClientError?.(error, socket) === true) return
      answerer.failConnection(error, socket)
    },
    serverFactory: (handler): Server => {
      const serve = onceReady(() => app.ready(), handler)
      const listener: RequestListener = (request, response) => {
        pipelined.admit(request, response, () =>
          callers.begin(request, () => serve(request, response)),
        )
      }
      const server = newServer(https, serverOptions, listener, options.onHttpsServer)
      limitConnections(server, {
        get connectionsMax() {
          return limits.connectionsMax
        },
        get connectionsPerSourceMax() {
          return limits.connectionsPerSourceMax
        },
        // A local socket (without TLS) does not count against the limit for all client sockets,
        // because it must accept connections even if that limit is reached.
        ...(https === null
          ? { handshakeTimeoutMs: null }
          : { handshakeTimeoutMs: limits.handshakeTimeoutMs, room: clientSocketShare }),
      })
      handleExpectRequests(server, listener)
      if (options.apis.includes('fabric')) {
        serveEventSockets(server, all, options.socketCaller ?? null)
      }
      return server
    },
  })
  makeCloseGraceful(app.server, limits.drainIdleMs, options.stopAccepting)
  return app
}

/**
 * Passes requests to the handler once the app is ready; creating the routes takes about 40 ms. If
 * the app listens before that, the first request makes it ready.
 */
function onceReady(ready: () => PromiseLike<unknown>, handler: RequestListener): RequestListener {
  let isReady = false
  return (request, response) => {
    if (isReady) {
      handler(request, response)
      return
    }
    void ready().then(
      () => {
        isReady = true
        handler(request, response)
      },
      () => request.socket.destroy(),
    )
  }
}

function newServer(
  https: ServerOptions | null,
  serverOptions: ServerOptions,
  listener: RequestListener,
  onHttpsServer: ListenerOptions['onHttpsServer'],
): Server {
  if (https === null) return createHttpServer(serverOptions, listener)
  const server = createHttpsServer({ ...listenerTlsOptions, ...https, ...serverOptions }, listener)
  onHttpsServer?.(server)
  // The cast is safe: requests and responses of the server are those of HTTP, only its TypeScript
  // type differs.
  return server as unknown as Server
}

function addRoutes(
  app: FastifyInstance,
  api: ApiName,
  operations: readonly Operation[],
  pipeline: RequestPipeline,
  served: ServedPaths,
): void {
  for (const operation of operations) {
    if (!operation.apis.includes(api)) continue
    const path = basePaths[api] + (operation.path === '/' ? '' : operation.path)
    app.route({
      method: operation.method,
      url: fastifyRoutePath(path),
      config: { operation, api },
      handler: pipeline.handlerOf(operation),
    })
    served.add(path)
  }
}

/**
 * Routes all paths below a mount to its operation. For HEAD, the response is that of GET without
 * the body.
 */
function addMount(app: FastifyInstance, operation: Operation, pipeline: RequestPipeline): void {
  const handler = pipeline.handlerOf(operation)
  for (const url of [operation.path, `${operation.path}/*`]) {
    app.route({ method: ['GET', 'HEAD'], url, config: { operation, api: 'host' }, handler })
  }
}

/** The operations that a metrics listener serves without authentication. */
function openForMonitors(operations: readonly Operation[]): Operation[] {
  return operations
    .filter(({ isForMonitors }) => isForMonitors === true)
    .map(({ elevatedPermission: _, ...operation }) => ({ ...operation, permission: 'public' }))
}
