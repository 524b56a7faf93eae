import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'

import {
  type Certificate,
  checkKeyMatches,
  parseCertificates,
} from '../../../src/pki/certificate.ts'
import { isRunning, until } from '../support/client.ts'
import { flotilla, type TestCluster } from '../support/cluster.ts'
import { sharedCluster } from '../support/shared-cluster.ts'

// Goal: an operator replaces the issuing authority while clients write. Every member gets a
// certificate of the new authority without a restart, no request fails, and a member that returns
// afterwards is admitted.

let cluster: TestCluster
beforeAll(() => {
  cluster = sharedCluster()
})

const members = [1, 2, 3]
const file = (k: number, name: string): string => join(cluster.folder, cluster.id(k), name)
const chainOf = (k: number): Certificate[] =>
  parseCertificates(readFileSync(file(k, 'cert.pem'), 'utf8'))

/**
 * SHA-256 of the leaf certificate that the server presents on a new connection, verified against
 * the root.
 */
function served(k: number): Promise<string> {
  const { hostname: host, port } = new URL(cluster.admin.controllers[k - 1] ?? '')
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), ca: readFileSync(cluster.admin.ca) }, () => {
      const { fingerprint256 = '' } = socket.getPeerX509Certificate() ?? {}
      socket.destroy()
      resolve(fingerprint256.replaceAll(':', '').toLowerCase())
    })
    socket.once('error', reject)
  })
}

test('a new issuing CA becomes active under load without a failed request', async () => {
  const clients = await Promise.all(members.map((k) => cluster.loggedIn(k)))
  const before = members.map(chainOf)
  const answers: number[] = []
  let isOver = false
  const writers = Array.from({ length: 6 }, async (_, worker) => {
    for (let n = 0; !isOver; n += 1) {
      const client = clients[worker % clients.length]
      const body = { name: `certified-${worker}-${n}`, encryptionRequired: true }
      const answer = await client?.request('POST', '/edge/management/v1/services', { body })
      answers.push(answer?.status ?? 0)
    }
  })
  await until('writes flow', () => Promise.resolve(answers.length > 50))
  await promisify(execFile)(flotilla, [
    'pki',
    'renew-issuing',
    '--config',
    file(1, 'config.yml'),
    '--root-key',
    join(cluster.folder, 'ctrl1', 'pki', 'root.key'),
  ])
  for (const [at, k] of members.entries()) {
    const former = before[at]?.[1]?.sha256
    await until(`${cluster.id(k)} has a certificate under it`, () =>
      Promise.resolve(chainOf(k)[1]?.sha256 !== former),
    )
    const [leaf] = chainOf(k)
    await until(`${cluster.id(k)} serves it`, async () => (await served(k)) === leaf?.sha256)
  }
  const renewedAt = answers.length
  await until('writes flow on', () => Promise.resolve(answers.length > renewedAt + 50))
  isOver = true
  await Promise.all(writers)
  expect(answers.filter((status) => status !== 201)).toEqual([])
  for (const [at, k] of members.entries()) {
    const [leaf] = chainOf(k)
    expect(leaf?.publicKeySha256).toEqual(before[at]?.[0]?.publicKeySha256)
    if (leaf !== undefined) checkKeyMatches(leaf, readFileSync(file(k, 'controller.key'), 'utf8'))
  }
})

test('a member that is killed after the change of the issuing CA is admitted again with its new certificate', async () => {
  const leader = await cluster.leader()
  const k = members.find((one) => one !== leader) ?? 1
  const pid = cluster.pid(k)
  cluster.kill(k)
  await until('it is gone, and its data folder free', () => Promise.resolve(!isRunning(pid)))
  cluster.run(k)
  await until(`${cluster.id(k)} follows`, async () => {
    const seen = await cluster.status(k)
    const others = seen.filter(({ id }) => id !== cluster.id(k))
    return (
      seen.some(({ role }) => role === 'leader') &&
      others.every(({ lastContactMs }) => lastContactMs !== null && lastContactMs < 2_000)
    )
  })
})
