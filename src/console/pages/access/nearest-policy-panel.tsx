import { useSignal } from '@preact/signals'

import { FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { consolePath } from '../../app/navigation.ts'
import { isReadOnly } from '../../app/console-state.ts'
import { Button } from '../../controls/button.tsx'
import type { AccessExplained, AccessExplainedIdentity } from '../../client/served-types.ts'
import { texts } from '../../texts.ts'
import { ChangeDialog, type RecordChange } from '../records/change-dialog.tsx'
import { readRecord } from '../records/record-data.ts'
import { type AccessDirection, recordReferenceText } from './explain-data.ts'
import { loadAccessEffect } from './preview.tsx'

/** The policy that needs the smallest change to grant access, and that change. */
export function NearestPolicyPanel(props: {
  readonly row: AccessExplained
  readonly direction: AccessDirection
  readonly onChanged: () => void
}) {
  const { access } = texts
  const { row, direction, onChanged } = props
  const { nearestPolicy: nearest } = direction
  if (nearest === null || nearest === undefined) return null
  const sides = [
    { collection: 'identities' as const, record: row.identity, lacks: nearest.identityLacks },
    { collection: 'services' as const, record: row.service, lacks: nearest.serviceLacks },
  ].filter(({ lacks }) => lacks.length > 0)
  return (
    <div class="nearest">
      <p>
        {access.nearest}{' '}
        <a href={consolePath('service-policies', nearest.id)}>{recordReferenceText(nearest)}</a>.{' '}
        {sides
          .map(({ record, lacks }) => access.lacks(recordReferenceText(record), lacks))
          .join('; ')}
        .
      </p>
      <div class="row">
        {sides.map((side) => (
          <Fix key={side.collection} {...side} onChanged={onChanged} />
        ))}
      </div>
    </div>
  )
}

/** Adds the missing role attributes to one record, after showing how this affects access. */
function Fix(props: {
  readonly collection: 'identities' | 'services'
  readonly record: AccessExplainedIdentity
  readonly lacks: readonly string[]
  readonly onChanged: () => void
}) {
  const { access } = texts
  const { collection, record, lacks, onChanged } = props
  const change = useSignal<RecordChange | null>(null)
  const error = useSignal<unknown>(null)
  const name = recordReferenceText(record)
  const read = async (): Promise<RecordChange> => {
    const { record: now, etag } = await readRecord(collection, record.id)
    const own = Array.isArray(now['roleAttributes']) ? now['roleAttributes'] : []
    return {
      collection,
      id: record.id,
      name,
      before: { roleAttributes: own },
      data: { roleAttributes: [...new Set([...own, ...lacks])] },
      ifMatch: etag,
    }
  }
  const cost = useLoadedData(`cost/${record.id}/${lacks.join(' ')}`, async (signal) => {
    const { data } = await read()
    const patch = { action: 'patch', collection, id: record.id, data } as const
    return (await loadAccessEffect([patch], signal))?.counts.dial?.given ?? 0
  })
  const open = (): void => {
    error.value = null
    read().then(
      (found) => (change.value = found),
      (failure: unknown) => (error.value = failure),
    )
  }
  const { value: given } = cost.data
  return (
    <>
      <Button icon="plus" refused={isReadOnly.value ? texts.banner.refused : null} onClick={open}>
        {access.fix(name, lacks)}
        {given === null || given === 0 ? '' : ` (${access.cost[collection](given)})`}
      </Button>
      <FailureNotice error={error.value} />
      {change.value === null ? null : (
        <ChangeDialog
          title={access.fixTitle(access.fix(name, lacks))}
          verb={access.fixVerb}
          changes={[change.value]}
          onClose={() => (change.value = null)}
          onDone={onChanged}
        />
      )}
    </>
  )
}
