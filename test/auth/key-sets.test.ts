import { beforeEach, expect, test } from 'vitest'
import { KeyFetchError } from '../../src/auth/tokens/key-fetcher.ts'
import { SignerKeyCache } from '../../src/auth/tokens/signer-key-cache.ts'
import { defaultApiLimits } from '../../src/api/limits.ts'
import type { ExternalJwtSigner } from '../../src/entities/kinds/external-jwt-signer.ts'
import { ecKey, jwkOf } from '../support/identity-provider.ts'
import { ManualClock } from '../api/support/manual-time.ts'

const limits = { ...defaultApiLimits, keyFetchesPerMinuteMax: 5, keySetsMax: 3, keySetKeysMax: 3 }
const one = jwkOf(ecKey('one'))
const two = jwkOf(ecKey('two'))

let clock: ManualClock
let warnings: string[]
let fetched: string[]
/** Response of the provider; null: it does not respond. */
let document: string | null
let keySets: SignerKeyCache
/** If set, the response waits until this function is called. */
let release: (() => void) | null

beforeEach(() => {
  clock = new ManualClock()
  warnings = []
  fetched = []
  document = published(one)
  release = null
  keySets = new SignerKeyCache({ fetch }, limits, { clock, logger: { warn, error: warn } })
})

function warn(fields: Readonly<Record<string, unknown>>): void {
  warnings.push(String(fields['reason']))
}

async function fetch(url: string): Promise<string> {
  fetched.push(url)
  if (release !== null) await new Promise<void>((resolve) => (release = resolve))
  if (document === null) throw new KeyFetchError('it is gone')
  return document
}

function published(...keys: readonly unknown[]): string {
  return JSON.stringify({ keys })
}

function signer(id: string, jwksEndpoint = `https://${id}.test/keys`): ExternalJwtSigner {
  return { id, jwksEndpoint } as ExternalJwtSigner
}

async function kids(id: string, kid: string): Promise<readonly string[] | null> {
  const set = await keySets.holding(signer(id), kid)
  return set?.keys.map((key) => key.kid) ?? null
}

test('the keys of a signer are fetched at their first use, and cached', async () => {
  expect(await kids('a', 'one')).toEqual(['one'])
  expect(await kids('a', 'one')).toEqual(['one'])
  expect(fetched).toEqual(['https://a.test/keys'])
})

test('callers at the same time share one fetch of a signer’s keys', async () => {
  release = () => undefined
  const asked = Promise.all(['one', 'one', 'other'].map((kid) => kids('a', kid)))
  release()
  expect(await asked).toEqual([['one'], ['one'], ['one']])
  expect(fetched.length).toBe(1)
})

test('an unknown key id causes another fetch of the signer’s keys, but only after a minimum interval', async () => {
  await kids('a', 'one')
  document = published(one, two)
  expect(await kids('a', 'two')).toEqual(['one'])
  clock.advance(limits.keyFetchMsMin)
  expect(await kids('a', 'two')).toEqual(['one', 'two'])
  expect(fetched.length).toBe(2)
})

test('stale keys of a signer are still used while they are fetched again', async () => {
  await kids('a', 'one')
  document = published(two)
  clock.advance(limits.keySetFreshMs + 1)
  expect(await kids('a', 'one')).toEqual(['one'])
  await expect.poll(() => keySets.known(signer('a'))?.keys[0]?.kid).toBe('two')
})

test('while a provider does not respond, its keys are used for a day, and one log line reports the failure', async () => {
  const before = await keySets.holding(signer('a'), 'one')
  document = null
  for (let hours = 1; hours < 24; hours += 1) {
    clock.advance(60 * 60_000)
    expect(await keySets.holding(signer('a'), 'one')).toBe(before)
    await expect.poll(() => fetched.length).toBe(1 + hours)
  }
  clock.advance(61 * 60_000)
  expect(await kids('a', 'one')).toBe(null)
  expect(warnings).toEqual(['it is gone'])
  document = published(one)
  clock.advance(limits.keyFetchMsMin)
  expect(await kids('a', 'one')).toEqual(['one'])
})

test('a JWKS document that is identical to the previous one leaves the key set unchanged', async () => {
  const before = await keySets.holding(signer('a'), 'one')
  clock.advance(limits.keyFetchMsMin)
  expect(await keySets.holding(signer('a'), 'unknown')).toBe(before)
  expect(fetched.length).toBe(2)
})

test('a changed JWKS address of a signer discards the old keys, and does not allow an additional fetch', async () => {
  await kids('a', 'one')
  const moved = signer('a', 'https://elsewhere.test/keys')
  expect(keySets.known(moved)).toBe(null)
  expect(await keySets.holding(moved, 'one')).toBe(null)
  clock.advance(limits.keyFetchMsMin)
  expect((await keySets.holding(moved, 'one'))?.keys.length).toBe(1)
  expect(fetched).toEqual(['https://a.test/keys', 'https://elsewhere.test/keys'])
})

test('all signers together have a limited number of fetches per minute', async () => {
  for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await kids(id, 'one')
  expect(fetched.length).toBe(limits.keyFetchesPerMinuteMax)
  clock.advance(60_000)
  expect(await kids('h', 'one')).toEqual(['one'])
})

test.each([
  ['not JSON', 'keys'],
  ['not a key set', '{"key":[]}'],
  ['a list', '[]'],
  ['a set with too many keys', published(one, two, one, two)],
  ['a set that is nested too deeply', `{"keys":${'['.repeat(100)}${']'.repeat(100)}}`],
])(
  'a key document that is %s is rejected, and the previous keys stay valid',
  async (_what, text) => {
    await kids('a', 'one')
    document = text
    clock.advance(limits.keyFetchMsMin)
    expect(await kids('a', 'two')).toEqual(['one'])
    expect(warnings.length).toBe(1)
  },
)
