import { afterEach, expect, test } from 'vitest'

import { eventually } from '../router/support.ts'
import { echoServer, identity, member, serviceOf, TunnelStage } from '../router/tunnel/support.ts'

// The attack: a client gets an unencrypted circuit to a hosted service that requires encryption,
// keeps a circuit after the host has lost its permission, or gets a circuit to a service that is
// not hosted.

const closing: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function hosting(isEncrypted: boolean) {
  const target = await echoServer()
  closing.push(target.close)
  const host = { protocol: 'tcp', address: '127.0.0.1', port: target.port }
  const stage = await TunnelStage.create(
    serviceOf('s1', { 'host.v1': host }, ['Bind'], isEncrypted),
  )
  closing.push(() => stage.close())
  const { address } = await stage.controller.terminator('s1')
  return { ...stage, controller: stage.controller, target, address }
}

test('a service that requires encryption gets no unencrypted circuit', async () => {
  const { controller, address, target } = await hosting(true)
  expect(await controller.dial(address)).toMatchObject({ isSuccess: false })
  expect(target.sockets).toEqual([])
})

test('a circuit to a host ends when the host loses the right to host the service', async () => {
  const { controller, address, target } = await hosting(false)
  expect(await controller.dial(address)).toMatchObject({ isSuccess: true })
  await eventually(() => target.sockets.length).toBe(1)
  controller.change([member('Bind', 's1', false)])
  await eventually(() => target.sockets[0]?.destroyed).toBe(true)
  expect(await controller.dial(address)).toMatchObject({ isSuccess: false })
})

test('a circuit to a host ends when the identity of the host is disabled', async () => {
  const { controller, address, target } = await hosting(false)
  expect(await controller.dial(address)).toMatchObject({ isSuccess: true })
  await eventually(() => target.sockets.length).toBe(1)
  controller.change([identity({ disabledAt: -1 })])
  await eventually(() => target.sockets[0]?.destroyed).toBe(true)
})
