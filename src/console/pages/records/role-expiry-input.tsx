import { useSignal } from '@preact/signals'

import { visibleText } from '../../app/visible-text.ts'
import { Button } from '../../controls/button.tsx'
import { ExpiryInput, expiryText } from '../../controls/expiry-input.tsx'
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

/**
 * The role attributes in the draft, and those that the record has lost because their time has
 * passed, sorted by name.
 */
export function attributesWithExpiries(draft: Draft, ends: Draft): readonly string[] {
  const { roleAttributes } = draft
  const held = Array.isArray(roleAttributes) ? roleAttributes.map(String) : []
  const ended = Object.keys(ends).filter(
    (name) => !held.includes(name) && Date.parse(String(ends[name])) <= Date.now(),
  )
  return [...held, ...ended].sort()
}

/** Whether a record has role attributes that can end, or attributes that have ended. */
export function hasExpiringAttributes(draft: Draft, ends: unknown): boolean {
  return attributesWithExpiries(draft, isObject(ends) ? ends : {}).length > 0
}

/**
 * Input for the time at which each role attribute ends. A time that the user removes becomes null:
 * a patch keeps the times that it does not contain.
 */
export function RoleExpiryInput({ ids, draft, value, onChange }: RoleEndsProps) {
  const ends = isObject(value) ? value : {}
  const attributes = attributesWithExpiries(draft, ends)
  const opened = useSignal<ReadonlySet<string>>(new Set())
  return (
    <ul class="role-ends" id={ids.id}>
      {attributes.map((name) => (
        <li key={name}>
          <label class="chip" for={`${ids.id}-${name}`}>
            <span>#{visibleText(name)}</span>
          </label>{' '}
          {typeof ends[name] === 'string' || opened.value.has(name) ? (
            <ExpiryInput
              ids={{ ...ids, id: `${ids.id}-${name}` }}
              value={ends[name]}
              about={`#${visibleText(name)}`}
              onChange={(end) => onChange({ ...ends, [name]: end ?? null })}
            />
          ) : (
            <>
              <span class="faint small">{texts.ends.never}</span>
              <Button
                kind="quiet"
                label={texts.ends.about(`#${visibleText(name)}`, texts.ends.set)}
                onClick={() => {
                  opened.value = new Set([...opened.value, name])
                  requestAnimationFrame(() => document.getElementById(`${ids.id}-${name}`)?.focus())
                }}
              >
                {texts.ends.set}
              </Button>
            </>
          )}
        </li>
      ))}
    </ul>
  )
}

/**
 * A role attribute, followed in words by the time at which it ends; only the attribute if there is
 * no such time.
 */
export function attributeWithExpiryText(name: string, ends: unknown): string {
  const end = isObject(ends) && Object.hasOwn(ends, name) ? expiryText(ends[name]) : null
  return end === null ? `#${name}` : texts.ends.attribute(name, end)
}

/** The role attributes that a record has lost because their time has passed. */
export function expiredAttributes(record: Draft): readonly string[] {
  const { roleAttributes: held, roleAttributesExpireAt: ends } = record
  if (!isObject(ends)) return []
  return Object.keys(ends).filter((name) => !(Array.isArray(held) && held.includes(name)))
}
