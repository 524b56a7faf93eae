import { createServer, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'

import { connectThroughProxy, proxyFromEnvironment } from '../../src/lib/runtime/http-proxy.ts'
import { closeServer, startListening, listeningPort } from '../../src/lib/runtime/listening.ts'

describe('The HTTP proxy in the environment', () => {
  const server = { host: 'ctrl.example.net', port: 1280 }
  const HTTPS_PROXY = 'http://p.test:3128'

  test.each([
    [{}, null],
    [{ HTTPS_PROXY: '' }, null],
    [{ HTTPS_PROXY }, { host: 'p.test', port: 3128, credentials: null }],
    [{ https_proxy: 'p.test:3128' }, { host: 'p.test', port: 3128, credentials: null }],
    [{ HTTPS_PROXY: 'http://p.test' }, { host: 'p.test', port: 80, credentials: null }],
    [{ HTTPS_PROXY: 'http://[::1]:1' }, { host: '::1', port: 1, credentials: null }],
    [
      { HTTPS_PROXY: 'http://u:p%40x@p.test:1' },
      { host: 'p.test', port: 1, credentials: { username: 'u', password: 'p@x' } },
    ],
  ])('is read from the variables %j as %j', (environment, proxy) => {
    expect(proxyFromEnvironment(environment, server)).toEqual(proxy)
  })

  test.each([
    ['ctrl.example.net', 'ctrl.example.net', true],
    ['example.net', 'ctrl.example.net', true],
    ['.example.net', 'ctrl.example.net', true],
    ['.example.net', 'example.net', false],
    ['ample.net', 'ctrl.example.net', false],
    ['other.test, CTRL.example.net', 'ctrl.example.net', true],
    ['*', 'ctrl.example.net', true],
    ['ctrl.example.net:1280', 'ctrl.example.net', true],
    ['ctrl.example.net:443', 'ctrl.example.net', false],
    ['10.0.0.0/8', '10.1.2.3', true],
    ['10.0.0.0/8', '192.0.2.1', false],
    ['2001:db8::/32', '2001:db8::1', true],
    ['192.0.2.1', '192.0.2.1', true],
    ['10.0.0.0/99', '10.1.2.3', false],
    ['', 'ctrl.example.net', false],
  ])(
    'is used unless NO_PROXY excludes the host (NO_PROXY=%s, host %s, excluded: %s)',
    (NO_PROXY, host, isExcluded) => {
      const found = proxyFromEnvironment({ HTTPS_PROXY, NO_PROXY }, { host, port: 1280 })
      expect(found === null).toBe(isExcluded)
    },
  )

  test.each(['localhost', '127.0.0.1', '127.9.9.9', '::1'])('is not used for %s', (host) => {
    expect(proxyFromEnvironment({ HTTPS_PROXY }, { host, port: 1 })).toBeNull()
  })

  test.each(['socks5://p.test:1', 'https://p.test', 'http://'])(
    'is refused if it is %s',
    (text) => {
      expect(() => proxyFromEnvironment({ HTTPS_PROXY: text }, server)).toThrow(
        'HTTPS_PROXY: expected http://<host>:<port>',
      )
    },
  )
})

describe('A connection through an HTTP proxy', () => {
  /** @param answer bytes that the proxy sends when the request has arrived. */
  async function through(answer: string | null, timeoutMs = 20_000): Promise<Socket> {
    const sockets: Socket[] = []
    const server = createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => undefined)
      socket.once('data', () => (answer === '' ? socket.end() : socket.write(answer ?? '')))
    })
    await startListening(server, { host: '127.0.0.1', port: 0 })
    const credentials = { username: 'u', password: 'secret' }
    const proxy = { host: '127.0.0.1', port: listeningPort(server), credentials }
    try {
      return await connectThroughProxy(proxy, { host: 'ctrl.test', port: 1 }, { timeoutMs })
    } finally {
      for (const socket of sockets) socket.end()
      void closeServer(server)
    }
  }

  test('delivers the bytes that follow the response of the proxy', async () => {
    const socket = await through('HTTP/1.1 200 OK\r\nVia: x\r\n\r\nhello')
    const chunks: Buffer[] = []
    for await (const chunk of socket) chunks.push(chunk as Buffer)
    expect(Buffer.concat(chunks).toString()).toBe('hello')
  })

  test.each([
    ['HTTP/1.1 407 Proxy Authentication Required\r\n\r\n', 'the proxy answers 407 for ctrl.test:1'],
    ['HTTP/1.1 200x\r\n\r\n', 'the proxy answers no HTTP for ctrl.test:1'],
    ['SSH-2.0-x\r\n\r\n', 'the proxy answers no HTTP for ctrl.test:1'],
    [`HTTP/1.1 200 OK\r\n${'x'.repeat(17_000)}`, 'the answer of the proxy is too long'],
    ['', 'the proxy has closed the connection'],
  ])('fails with the proxy response %j', async (answer, reason) => {
    const failed = through(answer)
    await expect(failed).rejects.toThrow(reason)
    await expect(failed).rejects.not.toThrow('secret')
  })

  test('fails when the proxy does not respond in time', async () => {
    await expect(through(null, 50)).rejects.toThrow('no answer within 50 ms')
  })
})
