import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterAll, expect, test } from 'vitest'

import {
  ValidateAllTerminatorsSchema,
  ValidateRoutersSchema,
  ValidationStartSchema,
} from '../../proto/gen/management_pb.ts'
import { TerminatorStatesSchema, ValidateTerminatorsSchema } from '../../proto/gen/router_pb.ts'
import { RouterTerminatorValidator } from '../../src/fabric/clients/router-terminator-validator.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { management } from '../api/support/caller.ts'
import { made, newIdentity, newService } from '../api/support/network.ts'
import { settle } from '../channel/pipe.ts'
import { WebSocketClient } from '../events/web-socket-client.ts'
import { RouterStage } from '../fabric/stage.ts'
import { eventually } from '../support/eventually.ts'

// The attack: an identity that may read events requests validations, to learn about records for
// administrators and to remove terminators; or a stolen router reports that terminators of another
// router are gone.

const asked: string[] = []
const { controller, root, sessionOf } = await controllerForFile({}, undefined, {
  routerInspections: {
    own: {},
    inspect: () => Promise.resolve({ values: [], errors: [] }),
    terminators: (_routerId, terminators) => {
      asked.push(...terminators.map(({ id }) => id))
      const gone = { state: 'unknownTerminator', detail: '' } as const
      return Promise.resolve(new Map(terminators.map(({ id }) => [id, gone])))
    },
  },
})
await controller.app.listen({ host: '127.0.0.1', port: 0 })
const { port } = controller.app.server.address() as { port: number }
const watcher = sessionOf(await newIdentity(root, 'watcher', { permissions: ['ops.read'] }))
const service = await newService(root, 'wiki')
const router = await made(root, `${management}/edge-routers`, { name: 'hosting' })
const place = { service, router, binding: 'transport', address: 'tcp:wiki:80' }
const terminator = await made(root, `${management}/terminators`, place)
const sockets: WebSocketClient[] = []
afterAll(() => {
  for (const { socket } of sockets) socket.destroy()
})

async function startOf(kind: number, body: Uint8Array) {
  const one = new WebSocketClient({ port, host: '127.0.0.1' }, watcher.token)
  sockets.push(one)
  one.ask(body, kind)
  await eventually(() => expect(one.messages.length).toBeGreaterThan(0))
  return fromBinary(ValidationStartSchema, one.messages[0]?.body ?? new Uint8Array())
}

test('a caller without permission can neither see nor remove terminators by requesting their validation', async () => {
  const request = create(ValidateAllTerminatorsSchema, { fixInvalid: true })
  const started = await startOf(10_100, toBinary(ValidateAllTerminatorsSchema, request))
  expect(started).toMatchObject({ success: false, count: 0n })
  expect(asked).toEqual([])
  expect((await root.get(`${management}/terminators/${terminator}`)).status).toBe(200)
})

test('a filter in a request to validate links or circuits reveals nothing about routers that the caller may not read', async () => {
  const request = create(ValidateRoutersSchema, { filter: 'name="hosting"' })
  const body = toBinary(ValidateRoutersSchema, request)
  for (const kind of [10_103, 10_118]) {
    expect(await startOf(kind, body)).toMatchObject({ success: false, count: 0n })
  }
})

test('a router cannot respond to a validation request that was sent to another router', async () => {
  const stage = new RouterStage()
  const validation = new RouterTerminatorValidator({
    terminators: { ofRouter: () => [] },
    writes: { remove: () => Promise.resolve('') },
    isLeader: () => false,
    clock: systemClock,
    log: { info: () => undefined, warn: () => undefined },
  })
  stage.channels.add(validation)
  const [own, stolen] = [await stage.dial('er1'), await stage.dial('er2')]
  const connection = stage.channels.connection('er1') ?? expect.unreachable('it is connected')
  const findings = validation.look(connection, [{ id: 't1', binding: 'edge', address: 'a' }], true)
  await settle()
  const [question] = own.ofType(1041)
  const { terminators } = fromBinary(ValidateTerminatorsSchema, question?.body ?? new Uint8Array())
  const marker = terminators[0]?.marker ?? 0n
  const say = (pipe: typeof own, valid: boolean): void => {
    const states = create(TerminatorStatesSchema, { states: { t1: { valid, marker } } })
    pipe.say({ contentType: 1042, body: toBinary(TerminatorStatesSchema, states) })
  }
  say(stolen, false)
  await settle()
  say(own, true)
  expect(await findings).toEqual(new Map([['t1', { state: 'valid', detail: '' }]]))
  stage.channels.stop()
})
