import { Problem } from '../../lib/problems.ts'
import type { ClusterView, MemberView } from '../../ports/cluster-view.ts'
import type { Admission, MembershipChange, MembershipControl } from '../../ports/membership.ts'
import { switchableLogLevels } from '../../ports/log-level.ts'
import type { LogLevelControl } from '../../ports/log-level.ts'
import type { NodeHealth } from '../../ports/node-health.ts'
import { upgradeStatusOf } from '../../ports/upgrade-status.ts'
import type { AdminVerb, AdminVerbs } from './server.ts'
import type { ClusterStatus, ListedMember, MemberStatus } from './cluster-status.ts'

/** What the cluster verbs of the command line ask a running controller. */
export function adminVerbs(parts: {
  readonly cluster: ClusterView
  readonly membership: MembershipControl
  readonly admission: Pick<Admission, 'invite' | 'tickets' | 'revoke'>
  readonly health: () => NodeHealth
  readonly logLevel: LogLevelControl
}): AdminVerbs {
  const { cluster, membership, health } = parts
  return {
    status: () => Promise.resolve(clusterStatus(cluster, health())),
    health: () => Promise.resolve(health()),
    'upgrade-status': () => Promise.resolve(upgradeStatusOf(cluster)),
    invite: (params, by) =>
      parts.admission.invite(
        { isVoter: params['isVoter'] !== false, lifetimeMs: Number(params['lifetimeMs']) },
        by,
      ),
    'log-level': () => Promise.resolve(parts.logLevel.get()),
    'set-log-level': (params, by) => {
      const level = switchableLogLevels.find((one) => one === params['level'])
      if (level === undefined) throw wrong(`level must be one of ${switchableLogLevels.join(', ')}`)
      return Promise.resolve(parts.logLevel.set(level, by))
    },
    'list-tickets': () => parts.admission.tickets(),
    'revoke-ticket': async (params, by) => {
      const id = textIn(params, 'id')
      await parts.admission.revoke(id, by)
      return { id }
    },
    list: () => Promise.resolve(cluster.members().map(listedMember)),
    ...membershipVerbs(membership),
    'transfer-leadership': async (params, by) => {
      const to = params['to'] ?? null
      if (to !== null && typeof to !== 'string') throw wrong('to must be the id of a member')
      return { leaderId: await membership.transferLeadership(to, by) }
    },
  }
}

/** `plan` takes the verb of the change among its parameters; the others take `confirmation`, and answer what was done. */
function membershipVerbs(membership: MembershipControl): AdminVerbs {
  const changing =
    (verb: MembershipChange['verb']): AdminVerb =>
    (params, by) =>
      membership.change(changeOf({ ...params, verb }), confirmationIn(params), by)
  return {
    plan: (params) => membership.plan(changeOf(params)),
    promote: changing('promote'),
    demote: changing('demote'),
    remove: changing('remove'),
    replace: changing('replace'),
  }
}

type Params = Parameters<AdminVerb>[0]

/** @throws {Problem} COULD_NOT_VALIDATE. */
function changeOf(params: Params): MembershipChange {
  const { verb } = params
  switch (verb) {
    case 'promote':
    case 'demote':
      return { verb, id: textIn(params, 'id') }
    case 'remove':
      return { verb, id: textIn(params, 'id'), isCompromised: params['isCompromised'] === true }
    case 'replace':
      return { verb, oldId: textIn(params, 'oldId'), newId: textIn(params, 'newId') }
    default:
      throw wrong('verb must be promote, demote, remove or replace')
  }
}

function confirmationIn(params: Params): string | null {
  return params['confirmation'] === undefined || params['confirmation'] === null
    ? null
    : textIn(params, 'confirmation')
}

function textIn(params: Params, key: string): string {
  const value = params[key]
  if (typeof value === 'string') return value
  throw wrong(`${key} must be a text`)
}

function wrong(detail: string): Problem {
  return new Problem('COULD_NOT_VALIDATE', { detail })
}

/** What every voter has to know before it is in force; null when no voter knows more than that. */
function nextFeatureLevel(
  cluster: ClusterView,
): NonNullable<ClusterStatus['nextFeatureLevel']> | null {
  const voters = cluster.members().filter(({ voter }) => voter)
  const level = Math.max(...voters.map(({ featureLevel }) => featureLevel))
  if (level <= cluster.featureLevel) return null
  const waitsFor = voters
    .filter(({ connected, featureLevel }) => !connected || featureLevel < level)
    .map(({ id }) => id)
  return { level, waitsFor }
}

function clusterStatus(
  cluster: ClusterView,
  { failureTolerance, nextRisk, alarms }: NodeHealth,
): ClusterStatus {
  const next = nextFeatureLevel(cluster)
  return {
    clusterId: cluster.clusterId,
    generation: cluster.generation,
    selfId: cluster.selfId,
    leaderId: cluster.leaderId(),
    featureLevel: cluster.featureLevel,
    ...(next === null ? {} : { nextFeatureLevel: next }),
    members: cluster.members().map(memberStatus),
    failureTolerance,
    nextRisk,
    alarms,
  }
}

function memberStatus({
  id,
  address,
  version,
  progress,
  lastContactMs,
  vitals,
  featureLevel,
}: MemberView): MemberStatus {
  return {
    id,
    address,
    version,
    role: progress?.role ?? 'unknown',
    term: progress?.term ?? 0,
    commit: progress?.commit ?? 0,
    applied: progress?.applied ?? 0,
    persisted: progress?.persisted ?? 0,
    digestIndex: progress?.digestIndex ?? 0,
    digest: progress?.digest ?? '',
    lastContactMs,
    isFailing: vitals?.isFailing ?? false,
    featureLevel,
  }
}

function listedMember(member: MemberView): ListedMember {
  const { id, address, voter, leader, connected, version } = member
  return { id, address, voter, leader, connected, version }
}
