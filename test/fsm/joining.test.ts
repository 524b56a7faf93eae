import { expect, test } from 'vitest'
import { CommandKind } from '../../proto/gen/command_pb.ts'
import { joiningLimits } from '../../src/fsm/cluster/join-tickets.ts'
import { Joining } from './support/joining.ts'

const ann = { nodeId: 'ctrl4', key: 'key-ctrl4', store: 'ctrl4' }
const day = 24 * 60 * 60_000

function withSecrets(): Joining {
  const cluster = new Joining()
  cluster.join('ctrl1')
  cluster.rotate('clusterKey', 1, ['ctrl1'])
  cluster.rotate('issuingAuthority', 1, ['ctrl1'])
  return cluster
}

test('a join ticket admits one controller, which receives the current secrets', () => {
  const cluster = withSecrets()
  expect(cluster.invite('ticket-a')).toEqual({ ok: true, id: 'ticket-a' })
  expect(cluster.redeem('ticket-a', ann)).toEqual({ ok: true, id: 'ctrl4' })
  expect(cluster.admission('ctrl4')).toMatchObject({
    publicKeySpki: Buffer.from('key-ctrl4').toString('base64'),
    storeId: Buffer.from('ctrl4...........').toString('hex'),
    address: 'host:1480',
    certificatePem: 'certificate of ctrl4',
    ticketId: 'ticket-a',
    isVoter: true,
  })
  for (const name of ['clusterKey', 'issuingAuthority']) {
    expect(Object.keys(cluster.versions(name)[0]?.wrapped ?? {})).toEqual(['ctrl1', 'ctrl4'])
  }
})

test('a controller becomes a learner if its join ticket was created for a learner', () => {
  const cluster = withSecrets()
  cluster.invite('ticket-a', 60_000, false)
  cluster.redeem('ticket-a', ann)
  expect(cluster.admission('ctrl4')?.isVoter).toBe(false)
})

test('a join request that the same controller repeats gets the same response, and the controller’s first certificate is kept', () => {
  const cluster = withSecrets()
  cluster.invite('ticket-a')
  cluster.redeem('ticket-a', ann)
  const before = cluster.admission('ctrl4')
  const again = { ...ann, certificatePem: 'another one', secrets: [] }
  expect(cluster.redeem('ticket-a', again)).toEqual({ ok: true, id: 'ctrl4' })
  expect(cluster.admission('ctrl4')).toEqual(before)
})

test.each([
  ['id', { ...ann, nodeId: 'ctrl5' }],
  ['key', { ...ann, key: 'another key' }],
  ['store ID', { ...ann, store: 'another' }],
])(
  'a join ticket that one controller has used is refused to a controller with a different %s',
  (_what, other) => {
    const cluster = withSecrets()
    cluster.invite('ticket-a')
    cluster.redeem('ticket-a', ann)
    const before = cluster.admission('ctrl4')
    expect(cluster.redeem('ticket-a', other)).toMatchObject({ ok: false, code: 'TICKET_REFUSED' })
    expect(cluster.state.table('admission').rows.size).toBe(2)
    expect(cluster.admission('ctrl4')).toEqual(before)
  },
)

test('a revoked join ticket admits no controller, and other tickets are not affected', () => {
  const cluster = withSecrets()
  cluster.invite('ticket-a')
  cluster.invite('ticket-b')
  expect(cluster.revoke('ticket-a')).toEqual({ ok: true, id: 'ticket-a' })
  expect(cluster.redeem('ticket-a', ann)).toMatchObject({ code: 'TICKET_REFUSED' })
  expect(cluster.admission('ctrl4')).toBeUndefined()
  expect(cluster.revoke('ticket-a')).toMatchObject({ code: 'NOT_FOUND' })
  expect(cluster.redeem('ticket-b', ann).ok).toBe(true)
})

test('a used join ticket cannot be revoked: the refusal names the controller that must be removed instead', () => {
  const cluster = withSecrets()
  cluster.invite('ticket-a')
  cluster.redeem('ticket-a', ann)
  const refusal = cluster.revoke('ticket-a')
  expect(refusal).toMatchObject({ ok: false, code: 'MEMBERSHIP_REFUSED' })
  expect(JSON.stringify(refusal)).toContain('flotilla cluster remove ctrl4')
  expect(cluster.redeem('ticket-a', ann).ok).toBe(true)
})

test('a removed controller cannot rejoin with its used join ticket', () => {
  const cluster = withSecrets()
  cluster.invite('ticket-a')
  cluster.redeem('ticket-a', ann)
  expect(cluster.remove('ctrl4').ok).toBe(true)
  expect(cluster.redeem('ticket-a', ann)).toMatchObject({ code: 'TICKET_REFUSED' })
})

test('an unknown, expired or modified join ticket is refused', () => {
  const cluster = withSecrets()
  cluster.invite('ticket-a', 60_000)
  expect(cluster.redeem('ticket-b', ann)).toMatchObject({ code: 'TICKET_REFUSED' })
  expect(cluster.redeem('ticket-a', { ...ann, digest: 'edited' })).toMatchObject({
    code: 'TICKET_REFUSED',
  })
  cluster.log.timeMs += 60_000
  expect(cluster.redeem('ticket-a', ann)).toMatchObject({
    code: 'TICKET_REFUSED',
    detail: expect.stringContaining('expired') as string,
  })
  expect(cluster.admission('ctrl4')).toBeUndefined()
})

test.each([
  ['the id of an admitted controller', { ...ann, nodeId: 'ctrl1' }],
  ['the id of a member', { ...ann, nodeId: 'ctrl2' }],
  ['the key of another controller', { ...ann, key: 'key-ctrl1' }],
  ['the store ID of another controller', { ...ann, store: 'ctrl1' }],
])('a valid join ticket is refused if the joining controller has %s', (_what, joiner) => {
  const cluster = withSecrets()
  cluster.members([
    { id: 'ctrl1', key: 'key-ctrl1' },
    { id: 'ctrl2', key: 'key-ctrl2' },
  ])
  cluster.invite('ticket-a')
  expect(cluster.redeem('ticket-a', joiner)).toMatchObject({ code: 'MEMBERSHIP_REFUSED' })
  // A refused redemption does not use up the ticket.
  expect(cluster.redeem('ticket-a', ann).ok).toBe(true)
})

test.each([
  ['an invalid id', { ...ann, nodeId: '../x' }],
  ['the id __proto__', { ...ann, nodeId: '__proto__' }],
  ['a store id that is too long', { ...ann, store: 'seventeen bytes..' }],
  ['no key', { ...ann, key: '' }],
  ['a key that is too large', { ...ann, key: 'k'.repeat(4096) }],
  ['an invalid address', { ...ann, address: 'host' }],
  ['no certificate', { ...ann, certificatePem: '' }],
  ['a certificate that is too large', { ...ann, certificatePem: 'c'.repeat(100_000) }],
  [
    'too many secrets',
    { ...ann, secrets: Array.from({ length: 25 }, (_, at) => ['clusterKey', at] as const) },
  ],
])(
  'a join request with %s is refused when its log entry is applied, whichever controller proposes it',
  (_what, joiner) => {
    const cluster = withSecrets()
    cluster.invite('ticket-a')
    expect(cluster.redeem('ticket-a', joiner)).toMatchObject({ code: 'COULD_NOT_VALIDATE' })
  },
)

test('if a secret is rotated during a join, the join request with the earlier secrets is refused, and a request with the new secrets succeeds', () => {
  const cluster = withSecrets()
  cluster.invite('ticket-a')
  const secrets = cluster.inForce()
  cluster.rotate('clusterKey', 2, ['ctrl1'])
  expect(cluster.redeem('ticket-a', { ...ann, secrets })).toMatchObject({ code: 'REVISION_MOVED' })
  expect(cluster.redeem('ticket-a', ann).ok).toBe(true)
  expect(cluster.versions('clusterKey').map(({ wrapped }) => Object.keys(wrapped))).toEqual([
    ['ctrl1', 'ctrl4'],
    ['ctrl1', 'ctrl4'],
  ])
})

test('if an admitted controller uses a second join ticket with its key and store ID, it gets a new certificate', () => {
  const cluster = withSecrets()
  cluster.join('ctrl4')
  cluster.invite('ticket-b')
  const again = { ...ann, certificatePem: 'for other hosts', address: 'other:1480' }
  expect(cluster.redeem('ticket-b', again).ok).toBe(true)
  expect(cluster.admission('ctrl4')).toMatchObject({
    certificatePem: 'for other hosts',
    ticketId: 'ticket-b',
  })
})

test('join tickets are valid for at most 7 days, and a ticket id can be used only once', () => {
  const cluster = withSecrets()
  expect(cluster.invite('ticket-a', 0)).toMatchObject({ code: 'COULD_NOT_VALIDATE' })
  expect(cluster.invite('ticket-a', 8 * day)).toMatchObject({ code: 'COULD_NOT_VALIDATE' })
  expect(cluster.invite('ticket-a', 7 * day).ok).toBe(true)
  expect(cluster.invite('ticket-a', day)).toMatchObject({ code: 'COULD_NOT_VALIDATE' })
})

test('the number of open join tickets is limited, and expired join tickets are removed automatically', () => {
  const cluster = new Joining()
  for (let at = 0; at < joiningLimits.ticketsMax; at += 1) cluster.invite(`ticket-${at}`)
  expect(cluster.invite('ticket-more')).toMatchObject({ code: 'SERVER_TOO_MANY_REQUESTS' })
  cluster.log.timeMs += 60_000
  expect(cluster.invite('ticket-more').ok).toBe(true)
  const { ticketsMax, ticketsPrunedMax } = joiningLimits
  expect(cluster.state.table('joinTicket').rows.size).toBe(ticketsMax - ticketsPrunedMax + 1)
})

test('the number of admitted controllers is limited', () => {
  const cluster = new Joining()
  for (let at = 0; at < joiningLimits.admissionsMax; at += 1) cluster.join(`node${at}`)
  cluster.invite('ticket-a')
  expect(cluster.redeem('ticket-a', ann)).toMatchObject({ code: 'MEMBERSHIP_REFUSED' })
})

test('removing a controller deletes its admission and secrets, and records which secrets the controller knew', () => {
  const cluster = withSecrets()
  cluster.join('ctrl4')
  expect(cluster.remove('ctrl4')).toEqual({ ok: true, id: 'ctrl4' })
  expect(cluster.admission('ctrl4')).toBeUndefined()
  for (const name of ['clusterKey', 'issuingAuthority']) {
    const [version] = cluster.versions(name)
    expect(Object.keys(version?.wrapped ?? {})).toEqual(['ctrl1'])
    expect(version?.exposure).toBe('left')
  }
  expect(cluster.remove('ctrl4'), 'a second time').toEqual({ ok: true, id: 'ctrl4' })
})

test('the admission of a member cannot be deleted', () => {
  const cluster = withSecrets()
  cluster.members([{ id: 'ctrl1', key: 'key-ctrl1' }])
  expect(cluster.remove('ctrl1')).toMatchObject({ code: 'MEMBERSHIP_REFUSED' })
  expect(cluster.admission('ctrl1')).toBeDefined()
})

test('a new admission with another key is kept if a command to delete the old admission is applied late', () => {
  const cluster = withSecrets()
  cluster.join('ctrl4')
  cluster.remove('ctrl4')
  cluster.invite('ticket-b')
  cluster.redeem('ticket-b', { ...ann, key: 'new key', store: 'new' })
  expect(cluster.remove('ctrl4')).toMatchObject({ code: 'MEMBERSHIP_REFUSED' })
  expect(cluster.admission('ctrl4')?.ticketId).toBe('ticket-b')
})

test('a join command that another leader proposes again takes effect once', () => {
  const cluster = withSecrets()
  cluster.invite('ticket-a')
  const payload = cluster.redeemPayload('ticket-a', ann)
  const origin = {
    $typeName: 'flotilla.command.v1.Origin' as const,
    storeId: new Uint8Array(16),
    boot: 1n,
    sequence: 1n,
    lowestOutstanding: 1n,
  }
  expect(cluster.log.command(CommandKind.TICKET_REDEEM, payload, { origin }).outcome?.ok).toBe(true)
  const before = cluster.admission('ctrl4')
  expect(cluster.log.command(CommandKind.TICKET_REDEEM, payload, { origin }).outcome).toBeNull()
  expect(cluster.admission('ctrl4')).toEqual(before)
})
