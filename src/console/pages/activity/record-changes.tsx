import { visibleBlock, visibleText, visibleValue } from '../../app/visible-text.ts'
import { exactTimeText } from '../../controls/time.tsx'
import { pageTexts } from '../../page-texts.ts'
import { DiffRows } from '../records/diff-rows.tsx'
import { fieldLabel } from '../records/form-model.ts'
import { findKindAtPath } from '../records/kinds.ts'
import { isObject } from '../records/json-values.ts'
import { type NamedRecord, useRecordNames, valueTexts } from '../records/record-names.ts'
import { type ChangedRecord, collectionForKind, recordLink } from './activity-data.ts'

export function kindDisplayName(kind: string): string {
  const path = collectionForKind(kind)
  return (path === null ? null : findKindAtPath(path)?.one) ?? kind
}

/** Records before and after a change, each with its changed fields. */
export function RecordChanges(props: {
  readonly changes: readonly ChangedRecord[]
  /** ID of the record that the text above names already, so that its change has no title. */
  readonly namedId?: string
}) {
  const { changes, namedId } = props
  return (
    <>
      {changes.map((change) => (
        <section class="changed-record" key={`${change.kind}/${change.id}`}>
          {changes.length === 1 && change.id === namedId ? null : (
            <p class="changed-title small">
              {pageTexts.activity.verbs[verbOf(change)]} {kindDisplayName(change.kind)}{' '}
              <RecordName kind={change.kind} id={change.id} name={change.name} isLinked />
            </p>
          )}
          <FieldDiff change={change} />
          {change.isPartial ? <p class="faint small">{pageTexts.activity.partial}</p> : null}
        </section>
      ))}
    </>
  )
}

export function RecordName(props: {
  readonly kind: string
  readonly id: string
  readonly name: string
  readonly isLinked: boolean
}) {
  const { kind, id, name, isLinked } = props
  const path = collectionForKind(kind)
  const known = useRecordNames(name === '' && isLinked && path !== null ? [{ path, id }] : [])
  const href = isLinked ? recordLink(kind, id) : null
  const found = name === '' ? (known.get(`${path}/${id}`) ?? '') : name
  const text = found === '' ? id : visibleText(found)
  return href === null ? <strong>{text}</strong> : <a href={href}>{text}</a>
}

function verbOf({ before, after }: ChangedRecord): 'create' | 'update' | 'delete' {
  if (before === null) return 'create'
  return after === null ? 'delete' : 'update'
}

/**
 * For each field that contains ids, as values or as names of members: the collection of the records
 * with these ids. A dot separates the name of a member from that of its object.
 */
const collectionsOfFields: Readonly<Record<string, string>> = {
  authPolicyId: 'auth-policies',
  caId: 'cas',
  configTypeId: 'config-types',
  configs: 'configs',
  edgeRouterRoles: 'edge-routers',
  enrollAuthPolicyId: 'auth-policies',
  identityId: 'identities',
  identityRoles: 'identities',
  postureCheckRoles: 'posture-checks',
  'primary.extJwt.allowedSigners': 'external-jwt-signers',
  routerId: 'edge-routers',
  'secondary.requireExtJwtSigner': 'external-jwt-signers',
  serviceHostingCosts: 'services',
  serviceHostingPrecedences: 'services',
  serviceId: 'services',
  serviceRoles: 'services',
}

/**
 * Ids in the value of a field: in a list of roles, the ids after `@`; in a map, the names of the
 * members; in any other field, the strings themselves.
 */
function namedIds(name: string, value: unknown): readonly NamedRecord[] {
  const path = collectionsOfFields[name]
  if (path === undefined) {
    return isObject(value)
      ? Object.entries(value).flatMap(([member, one]) => namedIds(`${name}.${member}`, one))
      : []
  }
  const words = isObject(value) ? Object.keys(value) : [value].flat()
  return words.flatMap((one) => {
    if (typeof one !== 'string' || one === '' || one.startsWith('#')) return []
    const isRole = name.endsWith('Roles')
    return isRole && !one.startsWith('@') ? [] : [{ path, id: one.replace(/^@/, '') }]
  })
}

/** The value with the ids replaced by the names of the records. */
function withNames(name: string, value: unknown, names: ReadonlyMap<string, string>): unknown {
  const path = collectionsOfFields[name]
  if (path === undefined) {
    if (!isObject(value)) return value
    const members = Object.entries(value).map(([member, one]) => [
      member,
      withNames(`${name}.${member}`, one, names),
    ])
    return Object.fromEntries(members)
  }
  const nameOf = (word: string): string => {
    const found = names.get(`${path}/${word.replace(/^@/, '')}`) ?? ''
    return found === '' ? word : `${word.startsWith('@') ? '@' : ''}${found}`
  }
  const named = (one: unknown): unknown => (typeof one === 'string' ? nameOf(one) : one)
  return Array.isArray(value) ? value.map(named) : valueTexts(named(value), nameOf)
}

function FieldDiff({ change: { before, after } }: { readonly change: ChangedRecord }) {
  const known = useRecordNames(
    [before, after].flatMap((values) =>
      Object.entries(values ?? {}).flatMap(([name, value]) => namedIds(name, value)),
    ),
  )
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].sort()
  if (names.length === 0) return null
  return (
    <dl class="diff">
      {names.map((name) => (
        <div key={name}>
          <dt>{fieldLabel(name)}</dt>
          <DiffRows
            before={withNames(name, before?.[name], known)}
            after={withNames(name, after?.[name], known)}
            hasBefore={before !== null}
            hasAfter={after !== null}
            textOf={valueText}
          />
        </div>
      ))}
    </dl>
  )
}

const TIME = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/

export function valueText(value: unknown): string {
  if (value === undefined || value === null || value === '') return '–'
  if (typeof value === 'string') {
    if (TIME.test(value)) return exactTimeText(value)
    return visibleValue(value)
  }
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) {
    return value.length === 0 ? pageTexts.activity.empty : value.map(visibleText).join(', ')
  }
  return visibleBlock(JSON.stringify(value, null, 2))
}
