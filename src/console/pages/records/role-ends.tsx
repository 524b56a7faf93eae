import { visibleText } from '../../app/visible-text.ts'
import { EndInput, endText } from '../../controls/end-input.tsx'
import { texts } from '../../texts.ts'
import { type Draft, isObject } from './json-values.ts'

interface RoleEndsProps {
  readonly ids: {
    readonly id: string
    readonly 'aria-describedby': string | undefined
    readonly 'aria-invalid': boolean
  }
  readonly draft: Draft
  readonly value: unknown
  readonly onChange: (ends: Draft | undefined) => void
}

/** The attributes of the draft, and those of the record that have ended, in order. */
export function attributesWithEnds(draft: Draft, ends: Draft): readonly string[] {
  const { roleAttributes } = draft
  const held = Array.isArray(roleAttributes) ? roleAttributes.map(String) : []
  const ended = Object.keys(ends).filter(
    (name) => !held.includes(name) && Date.parse(String(ends[name])) <= Date.now(),
  )
  return [...held, ...ended].sort()
}

/**
 * The end of each role attribute. A removed end becomes null, because a patch keeps the ends that
 * it does not name.
 */
export function RoleEndsInput({ ids, draft, value, onChange }: RoleEndsProps) {
  const ends = isObject(value) ? value : {}
  const attributes = attributesWithEnds(draft, ends)
  if (attributes.length === 0) {
    return (
      <span class="faint small" id={ids.id}>
        {texts.ends.noAttributes}
      </span>
    )
  }
  return (
    <ul class="role-ends" id={ids.id}>
      {attributes.map((name) => (
        <li key={name}>
          <label class="chip" for={`${ids.id}-${name}`}>
            <span>#{visibleText(name)}</span>
          </label>
          <EndInput
            ids={{ ...ids, id: `${ids.id}-${name}` }}
            value={ends[name]}
            about={`#${visibleText(name)}`}
            onChange={(end) => onChange({ ...ends, [name]: end ?? null })}
          />
        </li>
      ))}
    </ul>
  )
}

/** An attribute with its end in words; only the attribute if it has none. */
export function attributeText(name: string, ends: unknown): string {
  const end = isObject(ends) && Object.hasOwn(ends, name) ? endText(ends[name]) : null
  return end === null ? `#${name}` : texts.ends.attribute(name, end)
}

/** The attributes of a record that have ended. */
export function endedAttributes(record: Draft): readonly string[] {
  const { roleAttributes: held, roleAttributesExpireAt: ends } = record
  if (!isObject(ends)) return []
  return Object.keys(ends).filter((name) => !(Array.isArray(held) && held.includes(name)))
}
