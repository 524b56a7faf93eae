import { fromBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { CommandKind } from '../../proto/gen/command_pb.ts'
import { ConfigurationSchema } from '../../proto/gen/membership_pb.ts'
import { rotateClusterKey } from '../../src/cluster/secrets/secret-rotation.ts'
import { Problem } from '../../src/lib/problems.ts'
import { newOpaqueId } from '../../src/lib/random.ts'
import {
  checkCertificateChain,
  checkKeyMatches,
  leafControllerId,
  parseCertificates,
} from '../../src/pki/certificate.ts'
import {
  createCertificateRequest,
  generatePrivateKeyPem,
} from '../../src/pki/authority/certificate-request.ts'
import { formatTicket, newTicketSecret, parseTicket } from '../../src/pki/secrets/ticket.ts'
import type { JoinRequest } from '../../src/ports/membership.ts'
import { anOperator } from '../support/recorded-actions.ts'
import { CLUSTER_ID, SecretsCluster, startMs, TRUST_DOMAIN } from './secrets-fixture.ts'

let cluster: SecretsCluster
const hour = 3_600_000

beforeEach(async () => {
  cluster = await SecretsCluster.form(['ctrl1', 'ctrl2', 'ctrl3'])
})
afterEach(async () => {
  await cluster.machine.close()
})

interface Joiner {
  readonly privateKeyPem: string
  readonly request: JoinRequest
}

async function invite(changes: { isVoter?: boolean; lifetimeMs?: number } = {}): Promise<string> {
  const options = { isVoter: true, lifetimeMs: hour, ...changes }
  return (await cluster.member('ctrl1').desk.invite(options, anOperator)).ticket
}

async function joiner(ticket: string, changes: Partial<JoinRequest> = {}): Promise<Joiner> {
  const privateKeyPem = generatePrivateKeyPem()
  const id = changes.id ?? 'ctrl4'
  const request = {
    ticket,
    id,
    certificateRequestPem: await createCertificateRequest({ privateKeyPem, id }),
    storeId: newOpaqueId(),
    address: 'ctrl4.example:1480',
    hosts: ['ctrl4.example', '10.0.0.4', '::1'],
    version: 'v0.1.0',
    featureLevel: 1,
    ...changes,
  }
  return { privateKeyPem, request }
}

async function refusalOf(request: JoinRequest, at = 'ctrl2'): Promise<Problem> {
  try {
    await cluster.member(at).desk.admit(request)
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  throw new Error('it was admitted')
}

describe('A join ticket for a new controller', () => {
  test('contains the data that the new controller needs, and lists the issuing controller first', async () => {
    const { desk } = cluster.member('ctrl2')
    const { ticket, id, expiresAtMs } = await desk.invite(
      { isVoter: false, lifetimeMs: hour },
      anOperator,
    )
    expect(parseTicket(ticket)).toMatchObject({
      id,
      clusterId: CLUSTER_ID,
      generation: 1,
      trustDomain: TRUST_DOMAIN,
      caPem: cluster.root.certificatePem,
      isVoter: false,
      expiresAtMs,
      addresses: ['ctrl2', 'ctrl1', 'ctrl3'].map((host) => `https://${host}:1280/fabric/v1`),
    })
    expect(expiresAtMs).toBe(startMs + hour)
  })

  test('has a validity between one minute and 7 days', async () => {
    for (const lifetimeMs of [0, 59_999, 7 * 24 * hour + 1, NaN, -1, 1.5]) {
      await expect(invite({ lifetimeMs })).rejects.toMatchObject({ code: 'COULD_NOT_VALIDATE' })
    }
    await invite({ lifetimeMs: 7 * 24 * hour })
  })

  test('contains a secret that appears neither in the state nor in a log', async () => {
    const ticket = await invite()
    const secret = Buffer.from(parseTicket(ticket).secret)
    const { request } = await joiner(ticket)
    await cluster.member('ctrl2').desk.admit(request)
    const traces = [
      ...cluster.recorded.lines,
      ...cluster.proposals.map(({ payload }) => Buffer.from(payload).toString('latin1')),
      JSON.stringify(cluster.machine.list('joinTicket', { limit: -1 })),
      JSON.stringify(cluster.machine.list('admission', { limit: -1 })),
    ].join('\n')
    for (const form of ['base64url', 'hex', 'latin1', 'base64'] as const) {
      expect(traces).not.toContain(secret.toString(form))
    }
    expect(traces).not.toContain(ticket)
  })
})

describe('A new controller', () => {
  test('receives the current addresses of the members, not those at the time when they joined', async () => {
    cluster.moved.set('ctrl1', '192.0.2.9:1480')
    const { request } = await joiner(await invite())
    const answer = await cluster.member('ctrl2').desk.admit(request)
    const { members } = fromBinary(ConfigurationSchema, answer.configuration)
    expect(members.map(({ address }) => address)).toEqual([
      '192.0.2.9:1480',
      'ctrl2:1480',
      'ctrl3:1480',
    ])
  })

  test('is admitted by a member that did not issue its ticket, and decrypts every secret with its own private key', async () => {
    await rotateClusterKey(cluster.member('ctrl1').rotation, 'a test', { isCompromised: false })
    const { privateKeyPem, request } = await joiner(await invite())
    const answer = await cluster.member('ctrl2').desk.admit(request)
    expect(answer).toMatchObject({
      clusterId: CLUSTER_ID,
      generation: 1,
      trustDomain: TRUST_DOMAIN,
      caPem: cluster.root.certificatePem,
      configurationIndex: 1,
      isVoter: true,
      nowMs: startMs,
    })
    const { members } = fromBinary(ConfigurationSchema, answer.configuration)
    expect(members.map(({ id }) => id)).toEqual(['ctrl1', 'ctrl2', 'ctrl3'])
    const chain = parseCertificates(answer.certificatePem)
    checkCertificateChain(chain, parseCertificates(answer.caPem), startMs)
    checkKeyMatches(chain[0], privateKeyPem)
    expect(leafControllerId(chain[0], TRUST_DOMAIN)).toBe('ctrl4')
    expect(chain[0].dnsNames).toEqual(['ctrl4.example'])
    expect(chain[0].ipAddresses).toHaveLength(2)
    expect(chain[0].notAfterMs).toBeLessThanOrEqual(chain[1]?.notAfterMs ?? 0)

    const { certificatePem } = answer
    const { keyring } = await cluster.add('ctrl4', { certificatePem, privateKeyPem })
    const held = cluster.member('ctrl1').keyring.held()
    expect(keyring.held()).toEqual(held)
    expect(held).toHaveLength(4)
    expect(keyring.issuing()).toEqual({ version: 1, ...cluster.issuing })
  })

  test('receives the same response from another member if it repeats its request', async () => {
    const { request } = await joiner(await invite())
    const first = await cluster.member('ctrl1').desk.admit(request)
    cluster.clock.ms += 1000
    const again = await cluster.member('ctrl3').desk.admit(request)
    expect(again).toEqual({ ...first, nowMs: startMs + 1000 })
  })

  test('is admitted even if the response was lost, and receives the response to a repeated request', async () => {
    const { request } = await joiner(await invite())
    cluster.losesAnswers = true
    expect(await refusalOf(request)).toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    cluster.losesAnswers = false
    const answer = await cluster.member('ctrl2').desk.admit(request)
    const admission = cluster.machine.get('admission', 'ctrl4')
    expect(answer.certificatePem).toBe(admission?.certificatePem)
  })

  test('receives a key that was rotated while the controller was being admitted', async () => {
    const { privateKeyPem, request } = await joiner(await invite())
    cluster.beforePropose = () =>
      rotateClusterKey(cluster.member('ctrl1').rotation, 'meanwhile', { isCompromised: false })
    const { certificatePem } = await cluster.member('ctrl2').desk.admit(request)
    const { keyring } = await cluster.add('ctrl4', { certificatePem, privateKeyPem })
    expect(keyring.clusterKeys().map(({ version }) => version)).toEqual([1, 2])
  })

  test('is refused with MEMBERSHIP_BUSY while the configuration is uncommitted, and admitted with the same request afterwards', async () => {
    const { request } = await joiner(await invite())
    cluster.isSettled = false
    const advance = setInterval(() => (cluster.clock.ms += 1000), 1)
    try {
      expect(await refusalOf(request)).toMatchObject({ code: 'MEMBERSHIP_BUSY' })
    } finally {
      clearInterval(advance)
    }
    cluster.isSettled = true
    expect((await cluster.member('ctrl2').desk.admit(request)).isVoter).toBe(true)
  })
})

describe('A join ticket', () => {
  test('admits only one of two controllers that use it at the same time', async () => {
    const ticket = await invite()
    const first = await joiner(ticket)
    const second = await joiner(ticket, { id: 'ctrl5' })
    const outcomes = await Promise.allSettled([
      cluster.member('ctrl1').desk.admit(first.request),
      cluster.member('ctrl2').desk.admit(second.request),
    ])
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const [refused] = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(refused?.reason).toMatchObject({ code: 'TICKET_REFUSED' })
    const admitted = cluster.machine.list('admission', { limit: -1 }).records
    expect(admitted).toHaveLength(4)
  })

  test.each([
    ['not a ticket', () => 'hello', 'not a ticket'],
    ['truncated', (ticket: string) => ticket.slice(0, -20), 'truncated'],
    [
      'for another cluster',
      (ticket: string) =>
        formatTicket({ ...parseTicket(ticket), clusterId: CLUSTER_ID.replace('0190', '0191') }),
      'another cluster',
    ],
    [
      'from an earlier generation',
      (ticket: string) => formatTicket({ ...parseTicket(ticket), generation: 0 }),
      'predates the recovery',
    ],
    [
      'changed to another secret',
      (ticket: string) => formatTicket({ ...parseTicket(ticket), secret: newTicketSecret() }),
      'unknown or expired',
    ],
    [
      'changed from a voter to a learner',
      (ticket: string) => formatTicket({ ...parseTicket(ticket), isVoter: false }),
      'unknown or expired',
    ],
    [
      'changed to a later expiry',
      (ticket: string) => formatTicket({ ...parseTicket(ticket), expiresAtMs: startMs * 2 }),
      'unknown or expired',
    ],
    [
      'changed to another id',
      (ticket: string) => formatTicket({ ...parseTicket(ticket), id: 'madeUpIdentifier' }),
      'unknown or expired',
    ],
  ])('is refused, and nothing is proposed, if it is %s', async (_what, edit, part) => {
    const ticket = await invite()
    const { request } = await joiner(edit(ticket))
    const proposals = cluster.proposals.length
    const refusal = await refusalOf(request)
    expect(refusal.code).toBe('TICKET_REFUSED')
    expect(refusal.message).toContain(part)
    expect(refusal.message).not.toContain(request.ticket.slice(-20))
    expect(cluster.proposals).toHaveLength(proposals)
  })

  test('is listed at another member with its status and without its secret', async () => {
    const used = parseTicket(await invite({ isVoter: false }))
    await cluster.member('ctrl1').desk.admit((await joiner(formatTicket(used))).request)
    cluster.clock.ms += 1000
    const open = parseTicket(await invite())
    cluster.clock.ms += 1000
    await invite({ lifetimeMs: 60_000 })
    cluster.clock.ms += 61_000
    const newest = parseTicket(await invite())
    const listed = await cluster.member('ctrl2').desk.tickets()
    expect(listed.map(({ id, isVoter, usedBy }) => [id, isVoter, usedBy])).toEqual([
      [newest.id, true, null],
      [open.id, true, null],
      [used.id, false, 'ctrl4'],
    ])
    expect(listed[1]).toEqual({
      id: open.id,
      isVoter: true,
      createdAtMs: startMs + 1000,
      expiresAtMs: open.expiresAtMs,
      usedBy: null,
    })
  })

  test('is refused after another member than its issuer revoked it, and the revocation names the operator as its actor', async () => {
    const ticket = await invite()
    const { id } = parseTicket(ticket)
    await cluster.member('ctrl2').desk.revoke(id, anOperator)
    expect(cluster.proposals.at(-1)).toMatchObject({
      kind: CommandKind.TICKET_REVOKE,
      actor: anOperator,
    })
    const refusal = await refusalOf((await joiner(ticket)).request)
    expect(refusal.code).toBe('TICKET_REFUSED')
    expect(await cluster.member('ctrl1').desk.tickets()).toEqual([])
    const again = cluster.member('ctrl1').desk.revoke(id, anOperator)
    await expect(again).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('is refused after it has expired by log time', async () => {
    const ticket = await invite()
    const { request } = await joiner(ticket)
    cluster.clock.ms += hour
    await invite()
    const refusal = await refusalOf(request)
    expect(refusal.code).toBe('TICKET_REFUSED')
    expect(cluster.machine.get('admission', 'ctrl4')).toBeUndefined()
  })

  test('does not admit a controller with the id of an existing member, and can be used after such a request', async () => {
    const ticket = await invite()
    const { request } = await joiner(ticket, { id: 'ctrl1' })
    const refusal = await refusalOf(request)
    expect(refusal.code).toBe('MEMBERSHIP_REFUSED')
    expect(refusal.message).toContain('choose another id')
    const { request: other } = await joiner(ticket)
    await cluster.member('ctrl2').desk.admit(other)
  })

  test('is refused after it was used, for another controller and for the same controller with another key', async () => {
    const ticket = await invite()
    await cluster.member('ctrl1').desk.admit((await joiner(ticket)).request)
    for (const id of ['ctrl4', 'ctrl5']) {
      const refusal = await refusalOf((await joiner(ticket, { id })).request)
      expect(refusal.code).toBe('TICKET_REFUSED')
      expect(refusal.message).toContain('used before')
    }
  })
})

describe('A join request', () => {
  test.each<[string, Partial<JoinRequest>, string]>([
    ['an invalid id', { id: '../x' }, 'id'],
    ['a store id of the wrong length', { storeId: new Uint8Array(5) }, 'storeId'],
    ['an invalid address', { address: 'nowhere' }, 'address'],
    ['an address that is too long', { address: `${'a'.repeat(400)}:1` }, 'address'],
    ['no host', { hosts: [] }, 'hosts'],
    ['a wildcard host', { hosts: ['*.example'] }, 'hosts'],
    ['an invalid host', { hosts: ['ctrl4.example', 'a b'] }, 'hosts'],
    ['a host with a newline', { hosts: ['ctrl4.example\n'] }, 'hosts'],
    ['too many hosts', { hosts: Array<string>(33).fill('a.example') }, 'hosts'],
    ['an invalid certificate request', { certificateRequestPem: 'hello' }, 'certificateRequestPem'],
  ])('is refused for %s, with the name of the field', async (_what, change, field) => {
    const { request } = await joiner(await invite())
    const refusal = await refusalOf({ ...request, ...change })
    expect([refusal.code, refusal.fault?.field]).toEqual(['COULD_NOT_VALIDATE', field])
    expect(cluster.proposals.filter(({ kind }) => kind === CommandKind.TICKET_REDEEM)).toEqual([])
  })

  test('is refused if its certificate request contains the name of another controller', async () => {
    const { request } = await joiner(await invite())
    const refusal = await refusalOf({ ...request, id: 'ctrl5' })
    expect(refusal.fault?.field).toBe('certificateRequestPem')
  })

  test('is refused with a remedy if the release of the new controller is too old', async () => {
    const { request } = await joiner(await invite(), { featureLevel: 0 })
    const refusal = await refusalOf(request)
    expect(refusal.code).toBe('MEMBERSHIP_REFUSED')
    expect(refusal.message).toContain('the cluster is at feature level 1')
    expect(refusal.message).toContain('install the version')
  })

  test('is refused if it contains the key of another controller', async () => {
    const { leaf } = cluster.member('ctrl3')
    const { privateKeyPem } = leaf
    const { request } = await joiner(await invite(), {
      certificateRequestPem: await createCertificateRequest({ privateKeyPem, id: 'ctrl4' }),
    })
    const refusal = await refusalOf(request)
    expect(refusal.code).toBe('MEMBERSHIP_REFUSED')
    expect(refusal.message).toContain('ctrl3 has this key')
  })

  test('is refused with PEER_UNREACHABLE by a controller that does not have the issuing CA', async () => {
    const stranger = await cluster.add('stranger', cluster.member('ctrl1').leaf)
    const { request } = await joiner(await invite())
    await expect(stranger.desk.admit(request)).rejects.toMatchObject({ code: 'PEER_UNREACHABLE' })
  })
})
