import { match, deepEqual, equal, notEqual } from 'node:assert/strict'

import { FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import { formerLevel, formerRelease, thisRelease } from './former.ts'
import type { UpgradeDrill } from './drill.ts'

// The steps of docs/operate/upgrade.md in their order, each with the expected state after it.
// Writes continue all the time.

const eachHost = 'Upgrade each host'
const former = `v${formerRelease}`
const present = `v${thisRelease}`

/** Upgrades two of three controllers; the third one prevents the level from being raised. */
export async function upgradeTwo(drill: UpgradeDrill): Promise<void> {
  await drill.load()
  await drill.type(eachHost, 1)
  const told = await drill.type(eachHost, 2)
  match(
    told,
    hasNewLevel ? waitsForThird : /members run different versions; upgrade them one at a time/,
  )
  const { featureLevel, nextFeatureLevel, state, members } = await drill.status(1)
  deepEqual({ featureLevel, nextFeatureLevel, state }, mixed)
  deepEqual(
    members.map(({ version }) => version),
    [present, present, former],
  )
  await drill.load()
  await drill.quiet()
}

/** Whether this release adds records, fields or commands that the previous one does not support. */
export const hasNewLevel = FEATURE_LEVEL > formerLevel
const waitsForThird = new RegExp(
  `feature level ${FEATURE_LEVEL} waits for ctrl3; until it is activated`,
)
const nextFeatureLevel = hasNewLevel ? FEATURE_LEVEL : null
const mixed = { featureLevel: formerLevel, nextFeatureLevel, state: 'mixed' }

/** Downgrades one of the two to the previous release, and upgrades it again. */
export async function goBackOnce(drill: UpgradeDrill): Promise<void> {
  await drill.load()
  await drill.type('Downgrade', 2, 0)
  await drill.type('Downgrade', 1, 1)
  const { members } = await drill.status(1)
  const holding = members.filter(({ holdsBack }) => holdsBack).map(({ id }) => id)
  deepEqual(holding, hasNewLevel ? ['ctrl2', 'ctrl3'] : [])
  await drill.load()
  await drill.quiet()
  await drill.type(eachHost, 2)
}

/** The level is raised automatically. */
export async function upgradeLast(drill: UpgradeDrill): Promise<void> {
  await drill.load()
  await drill.type(eachHost, 3)
  await drill.raised(FEATURE_LEVEL)
  const told = await drill.type('After the upgrade', 1)
  match(told, new RegExp(`the upgrade is complete; every member runs ${present}`))
  match(told, new RegExp(`feature level: ${FEATURE_LEVEL}`))
  await drill.load()
  await drill.quiet()
}

/** The previous release refuses to start with a state of `level`, and does not change the state. */
export async function downgradeIsRefused(drill: UpgradeDrill, level: number): Promise<void> {
  await drill.load()
  await drill.stop(3)
  drill.installNamed(3, formerRelease)
  const before = drill.logOf(3).length
  notEqual(await drill.start(3), 0)
  const said = drill.logOf(3).slice(before)
  const known = `has feature level ${level}, this version supports up to ${formerLevel}`
  match(said, new RegExp(`${known}; install the version that the other controllers run`))
  equal((await drill.status(1)).notNow, 'ctrl3 is not connected')
}
