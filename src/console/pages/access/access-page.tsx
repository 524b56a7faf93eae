import { Failure, FailureNotice } from '../../app/failure.tsx'
import { useLoaded } from '../../app/loaded.ts'
import { goTo, pathTo, place } from '../../app/navigation.ts'
import { PageHead } from '../../app/page-head.tsx'
import { Button } from '../../controls/button.tsx'
import { Badge, Empty, Skeleton } from '../../controls/status.tsx'
import type { AccessExplained } from '../../client/served-types.ts'
import { texts } from '../../texts.ts'
import { ReferenceInput } from '../records/reference-inputs.tsx'
import {
  ACCESS_ROWS,
  type AccessQuery,
  type AccessRows,
  type Direction,
  explainAccess,
  refText,
} from './explain-data.ts'
import { Explanation } from './explanation.tsx'

const REFRESH_MS = 5_000

function addressOf({ identity, service, offset }: AccessQuery): string {
  const query = new URLSearchParams()
  if (identity !== '') query.set('identity', identity)
  if (service !== '') query.set('service', service)
  if (offset > 0) query.set('offset', String(offset))
  const text = query.toString()
  return pathTo('access') + (text === '' ? '' : `?${text}`)
}

/**
 * Shows who can reach which service, and why. The controllers compute it with the rules that they
 * enforce.
 */
export function AccessPage() {
  const { access } = texts
  const { query: asked } = place.value
  const query: AccessQuery = {
    identity: asked.get('identity') ?? '',
    service: asked.get('service') ?? '',
    offset: Number(asked.get('offset') ?? '0') || 0,
  }
  const isAsked = query.identity !== '' || query.service !== ''
  return (
    <>
      <PageHead title={texts.pages.access} lead={access.lead} />
      <div class="stack">
        <section class="panel panel-body access-pick" aria-label={access.pick}>
          <Side
            label={access.identity}
            kind="identities"
            chosen={query.identity}
            onChange={(identity) => goTo(addressOf({ ...query, identity, offset: 0 }))}
          />
          <Side
            label={access.service}
            kind="services"
            chosen={query.service}
            onChange={(service) => goTo(addressOf({ ...query, service, offset: 0 }))}
          />
        </section>
        {isAsked ? (
          <Explained key={addressOf(query)} query={query} />
        ) : (
          <div class="panel">
            <Empty icon="access" title={access.none}>
              <p>{access.noneWhat}</p>
            </Empty>
          </div>
        )}
      </div>
    </>
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

function Explained({ query }: { readonly query: AccessQuery }) {
  const loaded = useLoaded<AccessRows>(
    addressOf(query),
    (signal) => explainAccess(query, signal),
    REFRESH_MS,
  )
  const { value: page } = loaded.data
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
  const isPair = query.identity !== '' && query.service !== ''
  return (
    <>
      <FailureNotice error={loaded.error.value} />
      {isPair && only !== undefined ? (
        <Explanation row={only} />
      ) : (
        <PairTable query={query} page={page} />
      )}
    </>
  )
}

/** The given identity or service, paired with each record of the other kind. */
function PairTable({ query, page }: { readonly query: AccessQuery; readonly page: AccessRows }) {
  const { access, list } = texts
  const isOfIdentity = query.identity !== ''
  if (page.rows.length === 0) {
    return (
      <div class="panel">
        <Empty icon="access" title={access.nothing} />
      </div>
    )
  }
  const go = (offset: number) => (): void => goTo(addressOf({ ...query, offset }))
  return (
    <section class="panel" aria-label={texts.pages.access}>
      <div class="table-wrap" tabIndex={0} role="group" aria-label={texts.table}>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{isOfIdentity ? access.service : access.identity}</th>
              <th scope="col">{access.dial}</th>
              <th scope="col">{access.bind}</th>
              <th scope="col">{access.why}</th>
            </tr>
          </thead>
          <tbody>
            {page.rows.map((row) => (
              <PairRow
                key={`${row.identity.id} ${row.service.id}`}
                row={row}
                isOfIdentity={isOfIdentity}
              />
            ))}
          </tbody>
        </table>
      </div>
      {page.totalCount > ACCESS_ROWS ? (
        <nav class="pages" aria-label={list.pages}>
          <span class="faint small">{list.range(query.offset, ACCESS_ROWS, page.totalCount)}</span>
          <Button
            refused={query.offset === 0 ? list.first : null}
            onClick={go(Math.max(0, query.offset - ACCESS_ROWS))}
          >
            {list.previous}
          </Button>
          <Button
            refused={query.offset + ACCESS_ROWS >= page.totalCount ? list.last : null}
            onClick={go(query.offset + ACCESS_ROWS)}
          >
            {list.next}
          </Button>
        </nav>
      ) : null}
    </section>
  )
}

function PairRow({
  row,
  isOfIdentity,
}: {
  readonly row: AccessExplained
  readonly isOfIdentity: boolean
}) {
  const other = isOfIdentity ? row.service : row.identity
  const [first] = row.dial.isGranted || !row.bind.isGranted ? row.dial.missing : row.bind.missing
  const address = addressOf({ identity: row.identity.id, service: row.service.id, offset: 0 })
  return (
    <tr>
      <th scope="row">
        <a class="clip" href={address}>
          {refText(other)}
        </a>
      </th>
      <td>
        <DirectionBadge direction={row.dial} />
      </td>
      <td>
        <DirectionBadge direction={row.bind} />
      </td>
      <td class="soft">{first === undefined ? '–' : first.message}</td>
    </tr>
  )
}

export function DirectionBadge({ direction }: { readonly direction: Direction }) {
  const { access } = texts
  if (direction.isReachable) return <Badge tone="good">{access.reachable}</Badge>
  if (direction.isGranted) return <Badge tone="bad">{access.broken}</Badge>
  return <Badge icon="minus">{access.notGranted}</Badge>
}
