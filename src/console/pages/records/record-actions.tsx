import { useSignal } from '@preact/signals'

import { isReadOnly } from '../../app/console-state.ts'
import { FailureNotice } from '../../app/failure.tsx'
import { showToast } from '../../app/toasts.tsx'
import { Button } from '../../controls/button.tsx'
import { Notice } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { TokenCard } from '../wizards/token-card.tsx'
import type { ConsoleKind } from './kinds.ts'
import { MoreActions } from './more-actions.tsx'
import { findOutstandingToken, hasExpiredToken } from './outstanding-token.ts'
import { recordApiPath, type RecordRow, writeRecord } from './record-data.ts'

interface RecordActionsProps {
  readonly kind: ConsoleKind
  readonly record: RecordRow
  readonly mayWrite: boolean
  /** Opens the dialog that deletes the record; null for a record that the user cannot delete. */
  readonly onDelete: (() => void) | null
  readonly onDone: () => void
}

/** Actions on a record, other than changing its fields. */
export function RecordActions(props: RecordActionsProps) {
  const { kind, record, mayWrite, onDelete, onDone } = props
  const refused = isReadOnly.value ? texts.banner.refused : null
  const { acts } = texts
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const isIdentity = kind.path === 'identities'
  const isDisabled = record['disabled'] === true
  const toggle = (): void => {
    isBusy.value = true
    error.value = null
    const path = `${recordApiPath(kind.path, record.id)}/${isDisabled ? 'enable' : 'disable'}`
    writeRecord({ method: 'POST', path, ...(isDisabled ? {} : { body: { durationMinutes: 0 } }) })
      .then(() => {
        showToast(isDisabled ? acts.enabled : acts.disabled)
        onDone()
      })
      .catch((failure: unknown) => (error.value = failure))
      .finally(() => (isBusy.value = false))
      .catch(() => undefined)
  }
  return (
    <>
      <FailureNotice error={error.value} />
      <MoreActions
        kind={kind}
        record={record}
        mayWrite={mayWrite}
        refused={refused}
        first={
          isIdentity
            ? [
                {
                  label: isDisabled ? acts.enable : acts.disable,
                  refused,
                  isBusy: isBusy.value,
                  onClick: toggle,
                },
              ]
            : []
        }
        last={
          onDelete === null
            ? []
            : [
                {
                  label: texts.record.delete,
                  refused,
                  isDangerous: true,
                  onClick: onDelete,
                },
              ]
        }
        onDone={onDone}
      />
    </>
  )
}

/**
 * Shows the enrollment token of a record that has not enrolled yet; for an expired token, when it
 * expired.
 */
export function OutstandingToken({ kind, record }: Pick<RecordActionsProps, 'kind' | 'record'>) {
  const { wizards } = texts
  const isShown = useSignal(false)
  const found = findOutstandingToken(kind, record)
  if (found === null) return null
  const name = String(record['name'] ?? record.id)
  const isRouter = kind.path.endsWith('routers')
  if (hasExpiredToken(kind, record)) {
    return (
      <Notice tone="warn">
        {texts.acts.waits} {texts.acts.tokenExpired} <Time at={found.expiresAt} />.
      </Notice>
    )
  }
  if (!isShown.value) {
    return (
      <div class="panel panel-body row">
        <span class="soft">
          {texts.acts.waits} {texts.acts.tokenEnds} <Time at={found.expiresAt} />.
        </span>
        <Button icon="key" kind="primary" onClick={() => (isShown.value = true)}>
          {texts.acts.showToken}
        </Button>
      </div>
    )
  }
  return (
    <TokenCard
      title={wizards.enrolls(name)}
      fileName={`${name}.jwt`}
      jwt={found.jwt}
      expiresAt={found.expiresAt}
      kind={isRouter ? 'edge-routers' : 'identities'}
    >
      <Button onClick={() => (isShown.value = false)}>{texts.acts.hideToken}</Button>
    </TokenCard>
  )
}
