import { once } from 'node:events'
import { connect, type ConnectionOptions } from 'node:tls'
import { expect, test } from 'vitest'

import { attackedListener, until } from './support/listener.ts'

// The attack: an attacker without credentials opens as many connections as the listener accepts, so
// that no other client can connect.

const {
  port,
  connections,
  connect: connectFromFirst,
} = await attackedListener({
  connectionsMax: 40,
  connectionsPerSourceMax: 10,
})

test('one source address can open only its share of a listener’s connections', async () => {
  const held = await Promise.all(Array.from({ length: 10 }, connectFromFirst))
  const refused = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
  refused.on('error', () => undefined)
  await new Promise((resolve) => refused.once('close', resolve))
  expect(await connections()).toBe(10)
  // Another source can connect in the meantime.
  const fromAnother: ConnectionOptions & { localAddress: string } = {
    host: '127.0.0.1',
    port,
    localAddress: '127.0.0.2',
    rejectUnauthorized: false,
  }
  const other = connect(fromAnother)
  await once(other, 'secureConnect')
  other.destroy()
  // After closing a connection, the source may open another one.
  held[0]?.destroy()
  await until(async () => (await connections()) === 9)
  const again = await connectFromFirst()
  expect(again.destroyed).toBe(false)
})
