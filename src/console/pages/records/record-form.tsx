import { useSignal } from '@preact/signals'
import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

import { failureText } from '../../app/failure.tsx'
import { withoutChangePosition } from '../../app/fault-text.ts'
import { consolePath, registerLeaveGuard } from '../../app/navigation.ts'
import { showToast } from '../../app/toasts.tsx'
import { ApiRefusalError } from '../../../client/client-errors.ts'
import { Button, LinkButton } from '../../controls/button.tsx'
import { CheckedForm } from '../../controls/checked-form.tsx'
import { Dialog } from '../../controls/dialog.tsx'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import {
  type AccessEffectLoad,
  AccessEffectResult,
  hasEffectOnAccess,
  type PreviewedChange,
  useAccessEffect,
} from '../access/preview.tsx'
import { CurlCommandPanel } from './curl-command-panel.tsx'
import { ChangedFields } from './changed-fields.tsx'
import { dropDraft, storeDraft, readStoredDraft } from './drafts.ts'
import { FormFields, type FormProps } from './form.tsx'
import {
  type FormFieldChange,
  changedFormFields,
  toFormFault,
  isFieldShown,
  buildPatchBody,
  pickShownFields,
} from './form-model.ts'
import type { FormField } from './form-field.ts'
import { type Draft, isDeepEqual } from './json-values.ts'
import type { ConsoleKind } from './kinds.ts'
import {
  collectionApiPath,
  recordApiPath,
  writeRecord,
  type RecordWriteRequest,
} from './record-data.ts'

interface RecordFormProps {
  readonly kind: ConsoleKind
  /** Null while a new record is being created. */
  readonly id: string | null
  readonly etag: string | null
  readonly fields: readonly FormField[]
  readonly values: Draft
  /** Values that the page filled in for a new record. */
  readonly prefilled?: PrefilledRecord | null
  readonly refused: string | null
  readonly onSaved: (id: string | null) => void
  readonly onReload: () => void
}

/** Values for the form of a new record that another page has opened. */
export interface PrefilledRecord {
  /** Id that separates this draft from other drafts of the kind. */
  readonly about: string
  readonly values: Draft
}

/**
 * The request that saves the form: with the whole body for a new record, or only the changes for an
 * existing record.
 */
function callOf(
  props: RecordFormProps,
  draft: Draft,
  changes: readonly FormFieldChange[],
): RecordWriteRequest {
  const { kind, id, etag, fields } = props
  if (id === null) {
    return {
      method: 'POST',
      path: collectionApiPath(kind.path),
      body: pickShownFields(draft, fields),
    }
  }
  return {
    method: 'PATCH',
    path: recordApiPath(kind.path, id),
    body: buildPatchBody(changes),
    ifMatch: etag,
  }
}

/** The draft of the form, which continues a draft that the user left earlier in this tab. */
function useRecordDraft({ kind, id, values, prefilled = null }: RecordFormProps) {
  const key = `${kind.path}/${id ?? 'new'}${prefilled === null ? '' : `/${prefilled.about}`}`
  const initial: Draft = { ...values, ...prefilled?.values }
  const restored = readStoredDraft(key)
  const draft = useSignal<Draft>(restored ?? initial)
  const isRestored = useSignal(restored !== null && !isDeepEqual(restored, initial))
  return { key, initial, draft, isRestored }
}

/** The changed fields, without those that the form does not show. */
function changesOf(values: Draft, draft: Draft, fields: readonly FormField[]) {
  const shown = fields.filter((field) => isFieldShown(field, draft))
  return changedFormFields(values, draft, shown)
}

function previewOf(
  { kind, id }: Pick<RecordFormProps, 'kind' | 'id'>,
  data: PreviewedChange['data'],
): PreviewedChange {
  return { action: id === null ? 'create' : 'patch', collection: kind.path, id, data }
}

/** Asks before the user leaves a form whose changes are not saved. */
function useLeaveWarning(isTouched: boolean, isBusy: { readonly value: boolean }): void {
  useEffect(
    () => registerLeaveGuard(() => !isTouched || isBusy.value || confirm(texts.form.leave)),
    [isTouched],
  )
}

export function RecordForm(props: RecordFormProps) {
  const { kind, id, fields, values, refused, onSaved, onReload } = props
  const { key, initial, draft, isRestored } = useRecordDraft(props)
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const isReviewing = useSignal(false)
  const badJson = useBadJson()
  const changes = changesOf(values, draft.value, fields)
  const isDirty = changes.length > 0
  const isTouched = isDirty && !isDeepEqual(draft.value, initial)
  useStoredDraft(key, draft.value, isTouched, fields)
  useLeaveWarning(isTouched, isBusy)
  const call = callOf(props, draft.value, changes)
  const effect = useAccessEffect()
  const discard = (): void => {
    dropDraft(key)
    draft.value = values
    isRestored.value = false
    error.value = null
  }
  const save = (): void => {
    isBusy.value = true
    error.value = null
    writeRecord(call)
      .then((made) => {
        dropDraft(key)
        draft.value = values
        showToast(id === null ? texts.form.created(kind.one) : texts.form.saved)
        onSaved(made)
      })
      .catch((refusal: unknown) => (error.value = refusal))
      .finally(() => (isBusy.value = false))
      .catch(() => undefined)
  }
  /** Opens the review, unless the preview of the change refuses a field. */
  const review = async (): Promise<void> => {
    isBusy.value = true
    error.value = null
    await effect.load([previewOf(props, call.body ?? null)])
    isBusy.value = false
    if (faultOf(effect.error.value, fields) === null) isReviewing.value = true
    else error.value = effect.error.value
  }
  const blocked = refused ?? blockedBy(badJson.names.value.size > 0, isDirty, id === null)
  const fault = faultOf(error.value, fields)
  const form = useFaultInSight(error.value, fault !== null && !isReviewing.value)
  const refusal =
    error.value === null ? null : (
      <Refusal error={error.value} fields={fields} onReload={onReload} />
    )
  return (
    <CheckedForm
      form={form}
      class="panel record-form"
      label={texts.form.title(kind.one)}
      onSubmit={() => {
        if (blocked !== null || isBusy.value) return
        if (id === null && !hasEffectOnAccess(kind.path)) save()
        else void review()
      }}
    >
      <div class="panel-body form">
        <FormNotice text={refused ?? (isRestored.value ? texts.form.restored : null)} />
        <FormParts
          fields={fields}
          advanced={kind.advanced}
          draft={draft.value}
          fault={fault}
          of={id === null ? 'newRecord' : 'record'}
          onChange={(changed) => (draft.value = changed)}
          onBadJson={badJson.mark}
        />
        <CurlCommandPanel call={call} />
      </div>
      <FormFoot
        // A fault at a field is shown there, and has the focus.
        refusal={isReviewing.value || fault !== null ? null : refusal}
        unsaved={changes.length}
        leaveTo={id === null ? consolePath(kind.path) : consolePath(kind.path, id)}
        onDiscard={discard}
      >
        <Button type="submit" kind="primary" refused={blocked} isBusy={isBusy.value}>
          {id === null ? texts.form.create : texts.form.save}
        </Button>
      </FormFoot>
      {isReviewing.value ? (
        <ReviewDialog
          changes={changes}
          call={call}
          fields={fields}
          isNew={id === null}
          effect={effect}
          isBusy={isBusy.value}
          refusal={refusal}
          hasFault={fault !== null}
          onClose={() => (isReviewing.value = false)}
          onSave={save}
        />
      ) : null}
    </CheckedForm>
  )
}

function FormNotice({ text }: { readonly text: string | null }) {
  return text === null ? null : <Notice>{text}</Notice>
}

/** The number of unsaved changes, and the buttons of the form. */
function FormFoot(props: {
  readonly refusal: ComponentChildren
  readonly unsaved: number
  readonly leaveTo: string
  readonly onDiscard: () => void
  readonly children: ComponentChildren
}) {
  const { refusal, unsaved, leaveTo, onDiscard, children } = props
  return (
    <div class="form-foot">
      {refusal}
      <span class="faint small">{unsaved === 0 ? '' : texts.form.unsaved(unsaved)}</span>
      {unsaved === 0 ? null : (
        <Button kind="quiet" onClick={onDiscard}>
          {texts.form.discard}
        </Button>
      )}
      <LinkButton href={leaveTo}>{texts.cancel}</LinkButton>
      {children}
    </div>
  )
}

/** The fields of the form; those that few records need are in a group that the user opens. */
function FormParts(props: FormProps & { readonly advanced: readonly string[] }) {
  const { fields, advanced, fault } = props
  const rare = fields.filter(({ name }) => advanced.includes(name))
  return (
    <>
      <FormFields {...props} fields={fields.filter((field) => !rare.includes(field))} />
      {rare.length === 0 ? null : (
        <details class="group" open={rare.some(({ name }) => name === fault?.name)}>
          <summary>{texts.form.advanced}</summary>
          <div class="form">
            <FormFields {...props} fields={rare} />
          </div>
        </details>
      )}
    </>
  )
}

/** Stores the draft while it differs from the record. */
function useStoredDraft(
  key: string,
  draft: Draft,
  isDirty: boolean,
  fields: readonly FormField[],
): void {
  useEffect(() => {
    if (isDirty) storeDraft(key, draft, fields)
    else dropDraft(key)
  }, [draft])
}

/** Names of the fields whose text is not valid JSON yet. */
function useBadJson() {
  const names = useSignal<ReadonlySet<string>>(new Set())
  const mark = (name: string, isBad: boolean): void => {
    const bad = new Set(names.value)
    if (isBad) bad.add(name)
    else bad.delete(name)
    names.value = bad
  }
  return { names, mark }
}

/** Focuses the first field with an error, and scrolls to it, once no review dialog is open. */
function useFaultInSight(error: unknown, hasFault: boolean): RefObject<HTMLFormElement | null> {
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    if (!hasFault) return
    const field = form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')
    field?.focus({ preventScroll: true })
    field?.scrollIntoView({ block: 'center' })
  }, [error, hasFault])
  return form
}

function blockedBy(hasBadJson: boolean, isDirty: boolean, isNew: boolean): string | null {
  if (hasBadJson) return texts.form.mendJson
  return isDirty || isNew ? null : texts.form.nothing
}

function Refusal(props: {
  readonly error: unknown
  readonly fields: readonly FormField[]
  readonly onReload: () => void
}) {
  const { error, fields, onReload } = props
  const hasMoved = error instanceof ApiRefusalError && error.status === 412
  return (
    <Notice tone="bad">
      {hasMoved ? texts.form.moved : refusalText(error, fields)}{' '}
      {hasMoved ? <Button onClick={onReload}>{texts.form.reload}</Button> : null}
    </Notice>
  )
}

function faultOf(error: unknown, fields: readonly FormField[]) {
  const fault = error instanceof ApiRefusalError ? error.fault : null
  return toFormFault(
    fault === null ? null : { ...fault, field: withoutChangePosition(fault.field) },
    fields,
  )
}

/** One sentence about a refused save; it names the field by the label that the form shows. */
function refusalText(error: unknown, fields: readonly FormField[]): string {
  const fault = faultOf(error, fields)
  const field = fields.find(({ name }) => name === fault?.name)
  if (fault === null || field === undefined) return failureText(error)
  return texts.faults.at(field.label, fault.reason)
}

/** Shows the changes of a save before it is made. */
function ReviewDialog(props: {
  readonly changes: readonly FormFieldChange[]
  readonly fields: readonly FormField[]
  readonly call: RecordWriteRequest
  readonly isNew: boolean
  readonly effect: AccessEffectLoad
  readonly isBusy: boolean
  /** The reason why the last attempt was refused. */
  readonly refusal: ComponentChildren
  /** True if a field of the form must be corrected first. */
  readonly hasFault: boolean
  readonly onClose: () => void
  readonly onSave: () => void
}) {
  const { changes, fields, call, isNew, effect, isBusy, refusal, hasFault, onClose, onSave } = props
  return (
    <Dialog
      title={texts.form.review}
      onClose={onClose}
      foot={
        hasFault ? (
          <Button kind="primary" onClick={onClose}>
            {texts.form.correct}
          </Button>
        ) : (
          <>
            <Button onClick={onClose}>{texts.cancel}</Button>
            <Button kind="primary" isBusy={isBusy} onClick={onSave}>
              {isNew ? texts.form.create : texts.form.save}
            </Button>
          </>
        )
      }
    >
      {refusal}
      <ChangedFields changes={changes} fields={fields} isNew={isNew} />
      {hasFault ? null : <AccessEffectResult effect={effect} />}
      <CurlCommandPanel call={call} />
    </Dialog>
  )
}
