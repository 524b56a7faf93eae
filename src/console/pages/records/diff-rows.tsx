import { texts } from '../../texts.ts'
import { changedItems } from './changed-items.ts'

/**
 * The value of a field before and after a change, unless the record did not exist then. For a list
 * of strings, only the removed and the added items.
 */
export function DiffRows(props: {
  readonly before: unknown
  readonly after: unknown
  /** False for a record that did not exist before. */
  readonly hasBefore: boolean
  /** False for a record that does not exist any more. */
  readonly hasAfter: boolean
  readonly textOf: (value: unknown) => string
}) {
  const { hasBefore, hasAfter, textOf } = props
  const { before, after } = hasBefore && hasAfter ? changedItems(props.before, props.after) : props
  return (
    <>
      {hasBefore && before !== null ? (
        <dd class="was">
          <span class="visually-hidden">{texts.form.before}</span>
          {textOf(before)}
        </dd>
      ) : null}
      {hasAfter && after !== null ? (
        <dd class="is">
          <span class="visually-hidden">{texts.form.after}</span>
          {textOf(after)}
        </dd>
      ) : null}
    </>
  )
}
