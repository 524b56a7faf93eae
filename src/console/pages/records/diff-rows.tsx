import { texts } from '../../texts.ts'
import { isDeepEqual } from './json-values.ts'

/**
 * The value of a field before and after a change, each only if there is one. Of a list of texts,
 * only the items that were removed and added.
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

/** Null in place of a list to which nothing was added, or from which nothing was removed. */
function changedItems(
  before: unknown,
  after: unknown,
): { readonly before: unknown; readonly after: unknown } {
  const [was, is] = [before ?? [], after ?? []]
  if (!isTextList(was) || !isTextList(is) || was.length + is.length === 0) {
    return { before: before ?? '', after: after ?? '' }
  }
  const removed = was.filter((one) => !is.includes(one))
  const added = is.filter((one) => !was.includes(one))
  // Only the order has changed.
  if (removed.length + added.length === 0 && !isDeepEqual(was, is))
    return { before: was, after: is }
  return {
    before: removed.length === 0 ? null : removed,
    after: added.length === 0 ? null : added,
  }
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}
