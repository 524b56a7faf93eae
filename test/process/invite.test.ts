import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { newOpaqueId } from '../../src/lib/random.ts'
import { checkKeyMatches, parseCertificates } from '../../src/pki/certificate.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../src/pki/authority/certificate-request.ts'
import { parseTicket } from '../../src/pki/secrets/ticket.ts'
import { FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import { until, isRunning } from './support/client.ts'
import { TestCluster } from './support/cluster.ts'

// Goal: no disk contains a shared secret in plaintext, and a controller can join over HTTPS with a
// ticket.

let cluster: TestCluster
beforeAll(async () => {
  cluster = await TestCluster.start({ nodes: 1 })
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

test('a ticket admits one controller, is then valid only for a retry of this controller, and appears in no file of the cluster', async () => {
  const admin = await cluster.loggedIn(1)
  const invited = await admin.request('POST', '/fabric/v1/cluster/invite', {
    body: { lifetimeMs: 600_000 },
  })
  expect(invited.status).toBe(200)
  const { ticket } = invited.body.data as { ticket: string }
  expect(parseTicket(ticket).addresses).toEqual([`${cluster.admin.controllers[0]}/fabric/v1`])
  expect(parseTicket(ticket).caPem).toBe(readFileSync(cluster.admin.ca, 'utf8'))

  const privateKeyPem = generatePrivateKeyPem()
  const body = {
    ticket,
    id: 'ctrl2',
    certificateRequestPem: await createCertificateRequest({ privateKeyPem, id: 'ctrl2' }),
    storeId: Buffer.from(newOpaqueId()).toString('base64url'),
    address: '127.0.0.1:1',
    hosts: ['localhost'],
    version: 'v0.1.0',
    featureLevel: FEATURE_LEVEL,
  }
  const stranger = cluster.client(1)
  const joined = await stranger.request('POST', '/fabric/v1/cluster/join', { body })
  expect(joined.status).toBe(200)
  const answer = joined.body.data as { certificatePem: string; isVoter: boolean }
  checkKeyMatches(parseCertificates(answer.certificatePem)[0], privateKeyPem)
  expect(answer.isVoter).toBe(true)
  const again = await stranger.request('POST', '/fabric/v1/cluster/join', { body })
  expect((again.body.data as typeof answer).certificatePem).toBe(answer.certificatePem)
  const other = await stranger.request('POST', '/fabric/v1/cluster/join', {
    body: { ...body, storeId: Buffer.from(newOpaqueId()).toString('base64url') },
  })
  expect([other.status, other.body.error?.code]).toEqual([403, 'TICKET_REFUSED'])
  expect(filesWith(ticket.slice(-40))).toEqual([])
})

test('a session survives a kill -9 of the controller', async () => {
  const admin = await cluster.loggedIn(1)
  cluster.kill(1)
  await until('it is gone', () => Promise.resolve(!isRunning(cluster.pid(1))))
  cluster.run(1)
  await until('the session of before is honoured', async () => {
    const answer = await admin.request('GET', '/edge/client/v1/current-api-session')
    return answer.status === 200
  })
})

test('the only private keys on disk are those of the root and of the controller', () => {
  expect(filesWith('PRIVATE KEY')).toEqual([
    join('ctrl1', 'controller.key'),
    join('ctrl1', 'pki', 'root.key'),
  ])
})

/** The files of the cluster that contain the text, also its logs. */
function filesWith(text: string): string[] {
  return readdirSync(cluster.folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => !path.endsWith('.sock') && existsSync(join(cluster.folder, path)))
    .filter((path) => holds(join(cluster.folder, path), text))
    .sort()
}

function holds(path: string, text: string): boolean {
  try {
    return readFileSync(path).includes(text)
  } catch (error) {
    // The path is a folder, or the state store has replaced the file in the meantime.
    if (error instanceof Error && 'code' in error && error.code !== 'EACCES') return false
    throw error
  }
}
