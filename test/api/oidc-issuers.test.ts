import { expect, test } from 'vitest'
import { Issuers } from '../../src/api/oidc/issuers.ts'
import type { ActiveCertificates } from '../../src/api/cluster/pki-control.ts'
import { LocalPki } from './support/host-parts.ts'

/** Certificates of a controller at one port: its own, and an alternate one with more names. */
class Pki extends LocalPki {
  override view(): ActiveCertificates {
    const inForce = super.view()
    const [other] = inForce.serverCertificates
    const certificate = other?.certificate
    if (other === undefined || certificate === undefined || certificate === null) {
      throw new Error('a server certificate is in force')
    }
    const own = ['spiffe://trust/controller/ctrl1', 'localhost', '127.0.0.1', '::1', 'CTRL1.lan']
    const others = ['console.example.org', '*.apps.example.org', '*.org', '*']
    return {
      ...inForce,
      certificates: [{ ...certificate, names: own }],
      serverCertificates: [{ ...other, certificate: { ...certificate, names: others } }],
    }
  }
}
const issuers = new Issuers({
  bindings: { 'edge-oidc': ['https://ctrl1.lan:1280/oidc', 'https://public.example.org/oidc'] },
  pki: new Pki(),
})
const at = (host: string) => ({ headers: { host } })

test.each([
  'ctrl1.lan:1280',
  'public.example.org',
  'public.example.org:443',
  'localhost:1280',
  'LocalHost:1280',
  '127.0.0.1:1280',
  '[::1]:1280',
  'console.example.org:1280',
  'wiki.apps.example.org:1280',
  'wiki.apps.example.org',
])(
  'a controller is an OIDC issuer at %s, which is one of its configured addresses, or matches a name in its certificates',
  (host) => {
    expect(issuers.of(at(host))).toBe(`https://${host.toLowerCase()}/oidc`)
  },
)

test.each([
  '',
  'evil.example',
  'localhost:1281',
  'apps.example.org:1280',
  'a.b.apps.example.org:1280',
  '.apps.example.org:1280',
  'wikiapps.example.org:1280',
  '*.apps.example.org:1280',
  '-x.apps.example.org:1280',
  `${'x'.repeat(64)}.apps.example.org:1280`,
  'evil@x.apps.example.org:1280',
  'x/y.apps.example.org:1280',
  'example.org:1280',
  'other.org:1280',
  'anything:1280',
  'spiffe://trust/controller/ctrl1',
])('a controller is not an OIDC issuer at %j', (host) => {
  expect(issuers.of(at(host))).toBe(null)
})

test('if a certificate has a wildcard name, the hosts for a request include the requested host name, but no other name that matches the wildcard', () => {
  const hosts = issuers.hosts(at('wiki.apps.example.org:1280'))
  expect(hosts).toContain('wiki.apps.example.org:1280')
  expect(issuers.hosts(at('localhost:1280'))).not.toContain('wiki.apps.example.org:1280')
  expect(hosts.filter((host) => host.includes('*'))).toEqual([])
})
