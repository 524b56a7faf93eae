import { expect, test } from 'vitest'
import { isReservedAddress, isReservedHost } from '../../src/lib/reserved-hosts.ts'

const judged = (text: string, allowsReserved = false): boolean => {
  const url = URL.parse(text)
  if (url === null) throw new Error(`${text} is no URL`)
  return isReservedHost(url, allowsReserved)
}

test.each([
  'https://issuer.test/keys',
  'https://10.0.0.5:8443/keys',
  'https://192.168.1.2/',
  'https://8.8.8.8/',
  'https://[2001:db8::1]/',
  'https://[fd12:3456::1]/',
  'https://[::ffff:8.8.8.8]/',
  'https://localhost.example.org/',
  'https://notlocalhost/',
  'https://169.254.example.org/',
])('the address %s is not reserved', (text) => {
  expect(judged(text)).toBe(false)
})

test.each(['127.0.0.1', '169.254.169.254', '::1', 'fe80::1', '::ffff:127.0.0.1', 'fd00:ec2::254'])(
  'the address %s is reserved: it belongs to this host, a link-local network or a metadata service',
  (address) => {
    expect(isReservedAddress(address, false)).toBe(true)
  },
)

test.each(['8.8.8.8', '2606:4700::1111', 'issuer.test', ''])(
  '%j is not a reserved address',
  (address) => {
    expect(isReservedAddress(address, false)).toBe(false)
  },
)

test.each([
  ['127.0.0.1', 'is no longer reserved'],
  ['0.0.0.0', 'is no longer reserved'],
  ['::1', 'is no longer reserved'],
  ['::ffff:127.0.0.1', 'is no longer reserved'],
  ['169.254.1.1', 'stays reserved'],
  ['fe80::1%eth0', 'stays reserved'],
  ['::ffff:169.254.169.254', 'stays reserved'],
  ['fd00:ec2::254', 'stays reserved'],
  ['100.100.100.200', 'stays reserved'],
  ['168.63.129.16', 'stays reserved'],
])('the address %s is reserved; if addresses of this host are allowed, it %s', (address, fate) => {
  expect([isReservedAddress(address), isReservedAddress(address, true)]).toEqual([
    true,
    fate === 'stays reserved',
  ])
})
