import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { failureText } from '../../app/failure.tsx'
import { guardLeaving } from '../../app/navigation.ts'
import { showToast } from '../../app/toasts.tsx'
import { ApiProblem } from '../../../client/problem.ts'
import { Button } from '../../controls/button.tsx'
import { Dialog } from '../../controls/dialog.tsx'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { AccessPreview, hasEffectOnAccess, type PreviewedChange } from '../access/preview.tsx'
import { CallPanel } from './call-panel.tsx'
import { dropDraft, storeDraft, storedDraft } from './drafts.ts'
import { FormFields } from './form.tsx'
import {
  type Change,
  changedFormFields,
  cleanDraft,
  type Draft,
  fieldFaultIn,
  isSame,
  fieldLabel,
  patchBody,
} from './form-model.ts'
import type { FormField } from './form-field.ts'
import type { Kind } from './kinds.ts'
import { collectionPath, recordPath, writeRecord, type Write } from './record-data.ts'

interface RecordFormProps {
  readonly kind: Kind
  /** Null: the record is being created. */
  readonly id: string | null
  readonly etag: string | null
  readonly fields: readonly FormField[]
  readonly values: Draft
  readonly refused: string | null
  readonly onSaved: (id: string | null) => void
  readonly onReload: () => void
}

/**
 * The request that saves the form: the whole body of a new record, or the changes of an existing
 * one.
 */
function callOf(props: RecordFormProps, draft: Draft, changes: readonly Change[]): Write {
  const { kind, id, etag, fields } = props
  if (id === null) {
    return { method: 'POST', path: collectionPath(kind.path), body: cleanDraft(draft, fields) }
  }
  return {
    method: 'PATCH',
    path: recordPath(kind.path, id),
    body: patchBody(changes),
    ifMatch: etag,
  }
}

export function RecordForm(props: RecordFormProps) {
  const { kind, id, fields, values, refused, onSaved, onReload } = props
  const key = `${kind.path}/${id ?? 'new'}`
  const restored = storedDraft(key)
  const draft = useSignal<Draft>(restored ?? values)
  const isRestored = useSignal(restored !== null && !isSame(restored, values))
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const isReviewing = useSignal(false)
  const badJson = useSignal<ReadonlySet<string>>(new Set())
  const changes = changedFormFields(values, cleanDraft(draft.value, fields), fields)
  const isDirty = changes.length > 0
  useEffect(() => {
    if (isDirty) storeDraft(key, draft.value, fields)
    else dropDraft(key)
  }, [draft.value])
  useEffect(
    () => guardLeaving(() => !isDirty || isBusy.value || confirm(texts.form.leave)),
    [isDirty],
  )
  const discard = (): void => {
    dropDraft(key)
    draft.value = values
    isRestored.value = false
    error.value = null
  }
  const save = (): void => {
    isBusy.value = true
    error.value = null
    writeRecord(callOf(props, draft.value, changes))
      .then((made) => {
        dropDraft(key)
        draft.value = values
        showToast(id === null ? texts.form.created(kind.one) : texts.form.saved)
        onSaved(made)
      })
      .catch((refusal: unknown) => {
        error.value = refusal
        isReviewing.value = false
      })
      .finally(() => (isBusy.value = false))
      .catch(() => undefined)
  }
  const blocked = refused ?? blockedBy(badJson.value.size > 0, isDirty, id === null)
  const problem = error.value instanceof ApiProblem ? error.value : null
  const fault = fieldFaultIn(problem?.fault ?? null, fields)
  return (
    <form
      class="panel record-form"
      aria-label={texts.form.title(kind.one)}
      onSubmit={(event) => {
        event.preventDefault()
        if (blocked !== null) return
        if (id === null && !hasEffectOnAccess(kind.path)) save()
        else isReviewing.value = true
      }}
    >
      <div class="panel-body form">
        {isRestored.value ? <Notice>{texts.form.restored}</Notice> : null}
        {error.value === null ? null : <Refusal error={error.value} onReload={onReload} />}
        <FormFields
          fields={fields}
          draft={draft.value}
          fault={fault}
          onChange={(changed) => (draft.value = changed)}
          onBadJson={(name, isBad) => {
            const bad = new Set(badJson.value)
            if (isBad) bad.add(name)
            else bad.delete(name)
            badJson.value = bad
          }}
        />
        <CallPanel call={callOf(props, draft.value, changes)} />
      </div>
      <div class="form-foot">
        {isDirty ? <span class="faint small">{texts.form.unsaved(changes.length)}</span> : <span />}
        {isDirty ? <Button onClick={discard}>{texts.form.discard}</Button> : null}
        <Button type="submit" kind="primary" refused={blocked} isBusy={isBusy.value}>
          {id === null ? texts.form.create : texts.form.save}
        </Button>
      </div>
      {isReviewing.value ? (
        <ReviewDialog
          changes={changes}
          call={callOf(props, draft.value, changes)}
          previewed={{
            action: id === null ? 'create' : 'patch',
            collection: kind.path,
            id,
            data: callOf(props, draft.value, changes).body ?? null,
          }}
          isBusy={isBusy.value}
          onClose={() => (isReviewing.value = false)}
          onSave={save}
        />
      ) : null}
    </form>
  )
}

function blockedBy(hasBadJson: boolean, isDirty: boolean, isNew: boolean): string | null {
  if (hasBadJson) return texts.form.mendJson
  return isDirty || isNew ? null : texts.form.nothing
}

function Refusal({ error, onReload }: { readonly error: unknown; readonly onReload: () => void }) {
  const hasMoved = error instanceof ApiProblem && error.status === 412
  return (
    <Notice tone="bad">
      {hasMoved ? texts.form.moved : failureText(error)}{' '}
      {hasMoved ? <Button onClick={onReload}>{texts.form.reload}</Button> : null}
    </Notice>
  )
}

/** Shows the changes of a save before it is made. */
function ReviewDialog(props: {
  readonly changes: readonly Change[]
  readonly call: Write
  readonly previewed: PreviewedChange
  readonly isBusy: boolean
  readonly onClose: () => void
  readonly onSave: () => void
}) {
  const { changes, call, previewed, isBusy, onClose, onSave } = props
  return (
    <Dialog
      title={texts.form.review}
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>{texts.cancel}</Button>
          <Button kind="primary" isBusy={isBusy} onClick={onSave}>
            {previewed.action === 'create' ? texts.form.create : texts.form.save}
          </Button>
        </>
      }
    >
      <dl class="diff">
        {changes.map(({ name, before, after }) => (
          <div key={name}>
            <dt>{fieldLabel(name)}</dt>
            <dd class="was">
              <span class="visually-hidden">{texts.form.before}</span>
              {shownValue(before)}
            </dd>
            <dd class="is">
              <span class="visually-hidden">{texts.form.after}</span>
              {shownValue(after)}
            </dd>
          </div>
        ))}
      </dl>
      <AccessPreview change={previewed} />
      <CallPanel call={call} />
    </Dialog>
  )
}

function shownValue(value: unknown): string {
  if (value === undefined || value === null || value === '' || isSame(value, [])) return '–'
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join('\n')
  return typeof value === 'object' ? JSON.stringify(value, null, 2) : String(value)
}
