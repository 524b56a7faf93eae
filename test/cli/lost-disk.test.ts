import { expect, test } from 'vitest'

import type { ControllerConfig } from '../../src/config/controller/options.ts'
import { rejoinWithEmptyDisk } from '../../src/controller/start/lost-disk.ts'

test('a controller with a lost disk keeps its data folder while no member admits it with an empty data folder', async () => {
  const cluster = { advertise: 'a.test:1', resolvers: [] }
  const config = { id: 'a', data: '/nowhere', trustDomain: 'test', cluster }
  const said: string[] = []
  const stop = Promise.withResolvers<void>()
  let hasRoom = false
  const outcome = await rejoinWithEmptyDisk({
    config: config as unknown as ControllerConfig,
    credentials: { certificatePem: '', privateKeyPem: '', caPem: '' } as Parameters<
      typeof rejoinWithEmptyDisk
    >[0]['credentials'],
    addresses: [],
    startedAtMs: 1,
    log: {
      info: () => undefined,
      warn: (_fields, message) => {
        said.push(message)
        stop.resolve()
      },
    },
    stop: stop.promise,
    makeRoom: () => (hasRoom = true),
  })
  expect(outcome).toBe('stopped')
  expect(said).toEqual([expect.stringContaining('not admitted yet')])
  expect(hasRoom).toBe(false)
})
