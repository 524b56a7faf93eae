import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'

import { attackedListener, until } from './support/listener.ts'

// The attack: an attacker without credentials opens connections and never completes the TLS
// handshake. Each of them would use one of `connectionsMax` until the controller is restarted.

// Long enough for a busy machine to count the connections before they are closed.
const handshakeTimeoutMs = 1500
const { port, connections, version } = await attackedListener({
  handshakeTimeoutMs,
  connectionsMax: 20,
})

function open(): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  return socket
}

test('connections that send nothing are closed, and then the listener accepts connections again', async () => {
  const sockets = Array.from({ length: 20 }, open)
  try {
    await until(async () => (await connections()) === 20)
    await until(async () => (await connections()) === 0)
    expect(await version()).toMatch(/^HTTP\/1\.1 200 OK/)
  } finally {
    for (const socket of sockets) socket.destroy()
  }
})

test('a TLS handshake that takes too long is closed, even if bytes keep arriving', async () => {
  const socket = open()
  // The header of a ClientHello record that announces 512 bytes; the bytes follow one at a time.
  socket.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00]))
  const dripping = setInterval(() => socket.write(Buffer.from([0x01])), handshakeTimeoutMs / 4)
  try {
    await until(async () => (await connections()) === 1)
    await until(async () => (await connections()) === 0)
  } finally {
    clearInterval(dripping)
    socket.destroy()
  }
})

test('a connection that sends something other than TLS is closed immediately', async () => {
  const socket = open()
  try {
    await until(async () => (await connections()) === 1)
    socket.write('GET / HTTP/1.1\r\n\r\n')
    await until(async () => (await connections()) === 0, handshakeTimeoutMs)
  } finally {
    socket.destroy()
  }
})
