import { expect, test } from 'vitest'

import { serviceAddresses } from '../../src/console/pages/records/config-address.ts'

// Goal: the list and the page of a service show where clients find it and where it is hosted.

function config(name: string, data: object) {
  return { configType: { name }, data }
}

test('the addresses of a service are those of its intercept.v1 and host.v1 configs', () => {
  const configs = [
    config('intercept.v1', {
      addresses: ['wiki.internal', 'fd00::1'],
      portRanges: [
        { low: 443, high: 443 },
        { low: 8000, high: 8010 },
      ],
    }),
    config('host.v1', { protocol: 'tcp', address: '127.0.0.1', port: 8000 }),
  ]
  expect(serviceAddresses(configs)).toEqual({
    clientAddress: 'wiki.internal:443,8000-8010, [fd00::1]:443,8000-8010',
    hostAddress: 'tcp 127.0.0.1:8000',
  })
})

test('the address at a host shows the allowed values of the parts that the client chooses', () => {
  const data = {
    forwardProtocol: true,
    allowedProtocols: ['tcp', 'udp'],
    address: '10.0.0.7',
    forwardPort: true,
    allowedPortRanges: [{ low: 1, high: 1024 }],
  }
  expect(serviceAddresses([config('host.v1', data)])).toEqual({
    hostAddress: 'tcp/udp 10.0.0.7:1-1024',
  })
})

test('the addresses of a service include those of older config types, and of each terminator of host.v2', () => {
  const configs = [
    config('ziti-tunneler-client.v1', { hostname: 'git', port: 22 }),
    config('host.v2', {
      terminators: [
        { protocol: 'tcp', address: 'a', port: 22 },
        { protocol: 'tcp', address: 'b', port: 22 },
      ],
    }),
  ]
  expect(serviceAddresses(configs)).toEqual({
    clientAddress: 'git:22',
    hostAddress: 'tcp a:22, tcp b:22',
  })
})

test('a service has no address if its configs have unknown types or malformed data', () => {
  const configs = [config('toString', {}), config('intercept.v1', { addresses: 'wiki' })]
  expect(serviceAddresses(configs)).toEqual({})
})
