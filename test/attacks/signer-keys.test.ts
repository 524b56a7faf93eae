import { createServer } from 'node:http'
import { type AddressInfo, isIP } from 'node:net'
import { afterAll, afterEach, expect, test } from 'vitest'
import { KeyFetcher, type KeyFetchRules } from '../../src/auth/tokens/key-fetcher.ts'
import { defaultApiLimits } from '../../src/api/limits.ts'
import { controllerWithProvider } from '../api/support/external-jwt.ts'
import { ecKey, jwkOf, KeyServer } from '../support/identity-provider.ts'

// The attack: the attacker controls the address at which a signer publishes its keys, or somebody
// sends tokens with unknown key IDs. The address responds slowly, without end, or with a redirect;
// its name resolves to this host; or each token makes the controller fetch the keys again.

const hasty = { ...defaultApiLimits, keyFetchMsMax: 500 }
const server = await KeyServer.open([jwkOf(ecKey('one'))])
const { answer } = server
const attacked = await controllerWithProvider()
const open: KeyFetchRules = {
  allowsReserved: true,
  allowsHttp: false,
  refusedNetworks: [],
  caPem: server.caPem,
}
const endpointBy = (rules: Partial<KeyFetchRules>, limits = defaultApiLimits): KeyFetcher =>
  new KeyFetcher(limits, { ...open, ...rules })

afterAll(() => server.close())
afterEach(() => {
  server.answer = answer
})

test('a controller fetches the keys of a correctly configured provider', async () => {
  expect(JSON.parse(await endpointBy({}).fetch(server.url))).toEqual({ keys: server.keys })
})

test('a controller stops waiting for a JWKS endpoint that sends its response byte by byte, or sends no response', async () => {
  for (const isSilent of [true, false]) {
    server.answer = (_request, response) => {
      if (isSilent) return
      response.setHeader('content-type', 'application/json')
      const timer = setInterval(() => response.write(' '), 20)
      response.on('close', () => {
        clearInterval(timer)
      })
    }
    const fetched = endpointBy({}, hasty).fetch(server.url)
    await expect(fetched).rejects.toThrow('timed out')
  }
})

test('a controller stops reading a JWKS response that exceeds the maximum size', async () => {
  let sent = 0
  server.answer = (_request, response) => {
    response.setHeader('content-type', 'application/json')
    const piece = Buffer.alloc(64 * 1024, 0x20)
    const more = (): void => {
      while (sent < 64 * 1024 * 1024) {
        sent += piece.length
        if (!response.write(piece)) return
      }
      response.end('{"keys":[]}')
    }
    response.on('drain', more)
    more()
  }
  await expect(endpointBy({}).fetch(server.url)).rejects.toThrow('response too large')
  expect(sent).toBeLessThan(32 * 1024 * 1024)
})

test('a controller does not follow a redirect by a JWKS endpoint, and does not use keys in the redirect response', async () => {
  for (const status of [301, 302, 303, 307, 308]) {
    const before = server.requests
    server.answer = (_request, response) => {
      response.writeHead(status, { location: server.url, 'content-type': 'application/json' })
      response.end(JSON.stringify({ keys: server.keys }))
    }
    await expect(endpointBy({}).fetch(server.url)).rejects.toThrow(`status ${status}`)
    expect(server.requests).toBe(before + 1)
  }
})

test('a controller requests no JWKS from an address of its host, whatever host name the URL contains', async () => {
  const before = server.requests
  const closed = endpointBy({ allowsReserved: false })
  for (const host of ['localhost', '127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '169.254.169.254']) {
    const fetched = closed.fetch(`https://${host}:${server.port}/keys`)
    await expect(fetched).rejects.toThrow('an address that is not allowed')
  }
  // The name alone would be permitted; the address to which it resolves is refused.
  const own = endpointBy({ refusedNetworks: ['127.0.0.0/8', '::1/128'] })
  await expect(own.fetch(server.url)).rejects.toThrow('an address that is not allowed')
  expect(server.requests).toBe(before)
})

test('a controller requests no JWKS from a name that resolves to a metadata service, even if addresses of its host are allowed', async () => {
  const before = server.requests
  for (const address of ['169.254.169.254', '168.63.129.16', 'fe80::1%lo', 'fd00:ec2::254']) {
    const judged = [
      { address: '127.0.0.1', family: 4 },
      { address, family: isIP(address) },
    ]
    const endpoint = new KeyFetcher(defaultApiLimits, open, () => Promise.resolve(judged))
    await expect(endpoint.fetch(server.url)).rejects.toThrow('an address that is not allowed')
  }
  expect(server.requests).toBe(before)
})

test('a controller connects to the address that it checked, even if the DNS response changes after the check', async () => {
  const before = server.requests
  // The check sees an address for documentation (RFC 5737); the operating system would resolve the
  // same name to this host.
  const judged = { address: '203.0.113.1', family: 4 }
  const endpoint = new KeyFetcher(hasty, open, () => Promise.resolve([judged]))
  await expect(endpoint.fetch(server.url)).rejects.toThrow()
  expect(server.requests).toBe(before)
})

test('only a limited number of DNS lookups can hang at the same time', async () => {
  let lookups = 0
  const hanging = (): Promise<never> => {
    lookups += 1
    return new Promise(() => undefined)
  }
  const endpoint = new KeyFetcher({ ...hasty, keyFetchMsMax: 50 }, open, hanging)
  for (let at = 0; at < 10; at += 1) {
    await expect(endpoint.fetch(`https://name${at}.test/keys`)).rejects.toThrow()
  }
  expect(lookups).toBe(defaultApiLimits.keyLookupsMax)
})

test('a controller requests no JWKS from a name if any of its addresses is refused', async () => {
  const addresses = [
    { address: '127.0.0.1', family: 4 },
    { address: '10.1.2.3', family: 4 },
  ]
  const rules = { ...open, refusedNetworks: ['10.0.0.0/8'] }
  const endpoint = new KeyFetcher(defaultApiLimits, rules, () => Promise.resolve(addresses))
  await expect(endpoint.fetch(server.url)).rejects.toThrow('an address that is not allowed')
})

test('a controller requests no JWKS from an IPv6 address that leads to a refused IPv4 network', async () => {
  const endpoint = new KeyFetcher(hasty, { ...open, refusedNetworks: ['10.0.0.0/8'] })
  // NAT64, 6to4, an IPv4-mapped and an IPv4-compatible address, each of 10.1.2.3.
  for (const host of ['64:ff9b::a01:203', '2002:a01:203::1', '::ffff:a01:203', '::a01:203']) {
    const fetched = endpoint.fetch(`https://[${host}]/keys`)
    await expect(fetched, host).rejects.toThrow('an address that is not allowed')
  }
})

test('a controller loads no keys without TLS, and none from a server with an untrusted certificate', async () => {
  let requests = 0
  const plain = createServer((_request, response) => {
    requests += 1
    response.setHeader('content-type', 'application/json')
    response.end('{"keys":[]}')
  })
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
  const { port } = plain.address() as AddressInfo
  const url = `http://127.0.0.1:${port}/keys`
  await expect(endpointBy({}).fetch(url)).rejects.toThrow('not an https URL')
  expect(requests).toBe(0)
  expect(await endpointBy({ allowsHttp: true }).fetch(url)).toBe('{"keys":[]}')
  plain.close()
  const before = server.requests
  await expect(endpointBy({ caPem: '' }).fetch(server.url)).rejects.toThrow()
  await expect(endpointBy({}).fetch(`https://127.0.0.1:${server.port}/keys`)).rejects.toThrow()
  expect(server.requests).toBe(before)
})

test('tokens with unknown key IDs cause requests to the signer only at a limited rate', async () => {
  const { provider, logIn, controller } = attacked
  const forged = (at: number): Promise<string> =>
    provider.token('admin-id', { header: { kid: `unknown ${at}` } })
  const many = Array.from({ length: 40 }, (_, at) => at)
  const replies = await Promise.all(many.map(async (at) => logIn(await forged(at))))
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([401]))
  for (const at of many) await logIn(await forged(at))
  expect(attacked.server.requests).toBe(1)
  expect((await logIn(await provider.token('admin-id'))).status).toBe(200)
  controller.clock.advance(defaultApiLimits.keyFetchMsMin)
  for (const at of many) await logIn(await forged(at))
  expect(attacked.server.requests).toBe(2)
})
