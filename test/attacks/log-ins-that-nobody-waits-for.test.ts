import type { TLSSocket } from 'node:tls'
import { expect, test } from 'vitest'

import { CommandKind } from '../../proto/gen/command_pb.ts'
import { management } from '../api/support/caller.ts'
import { user } from '../api/support/controller.ts'
import { attackedListener, textOf, until } from './support/listener.ts'

// The attack: an attacker sends a log-in and closes the connection immediately, again and again. It
// waits for no response, and its password hashes use the processor time of all others.

const listener = await attackedListener({})
const { cluster } = listener.controller

function sendLogIn(socket: TLSSocket): void {
  const body = JSON.stringify(user)
  socket.write(
    `POST ${management}/authenticate?method=password HTTP/1.1\r\nhost: x\r\nconnection: close\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
}

test('the password of a log-in whose connection has closed is not hashed', async () => {
  // Each attempt is one proposal before its password is hashed, and the first proposal is delayed.
  const primary = { updb: { maxAttempts: 50, lockoutDurationMinutes: 0 } }
  await listener.root.call('PATCH', `${management}/auth-policies/default`, { primary })
  const held = Promise.withResolvers<null>()
  const { propose } = cluster
  let attempts = 0
  cluster.propose = async (input) => {
    if (input.kind === CommandKind.PASSWORD_ATTEMPT) {
      attempts += 1
      await held.promise
    }
    return propose.call(cluster, input)
  }
  const first = await listener.connect()
  sendLogIn(first)
  await until(() => attempts === 1)
  const rounds = cluster.readRounds
  const gone = await listener.connect()
  sendLogIn(gone)
  await until(() => cluster.readRounds === rounds + 1)
  gone.destroy()
  await until(() => listener.accepted[1]?.destroyed === true)
  const last = await listener.connect()
  sendLogIn(last)
  await until(() => cluster.readRounds === rounds + 2)
  held.resolve(null)
  expect(await textOf(first)).toMatch(/^HTTP\/1\.1 200/)
  expect(await textOf(last)).toMatch(/^HTTP\/1\.1 200/)
  expect(attempts).toBe(2)
})
