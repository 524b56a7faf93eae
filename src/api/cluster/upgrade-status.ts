import type { NamedSchema } from '../../entities/operations.ts'
import { booleanSchema, textSchema, closedObjectSchema } from '../../entities/response-schemas.ts'
import type { ClusterView, MemberView } from '../../ports/cluster-view.ts'
import type { SchemaValue } from '../schemas/typed-schema.ts'

/**
 * A member that is at most this many log entries behind counts as caught up: during writes, even a
 * healthy member is a few entries behind the leader's last report.
 */
const LAG_ENTRIES_MAX = 100

const level = { type: 'integer', minimum: 0 } as const

const upgradeMember = closedObjectSchema({
  id: textSchema,
  isVoter: booleanSchema,
  isConnected: booleanSchema,
  version: { ...textSchema, description: 'empty: not known yet' },
  featureLevel: {
    ...level,
    description: 'highest level that the version supports; 0: not known yet',
  },
  holdsBack: {
    ...booleanSchema,
    description: 'this member keeps the next level from being activated',
  },
  action: {
    ...textSchema,
    description: 'what the operator should do about this member; empty: nothing',
  },
})

/** Progress of a rolling upgrade and the operator's next step. */
export const upgradeStatusSchema = {
  name: 'clusterUpgradeStatus',
  schema: closedObjectSchema({
    featureLevel: { ...level, description: 'current level of the cluster' },
    nextFeatureLevel: {
      type: ['integer', 'null'],
      description: 'null: no member supports a higher one',
    },
    // complete: all members run one version, and the cluster is at that version's feature level.
    // mixed: the members run several versions. waiting: all run one version, but the cluster is at
    // a lower level, or has not fully recovered since a member was last stopped, or the version of
    // a member is unknown.
    state: { type: 'string', enum: ['complete', 'mixed', 'waiting'] },
    advice: textSchema,
    notNow: {
      ...textSchema,
      description: 'why no controller should be stopped now; empty: one can be stopped',
    },
    members: { type: 'array', items: upgradeMember },
  }),
} as const satisfies NamedSchema

export type UpgradeStatus = SchemaValue<typeof upgradeStatusSchema.schema>
type UpgradeMember = SchemaValue<typeof upgradeMember>

/** Progress of the upgrade, from the members as one controller currently sees them. */
export function deriveUpgradeStatus(cluster: ClusterView): UpgradeStatus {
  const views = cluster.members()
  const highest = Math.max(...views.map(({ featureLevel }) => featureLevel))
  const next = highest > cluster.featureLevel ? highest : null
  const newest = newestVersions(views, highest)
  const members = views.map((view) => memberOf(view, next, newest))
  const notNow = notNowBecause(cluster.leaderId(), views)
  const state = stateOf(views, next, notNow)
  const { featureLevel } = cluster
  const advice = adviceOf(members, { state, notNow }, next, newest)
  return { featureLevel, nextFeatureLevel: next, state, advice, notNow, members }
}

/**
 * Reason why no member may be stopped now; '' if a member may be stopped. A cluster of three voters
 * tolerates one failure, so while a voter is down or behind, stopping another one could stop
 * writes.
 */
function notNowBecause(leaderId: string | null, views: readonly MemberView[]): string {
  if (leaderId === null) return 'there is no leader'
  const commit = Math.max(...views.map(({ progress }) => progress?.commit ?? 0))
  for (const { id, voter, connected, progress, vitals } of views) {
    if (!voter) continue
    if (!connected || progress === null) return `${id} is not connected`
    if (vitals?.isFailing === true) return `${id} does not serve`
    const lag = commit - progress.applied
    if (lag > LAG_ENTRIES_MAX) return `${id} is ${lag} entries behind`
  }
  return ''
}

function stateOf(
  views: readonly MemberView[],
  next: number | null,
  notNow: string,
): UpgradeStatus['state'] {
  const versions = new Set(views.map(({ version }) => version))
  const isAllHeard = !versions.delete('')
  if (versions.size > 1) return 'mixed'
  return next === null && isAllHeard && notNow === '' ? 'complete' : 'waiting'
}

/**
 * The versions that support the highest feature level. Version strings are not compared, because
 * their order is not defined.
 */
function newestVersions(views: readonly MemberView[], highest: number): string {
  const found = views.filter(({ featureLevel }) => featureLevel === highest)
  return [...new Set(found.map(({ version }) => version))].sort().join(' or ')
}

function memberOf(view: MemberView, next: number | null, newest: string): UpgradeMember {
  const { id, voter, connected, version, featureLevel } = view
  const isBehind = next !== null && featureLevel < next
  return {
    id,
    isVoter: voter,
    isConnected: connected,
    version,
    featureLevel,
    holdsBack: next !== null && voter && (isBehind || !connected),
    action: actionOf(view, isBehind, newest),
  }
}

function actionOf(
  { voter, connected, featureLevel }: MemberView,
  isBehind: boolean,
  newest: string,
): string {
  if (!connected) return voter ? 'start it, or remove it from the members' : 'start it'
  if (!isBehind || featureLevel === 0) return ''
  return voter
    ? `upgrade it to ${newest}`
    : `upgrade it to ${newest}; it stops when the level is activated`
}

function adviceOf(
  members: readonly UpgradeMember[],
  { state, notNow }: Pick<UpgradeStatus, 'state' | 'notNow'>,
  next: number | null,
  newest: string,
): string {
  const waiting = members.filter(({ holdsBack }) => holdsBack).map(({ id }) => id)
  if (next !== null && waiting.length > 0) {
    return `feature level ${next} waits for ${waiting.join(', ')}; until it is activated, each member can be downgraded to its former version`
  }
  if (next !== null)
    return `feature level ${next} is about to be activated; after that there is no downgrade`
  if (state === 'mixed')
    return `members run different versions; upgrade them one at a time to the newest`
  if (state === 'waiting') {
    const silent = members.filter(({ version }) => version === '').map(({ id }) => id)
    if (silent.length === 0) {
      return `every member runs ${newest}; the upgrade is complete once this is over: ${notNow}`
    }
    return `the versions of ${silent.join(', ')} are unknown; every other member runs ${newest}`
  }
  return `the upgrade is complete; every member runs ${newest}`
}
