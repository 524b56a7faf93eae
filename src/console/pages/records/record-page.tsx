import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { loadCaller, managementDocument, hasPermission } from '../../app/management-document.ts'
import { Failure } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { navigateTo, consolePath, currentPage } from '../../app/navigation.ts'
import { useCurrentTabInView } from '../../app/current-tab.ts'
import { isNarrowWindow } from '../../app/narrow.ts'
import { PageHead } from '../../app/page-head.tsx'
import { useRecordTitle } from '../../app/page-title.ts'
import { isReadOnly } from '../../app/console-state.ts'
import { LinkButton } from '../../controls/button.tsx'
import { CopyId } from '../../controls/copy.tsx'
import { Notice, Skeleton } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { DeleteDialog } from './delete-dialog.tsx'
import { draftFromRecord, initialDraft, buildFormFields } from './form-model.ts'
import type { Draft } from './json-values.ts'
import type { FormField } from './form-field.ts'
import type { ConsoleKind } from './kinds.ts'
import { hasDraft } from './drafts.ts'
import { PolicyExpiryState, LastSeen } from './record-cell.tsx'
import { lastSeenTime } from './last-seen.ts'
import { recordState, routerState, StateBadge } from './record-state.tsx'
import { AccessExplanationPanel } from '../access/access-page.tsx'
import { ActivityList } from '../activity/activity-list.tsx'
import { emptyHistoryQuery, historyKindAtPath } from '../activity/activity-data.ts'
import type { AccessQuery } from '../access/explain-data.ts'
import { lazyComponent } from '../../app/lazy.tsx'
import { RouterDependents } from './router-dependents.tsx'
import { RecordOverview } from './record-overview.tsx'
import { withRelated } from './list-relations.ts'
import { RecordSessions } from './record-sessions.tsx'
import { readRecord, type RecordRow } from './record-data.ts'
import { OutstandingToken, RecordActions } from './record-actions.tsx'
import { type PrefilledRecord, RecordForm } from './record-form.tsx'
import { ServiceConfigs } from './service-configs.tsx'
import { TokenTest } from './token-test.tsx'
import { isBuiltIn, Origin } from './record-rows.tsx'
import { RelatedLists } from './related-lists.tsx'
import { rowTitle } from './row-title.ts'
import { type HostCount, HostState } from './service-hosts.tsx'

const TrafficPanel = lazyComponent(() =>
  import('../traffic/traffic-panel.tsx').then((one) => one.TrafficPanel),
)

interface RecordPageData {
  /** Null while a new record is being created. */
  readonly record: RecordRow | null
  /** The record with values of other records, such as the hosts and addresses of a service. */
  readonly related: RecordRow | null
  readonly etag: string | null
  /** Null: no field can be changed. */
  readonly fields: readonly FormField[] | null
  readonly values: Draft
  readonly mayWrite: boolean
  readonly mayDelete: boolean
  readonly lists: readonly string[]
  readonly prefilled: PrefilledRecord | null
}

/** Kinds whose pages show values of other records. */
const kindsWithRelated: ReadonlySet<string> = new Set([
  'services',
  'posture-checks',
  'terminators',
  'transit-routers',
  'auth-policies',
])

async function load(
  kind: ConsoleKind,
  id: string | null,
  signal: AbortSignal,
): Promise<RecordPageData> {
  const [served] = await Promise.all([managementDocument(), loadCaller()])
  const path = `/${kind.path}`
  const writing =
    id === null ? served.operation('post', path) : served.operation('patch', `${path}/{id}`)
  const permission = writing?.permission ?? `${kind.permission}.update`
  const body = writing?.body ?? null
  const fields = body === null ? null : buildFormFields(body, kind)
  const deletion = id === null ? null : served.operation('delete', `${path}/{id}`)
  const common = {
    fields,
    mayWrite: hasPermission(permission),
    mayDelete: deletion !== null && hasPermission(deletion.permission),
  }
  if (id === null) {
    const values = initialDraft(fields ?? [])
    const prefilled = await prefilledFor(kind, signal)
    return { ...common, record: null, related: null, etag: null, values, lists: [], prefilled }
  }
  const { record, etag } = await readRecord(kind.path, id, signal)
  const values = draftFromRecord(record, fields ?? [])
  const page = { rows: [record], totalCount: 1, filterableFields: [] }
  const related = kindsWithRelated.has(kind.path) ? await withRelated(kind, page, signal) : page
  return {
    ...common,
    record,
    related: related.rows[0] ?? record,
    etag,
    values,
    lists: served.listsBelow(path),
    prefilled: null,
  }
}

/**
 * Initial values for a new policy, if the page of a service has opened this form: a policy that
 * gives access to the service, or permits hosting it.
 */
async function prefilledFor(
  kind: ConsoleKind,
  signal: AbortSignal,
): Promise<PrefilledRecord | null> {
  const { query } = currentPage.value
  const service = query.get('service')
  if (kind.path !== 'service-policies' || service === null) return null
  const { record } = await readRecord('services', service, signal)
  const name = String(record['name'] ?? service)
  const isHosting = query.get('right') === 'Bind'
  const values = {
    name: isHosting ? texts.record.hosting(name) : texts.record.accessTo(name),
    type: isHosting ? 'Bind' : 'Dial',
    semantic: 'AnyOf',
    serviceRoles: [`@${service}`],
  }
  return { about: isHosting ? `${service}/host` : service, values }
}

/** One record: a form for its fields, and the lists of related records. */
export function RecordPage({
  kind,
  id,
}: {
  readonly kind: ConsoleKind
  readonly id: string | null
}) {
  const loaded = useLoadedData(`${kind.path}/${id ?? ''}`, (signal) => load(kind, id, signal))
  const isDeleting = useSignal(false)
  const { value: shown } = loaded.data
  useRecordTitle(shown === null ? '' : titleOf(kind, shown.record, id))
  if (shown === null && loaded.error.value !== null) {
    return (
      <>
        <PageHead title={texts.form.title(kind.one)} />
        <Failure
          error={loaded.error.value}
          retry={loaded.reload}
          back={{ href: consolePath(kind.path), text: texts.failure.toList(kind.many) }}
        />
      </>
    )
  }
  const title = titleOf(kind, shown?.record ?? null, id)
  return (
    <>
      <PageHead
        title={
          <>
            {title} <HeadState kind={kind} shown={shown} />
          </>
        }
        lead={
          <>
            <a href={consolePath(kind.path)}>{kind.many}</a>
            {id === null && shown?.mayWrite === true ? <TaskInstead kind={kind} /> : null}
            {shown?.record === null || shown === null ? null : (
              <>
                {' · '}
                <CopyId id={shown.record.id} />
                {' · '}
                <HeadTime kind={kind} record={shown.record} />
                <ChangeTimes record={shown.record} />
              </>
            )}
          </>
        }
      >
        {kind.path === 'services' && id !== null && hasPermission('service-policy.create') ? (
          <LinkButton
            href={`${consolePath('service-policies', 'new')}?service=${encodeURIComponent(id)}`}
          >
            {texts.record.giveAccess}
          </LinkButton>
        ) : null}
        {shown === null || shown.record === null ? null : (
          <RecordActions
            kind={kind}
            record={shown.record}
            mayWrite={shown.mayWrite}
            onDelete={
              shown.mayDelete && !isBuiltIn(kind, shown.record)
                ? () => (isDeleting.value = true)
                : null
            }
            onDone={loaded.reload}
          />
        )}
      </PageHead>
      {shown === null ? (
        <div class="panel panel-body stack" aria-busy="true">
          <Skeleton width="40%" />
          <Skeleton />
          <Skeleton width="70%" />
        </div>
      ) : (
        <Shown kind={kind} shown={shown} reload={loaded.reload} />
      )}
      {isDeleting.value && shown !== null && shown.record !== null ? (
        <DeleteDialog
          kind={kind}
          id={shown.record.id}
          name={title}
          onClose={() => (isDeleting.value = false)}
        />
      ) : null}
    </>
  )
}

/** Offers the task that creates the record together with its related records. */
function TaskInstead({ kind }: { readonly kind: ConsoleKind }) {
  const text = texts.list.taskInstead[kind.path]
  const [task] = kind.tasks
  if (text === undefined || task === undefined) return null
  return (
    <>
      {' · '}
      {text} <a href={consolePath('wizards', task)}>{texts.wizards.titles[task]}</a>
    </>
  )
}

function Shown(props: {
  readonly kind: ConsoleKind
  readonly shown: RecordPageData
  readonly reload: () => void
}) {
  const { kind, shown, reload } = props
  const { record, fields } = shown
  useEffect(() => {
    if (record !== null) return
    const inputs = [...document.querySelectorAll<HTMLInputElement>('.record-form input')]
    inputs.find(({ value, type }) => type === 'text' && value === '')?.focus()
  }, [record === null])
  const form =
    fields === null ? null : (
      <RecordForm
        key={`${kind.path}/${record?.id ?? ''}/${shown.etag ?? ''}`}
        kind={kind}
        id={record?.id ?? null}
        etag={shown.etag}
        fields={fields}
        values={shown.values}
        prefilled={shown.prefilled}
        refused={refusalOf(shown.mayWrite)}
        onSaved={(id) => {
          if (record === null && id !== null)
            navigateTo(consolePath(kind.path, id), { replaces: true })
          else reload()
        }}
        onReload={reload}
      />
    )
  useCurrentTabInView()
  if (record === null) return <div class="stack">{form}</div>
  const tabs = tabsOf(kind, form !== null && shown.mayWrite && !isBuiltIn(kind, record))
  const isUnhosted = (shown.related?.['hosts'] as HostCount | undefined)?.all === 0
  const asked = currentPage.value.query.get('tab') ?? (hasDraft(kind, record.id) ? 'edit' : '')
  const tab = tabs.find((one) => one === asked) ?? 'overview'
  return (
    <div class="stack">
      <nav class="tabs" aria-label={texts.record.tabs}>
        {tabs.map((one) => (
          <a
            key={one}
            href={`${consolePath(kind.path, record.id)}?tab=${one}`}
            aria-current={one === tab ? 'page' : undefined}
          >
            {
              texts.record.tabNames[
                one === 'sessions' && kind.path !== 'identities' ? 'circuits' : one
              ]
            }
          </a>
        ))}
      </nav>
      <OutstandingToken kind={kind} record={record} />
      {tab === 'overview' ? (
        <>
          {kind.path === 'edge-routers' && routerState(record) !== 'notEnrolled' ? (
            <RouterDependents record={record} />
          ) : null}
          {isUnhosted ? <Unhosted id={record.id} /> : null}
          <RecordOverview kind={kind} record={shown.related ?? record} />
          {kind.path === 'identities' ? <ServiceConfigs identityId={record.id} /> : null}
          {kind.path === 'external-jwt-signers' ? <TokenTest signerId={record.id} /> : null}
          <RelatedLists kind={kind} id={record.id} lists={shown.lists} />
          <Everything record={record} />
        </>
      ) : null}
      {tab === 'access' ? <RecordAccess kind={kind} id={record.id} /> : null}
      {tab === 'traffic' ? (
        <TrafficPanel collection={kind.path} id={record.id}>
          {isUnhosted ? <Unhosted id={record.id} /> : null}
        </TrafficPanel>
      ) : null}
      {tab === 'sessions' ? <RecordSessions kind={kind} id={record.id} /> : null}
      {tab === 'activity' ? (
        <ActivityList
          query={{
            ...emptyHistoryQuery,
            kind: historyKindAtPath(kind.path) ?? '',
            record: record.id,
          }}
          onDone={reload}
        />
      ) : null}
      {tab === 'edit' ? form : null}
    </div>
  )
}

/** Warns that nothing hosts a service, and offers to change that. */
function Unhosted({ id }: { readonly id: string }) {
  const path = `${consolePath('service-policies', 'new')}?service=${encodeURIComponent(id)}`
  return (
    <Notice tone="warn">
      {texts.record.unhosted}{' '}
      {hasPermission('service-policy.create') ? (
        <a href={`${path}&right=Bind`}>{texts.record.allowHosting}</a>
      ) : null}
    </Notice>
  )
}

type Tab = Exclude<keyof typeof texts.record.tabNames, 'circuits'>

/** The tabs of a record; a record without a form has no tab for a form. */
function tabsOf(kind: ConsoleKind, hasForm: boolean): readonly Tab[] {
  const { path } = kind
  const isSide = path === 'identities' || path === 'services'
  return [
    'overview',
    ...(isSide ? (['access'] as const) : []),
    ...(path === 'services' || isRouter(kind) ? (['traffic'] as const) : []),
    ...(isSide || path === 'edge-routers' ? (['sessions'] as const) : []),
    ...(historyKindAtPath(path) === null ? [] : (['activity'] as const)),
    ...(hasForm ? (['edit'] as const) : []),
  ]
}

/** The services of an identity, or the identities of a service. */
function RecordAccess({ kind, id }: { readonly kind: ConsoleKind; readonly id: string }) {
  const isIdentity = kind.path === 'identities'
  const query = useSignal<AccessQuery>({
    identity: isIdentity ? id : '',
    service: isIdentity ? '' : id,
    isGranted: true,
    typed: '',
    offset: 0,
  })
  return <AccessExplanationPanel query={query.value} onQuery={(next) => (query.value = next)} />
}

/**
 * State of a record, or the time at which a policy ends, shown next to the record's name; nothing
 * for kinds without either.
 */
function HeadState({
  kind,
  shown,
}: {
  readonly kind: ConsoleKind
  readonly shown: RecordPageData | null
}) {
  const record = shown?.record ?? null
  if (record === null) return null
  if (kind.path === 'services') return <HostState row={shown?.related ?? {}} />
  if (kind.path === 'service-policies' && typeof record['expiresAt'] === 'string') {
    return <PolicyExpiryState row={record} isBadge />
  }
  const state = recordState(kind.path, shown?.related ?? record)
  return (
    <>
      {state === null ? null : <StateBadge state={state} />}
      <Origin kind={kind} row={record} />
    </>
  )
}

function isRouter({ path }: ConsoleKind): boolean {
  return path === 'routers' || path.endsWith('-routers')
}

/** When an identity was last seen, or since when a router is online or offline. */
function HeadTime({ kind, record }: { readonly kind: ConsoleKind; readonly record: RecordRow }) {
  const { lastSeen, neverSeen, onlineSince, offlineSince } = texts.record
  const { onlineSince: online, offlineSince: offline } = record
  if (kind.path === 'identities') {
    const seenAt = lastSeenTime(record)
    if (seenAt === null) return <>{neverSeen} · </>
    return (
      <>
        {lastSeen} <LastSeen at={seenAt} /> ·{' '}
      </>
    )
  }
  const since = online ?? offline
  if (!isRouter(kind) || typeof since !== 'string') return null
  return (
    <>
      {typeof online === 'string' ? onlineSince : offlineSince}{' '}
      {isNarrowWindow.value ? (
        <Time at={since} />
      ) : (
        <>
          <Time at={since} isExact /> (<Time at={since} />)
        </>
      )}{' '}
      ·{' '}
    </>
  )
}

/** A change so soon after the creation belongs to it, such as the verification of a new CA. */
const CREATION_MS = 60_000

/** When a record was created, and when it was changed after that. */
function ChangeTimes({ record }: { readonly record: RecordRow }) {
  const [createdAt, updatedAt] = [String(record['createdAt'] ?? ''), record['updatedAt']]
  return (
    <>
      {texts.record.created} <Time at={createdAt} />
      {typeof updatedAt !== 'string' ||
      Date.parse(updatedAt) - Date.parse(createdAt) < CREATION_MS ? null : (
        <>
          {' · '}
          {texts.record.updated} <Time at={updatedAt} />
        </>
      )}
    </>
  )
}

/** The whole record as the API returns it, for values that the form does not show. */
function Everything({ record }: { readonly record: RecordRow }) {
  const { _links: _, ...shown } = record
  return (
    <details class="panel group-panel">
      <summary>{texts.record.everything}</summary>
      <pre class="panel-body json" tabIndex={0} aria-label={texts.record.everything}>
        {JSON.stringify(shown, null, 2)}
      </pre>
    </details>
  )
}

function refusalOf(mayDoIt: boolean): string | null {
  if (isReadOnly.value) return texts.banner.refused
  return mayDoIt ? null : texts.failure.notAllowed
}

function titleOf(kind: ConsoleKind, record: RecordRow | null, id: string | null): string {
  if (id === null) return texts.record.create(kind.one)
  return record === null ? texts.form.title(kind.one) : rowTitle(record)
}
