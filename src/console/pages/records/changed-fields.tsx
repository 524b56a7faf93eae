import { visibleText } from '../../app/visible-text.ts'
import type { FormField } from './form-field.ts'
import { type FormFieldChange, fieldLabel } from './form-model.ts'
import { DiffRows } from './diff-rows.tsx'
import { isDeepEqual } from './json-values.ts'
import { type NamedRecord, useRecordNames } from './record-names.ts'

/** The values that a save changes; references have names. A new record has no earlier values. */
export function ChangedFields(props: {
  readonly changes: readonly FormFieldChange[]
  readonly fields: readonly Pick<FormField, 'name' | 'label' | 'widget'>[]
  readonly isNew: boolean
}) {
  const { changes, fields, isNew } = props
  const references = changes.flatMap((change) => recordsIn(change, fields))
  const names = useRecordNames(references)
  const nameOf = (word: string): string => {
    const id = word.replace(/^@/, '')
    const known = references.find((one) => one.id === id)
    const name = known === undefined ? '' : (names.get(`${known.path}/${id}`) ?? '')
    return name === '' ? word : `${word.startsWith('@') ? '@' : ''}${visibleText(name)}`
  }
  return (
    <dl class="diff">
      {changes.map(({ name, before, after }) => {
        const field = fields.find((one) => one.name === name)
        const isAttribute = field?.widget.is === 'roles' && field.widget.isOwn
        return (
          <div key={name}>
            <dt>{field?.label ?? fieldLabel(name)}</dt>
            <DiffRows
              before={before}
              after={after}
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

/** Records that the value of a field refers to by id. */
function recordsIn(
  { name, before, after }: FormFieldChange,
  fields: readonly Pick<FormField, 'name' | 'widget'>[],
): NamedRecord[] {
  const widget = fields.find((field) => field.name === name)?.widget
  const words = [before, after].flat().filter((one): one is string => typeof one === 'string')
  switch (widget?.is) {
    case 'roles':
      return words
        .filter((word) => !widget.isOwn && word.startsWith('@'))
        .map((word) => ({ path: widget.kind, id: word.slice(1) }))
    case 'reference':
    case 'references':
      return words.filter((id) => id !== '').map((id) => ({ path: widget.kind, id }))
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
  return typeof value === 'object' ? JSON.stringify(value, null, 2) : String(value)
}
