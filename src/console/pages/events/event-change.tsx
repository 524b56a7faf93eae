import type { NetworkEvent } from '../../client/event-feed.ts'
import { pageTexts } from '../../page-texts.ts'
import { texts } from '../../texts.ts'
import { entityFieldChanges } from './event-text.ts'

/**
 * The fields that the event changed in a record, or, if there are none, all fields of the event.
 */
export function EventChange({ event }: { readonly event: NetworkEvent }) {
  const changes = entityFieldChanges(event)
  return (
    <>
      {changes.length === 0 ? null : (
        <dl class="diff">
          {changes.map(({ name, before, after }) => (
            <div key={name}>
              <dt class="mono">{name}</dt>
              {before === undefined ? null : (
                <dd class="was">
                  <span class="visually-hidden">{texts.form.before}</span>
                  {JSON.stringify(before)}
                </dd>
              )}
              {after === undefined ? null : (
                <dd class="is">
                  <span class="visually-hidden">{texts.form.after}</span>
                  {JSON.stringify(after)}
                </dd>
              )}
            </div>
          ))}
        </dl>
      )}
      <pre class="json" tabIndex={0} aria-label={pageTexts.events.fields}>
        {JSON.stringify(event.fields, null, 2)}
      </pre>
    </>
  )
}
