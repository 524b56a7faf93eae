import { once } from 'node:events'
import { connect } from 'node:tls'
import { expect, test } from 'vitest'

import { attackedListener, textOf } from './support/listener.ts'

// The attack: a proxy in front of a controller blocks strangers from /edge/management by a rule for
// this path. Another spelling of the path could pass the proxy, and the controller could serve it.

const { port } = await attackedListener({})

const bodyOf = (answer: string): string => answer.slice(answer.indexOf('{'))

async function get(path: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  // Node.js sends no response to a client that ends its side of the connection before that.
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
  return await textOf(socket)
}

test.each([
  '//edge/management/v1/version',
  '/edge//management/v1/version',
  '/edge/management//v1/version',
  '//fabric/v1/routers',
  '/fabric//v1/routers',
  '/edge//v1/version',
  '/./edge/management/v1/version',
  '/x/../edge/management/v1/version',
  '/edge/management/v1/./version',
  '/edge/management/v1//../v1/version',
  '/edge/./management/v1/version',
  '/%65dge/management/v1/version',
  '/edge%2fmanagement/v1/version',
  '/edge/%6danagement/v1/version',
  '/edge/management/%761/version',
  '///version',
  '//edge/v1/version',
  '//edge/client/v1/version',
  '//%65dge/management/v1/version',
  '//edge%2fmanagement/v1/version',
  '//x/../edge/management/v1/version',
  '//health-checks',
  '/fabric/%761/routers',
])('%s gets the response 404 like an unknown path', async (path) => {
  const answer = await get(path)
  expect(answer).toMatch(/^HTTP\/1\.1 404 /)
  expect(answer).toContain('"code":"NOT_FOUND"')
})

test('the canonical spelling of a path is served', async () => {
  expect(await get('/edge/management/v1/version')).toMatch(/^HTTP\/1\.1 200 /)
})

// OpenZiti's console requests `v1//terminators`, and `services/ID//` before it opens a form.
test.each([
  '/edge/management/v1//version',
  '/edge/management/v1/version//',
  '/edge/client/v1//version',
  '/edge/v1//version?limit=1',
])('%s is served: repeated slashes after the version count as one', async (path) => {
  expect(await get(path)).toMatch(/^HTTP\/1\.1 200 /)
})

test.each(['//version', '//version?limit=1'])(
  '%s, which the JVM SDK sends, is served by the client API',
  async (path) => {
    const answer = await get(path)
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(bodyOf(answer)).toBe(bodyOf(await get('/edge/client/v1/version')))
  },
)

test('repeated slashes after the version count as one slash on the fabric API', async () => {
  expect(await get('/fabric/v1//routers')).toMatch(/^HTTP\/1\.1 401 /)
})
