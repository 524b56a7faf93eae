import { Agent, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'

import { startController } from './support/controller.ts'

interface Got {
  readonly status: number
  readonly connection: string | undefined
  readonly isReused: boolean
}

function get(port: number, agent: Agent): Promise<Got> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, agent, path: '/edge/client/v1/version' })
    sent.on('response', (response: IncomingMessage) => {
      response.resume()
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          connection: response.headers.connection,
          isReused: sent.reusedSocket,
        }),
      )
    })
    sent.on('error', reject)
    sent.end()
  })
}

test('a stopping API answers requests on open connections, accepts no new connections, and closes idle connections after a time limit', async () => {
  const controller = await startController({ drainIdleMs: 1000 })
  const { app } = controller
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const [busy, idle] = [new Agent({ keepAlive: true }), new Agent({ keepAlive: true })]
  for (const agent of [busy, idle]) {
    expect(await get(port, agent)).toMatchObject({ status: 200, connection: 'keep-alive' })
  }
  const fromMs = performance.now()
  const closed = controller.close()
  while (app.server.listening) await new Promise((resolve) => setImmediate(resolve))
  expect(await get(port, busy)).toEqual({ status: 200, connection: 'close', isReused: true })
  await expect(get(port, new Agent())).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  await closed
  // The stop waited for the silent connection until the time limit, and not longer.
  expect(performance.now() - fromMs).toBeGreaterThan(900)
  await expect(get(port, idle)).rejects.toThrow()
})

test('an API without open connections stops immediately', async () => {
  const controller = await startController({ drainIdleMs: 600_000 })
  await controller.app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = controller.app.server.address() as AddressInfo
  expect(await get(port, new Agent({ keepAlive: false }))).toMatchObject({ status: 200 })
  await controller.close()
})
