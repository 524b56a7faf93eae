import { printableValue } from '../../lib/text/terminal-text.ts'
import type { ClusterStatus, MemberStatus } from '../../api/cluster/cluster-status.ts'
import { formatTable } from '../terminal/output.ts'

const DIGEST_SHOWN_LENGTH = 12

/** Text of `cluster status` for the terminal. */
export function clusterStatusText(clusterStatus: ClusterStatus): string {
  const status = printableValue(clusterStatus)
  const { clusterId, generation, leaderId, selfId, nextRisk, alarms, failureTolerance } = status
  const lines = [
    `cluster ${clusterId}, generation ${generation}, seen from ${selfId}`,
    leaderId === null ? 'no leader: writes wait until one is elected' : `leader: ${leaderId}`,
    // The line with the next risk is omitted if a majority is connected but has no leader: the
    // number of voters that may fail then says nothing about writes.
    ...(leaderId === null && failureTolerance >= 0 ? [] : [nextRisk]),
    ...levelLines(status),
    ...alarms.map((alarm) => alarmLine(alarm, status)),
    '',
    memberTable(status),
  ]
  return lines.join('\n')
}

/**
 * One alarm as text. NO_QUORUM_SPARE stays active for some time after its cause has ended, so that
 * a voter that repeatedly disconnects raises it only once.
 */
function alarmLine(
  { code, text }: ClusterStatus['alarms'][number],
  { failureTolerance, leaderId }: ClusterStatus,
): string {
  const isOver = code === 'NO_QUORUM_SPARE' && failureTolerance > 0 && leaderId !== null
  const note = isOver ? ' (over: the alarm ends within 30 s)' : ''
  return `alarm ${code}: ${text}${note}`
}

function levelLines({ featureLevel, nextFeatureLevel, members }: ClusterStatus): string[] {
  const inForce = `feature level: ${featureLevel}`
  if (nextFeatureLevel === undefined) return [inForce]
  const { level, waitsFor } = nextFeatureLevel
  if (waitsFor.length === 0) return [`${inForce}; ${level} is about to be activated`]
  const levels = new Map(members.map((member) => [member.id, member.featureLevel]))
  const waiting = waitsFor.map((id) => {
    const known = levels.get(id) ?? 0
    return known >= level || known === 0
      ? `${id} (not connected)`
      : `${id} (supports up to ${known})`
  })
  return [`${inForce}; ${level} waits for ${waiting.join(', ')}`]
}

/** The status on one line, for output that is appended and not redrawn. */
export function clusterStatusLine(status: ClusterStatus): string {
  const { selfId, leaderId, members, failureTolerance, alarms } = printableValue(status)
  const self = members.find(({ id }) => id === selfId)
  const commit = Math.max(0, ...members.map((member) => member.commit))
  const silent = members.filter(({ role }) => role === 'unknown').map(({ id }) => id)
  const parts = [
    `${selfId}: leader ${leaderId ?? 'none'}`,
    `term ${self?.term ?? 0}`,
    `commit ${commit}`,
    `applied ${self?.applied ?? 0}`,
    `tolerance ${failureTolerance}`,
    ...(silent.length === 0 ? [] : [`unreachable ${silent.join(' ')}`]),
    ...(alarms.length === 0 ? [] : [`alarms ${alarms.map(({ code }) => code).join(' ')}`]),
  ]
  return parts.join(', ')
}

function memberTable({ members }: ClusterStatus): string {
  const rows = members.map((member) => [
    member.id,
    member.isFailing ? `${roleOf(member)}, not serving` : roleOf(member),
    ...progressOf(member),
    contactOf(member.lastContactMs),
    member.version === '' ? '-' : member.version,
    member.address,
  ])
  return formatTable(
    [
      'id',
      'role',
      'term',
      'commit',
      'applied',
      'persisted',
      'digest',
      'last contact',
      'version',
      'address',
    ],
    rows,
  )
}

/**
 * Whether the term and index of a member are unknown, because the member is disconnected; zeros
 * would look like real values.
 */
function isUnknown({ role }: MemberStatus): boolean {
  return role === 'unknown'
}

function roleOf(member: MemberStatus): string {
  if (isUnknown(member)) return 'unreachable'
  return member.role === 'preCandidate' ? 'pre-candidate' : member.role
}

function progressOf(member: MemberStatus): string[] {
  const { term, commit, applied, persisted, digestIndex, digest } = member
  if (isUnknown(member)) return ['-', '-', '-', '-', '-']
  const shown = `${digestIndex}:${digest.slice(0, DIGEST_SHOWN_LENGTH)}`
  return [...[term, commit, applied, persisted].map(String), shown]
}

function contactOf(lastContactMs: number | null): string {
  if (lastContactMs === null) return 'never'
  if (lastContactMs < 10_000) return `${Math.round(lastContactMs)} ms ago`
  return `${Math.round(lastContactMs / 1000)} s ago`
}
