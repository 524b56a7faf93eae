import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { visibleText } from '../../app/visible-text.ts'
import { Chips, type PickerSuggestions, Picker, type PickerProps } from '../../controls/picker.tsx'
import { within } from '../../text-parts.ts'
import { texts } from '../../texts.ts'
import { Field } from '../../controls/field.tsx'
import { findKindAtPath } from './kinds.ts'
import { isObject } from './json-values.ts'
import { ChoiceInput, type LeafProps, NumberInput } from './leaf-inputs.tsx'
import {
  countByRoles,
  readRecordNames,
  type RecordRow,
  suggestRecords,
  suggestAttributes,
} from './record-data.ts'
import { rowTitle } from './row-title.ts'

type InputIds = Pick<PickerProps, 'id' | 'aria-describedby' | 'aria-invalid' | 'aria-required'>

function manyOf(kind: string): string {
  return within(findKindAtPath(kind)?.many ?? kind)
}

async function loadRecords(
  kind: string,
  typed: string,
  signal: AbortSignal,
): Promise<PickerSuggestions> {
  const { rows, totalCount } = await suggestRecords(kind, typed, signal)
  const options = rows.map(({ id, name }) => ({
    value: id,
    text: visibleText(String(name ?? id)),
  }))
  return { options, totalCount }
}

/** Names of the records with these ids; loaded when first needed. */
function useNames(kind: string, ids: readonly string[]): ReadonlyMap<string, string> {
  const names = useSignal<ReadonlyMap<string, string>>(new Map())
  useEffect(() => {
    const missing = ids.filter((id) => !names.value.has(id))
    if (missing.length === 0) return undefined
    const cancel = new AbortController()
    // A record that was deleted, or that the user may not read, is shown by its ID.
    readRecordNames(kind, missing, cancel.signal)
      .catch(() => new Map<string, string>())
      .then((found) => {
        if (cancel.signal.aborted) return
        const named = missing.map((id) => [id, found.get(id) ?? id] as const)
        names.value = new Map([...names.value, ...named])
      })
      .catch(() => undefined)
    return () => cancel.abort()
  }, [kind, ids.join(' ')])
  return names.value
}

/** Null while the name is not known yet. */
function shownName(name: string | undefined): string | null {
  return name === undefined ? null : visibleText(name)
}

/**
 * All records of a kind; none while they are being loaded, null if they are more than a search
 * suggests or could not be loaded.
 */
function useFewRecords(kind: string | null): readonly RecordRow[] | null {
  const few = useSignal<readonly RecordRow[] | null>(kind === null ? null : [])
  useEffect(() => {
    if (kind === null) return undefined
    const cancel = new AbortController()
    suggestRecords(kind, '', cancel.signal).then(
      ({ rows, totalCount }) => (few.value = totalCount > rows.length ? null : rows),
      () => (few.value = null),
    )
    return () => cancel.abort()
  }, [kind])
  return few.value
}

/** An input that selects one or several records by name. */
export function ReferenceInput(props: {
  readonly ids: InputIds
  readonly kind: string
  readonly chosen: readonly string[]
  readonly isSingle: boolean
  readonly isSelect?: boolean
  readonly onChange: (chosen: readonly string[]) => void
}) {
  const { ids, kind, chosen, isSingle, isSelect = false, onChange } = props
  const few = useFewRecords(isSelect ? kind : null)
  const names = useNames(kind, chosen)
  if (few !== null) {
    return (
      <select
        {...ids}
        class="input"
        value={chosen[0] ?? ''}
        onChange={({ currentTarget: { value } }) => onChange(value === '' ? [] : [value])}
      >
        <option value="">{texts.picker.choose}</option>
        {few.map((row) => (
          <option key={row.id} value={row.id}>
            {rowTitle(row)}
          </option>
        ))}
      </select>
    )
  }
  return (
    <div class="chosen">
      <Chips
        values={chosen.map((id) => ({ value: id, text: shownName(names.get(id)) }))}
        onRemove={(id) => onChange(chosen.filter((one) => one !== id))}
      />
      <Picker
        {...ids}
        // The chosen records are not the text of the input.
        aria-required={ids['aria-required'] === true && chosen.length === 0}
        placeholder={texts.picker.search(manyOf(kind))}
        load={(typed, signal) => loadRecords(kind, typed, signal)}
        onPick={({ value }) => {
          if (isSingle) onChange([value])
          else if (!chosen.includes(value)) onChange([...chosen, value])
        }}
      />
    </div>
  )
}

/**
 * A number, or one of several options, for each of the services that the user selects by name; the
 * value has them by the ID of the service.
 */
export function ServiceValuesInput(props: LeafProps & { readonly options: readonly string[] }) {
  const { ids, value, options, onChange } = props
  const values = isObject(value) ? value : {}
  const services = Object.keys(values)
  const names = useNames('services', services)
  return (
    <>
      <ReferenceInput
        ids={ids}
        kind="services"
        chosen={services}
        isSingle={false}
        onChange={(chosen) =>
          onChange(Object.fromEntries(chosen.map((id) => [id, values[id] ?? options[0] ?? 0])))
        }
      />
      {services.map((id) => (
        <Field key={id} label={shownName(names.get(id)) ?? '…'}>
          {(own) => {
            const leaf = {
              ids: own,
              value: values[id],
              onChange: (next: unknown) => onChange({ ...values, [id]: next }),
            }
            return options.length === 0 ? (
              <NumberInput {...leaf} minimum={0} maximum={COST_MAX} />
            ) : (
              <ChoiceInput {...leaf} options={options} names={{}} mayBeNone={false} />
            )
          }}
        </Field>
      ))}
    </>
  )
}

const COST_MAX = 65_535

/**
 * Input for the role attributes of a record, or for the roles by which a policy selects records.
 */
export function RolesInput(props: {
  readonly ids: InputIds
  readonly kind: string
  /**
   * True for the record's own role attributes: they are written without `#`, and the user may add
   * new ones.
   */
  readonly isOwn: boolean
  readonly semantic: string
  readonly chosen: readonly string[]
  readonly placeholder?: string
  readonly onChange: (chosen: readonly string[]) => void
}) {
  const { ids, kind, isOwn, chosen, onChange } = props
  const { roles } = texts
  const { placeholder = isOwn ? roles.own : roles.search(manyOf(kind)) } = props
  const records = chosen.filter((one) => one.startsWith('@')).map((one) => one.slice(1))
  const names = useNames(kind, isOwn ? [] : records)
  const textOf = (role: string): string | null => {
    if (isOwn) return `#${role}`
    if (!role.startsWith('@')) return role
    const name = shownName(names.get(role.slice(1)))
    return name === null ? null : `@${name}`
  }
  return (
    <>
      <div class="chosen">
        <Chips
          values={chosen.map((role) => ({ value: role, text: textOf(role) }))}
          onRemove={(role) => onChange(chosen.filter((one) => one !== role))}
        />
        <Picker
          {...ids}
          aria-required={ids['aria-required'] === true && chosen.length === 0}
          placeholder={chosen.length === 0 ? placeholder : ''}
          load={(typed, signal) => loadRoles(kind, isOwn, typed, signal)}
          onPick={({ value }) => {
            if (!chosen.includes(value)) onChange([...chosen, value])
          }}
        />
      </div>
      {isOwn || chosen.length === 0 ? null : <RoleCount {...props} />}
    </>
  )
}

async function loadRoles(
  kind: string,
  isOwn: boolean,
  typed: string,
  signal: AbortSignal,
): Promise<PickerSuggestions> {
  const text = typed.trim().replace(/^[#@]/, '')
  const wantsRecords = !isOwn && !typed.startsWith('#')
  const [attributes, records] = await Promise.all([
    typed.startsWith('@') ? ([] as readonly string[]) : suggestAttributes(kind, text, signal),
    wantsRecords ? suggestRecords(kind, text, signal) : null,
  ])
  const isKnown = attributes.includes(text) || (!isOwn && text === 'all')
  const isNew = text !== '' && !typed.startsWith('@') && !isKnown
  const option = (name: string, note: string = texts.roles.attribute) => ({
    value: isOwn ? name : `#${name}`,
    text: `#${name}`,
    note,
  })
  const known = attributes.filter((name) => name !== text && (isOwn || name !== 'all'))
  const options = [
    ...(!isOwn && 'all'.startsWith(text) ? [option('all', texts.roles.all(manyOf(kind)))] : []),
    ...(attributes.includes(text) ? [text, ...known] : known).map((name) => option(name)),
    ...(records?.rows ?? []).map(({ id, name }) => ({
      value: `@${id}`,
      text: `@${visibleText(String(name ?? id))}`,
    })),
    // The option for a new attribute is last, so that Enter does not add a misspelled attribute.
    ...(isNew ? [option(text, texts.roles.newAttribute)] : []),
  ]
  const more = (records?.totalCount ?? 0) - (records?.rows.length ?? 0)
  return { options, totalCount: options.length + Math.max(0, more) }
}

/** Number of records that the roles select now, as counted by the server. */
function RoleCount(props: {
  readonly kind: string
  readonly semantic: string
  readonly chosen: readonly string[]
}) {
  const { kind, semantic, chosen } = props
  const count = useSignal<number | null>(null)
  useEffect(() => {
    const cancel = new AbortController()
    count.value = null
    countByRoles(kind, chosen, semantic, cancel.signal).then(
      (found) => (count.value = found),
      () => undefined,
    )
    return () => cancel.abort()
  }, [kind, semantic, chosen.join(' ')])
  return (
    <span class="hint" role="status">
      {count.value === null
        ? '…'
        : texts.roles.count(count.value, findKindAtPath(kind)?.one ?? kind, manyOf(kind))}
    </span>
  )
}
