import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'

import { sendHttpsRequest } from '../../../src/cli/client/https-request.ts'
import { ConnectProxy } from '../../support/connect-proxy.ts'
import { EnrollingController } from '../enroll/support.ts'

let controller: EnrollingController
let proxy: ConnectProxy
beforeAll(async () => {
  controller = await EnrollingController.open()
  proxy = await ConnectProxy.open()
  proxy.hosts.set('ctrl.test', '127.0.0.1')
})
afterEach(() => vi.unstubAllEnvs())
afterAll(async () => {
  await controller.close()
  await proxy[Symbol.asyncDispose]()
})

async function version(host: string): Promise<number> {
  const { status } = await sendHttpsRequest({
    url: `https://${host}:${controller.listener.port}/edge/client/v1/version`,
    method: 'GET',
    caPem: controller.controller.authorities.anchorsPem(),
    verified: 'chain',
    timeoutMs: 20_000,
  })
  return status
}

test('A controller is reached through HTTPS_PROXY, unless the controller runs on this host', async () => {
  vi.stubEnv('HTTPS_PROXY', `http://127.0.0.1:${proxy.port}`)
  vi.stubEnv('NO_PROXY', '')
  expect(await version('ctrl.test')).toBe(200)
  expect(proxy.servers.splice(0)).toEqual([`ctrl.test:${controller.listener.port}`])
  expect(await version('127.0.0.1')).toBe(200)
  expect(proxy.servers).toEqual([])
})

test('A controller that NO_PROXY names is not reached through HTTPS_PROXY', async () => {
  vi.stubEnv('HTTPS_PROXY', `http://127.0.0.1:${proxy.port}`)
  vi.stubEnv('NO_PROXY', 'ctrl.test')
  await expect(version('ctrl.test')).rejects.toThrow()
  expect(proxy.servers).toEqual([])
})
