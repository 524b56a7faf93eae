import type { MemberStatus } from '../../../src/api/cluster/cluster-status.ts'
import { pause } from './client.ts'

/**
 * A member's reported values are ignored when the last contact with it is older than this, because
 * they may be outdated.
 */
const CONTACT_MS_MAX = 3000
const TRIES_MAX = 40
const PAUSE_MS = 250

/** Thrown at the end of a test whose controllers have different states. */
export class StatesDiffer extends Error {
  override readonly name = 'StatesDiffer'
}

/**
 * Compares the digests of running controllers that have the same index, repeatedly until all have
 * the same index; after the last try it returns. Controllers compute a digest whenever no entry is
 * being applied. With fewer than two digests it compares nothing.
 * @throws {StatesDiffer}
 */
export async function compareDigests(
  status: () => Promise<readonly MemberStatus[]>,
  isUp: (id: string) => boolean,
): Promise<void> {
  for (let attempt = 0; attempt < TRIES_MAX; attempt += 1) {
    const members = (await status().catch(() => [])).filter(
      ({ id, lastContactMs, isFailing, digest }) =>
        isUp(id) &&
        isFailing !== true &&
        digest !== '' &&
        lastContactMs !== null &&
        lastContactMs < CONTACT_MS_MAX,
    )
    if (members.length < 2) return
    const byIndex = Map.groupBy(members, ({ digestIndex }) => digestIndex)
    for (const [index, same] of byIndex) {
      if (new Set(same.map(({ digest }) => digest)).size === 1) continue
      const told = same.map(({ id, digest }) => `${id} ${digest}`).join(', ')
      throw new StatesDiffer(`the states of the controllers differ at ${index}: ${told}`)
    }
    if (byIndex.size === 1) return
    await pause(PAUSE_MS)
  }
}
