import { Server, type Server as GrpcServer, type ServiceDefinition } from '@grpc/grpc-js'
import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'

import { createInjectedHttp2, grpcServerInternals } from '../../src/cluster/mesh/grpc-internals.ts'

const asBuffer = (value: Buffer): Buffer => value
const service: ServiceDefinition = {
  call: {
    path: '/test/call',
    requestStream: false,
    responseStream: false,
    requestSerialize: asBuffer,
    requestDeserialize: asBuffer,
    responseSerialize: asBuffer,
    responseDeserialize: asBuffer,
  },
}

describe('the private members of grpc-js on which the mesh depends', () => {
  test('were reviewed for version 1.14.7 of grpc-js, which is the installed version', () => {
    const { version } = createRequire(import.meta.url)('@grpc/grpc-js/package.json') as {
      readonly version: string
    }
    expect(version, 'read docs/internals/dependencies.md before you change this version').toBe(
      '1.14.7',
    )
  })

  test('exist in the server of grpc-js', () => {
    const server = new Server() as unknown as Readonly<Record<string, unknown>>
    const found = Object.keys(grpcServerInternals).map((name) => [name, typeof server[name]])
    expect(Object.fromEntries(found)).toEqual(grpcServerInternals)
  })

  test('pass the options of the mesh to the HTTP/2 server', () => {
    const server: GrpcServer = new Server()
    server.addService(service, { call: () => undefined })
    const { injector, http2 } = createInjectedHttp2(server, { maxSessionInvalidFrames: 7 })
    try {
      const options = Object.getOwnPropertySymbols(http2)
        .filter(({ description }) => description === 'options')
        .map((symbol) => (http2 as unknown as Record<symbol, unknown>)[symbol])
      expect(options).toMatchObject([{ maxSessionInvalidFrames: 7 }])
    } finally {
      injector.destroy()
      server.forceShutdown()
    }
  })
})
