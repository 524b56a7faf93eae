import type { ComponentChildren } from 'preact'

import { Badge } from '../../controls/status.tsx'
import { relativeTimeText } from '../../controls/time.tsx'
import type { ClusterStatus } from '../../client/served-types.ts'
import { texts } from '../../texts.ts'
import type { MemberStatusRow } from './cluster-requests.ts'

/** Shows whether the next failure stops writes. */
export function ClusterHealthPanel(props: {
  readonly status: ClusterStatus
  /** True: omits the values that only developers need. */
  readonly isBrief?: boolean
  readonly children?: ComponentChildren
}) {
  const { status, isBrief = false, children } = props
  const { cluster } = texts
  const health = toleranceHealth(status)
  const { failureTolerance, members, leaderId } = status
  const voters = members.filter(({ role }) => role !== 'learner')
  const isInHeading = failureTolerance >= 0 && leaderId !== null && voters.length > 1
  return (
    <section class="panel health" aria-labelledby="tolerance">
      <div class={`health-number ${health}`} aria-hidden="true">
        {Math.max(0, failureTolerance)}
      </div>
      <div class="health-text">
        <h2 id="tolerance">{cluster.tolerance(failureTolerance)}</h2>
        {isInHeading ? null : <p class="soft">{cluster.sentence(status.nextRisk)}</p>}
      </div>
      <dl class="facts health-facts">
        <Fact name={cluster.leader} value={leaderId ?? cluster.noLeader} />
        <Fact
          name={cluster.voters}
          value={cluster.ofVoters(
            voters.filter((one) => !isMemberUnreachable(one)).length,
            voters.length,
          )}
        />
        {isBrief ? null : <Internals status={status} />}
      </dl>
      {children === undefined ? null : <div class="health-foot">{children}</div>}
    </section>
  )
}

function Internals({ status }: { readonly status: ClusterStatus }) {
  const { cluster } = texts
  const { members } = status
  return (
    <>
      <Fact name={cluster.term} value={String(Math.max(...members.map(({ term }) => term)))} />
      <Fact
        name={cluster.commit}
        value={Math.max(...members.map(({ commit }) => commit)).toLocaleString()}
      />
      <Fact
        name={cluster.featureLevel}
        value={
          status.nextFeatureLevel === undefined
            ? String(status.featureLevel)
            : cluster.levelWaits(status.featureLevel, status.nextFeatureLevel)
        }
      />
    </>
  )
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

export function AlarmList({ status }: { readonly status: ClusterStatus }) {
  const { cluster } = texts
  if (status.alarms.length === 0) return null
  return (
    <section class="panel" aria-labelledby="alarms">
      <div class="panel-head">
        <h2 id="alarms">{cluster.alarms(status.alarms.length)}</h2>
      </div>
      <ul class="feed">
        {status.alarms.map((alarm) => (
          <li key={alarm.code + alarm.text}>
            <span>
              <Badge tone={alarm.isCritical ? 'bad' : 'warn'}>
                {alarm.isCritical ? cluster.critical : cluster.warning}
              </Badge>{' '}
              <span class="mono">{alarm.code}</span>
            </span>
            <span class="faint tiny">{relativeTimeText(alarm.sinceMs)}</span>
            <span class="cell-sub">{cluster.sentence(alarm.text)}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}

type ClusterHealthPanel = 'good' | 'warn' | 'bad'

/**
 * Whether another failure is tolerated, the next one stops writes, or writes are not possible now.
 */
function toleranceHealth({ failureTolerance, leaderId }: ClusterStatus): ClusterHealthPanel {
  if (failureTolerance < 0 || leaderId === null) return 'bad'
  return failureTolerance === 0 ? 'warn' : 'good'
}

/** A member without contact for this long counts as unreachable. */
const AWAY_MS = 5_000

export function isMemberUnreachable({
  lastContactMs = null,
}: Pick<MemberStatusRow, 'lastContactMs'>): boolean {
  return lastContactMs === null || lastContactMs > AWAY_MS
}
