import { expect, test } from 'vitest'
import { selectClaim } from '../../src/auth/tokens/claims.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import { isInVersionRange } from '../../src/lib/text/version-match.ts'
import { isVersionRange } from '../../src/lib/text/version-range.ts'
import { findExternalId, type ExternalIdRule } from '../../src/pki/external-id.ts'
import { type CallerOf, client, fabric, management, type Reply } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { makeMany } from '../api/support/many.ts'

// The attack: an attacker chooses texts and search criteria for which a search takes time
// proportional to the product of their lengths, or worse, so that the controller answers no other
// request in the meantime.

const { controller, root, sessionOf } = await controllerForFile({
  schemaMsMax: 300,
  processorSliceMs: 1,
})
const records = 400
const textCharacters = 8000
/** A search text that nearly matches at every position of a text of one letter. */
const nasty = (length: number): string => `${'a'.repeat(length / 2)}b${'a'.repeat(length / 2 - 1)}`
makeMany(controller, 'identity', records, (at) => ({
  type: 'Default',
  isAdmin: false,
  authPolicyId: 'default',
  name: `many ${at}`,
  tags: { long: 'a'.repeat(textCharacters) },
}))
expect(
  await root.call('PATCH', `${management}/identities/alice-id`, { permissions: ['identity.read'] }),
).toMatchObject({ status: 200 })
const reader = sessionOf('alice-id')

const filtered = (who: CallerOf, filter: string): Promise<Reply> =>
  who.get(`${management}/identities?limit=1&filter=${encodeURIComponent(filter)}`)

/**
 * Processor time of this thread, ms; the minimum of a few runs, on which other load has the least
 * influence.
 */
async function costOf(task: () => unknown): Promise<number> {
  const costs: number[] = []
  for (let at = 0; at < 4; at += 1) {
    const before = process.threadCpuUsage()
    await task()
    const { user, system } = process.threadCpuUsage(before)
    costs.push((user + system) / 1000)
  }
  return Math.min(...costs)
}

test('a search in long strings takes less than 20 times as long for an adversarial long string as for a harmless one', async () => {
  const look = async (part: string): Promise<void> => {
    const reply = await filtered(reader, `tags.long contains "${part}"`)
    expect([reply.status, reply.body.data]).toEqual([200, []])
  }
  const plain = await costOf(() => look('z'.repeat(4000)))
  expect(await costOf(() => look(nasty(4000)))).toBeLessThan(20 * Math.max(1, plain))
})

test('a filter term that searches long strings counts as several terms', async () => {
  const terms = Array.from({ length: 30 }, (_, at) => `tags.long contains "b${at}"`).join(' or ')
  const refused = await filtered(reader, terms)
  expect([refused.status, refused.body.error?.cause?.['message']]).toEqual([
    400,
    'the filter costs too much on so many records: ask for less at once',
  ])
  const onNames = terms.replaceAll('tags.long', 'name')
  expect((await filtered(reader, onNames)).status).toBe(200)
})

test('searches of long strings take turns with other requests on the main thread', async () => {
  let turns = 0
  let next = setImmediate(function turn() {
    turns += 1
    next = setImmediate(turn)
  })
  const terms = [2000, 2002, 2004, 2006].map((length) => `tags.long contains "${nasty(length)}"`)
  const reply = await filtered(root, terms.join(' or '))
  clearImmediate(next)
  expect(reply.status).toBe(200)
  expect(turns).toBeGreaterThan(40)
})

test('splitting the external ID of an adversarial certificate name takes less than 20 times as long as splitting that of a normal name', async () => {
  const rule: ExternalIdRule = {
    index: 0,
    location: 'SAN_EMAIL',
    matcher: 'ALL',
    matcherCriteria: '',
    parser: 'SPLIT',
    parserCriteria: nasty(4096),
  }
  const look = (letter: string) => (): void => {
    const emails = [letter.repeat(60_000)]
    expect(findExternalId(rule, { commonNames: [], uris: [], emails }).ok).toBe(true)
  }
  const plain = await costOf(look('z'))
  expect(await costOf(look('a'))).toBeLessThan(20 * Math.max(1, plain))
})

test('a claim selector with more than a thousand parts selects nothing', () => {
  let claims: JsonObject = { sub: 'admin-id' }
  for (let depth = 0; depth < 1000; depth += 1) claims = { a: claims }
  expect(selectClaim(claims, `${'/a'.repeat(1000)}/sub`)).toBeUndefined()
  expect(selectClaim(claims, '/~0'.repeat(2000))).toBeUndefined()
})

test('claim selectors, process paths, hashes and versions have maximum lengths', async () => {
  const long = 'a'.repeat(20_000)
  const signer = { name: 's', issuer: 's', audience: 'us', enabled: true }
  const jwksEndpoint = 'https://issuer.test/keys'
  const tell = (body: object): Promise<Reply> =>
    sessionOf('alice-id').call('POST', `${client}/posture-response`, { id: 'check', ...body })
  const replies = [
    await root.call('POST', `${management}/external-jwt-signers`, {
      ...signer,
      jwksEndpoint,
      claimsProperty: `/${long}`,
    }),
    await root.call('POST', `${management}/posture-checks`, {
      name: 'p',
      typeId: 'PROCESS',
      process: { osType: 'Linux', path: long, hashes: [] },
    }),
    await root.call('POST', `${management}/posture-checks`, {
      name: 'o',
      typeId: 'OS',
      operatingSystems: [{ type: 'Linux', versions: [long] }],
    }),
    await tell({ typeId: 'PROCESS', path: long, isRunning: true }),
    await tell({ typeId: 'PROCESS', path: 'p', isRunning: true, hash: long }),
    await tell({ typeId: 'DOMAIN', domain: long }),
    await tell({ typeId: 'MAC', macAddresses: [long] }),
    await tell({ typeId: 'OS', type: 'Linux', version: `1.2.3-${long}` }),
  ]
  expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 400))
})

test('adversarial versions and version ranges are compared within a short time', async () => {
  const version = `1.2.3-${'9'.repeat(122)}`
  const ranges = [
    '1.2.3 '.repeat(85),
    '>= 1.2.3-9 '.repeat(46),
    ' '.repeat(512),
    '<'.repeat(512),
    `1.2.3-${'9.'.repeat(253)}`,
    '1.2.3||'.repeat(73),
    `${'9'.repeat(511)}.`,
  ]
  const cost = await costOf(() => {
    for (let at = 0; at < 256; at += 1) {
      for (const range of ranges) isInVersionRange(version, range)
    }
  })
  expect(cost).toBeLessThan(3000)
  // Only numbers with a limited number of digits are valid, because others cannot compare longer
  // ones.
  expect(isVersionRange(`>1.0.0-${'9'.repeat(65)}`)).toBe(false)
})

test('a regular expression whose evaluation never ends is refused, and takes little time of the main thread', async () => {
  const appRegex = `^${'('.repeat(24)}.*${')*'.repeat(24)}!$`
  const before = process.threadCpuUsage()
  const reply = await root.call('POST', `${fabric}/inspections`, {
    appRegex,
    requestedValues: ['runtime'],
  })
  const { user, system } = process.threadCpuUsage(before)
  expect([reply.status, reply.body.error?.cause?.['field']]).toEqual([400, 'appRegex'])
  // The work runs on another thread.
  expect((user + system) / 1000).toBeLessThan(1500)
})
