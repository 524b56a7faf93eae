import { expect, test } from 'vitest'

import { readAppData } from '../../src/overlay/services/app-data.ts'
import { parseHostConfig } from '../../src/overlay/services/host-config.ts'
import { resolveTarget, chooseHostTarget } from '../../src/overlay/services/host-target.ts'

// The attack: a client of a hosted service requests a target that the operator has not permitted:
// another address or port, the host itself in another notation, or a name that resolves to it.

const forwarding = {
  forwardProtocol: true,
  allowedProtocols: ['tcp'],
  forwardAddress: true,
  allowedAddresses: ['10.1.0.0/16', '*.corp.example', 'db.example'],
  forwardPort: true,
  allowedPortRanges: [{ low: 80, high: 90 }],
}
const ask = { dst_protocol: 'tcp', dst_ip: '10.1.2.3', dst_port: '80' }

async function reached(data: object, config: object = forwarding): Promise<string> {
  const [terms] = parseHostConfig('host.v1', JSON.stringify(config))
  if (terms === undefined) throw new Error('no terms')
  const target = chooseHostTarget(
    terms,
    readAppData(Buffer.from(JSON.stringify({ ...ask, ...data }))),
  )
  return `${target.protocol} ${await resolveTarget(target)} ${target.port}`
}

test('a tunnel reaches an allowed target', async () => {
  expect(await reached({})).toBe('tcp 10.1.2.3 80')
})

test.each([
  ['at an address outside of the allowed networks', { dst_ip: '10.2.0.1' }],
  ['at this host', { dst_ip: '127.0.0.1' }],
  ['at this host as an IPv4-mapped IPv6 address', { dst_ip: '::ffff:7f00:1' }],
  ['at a port outside of the allowed ranges', { dst_port: '22' }],
  [
    'at a port above 65,535 that would wrap around to an allowed port',
    { dst_port: String(65_536 + 80) },
  ],
  ['with another protocol', { dst_protocol: 'udp' }],
  ['at a name that the operator has not allowed', { dst_hostname: 'localhost' }],
  ['at an address in a legacy notation as a name', { dst_hostname: '127.1' }],
  ['with another source address', { source_addr: '127.0.0.1' }],
])('a tunnel does not reach the target %s', async (_what, data) => {
  await expect(reached(data)).rejects.toThrow(/allowed|source/)
})

test('a tunnel does not reach this host by the unspecified address, even if every network is allowed', async () => {
  const open = { ...forwarding, allowedAddresses: ['0.0.0.0/0'] }
  await expect(reached({ dst_ip: '0.0.0.0' }, open)).rejects.toThrow('allowed')
})

test('a tunnel does not reach a name that is not allowed, even if the address of the name is allowed', async () => {
  const open = { ...forwarding, allowedAddresses: ['db.example', '127.0.0.0/8'] }
  await expect(reached({ dst_hostname: 'localhost' }, open)).rejects.toThrow('allowed')
})

test('a tunnel does not treat an IP address in a legacy notation as a name, even if every name is allowed', async () => {
  const open = { ...forwarding, allowedAddresses: ['*', '127.0.0.0/8'] }
  await expect(reached({ dst_hostname: '2130706433' }, open)).rejects.toThrow('allowed')
})

test('a tunnel does not reach a name that resolves to this host, even if every name is allowed', async () => {
  const open = { ...forwarding, allowedAddresses: ['*'] }
  await expect(reached({ dst_hostname: 'localhost' }, open)).rejects.toThrow('allowed')
})

test('a tunnel refuses application data that exceed the maximum length', () => {
  expect(() => readAppData(Buffer.from(JSON.stringify({ x: 'x'.repeat(5000) })))).toThrow('longer')
})
