import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import {
  ClientPostureSchema,
  type PostureResponse,
  PostureResponsesSchema,
} from '../../../proto/gen/router_pb.ts'
import { encodeFlag, readFlag, encodeText } from '../../../src/channel/headers.ts'
import { parseCertificate } from '../../../src/pki/certificate.ts'
import { BearerBench } from './bearers.ts'
import {
  EdgeBench,
  eventually,
  type FakeController,
  madeCircuit,
  type Person,
  serviceToken,
  type TestClient,
} from './support.ts'

// Goal: every controller knows the posture that an OIDC client reports to this router before any
// controller evaluates the next request of the client.
// Method: a real channel to a real listener; the test plays the controllers.

const POSTURE = 10_800
const CLIENT_POSTURE = 29_000
const CONNECT = 60_783
/**
 * The router refuses this request immediately if it names no service: the answer shows that the
 * router has read all earlier messages.
 */
const CONNECT_BY_SERVICE = 60_806

type Told = MessageInitShape<typeof PostureResponsesSchema>['responses']

let bearers: BearerBench
let ann: Person
beforeEach(async () => {
  bearers = await BearerBench.open()
  ann = await bearers.person('ann')
})
afterEach(() => bearers.bench.close())

const domain = (name: string) => ({ type: { case: 'domain' as const, value: { name } } })
const process = (path: string, isRunning = true) => ({
  type: { case: 'processList' as const, value: { processes: [{ path, isRunning }] } },
})
const woken = { type: { case: 'woken' as const, value: {} } }

function tell(client: TestClient, responses: Told = []): void {
  const body = toBinary(PostureResponsesSchema, create(PostureResponsesSchema, { responses }))
  client.channel.send({ contentType: POSTURE, body })
}

/** The posture reports that a controller received, message by message. */
function toldTo(controller: FakeController) {
  return controller
    .ofType(CLIENT_POSTURE)
    .map(({ body }) => fromBinary(ClientPostureSchema, body ?? new Uint8Array()))
}

function shown({ type }: PostureResponse): string {
  if (type.case === 'domain') return type.value.name
  if (type.case !== 'processList') return type.case ?? ''
  return type.value.processes.map(({ path, isRunning }) => `${path} ${isRunning}`).join()
}

const textsOf = (controller: FakeController): string[][] =>
  toldTo(controller).map(({ posture }) => (posture?.responses ?? []).map(shown))

test('a router announces to its clients that it accepts posture reports', async () => {
  const client = await bearers.bench.connect(ann)
  expect(readFlag(client.answer?.headers ?? new Map(), 1032)).toBe(true)
})

describe('a client’s posture report', () => {
  test('is forwarded to the controller with the client’s token and certificate', async () => {
    const client = await bearers.bench.connect(ann)
    tell(client, [domain('corp.test')])
    await eventually(() => toldTo(bearers.bench.controller)).toMatchObject([
      {
        apiSessionToken: ann.token,
        fingerprints: [parseCertificate(ann.key.certificatePem).sha1],
      },
    ])
    expect(textsOf(bearers.bench.controller)).toEqual([['corp.test']])
  })

  test('contains the latest state of each subject, and a momentary event, such as waking, only once', async () => {
    const client = await bearers.bench.connect(ann)
    tell(client, [domain('home'), process('/bin/a'), process('/bin/b')])
    tell(client, [process('/bin/a', false), woken])
    tell(client, [domain('corp.test')])
    await eventually(() => textsOf(bearers.bench.controller)).toEqual([
      ['home', '/bin/a true', '/bin/b true'],
      ['home', '/bin/a false', '/bin/b true', 'woken'],
      ['corp.test', '/bin/a false', '/bin/b true'],
    ])
  })

  test('reaches the controller before the controller evaluates the client’s next request', async () => {
    const { controller } = bearers.bench
    controller.circuits = () => madeCircuit('c1')
    controller.postures = () => null
    const client = await bearers.bench.connect(ann)
    tell(client, [domain('corp.test')])
    const dialed = client.request(CONNECT, 1, serviceToken('s1'))
    await eventually(() => toldTo(controller).length).toBe(1)
    await client.request(CONNECT_BY_SERVICE, 9, '')
    expect(controller.ofType(20_218), 'a dial continues before the answer').toEqual([])
    controller.answer({ contentType: 2, headers: new Map([[2, encodeFlag(true)]]) })
    await dialed
    expect(controller.ofType(20_218).length).toBe(1)
  })

  test('is sent again to a controller after it reconnects', async () => {
    const { controller, edge } = bearers.bench
    const client = await bearers.bench.connect(ann)
    tell(client, [domain('corp.test'), woken])
    await eventually(() => textsOf(controller).length).toBe(1)
    edge.onControllerClosed(controller.connection)
    edge.onControllerConnected(controller.connection)
    await eventually(() => textsOf(controller)).toEqual([['corp.test', 'woken'], ['corp.test']])
  })

  test('is logged if a controller refuses it', async () => {
    const { controller, lines } = bearers.bench
    controller.postures = () => ({
      contentType: 2,
      body: encodeText('the client has no such session'),
    })
    const client = await bearers.bench.connect(ann)
    tell(client, [domain('corp.test')])
    await eventually(() => lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { fields: { controllerId: 'ctrl1', reason: 'the client has no such session' } },
    ])
  })

  test('closes the client’s channel if the report is too large', async () => {
    const client = await bearers.bench.connect(ann)
    const many = Array.from({ length: 20 }, (_, k) => process(`/${k}/${'x'.repeat(2000)}`))
    tell(client, many)
    await eventually(() => client.closedReason).not.toBe(null)
    expect(toldTo(bearers.bench.controller)).toEqual([])
  })

  test('that cannot be decoded closes the channel of its client, but no other channel', async () => {
    const [client, other] = [await bearers.bench.connect(ann), await bearers.bench.connect(ann)]
    // A domain whose name is not valid text.
    const body = Uint8Array.of(0x0a, 0x05, 0x22, 0x03, 0x0a, 0x01, 0xff)
    client.channel.send({ contentType: POSTURE, body })
    await eventually(() => client.closedReason).not.toBe(null)
    await other.request(CONNECT_BY_SERVICE, 9, '')
    expect(other.closedReason).toBe(null)
    expect(toldTo(bearers.bench.controller)).toEqual([])
  })

  test('is not forwarded if the session is not an OIDC session', async () => {
    const bench = await EdgeBench.open()
    try {
      const person = await bench.person('bob')
      bench.controller.tellSessions([person])
      const client = await bench.connect(person)
      tell(client, [domain('corp.test')])
      await client.request(CONNECT_BY_SERVICE, 9, '')
      expect(toldTo(bench.controller)).toEqual([])
    } finally {
      await bench.close()
    }
  })
})
