import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

import { downloadText } from '../../app/download.ts'
import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useListFile } from '../../app/list-file.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { navigateTo, consolePath, currentPage } from '../../app/navigation.ts'
import { PageHead } from '../../app/page-head.tsx'
import { Button } from '../../controls/button.tsx'
import { Icon } from '../../controls/icon.tsx'
import { Badge, EmptyState, Skeleton } from '../../controls/status.tsx'
import type { AccessExplained } from '../../client/served-types.ts'
import { texts } from '../../texts.ts'
import { suggestRecords } from '../records/record-data.ts'
import { ReferenceInput } from '../records/reference-inputs.tsx'
import { rowTitle } from '../records/row-title.ts'
import {
  ACCESS_PAGE_ROWS,
  accessCsv,
  accessPath,
  type AccessQuery,
  type AccessRows,
  type AccessDirection,
  fetchAccessExplanations,
  firstMissingRequirement,
  accessPairPath,
  EXPORT_PAGE_PAIRS,
  EXPORTED_PAIRS_MAX,
  parseAccessQuery,
  recordReferenceText,
} from './explain-data.ts'
import { Explanation } from './explanation.tsx'

const REFRESH_MS = 5_000
const TYPING_MS = 250

/**
 * Shows who can reach which service, and why. The controller evaluates this with the same rules
 * that it enforces.
 */
export function AccessPage() {
  const { access } = texts
  const query = parseAccessQuery(currentPage.value.query)
  const isAsked = query.identity !== '' || query.service !== ''
  const choose = (changed: Partial<AccessQuery>): void =>
    navigateTo(accessPath({ ...query, typed: '', offset: 0, ...changed }))
  return (
    <>
      <PageHead title={texts.pages.access} lead={access.lead} />
      <div class="stack">
        <section class="panel panel-body access-pick" aria-label={access.pick}>
          <Side
            label={access.identity}
            kind="identities"
            chosen={query.identity}
            onChange={(identity) => choose({ identity })}
          />
          <Side
            label={access.service}
            kind="services"
            chosen={query.service}
            onChange={(service) => choose({ service })}
          />
        </section>
        {isAsked ? (
          <AccessExplanationPanel
            query={query}
            onQuery={(next) => navigateTo(accessPath(next), { replaces: true })}
          />
        ) : (
          <div class="panel">
            <EmptyState icon="access" title={access.none}>
              <p>{access.noneWhat}</p>
              <Examples />
            </EmptyState>
          </div>
        )}
      </div>
    </>
  )
}

/** Links to the first records, as examples. */
function Examples() {
  const { access } = texts
  const loaded = useLoadedData('access/examples', async (signal) => {
    const pages = await Promise.all(
      ['identities', 'services'].map((path) => suggestRecords(path, '', signal)),
    )
    return pages.map(({ rows: [first] }) => first)
  })
  const [identity, service] = loaded.data.value ?? []
  if (identity === undefined || service === undefined) return null
  const [who, what] = [rowTitle(identity), rowTitle(service)]
  const examples = [
    { text: access.examples.identity(who), query: { identity: identity.id, service: '' } },
    { text: access.examples.service(what), query: { identity: '', service: service.id } },
    {
      text: access.examples.pair(who, what),
      query: { identity: identity.id, service: service.id },
    },
  ]
  return (
    <ul class="examples">
      {examples.map(({ text, query }) => (
        <li key={text}>
          <a href={accessPath({ ...query, isGranted: true, typed: '', offset: 0 })}>{text}</a>
        </li>
      ))}
    </ul>
  )
}

function Side(props: {
  readonly label: string
  readonly kind: string
  readonly chosen: string
  readonly onChange: (chosen: string) => void
}) {
  const { label, kind, chosen, onChange } = props
  const id = `pick-${kind}`
  return (
    <div class="field">
      <label class="label" for={id}>
        {label}
      </label>
      <ReferenceInput
        ids={{ id }}
        kind={kind}
        isSingle
        chosen={chosen === '' ? [] : [chosen]}
        onChange={([first = '']) => onChange(first)}
      />
    </div>
  )
}

/**
 * Explains one pair of identity and service, or one of the two with all records of the other kind.
 */
export function AccessExplanationPanel(props: {
  readonly query: AccessQuery
  readonly onQuery: (query: AccessQuery) => void
}) {
  const { query, onQuery } = props
  const loaded = useLoadedData<AccessRows>(
    accessPath(query),
    (signal) => fetchAccessExplanations(query, signal),
    REFRESH_MS,
  )
  const last = useRef<AccessRows | null>(null)
  const isPair = query.identity !== '' && query.service !== ''
  const side = `${query.identity} ${query.service}`
  const lastSide = useRef(side)
  if (lastSide.current !== side) last.current = null
  lastSide.current = side
  if (loaded.data.value !== null) last.current = loaded.data.value
  const { current: page } = last
  if (page === null) {
    if (loaded.error.value !== null) {
      return <Failure error={loaded.error.value} retry={loaded.reload} />
    }
    return (
      <div class="panel panel-body stack" aria-busy="true">
        <Skeleton width="50%" />
        <Skeleton />
      </div>
    )
  }
  const [only] = page.rows
  return (
    <>
      <FailureNotice error={loaded.error.value} />
      {isPair && only !== undefined ? (
        <Explanation row={only} onChanged={loaded.reload} />
      ) : (
        <PairTable query={query} page={page} onQuery={onQuery} />
      )}
    </>
  )
}

interface PairTableProps {
  readonly query: AccessQuery
  readonly page: AccessRows
  readonly onQuery: (query: AccessQuery) => void
}

/** Table for one identity or service: the records of the other kind, by name. */
function PairTable({ query, page, onQuery }: PairTableProps) {
  const { access, list } = texts
  const isOfIdentity = query.identity !== ''
  const hasReasons = page.rows.some((row) => firstMissingRequirement(row) !== undefined)
  const hasPolicies = page.rows.some((row) => grantingPolicies(row).length > 0)
  const granted = sides.filter((side) => page.rows.some((row) => row[side].isGranted))
  const shownSides = granted.length === 0 ? sides : granted
  const go = (offset: number) => (): void => onQuery({ ...query, offset })
  return (
    <section class="panel" aria-label={texts.pages.access}>
      <PairBar query={query} page={page} onQuery={onQuery} />
      {page.rows.length === 0 ? (
        <NoPairs query={query} />
      ) : (
        <div class="table-wrap" tabIndex={0} role="group" aria-label={texts.table}>
          <table class="table">
            <thead>
              <tr>
                <th scope="col">{isOfIdentity ? access.service : access.identity}</th>
                {shownSides.map((side) => (
                  <th scope="col" key={side} class={classOfSide(side, shownSides)}>
                    {access[side]}
                  </th>
                ))}
                {hasPolicies ? <th scope="col">{access.grantedBy}</th> : null}
                {hasReasons ? (
                  <th scope="col" class="minor">
                    {access.why}
                  </th>
                ) : null}
              </tr>
            </thead>
            <tbody>
              {page.rows.map((row) => (
                <PairRow
                  key={`${row.identity.id} ${row.service.id}`}
                  row={row}
                  isOfIdentity={isOfIdentity}
                  sides={shownSides}
                  hasPolicies={hasPolicies}
                  hasReasons={hasReasons}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {page.totalCount > ACCESS_PAGE_ROWS ? (
        <nav class="pages" aria-label={list.pages}>
          <span class="faint small">
            {list.range(query.offset, ACCESS_PAGE_ROWS, page.totalCount)}
          </span>
          <Button
            refused={query.offset === 0 ? list.first : null}
            onClick={go(Math.max(0, query.offset - ACCESS_PAGE_ROWS))}
          >
            {list.previous}
          </Button>
          <Button
            refused={query.offset + ACCESS_PAGE_ROWS >= page.totalCount ? list.last : null}
            onClick={go(query.offset + ACCESS_PAGE_ROWS)}
          >
            {list.next}
          </Button>
        </nav>
      ) : null}
    </section>
  )
}

const sides = ['dial', 'bind'] as const

/** A narrow window shows the policies instead of the right to host, which few identities have. */
function classOfSide(side: (typeof sides)[number], shown: readonly string[]): string {
  return side === 'bind' && shown.length > 1 ? 'minor' : ''
}

function NoPairs({ query }: { readonly query: AccessQuery }) {
  const { access } = texts
  if (query.typed !== '') return <EmptyState icon="search" title={access.noMatch} />
  if (!query.isGranted) return <EmptyState icon="access" title={access.nothing} />
  return (
    <EmptyState icon="access" title={access.noneGranted}>
      <p>{access.noneGrantedWhat}</p>
    </EmptyState>
  )
}

/** Shows the number of pairs, lets the user choose which pairs are listed, and exports them. */
function PairBar({ query, page, onQuery }: PairTableProps) {
  const { access } = texts
  const typed = useSignal(query.typed)
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)
  useEffect(() => () => clearTimeout(timer.current ?? undefined), [])
  const isOfIdentity = query.identity !== ''
  const counted = isOfIdentity ? access.reached : access.reaching
  const label = texts.list.filter(isOfIdentity ? access.services : access.identities)
  return (
    <div class="panel-head list-bar">
      <h2 aria-live="polite">{counted(page.totalCount, query.isGranted)}</h2>
      <div class="filter-input">
        <Icon name="search" />
        <input
          class="input"
          type="search"
          aria-label={label}
          placeholder={label}
          value={typed.value}
          spellcheck={false}
          onInput={({ currentTarget }) => {
            typed.value = currentTarget.value
            clearTimeout(timer.current ?? undefined)
            timer.current = setTimeout(
              () => onQuery({ ...query, typed: typed.value, offset: 0 }),
              TYPING_MS,
            )
          }}
        />
      </div>
      <div class="segments" role="group" aria-label={access.show}>
        {([true, false] as const).map((isGranted) => (
          <button
            key={String(isGranted)}
            type="button"
            aria-pressed={query.isGranted === isGranted}
            onClick={() => onQuery({ ...query, isGranted, offset: 0 })}
          >
            {isGranted ? access.shows.granted : access.shows.all}
          </button>
        ))}
      </div>
      <ExportButton
        query={query}
        isEmpty={page.totalCount === 0}
        count={(amount) => counted(amount, false)}
      />
    </div>
  )
}

function ExportButton({
  query,
  isEmpty,
  count,
}: {
  readonly query: AccessQuery
  readonly isEmpty: boolean
  /** A number of pairs in words. */
  readonly count: (amount: number) => string
}) {
  const { access } = texts
  const { save, progress, outcome } = useListFile()
  const run = (): void =>
    save({
      rowsMax: EXPORTED_PAIRS_MAX,
      read: (offset) => fetchAccessExplanations({ ...query, offset }, null, EXPORT_PAGE_PAIRS),
      save: (rows) => downloadText('access.csv', accessCsv(rows), 'text/csv'),
      count,
    })
  return (
    <>
      <Button
        icon="backup"
        isBusy={progress !== ''}
        refused={isEmpty ? texts.picker.none : null}
        onClick={run}
      >
        {progress === '' ? access.export : progress}
      </Button>
      {outcome}
    </>
  )
}

function PairRow({
  row,
  isOfIdentity,
  sides: shownSides,
  hasPolicies,
  hasReasons,
}: {
  readonly row: AccessExplained
  readonly isOfIdentity: boolean
  readonly sides: readonly (typeof sides)[number][]
  /** Whether a row of the table has a policy that the user may read. */
  readonly hasPolicies: boolean
  /** Whether a row of the table has a reason why it is not reachable. */
  readonly hasReasons: boolean
}) {
  const other = isOfIdentity ? row.service : row.identity
  return (
    <tr>
      <th scope="row">
        <a class="clip" href={accessPairPath(row.identity.id, row.service.id)}>
          {recordReferenceText(other)}
        </a>
      </th>
      {shownSides.map((side) => (
        <td key={side} class={classOfSide(side, shownSides)}>
          <DirectionBadge
            direction={row[side]}
            isEnrolling={!isOfIdentity && row.identityState.hasOutstandingEnrollment}
            hasOther={row.dial.isGranted || row.bind.isGranted}
          />
        </td>
      ))}
      {hasPolicies ? (
        <td>
          <GrantingPolicies row={row} />
        </td>
      ) : null}
      {hasReasons ? (
        <td class="soft minor">{firstMissingRequirement(row)?.message ?? '–'}</td>
      ) : null}
    </tr>
  )
}

/** Policies that give the identity of a pair a right to its service, each once. */
function grantingPolicies({ dial, bind }: AccessExplained) {
  const policies = [...(dial.policies ?? []), ...(bind.policies ?? [])]
  return [...new Map(policies.map((policy) => [policy.id, policy])).values()]
}

const SHOWN_POLICIES = 2

function GrantingPolicies({ row }: { readonly row: AccessExplained }) {
  const policies = grantingPolicies(row)
  const amount = (row.dial.policiesCount ?? 0) + (row.bind.policiesCount ?? 0)
  const shown = policies.slice(0, SHOWN_POLICIES)
  if (shown.length === 0) return <span class="faint">–</span>
  return (
    <>
      {shown.map((policy, at) => (
        <span key={policy.id}>
          {at === 0 ? '' : ', '}
          <a href={consolePath('service-policies', policy.id)}>{recordReferenceText(policy)}</a>
        </span>
      ))}
      {amount > shown.length ? (
        <span class="faint tiny"> {texts.cell.more(amount - shown.length)}</span>
      ) : null}
    </>
  )
}

function DirectionBadge(props: {
  readonly direction: AccessDirection
  /** True: the identity can log in, but has not used its enrollment token. */
  readonly isEnrolling: boolean
  /** Whether the other right is granted: a row is then listed because of that one. */
  readonly hasOther: boolean
}) {
  const { access } = texts
  const { direction, isEnrolling, hasOther } = props
  if (direction.isReachable) {
    return (
      <span class="chips">
        <Badge tone="good">{access.reachable}</Badge>
        {isEnrolling ? (
          <span class="minor">
            <Badge>{access.enrolling}</Badge>
          </span>
        ) : null}
      </span>
    )
  }
  if (direction.isGranted) return <Badge tone="warn">{access.broken}</Badge>
  if (!hasOther) return <span class="faint">{access.notGranted}</span>
  return (
    <span class="faint" title={access.notGranted}>
      <span aria-hidden="true">–</span>
      <span class="visually-hidden">{access.notGranted}</span>
    </span>
  )
}
