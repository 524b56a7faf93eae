import { readFileSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { issueLeafForKey, validityStartingAt } from '../../src/pki/authority/authority.ts'
import { parseCertificates } from '../../src/pki/certificate.ts'
import { readEnrollmentRequest } from '../../src/pki/authority/enrollment-request.ts'
import { readEndpoints, writeEndpoints } from '../../src/router/controllers/endpoints-file.ts'
import type { SendRenewal } from '../../src/router/identity/certificate-renewer.ts'
import { eventually, TestNetwork, trustDomain } from './support.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const api = 'https://ctrl1.test:1280'

let network: TestNetwork
let asked: string[]
beforeEach(async () => {
  network = await TestNetwork.create()
  asked = []
  const known = { endpoints: ['tls:127.0.0.1:1'], controllers: [], removed: [], trustDomain }
  writeEndpoints(network.path('endpoints.yml'), { ...known, apis: ['https://gone.test:1', api] })
})
afterEach(async () => {
  await network.close()
})

/** A certificate for the key of a request, signed by the authority of the network. */
async function certified(pem: string, commonName: string): Promise<string> {
  const { publicKeySpki, names } = readEnrollmentRequest(pem)
  return await issueLeafForKey(
    {
      issuer: network.root,
      commonName,
      uris: [],
      hosts: [...names.dnsNames],
      usages: ['client', 'server'],
      validity: validityStartingAt(Date.now(), 365 * DAY_MS),
    },
    publicKeySpki,
  )
}

const askAt =
  (commonName: string): SendRenewal =>
  async (at, { certCsr, serverCertCsr }) => {
    asked.push(at)
    if (at !== api) throw new Error('it refuses connections')
    return {
      cert: await certified(certCsr, commonName),
      serverCert: await certified(serverCertCsr, commonName),
    }
  }

const leafOf = (name: string) => parseCertificates(readFileSync(network.path(name), 'utf8'))[0]

/** The router has certificates with this number of days left of 365. */
async function withDaysLeft(days: number): Promise<void> {
  for (const name of ['r', 'r.server']) {
    const { certificatePem, privateKeyPem } = await network.leafBetween(
      'router1',
      Date.now() - (365 - days) * DAY_MS,
      Date.now() + days * DAY_MS,
    )
    writeFileSync(network.path(`${name}.cert`), certificatePem)
    writeFileSync(network.path(`${name}.key`), privateKeyPem, { mode: 0o600 })
  }
}

describe('The certificates of a router', () => {
  test('stay in use after files of another router replaced the certificate files, and the router logs a warning', async () => {
    await withDaysLeft(100)
    const router = network.router(['tls:127.0.0.1:1'])
    for (const name of ['r', 'r.server']) {
      const { certificatePem, privateKeyPem } = await network.leaf('router2', [], [])
      writeFileSync(network.path(`${name}.cert`), certificatePem)
      writeFileSync(network.path(`${name}.key`), privateKeyPem, { mode: 0o600 })
    }
    expect([router.id, router.id]).toEqual(['router1', 'router1'])
    expect(network.lines).toEqual([
      {
        level: 'warn',
        fields: {},
        message:
          'the identity files are now those of router router2; router router1 keeps its former certificates until it is restarted',
      },
    ])
  })

  test('are extended when they are due, by a controller that responds, with the same keys and with the names in the section csr', async () => {
    await withDaysLeft(100)
    const before = leafOf('r.cert')
    const router = network.router(['tls:127.0.0.1:1'], '', { askExtension: askAt('router1') })
    await router.start({ extends: false })
    await eventually(() => network.logged('certificates extended')).toHaveLength(1)
    expect(asked).toEqual(['https://gone.test:1', api])
    const read = readEndpoints(network.path('endpoints.yml'))
    expect(read.kind === 'known' && read.known.apis).toEqual([api, 'https://gone.test:1'])
    const [client, server] = [leafOf('r.cert'), leafOf('r.server.cert')]
    expect(client.sha1).not.toBe(before.sha1)
    expect(Buffer.compare(client.publicKeySha256, before.publicKeySha256)).toBe(0)
    expect(client.dnsNames).toEqual([])
    expect(server.dnsNames).toEqual(['r.test'])
  })

  test.each([
    ['deleted', null],
    ['damaged', 'endpoints: ['],
  ])(
    'are extended at the APIs that the controllers list if the endpoints file was %s, and the router writes this file again completely',
    async (_state, text) => {
      const controllers = await Promise.all(['a', 'b'].map((id) => network.controller(id)))
      for (const each of controllers) each.clientApis = [`https://${each.id}.test:8441`]
      const [a, b] = controllers
      if (a === undefined || b === undefined) throw new Error('there are two')
      b.clientApis = [api]
      if (text === null) network.remove('endpoints.yml')
      else writeFileSync(network.path('endpoints.yml'), text)
      const endpoints = [a.address, b.address]
      const router = network.router(endpoints, '', { askExtension: askAt('router1') })
      await router.start({ extends: true })
      await eventually(() => controllers.map(({ isConnected }) => isConnected)).toEqual([
        true,
        true,
      ])
      expect(asked).toEqual([])
      for (const each of controllers) each.tell([a, b], 6, each === a)
      await eventually(() => network.logged('certificates extended')).toHaveLength(1)
      expect(asked.at(-1)).toBe(api)
      expect(network.logged('cannot be extended')).toEqual([])
      const read = readEndpoints(network.path('endpoints.yml'))
      if (read.kind !== 'known') throw new Error(read.kind)
      expect(read.known.endpoints.toSorted()).toEqual(endpoints.toSorted())
      expect(read.known.apis).toEqual([api, 'https://a.test:8441'])
      expect(read.known.trustDomain).toBe(trustDomain)
    },
  )

  test('are presented to one of the controllers immediately after their extension, because only this makes them valid', async () => {
    const [a, b] = [await network.controller('a'), await network.controller('b')]
    writeEndpoints(network.path('endpoints.yml'), {
      endpoints: [a.address, b.address],
      controllers: [],
      removed: [],
      trustDomain,
      apis: [api],
    })
    const before = leafOf('r.cert').sha1
    const router = network.router([a.address, b.address], '', { askExtension: askAt('router1') })
    await router.start({ extends: false })
    await eventually(() => [a.isConnected, b.isConnected]).toEqual([true, true])
    await router.stop()
    const extending = network.router([a.address, b.address], '', {
      askExtension: async (...asked) => {
        await eventually(() => [a, b].map((one) => one.hellos.length)).toEqual([2, 2])
        return askAt('router1')(...asked)
      },
    })
    await extending.start({ extends: true })
    const shown = () => {
      const fingerprints = [...a.routerFingerprints, ...b.routerFingerprints]
      return fingerprints.filter((fingerprint) => fingerprint !== before)
    }
    await eventually(shown).toHaveLength(1)
    expect(shown()).toEqual([leafOf('r.cert').sha1])
    await eventually(() => [a.isConnected, b.isConnected]).toEqual([true, true])
  })

  test('are not extended if they are not due, unless a controller requests an extension', async () => {
    const router = network.router(['tls:127.0.0.1:1'], '', { askExtension: askAt('router1') })
    await router.start({ extends: false })
    await eventually(() => network.logged('router starting')).toHaveLength(1)
    await eventually(() => network.logged('cannot reach a controller')).toHaveLength(1)
    expect(asked).toEqual([])
    await router.stop()
    const asking = network.router(['tls:127.0.0.1:1'], '', { askExtension: askAt('router1') })
    await asking.start({ extends: true })
    await eventually(() => network.logged('certificates extended')).toHaveLength(1)
  })

  test('are kept when the response contains another router’s certificates', async () => {
    await withDaysLeft(100)
    const before = leafOf('r.cert').sha1
    const router = network.router(['tls:127.0.0.1:1'], '', { askExtension: askAt('router2') })
    await router.start({ extends: false })
    await eventually(() => network.logged('certificates not extended')).toHaveLength(1)
    expect(JSON.stringify(network.lines)).toContain('for another router')
    expect(leafOf('r.cert').sha1).toBe(before)
  })

  test('cause a log line if they are due but the section csr is missing, so that the router has no names to request', async () => {
    await withDaysLeft(100)
    const router = network.router(['tls:127.0.0.1:1'], '', {
      askExtension: askAt('router1'),
      hasCsr: false,
    })
    await router.start({ extends: false })
    await eventually(() => network.logged('the configuration has no csr')).toHaveLength(1)
    expect(asked).toEqual([])
  })
})
