import { visibleText } from '../../app/visible-text.ts'
import type { FormField, Widget } from './form-field.ts'
import { type FormFieldChange, fieldLabel } from './form-model.ts'
import { DiffRows } from './diff-rows.tsx'
import { isDeepEqual, isObject, stringItems } from './json-values.ts'
import { type NamedRecord, useRecordNames, valueTexts } from './record-names.ts'

/** The values that a save changes; references have names. A new record has no earlier values. */
export function ChangedFields(props: {
  readonly changes: readonly FormFieldChange[]
  readonly fields: readonly Pick<FormField, 'name' | 'label' | 'widget'>[]
  readonly isNew: boolean
}) {
  const { changes, fields, isNew } = props
  const rows = changes.map(({ name, before, after }) => {
    const field = fields.find((one) => one.name === name)
    const references = [before, after].flatMap((value) => recordsIn(value, field?.widget))
    return { name, before, after, field, references }
  })
  const names = useRecordNames(rows.flatMap(({ references }) => references))
  return (
    <dl class="diff">
      {rows.map(({ name, before, after, field, references }) => {
        const nameOf = (word: string): string => {
          const id = word.replace(/^@/, '')
          const known = references.find((one) => one.id === id)
          const found = known === undefined ? '' : (names.get(`${known.path}/${id}`) ?? '')
          return found === '' ? word : `${word.startsWith('@') ? '@' : ''}${visibleText(found)}`
        }
        const isAttribute = field?.widget.is === 'roles' && field.widget.isOwn
        const listed = (value: unknown): unknown =>
          field?.widget.is === 'byService' ? valueTexts(value, nameOf) : value
        return (
          <div key={name}>
            <dt>{field?.label ?? fieldLabel(name)}</dt>
            <DiffRows
              before={listed(before)}
              after={listed(after)}
              hasBefore={!isNew}
              hasAfter
              textOf={(value) => shownValue(value, isAttribute ? (word) => `#${word}` : nameOf)}
            />
          </div>
        )
      })}
    </dl>
  )
}

/** Records that a value of this widget refers to by id. */
function recordsIn(value: unknown, widget: Widget | undefined): NamedRecord[] {
  const words = stringItems([value].flat())
  const members = isObject(value) ? value : {}
  switch (widget?.is) {
    case 'roles':
      return words
        .filter((word) => !widget.isOwn && word.startsWith('@'))
        .map((word) => ({ path: widget.kind, id: word.slice(1) }))
    case 'reference':
    case 'references':
      return words.filter((id) => id !== '').map((id) => ({ path: widget.kind, id }))
    case 'byService':
      return Object.keys(members).map((id) => ({ path: 'services', id }))
    case 'enrollment':
      return stringItems([members['ottca']]).map((id) => ({ path: 'cas', id }))
    case 'group':
      return widget.fields.flatMap((field) => recordsIn(members[field.name], field.widget))
    default:
      return []
  }
}

function shownValue(value: unknown, nameOf: (word: string) => string): string {
  if (value === undefined || value === null || value === '' || isDeepEqual(value, [])) return '–'
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) {
    return value.map(nameOf).join('\n')
  }
  if (typeof value === 'string') return nameOf(value)
  if (typeof value !== 'object') return String(value)
  const named = (_: string, one: unknown): unknown => (typeof one === 'string' ? nameOf(one) : one)
  return JSON.stringify(value, named, 2)
}
