import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { CreateFabricCircuitSchema } from '../../proto/gen/router_pb.ts'
import { readInt32 } from '../../src/channel/headers.ts'
import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { management } from '../api/support/caller.ts'
import { type Detail, made, newService } from '../api/support/network.ts'
import { eventually } from '../support/eventually.ts'
import { attackedByCertificates } from './support/certificates.ts'
import { raiseToSecondLevel, type StolenRouter, StolenRouters } from './support/stolen-router.ts'

// The attack: a stolen router gets circuits to services by the request that listeners send, which
// contains no client and no session.

const { controller, root, ...attacked } = await attackedByCertificates()
raiseToSecondLevel(controller)
const routers = new StolenRouters(controller)
let serial = 0

interface Target {
  readonly router: StolenRouter
  readonly serviceId: string
  readonly serviceName: string
}

/** A service at a router whose identity has policies of these types for the service. */
async function target(types: readonly string[], encryptionRequired = false): Promise<Target> {
  serial += 1
  const { id: routerId } = await attacked.newRouter(generatePrivateKeyPem())
  const patched = await root.call('PATCH', `${management}/edge-routers/${routerId}`, {
    isTunnelerEnabled: true,
  })
  expect(patched.status, patched.text).toBe(200)
  const serviceName = `behind a listener ${serial}`
  const serviceId = await newService(root, serviceName, { encryptionRequired })
  const make = (kind: string, rest: Detail): Promise<string> =>
    made(root, `${management}/${kind}`, { semantic: 'AnyOf', name: `${kind} ${serial}`, ...rest })
  const serviceRoles = [`@${serviceId}`]
  for (const type of types) {
    const name = `${type} at a listener ${serial}`
    await make('service-policies', { type, name, serviceRoles, identityRoles: [`@${routerId}`] })
  }
  await make('service-edge-router-policies', { serviceRoles, edgeRouterRoles: [`@${routerId}`] })
  await made(root, `${management}/terminators`, {
    service: serviceId,
    router: routerId,
    binding: 'transport',
    address: 'tcp:127.0.0.1:1280',
  })
  return { router: await routers.connect(routerId), serviceId, serviceName }
}

/** @returns the refusal; null if the router receives a route. */
async function dial({ router: { pipe } }: Target, service: string): Promise<string | null> {
  const body = toBinary(CreateFabricCircuitSchema, create(CreateFabricCircuitSchema, { service }))
  const before = pipe.ofType(1005).length
  serial += 1
  const sequence = 1000 + serial
  pipe.say({ contentType: 1000, sequence, body })
  return await eventually(() => {
    const refusal = pipe.ofType(1016).find(({ headers }) => readInt32(headers, 1) === sequence)
    expect(refusal !== undefined || pipe.ofType(1005).length > before).toBe(true)
    return refusal === undefined ? null : Buffer.from(refusal.body).toString()
  })
}

test('a router’s listener can dial, by ID and by name, the services that the router’s identity may dial', async () => {
  const allowed = await target(['Dial'])
  expect(await dial(allowed, allowed.serviceId)).toBeNull()
  expect(await dial(allowed, allowed.serviceName)).toBeNull()
})

test('a stolen router cannot use a listener to dial a service that its identity may not dial', async () => {
  const [none, hosting] = [await target([]), await target(['Bind'])]
  for (const { serviceId, serviceName } of [none, hosting]) {
    expect(await dial(none, serviceId)).toMatch(/^dial refused: /)
    expect(await dial(none, serviceName)).toMatch(/^dial refused: /)
  }
  expect(await dial(hosting, hosting.serviceId)).toMatch(/^dial refused: /)
  expect(await dial(hosting, hosting.serviceName)).toMatch(/^dial refused: /)
})

test('a stolen router cannot dial a service that requires encryption without sending a public key', async () => {
  const encrypted = await target(['Dial'], true)
  expect(await dial(encrypted, encrypted.serviceName)).toBe('the service is encrypted end to end')
})
