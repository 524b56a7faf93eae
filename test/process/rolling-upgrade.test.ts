import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import { flotillaOfSources } from '../support/program.ts'
import { UpgradeDrill } from '../upgrade/drill.ts'
import { formerRelease, thisRelease } from '../upgrade/former.ts'
import { downgradeIsRefused, goBackOnce, upgradeLast, upgradeTwo } from '../upgrade/steps.ts'
import type { Client } from './support/client.ts'

// Goal: an operator upgrades three controllers of the previous release one by one to this release,
// as docs/operate/upgrade.md says, and then to a release with one more field and one more feature
// level. Under load, no write is refused and no controller is quarantined. New features take effect
// once all controllers support them, not before. Method: real processes of the kept package of the
// previous release; the next release is this one with support/next-release.ts preloaded. All tests
// share one cluster.

const eachHost = 'Upgrade each host'
const preload = pathToFileURL(join(import.meta.dirname, 'support/next-release.ts')).href

let drill: UpgradeDrill
beforeAll(async () => {
  drill = await UpgradeDrill.begin(formerRelease, thisRelease)
})
afterAll(async () => {
  await drill[Symbol.asyncDispose]()
})

/** @returns the names of the fields that had no effect. */
async function createOwned(client: Client, name: string): Promise<unknown> {
  const body = { name, encryptionRequired: true, owner: 'harbour' }
  const answer = await client.request('POST', '/edge/management/v1/services', { body })
  expect(answer.status, answer.text).toBe(201)
  const { id } = answer.body.data as { id: string }
  const path = `/edge/management/v1/services/${id}`
  const detail = await client.request('GET', path, { isHeld: false })
  const { owner = '' } = detail.body.data as { owner?: string }
  return { ignored: answer.body.meta?.['ignoredFields'] ?? [], owner }
}

test('a rolling upgrade under load refuses no write, and raises the feature level at its end', async () => {
  await upgradeTwo(drill)
  await goBackOnce(drill)
  await upgradeLast(drill)
})

test('a field of the next release is ignored until every voter runs that release, and stored afterwards', async () => {
  const [first, second, third] = drill.clients as [Client, Client, Client]
  drill.publish(thisRelease, {
    program: flotillaOfSources,
    // The compile cache of the next release is separate from the cache of this release.
    env: {
      NODE_OPTIONS: `--import=${preload}`,
      NODE_COMPILE_CACHE: join(drill.cluster.dir, 'compiled'),
    },
  })
  await drill.type(eachHost, 3)
  await drill.type(eachHost, 2)
  const half = await drill.status(1)
  expect(half.nextFeatureLevel).toBe(FEATURE_LEVEL + 1)
  const holding = half.members.filter(({ holdsBack }) => holdsBack)
  expect(holding.map(({ id }) => id)).toEqual(['ctrl1'])
  const unknown = { ignored: ['owner'], owner: '' }
  expect(await createOwned(third, 'owned-1')).toEqual(unknown)
  expect(await createOwned(first, 'owned-2'), 'the older release').toEqual(unknown)
  await drill.load()
  await drill.quiet()

  await drill.type(eachHost, 1)
  await drill.raised(FEATURE_LEVEL + 1)
  expect(await createOwned(second, 'owned-3')).toEqual({ ignored: [], owner: 'harbour' })
  await drill.load()
  await drill.quiet()
})

test('the previous release does not start once the feature level is raised, and prints which release to install', async () => {
  await downgradeIsRefused(drill, FEATURE_LEVEL + 1)
})
