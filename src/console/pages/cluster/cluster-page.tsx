import { useSignal } from '@preact/signals'

import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { navigateTo, consolePath, currentPage } from '../../app/navigation.ts'
import { isReadOnly } from '../../app/console-state.ts'
import { isNarrowWindow } from '../../app/narrow.ts'
import { PageHead } from '../../app/page-head.tsx'
import { Button } from '../../controls/button.tsx'
import type { BadgeTone } from '../../controls/badge-tone.ts'
import { Icon } from '../../controls/icon.tsx'
import { Badge, Skeleton } from '../../controls/status.tsx'
import { relativeTimeText } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { RecentChangesPanel } from '../activity/recent-changes.tsx'
import { RecentEventsPanel } from '../events/recent-events.tsx'
import type { ClusterStatus } from '../../client/served-types.ts'
import { type MemberStatusRow, fetchClusterStatus } from './cluster-requests.ts'
import { AlarmList, ClusterHealthPanel, isMemberUnreachable } from './cluster-health-panel.tsx'
import { ClusterHistoryPanel } from './history.tsx'
import { MemberDialog } from './member-dialog.tsx'
import { TicketDialog } from './ticket-dialog.tsx'
import { TicketsPanel } from './tickets-panel.tsx'

const REFRESH_MS = 2_000

export function ClusterPage() {
  const { cluster } = texts
  const status = useLoadedData('status', fetchClusterStatus, REFRESH_MS)
  const managed = useSignal<string | null>(null)
  const isInviting = currentPage.value.query.get('add') === 'controller'
  const openTicket = (): void =>
    navigateTo(`${consolePath('cluster')}?add=controller`, { replaces: true })
  const { value: shown } = status.data
  const refused = isReadOnly.value ? texts.banner.refused : null
  const member = shown?.members.find(({ id }) => id === managed.value)
  if (shown === null && status.error.value !== null) {
    return (
      <>
        <PageHead title={texts.pages.cluster} />
        <Failure error={status.error.value} retry={status.reload} />
      </>
    )
  }
  return (
    <>
      <PageHead title={texts.pages.cluster} lead={cluster.lead}>
        <Button icon="plus" refused={refused} onClick={openTicket}>
          {cluster.addController}
        </Button>
      </PageHead>
      <div class="stack">
        <FailureNotice error={status.error.value} />
        {shown === null ? <Waiting /> : <ClusterHealthPanel status={shown} />}
        {shown === null ? null : (
          <>
            <AlarmList status={shown} />
            <Members status={shown} manage={(id) => (managed.value = id)} />
            <TicketsPanel refused={refused} />
            <ClusterHistoryPanel />
          </>
        )}
        <div class="columns">
          <RecentChangesPanel />
          <RecentEventsPanel />
        </div>
      </div>
      {shown === null || member === undefined ? null : (
        <MemberDialog
          member={member}
          status={shown}
          onClose={() => (managed.value = null)}
          onDone={status.reload}
        />
      )}
      {isInviting && shown !== null ? (
        <TicketDialog
          selfId={shown.selfId}
          onClose={() => navigateTo(consolePath('cluster'), { replaces: true })}
        />
      ) : null}
    </>
  )
}

function Waiting() {
  return (
    <section class="panel panel-body stack" aria-busy="true" aria-label={texts.loading}>
      <Skeleton width="30%" />
      <Skeleton />
      <Skeleton width="70%" />
    </section>
  )
}

function Members(props: { readonly status: ClusterStatus; readonly manage: (id: string) => void }) {
  const { cluster } = texts
  const { members } = props.status
  const isMixed = hasMixedVersions(members)
  return (
    <section class="panel" aria-labelledby="members">
      <div class="panel-head">
        <h2 id="members">{cluster.members}</h2>
        {isMixed ? <Badge tone="warn">{cluster.mixedVersions}</Badge> : null}
      </div>
      <div class="table-wrap" tabIndex={0} role="group" aria-label={texts.table}>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{cluster.member}</th>
              <th scope="col">{cluster.role}</th>
              <th scope="col">{cluster.state}</th>
              <th scope="col" class="number minor">
                {cluster.behind}
              </th>
              <th scope="col" class="number minor">
                {cluster.lastContact}
              </th>
              <th scope="col" class="minor">
                {cluster.version}
              </th>
              <th scope="col" class="actions">
                <span class="visually-hidden">{texts.actions}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {members.map((member) => (
              <MemberRow key={member.id} member={member} {...props} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function MemberRow(props: {
  readonly member: MemberStatusRow
  readonly status: ClusterStatus
  readonly manage: (id: string) => void
}) {
  const { cluster } = texts
  const { member, status, manage } = props
  const behind = entriesBehind(member, status.members)
  const isSelf = member.id === status.selfId
  const { tone, text } = stateOf(member)
  return (
    <tr>
      <th scope="row">
        {member.id} {isSelf ? <span class="count own-session">{cluster.thisOne}</span> : null}
        <div class="cell-sub mono">{member.address}</div>
      </th>
      <td>
        {member.role === 'leader' ? (
          <Badge tone="accent">{cluster.roles.leader}</Badge>
        ) : (
          roleText(member.role)
        )}
      </td>
      <td>
        <Badge tone={tone}>{text}</Badge>
      </td>
      <td class="number minor">{behind === null ? '–' : cluster.entries(behind)}</td>
      <td class="number minor">{contactText(member)}</td>
      <td class="minor">{member.version === '' ? '–' : member.version}</td>
      <td class="actions">
        <Button onClick={() => manage(member.id)}>
          {isNarrowWindow.value ? <Icon name="more" /> : cluster.manage}
          <span class="visually-hidden">
            {isNarrowWindow.value ? cluster.manage : ''} {member.id}
          </span>
        </Button>
      </td>
    </tr>
  )
}

function roleText(role: string): string {
  const names: Readonly<Record<string, string>> = texts.cluster.roles
  return names[role] ?? role
}

function stateOf(member: MemberStatusRow): { readonly tone: BadgeTone; readonly text: string } {
  const { states } = texts.cluster
  if (isMemberUnreachable(member)) return { tone: 'bad', text: states.away }
  if (member.isFailing) return { tone: 'warn', text: states.failing }
  return { tone: 'good', text: states.online }
}

function contactText({ lastContactMs = null }: MemberStatusRow): string {
  if (lastContactMs === null) return texts.time.never
  if (lastContactMs < 1_000) return texts.time.underOneSecond
  return relativeTimeText(Date.now() - lastContactMs)
}

/** Number of committed entries that a member has not applied; null when unknown. */
function entriesBehind(
  member: MemberStatusRow,
  members: readonly MemberStatusRow[],
): number | null {
  if (member.role === 'unknown') return null
  const committed = Math.max(...members.map(({ commit }) => commit))
  return Math.max(0, committed - member.applied)
}

function hasMixedVersions(members: readonly MemberStatusRow[]): boolean {
  return new Set(members.map(({ version }) => version).filter((version) => version !== '')).size > 1
}
