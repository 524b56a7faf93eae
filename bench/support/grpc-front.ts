import { create, toBinary } from '@bufbuild/protobuf'
import { type sendUnaryData, Server, ServerCredentials, type ServerUnaryCall } from '@grpc/grpc-js'
import pino from 'pino'

import { CommandKind, EntityWriteSchema } from '../../proto/gen/command_pb.ts'
import { Controller } from '../../src/controller/controller.ts'
import { runPreflight } from '../../src/controller/start/preflight.ts'
import { loadControllerConfig } from '../../src/config/controller/load.ts'
import { newShortId } from '../../src/lib/random.ts'
import { SYSTEM_ACTOR } from '../../src/ports/actor.ts'

// A complete controller with an additional, minimal gRPC server: `node bench/support/grpc-front.ts
// CONFIG PORT`. A put is answered when the service that it creates is applied on this controller,
// or refused.

const [path = '', port = ''] = process.argv.slice(2)
const loaded = loadControllerConfig(path, process.env)
if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
const { credentials, faults } = await runPreflight(loaded.config, Date.now())
if (credentials === null || faults.length > 0) throw new Error(faults.join('\n'))
const controller = await Controller.start({
  config: loaded.config,
  configPath: loaded.path,
  credentials,
  log: pino({ level: 'warn' }),
  onFatal: (error) => {
    console.error(error)
    process.exit(1)
  },
})

async function put(value: Uint8Array): Promise<Buffer> {
  const write = create(EntityWriteSchema, { entity: 'service', id: newShortId(), json: value })
  const { outcome } = await controller.proposer.propose({
    kind: CommandKind.ENTITY_CREATE,
    payload: toBinary(EntityWriteSchema, write),
    actor: SYSTEM_ACTOR,
  })
  if (!outcome.ok) throw new Error(`${outcome.code} ${outcome.detail ?? outcome.fault?.reason}`)
  return Buffer.from(outcome.id)
}

/** The second field of a put, which contains the service. The first field, the key, is ignored. */
function valueOf(request: Buffer): Uint8Array {
  let at = 1
  for (const isLast of [false, true]) {
    let length = 0
    for (let shift = 0; ; shift += 7) {
      const byte = request[at] ?? 0
      at += 1
      length |= (byte & 127) << shift
      if (byte < 128) break
    }
    if (isLast) return request.subarray(at, at + length)
    at += length + 1
  }
  return new Uint8Array(0)
}

const server = new Server()
server.addService(
  {
    put: {
      path: '/flotilla.bench.Door/Put',
      requestStream: false,
      responseStream: false,
      requestSerialize: (bytes: Buffer) => bytes,
      requestDeserialize: (bytes: Buffer) => bytes,
      responseSerialize: (bytes: Buffer) => bytes,
      responseDeserialize: (bytes: Buffer) => bytes,
    },
  },
  {
    put: (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>): void => {
      put(valueOf(call.request)).then(
        (id) => done(null, id),
        (error: unknown) => done(error as Error),
      )
    },
  },
)
server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error
  console.log('serving')
})
process.on('SIGTERM', () => {
  server.forceShutdown()
  void controller.stop().then(() => process.exit(0))
})
