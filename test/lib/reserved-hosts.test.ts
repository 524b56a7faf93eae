import { expect, test } from 'vitest'
import { isReservedAddress, isReservedHost } from '../../src/lib/reserved-hosts.ts'

const judged = (text: string, allowsLoopback = false): boolean => {
  const url = URL.parse(text)
  if (url === null) throw new Error(`${text} is no URL`)
  return isReservedHost(url, allowsLoopback)
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
])('%s is not reserved', (text) => {
  expect(judged(text)).toBe(false)
})

test.each(['127.0.0.1', '169.254.169.254', '::1', 'fe80::1', '::ffff:127.0.0.1', 'fd00:ec2::254'])(
  'the address %s is reserved',
  (address) => {
    expect(isReservedAddress(address, false)).toBe(true)
  },
)

test.each(['8.8.8.8', '2606:4700::1111', 'issuer.test', ''])(
  'the address %j is not reserved',
  (address) => {
    expect(isReservedAddress(address, false)).toBe(false)
  },
)

test.each([
  'https://127.0.0.1/',
  'https://[::1]/',
  'https://[::ffff:127.0.0.1]/',
  'https://localhost:8443/keys',
])('%s is reserved unless loopback is allowed', (text) => {
  expect(judged(text)).toBe(true)
  expect(judged(text, true)).toBe(false)
})

test.each([
  'http://169.254.169.254/latest/meta-data/',
  'http://[::ffff:169.254.169.254]/',
  'http://[fe80::1]/',
  'http://[fd00:ec2::254]/',
  'http://100.100.100.200/',
  'http://metadata.google.internal/',
  'http://0.0.0.0/',
  'http://[::]/',
])('%s is reserved even if loopback is allowed', (text) => {
  expect(judged(text, true)).toBe(true)
})
